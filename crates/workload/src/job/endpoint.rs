//! What a rank itself takes for its part in a collective, beside the network.

use weft_units::{Rate, Time};

/// How a GPU handles the messages of collectives, as ASTRA-sim's system layer has it: some time
/// before a rank sends the first one, and some time for each one that it receives, before
/// whatever depends on that. Messages are handled as they come, each on its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// Before the first messages of a rank leave, and after each one that it receives
    /// (ASTRA-sim's `endpoint-delay`).
    pub delay: Time,
    /// What the memory of a GPU reads and writes at; what is received to be added to what is there
    /// passes it three times: written, then read with the other (ASTRA-sim's `local-mem-bw`).
    /// `None`: in no time.
    pub memory: Option<Rate>,
    /// Each of these passes is rounded down to whole ones of this; zero: none is.
    pub cycle: Time,
}

/// When a rank that takes part in a collective waits until what it has sent there has been
/// acknowledged, beyond what its algorithm asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AwaitSends {
    /// Never: its part is over with the last receive, and its sends may still be under way. So in
    /// ASTRA-sim.
    #[default]
    Never,
    /// At the end, when the buffer may be used again: an MPI collective's completion.
    End,
    /// At every receive too: a step is over when both of its directions are (`MPI_Sendrecv`).
    Step,
}

impl Endpoint {
    /// What a rank takes over a message of `bytes` that it has received, before it goes on.
    pub fn takes(&self, bytes: u64, reduces: bool) -> Time {
        let Some(memory) = self.memory.filter(|_| reduces) else { return self.delay };
        let pass = memory.serialize_in(bytes, self.cycle);
        (0..3).fold(self.delay, |sum, _| sum.saturating_add(pass))
    }
}
