//! Collectives as graphs: what each rank of a group does, step by step.
//!
//! A rank works through one or several *sequences* side by side; a sequence is a sequence of
//! [`Step`]s: send, wait for a receipt, wait for an acknowledgement, have switches work. All that a sequence waits for
//! happens at its own rank, so that ranks need no common clock, and a step is computed from its
//! number, so that a collective of thousands of ranks takes no memory.
//!
//! One file an algorithm; here what they have in common, and the registry of them
//! (`docs/extend/collective.md`). Sizes are
//! exact: the buffer is cut into one block for each rank, which differ by at most a byte.
//!
//! A step is known in bytes ([`Algorithm::step`], for simulation and plans) and in blocks
//! ([`Algorithm::step_in_blocks`], for real buffers): with [`Algorithm::reduces`] that is all that
//! `weft-group` and `weft-net-bench` need to move data. Which bytes of which buffer a block is,
//! they say themselves.
//!
//! Invariant (held by tests): the receipts of a sequence come in the order in which it waits for
//! them, each from exactly one send, and no graph can deadlock.

mod blocks;
mod direct;
mod halving_doubling;
mod hierarchical;
mod in_network;
mod nvls;
mod pat;
mod ring;
mod sharp;
mod tree;

pub use blocks::{Blocks, Payload};
pub(crate) use tree::both as tree_places;

use crate::WorkloadError;
use std::ops::ControlFlow;
use weft_units::options::ResolvedOptions;
use weft_units::{OptionError, OptionInfo, Options};

/// What a collective does with the buffers of its ranks.
///
/// `bytes` of a [`Call`] is the larger buffer of a rank, as nccl-tests count it: of an all-gather
/// the gathered one, of a reduce-scatter and an all-to-all the one that is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Every rank gets the sum of all buffers.
    AllReduce,
    /// Every rank gets the blocks of all.
    AllGather,
    /// Every rank gets its block of the sum.
    ReduceScatter,
    /// Every rank gets its block of every buffer.
    AllToAll,
    /// Every rank gets the buffer of the root.
    Broadcast,
    /// The root gets the sum of all buffers.
    Reduce,
    /// Every rank sends its buffer to the next one, as `sendrecv_perf` of nccl-tests.
    SendReceive,
}

/// One use of a collective by a group of ranks, numbered from 0 within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// What is done.
    pub operation: Operation,
    /// How many ranks take part.
    pub ranks: u32,
    /// The larger buffer of a rank, in bytes.
    pub bytes: u64,
    /// Of a broadcast or a reduce.
    pub root: u32,
    /// Which ranks share a server.
    pub servers: Servers,
}

/// Servers whose ranks have consecutive numbers, equally many in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Servers {
    /// Ranks of a server: they divide those of the group.
    pub ranks: u32,
    /// NICs that these ranks share; never more than ranks.
    pub nics: u32,
}

impl Servers {
    /// Every rank has a server of its own.
    pub const EACH: Servers = Servers { ranks: 1, nics: 1 };
}

/// One step of a sequence. A payload is told in bytes, or as the [`Payload`] that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<P = u64> {
    /// Posts a message, and goes on at once.
    Send {
        /// Which rank of the group receives.
        to: u32,
        /// What is sent; a send of nothing is skipped, and so is its receipt.
        payload: P,
        /// Which sequence of that rank.
        sequence: u32,
        /// Which of that sequence's receipts, from 0.
        receipt: u32,
    },
    /// Waits for the sequence's next receipt.
    Receive {
        /// Which rank sends it.
        from: u32,
        /// What comes.
        payload: P,
    },
    /// Waits until the sequence's send of this number, from 0, has been acknowledged.
    Sent(u32),
    /// Takes part in what switches do for some of the ranks, and waits for what comes of it: the
    /// sequence's next receipt, which no send is for. [`Algorithm::switched`] says the rest.
    Switched {
        /// The larger buffer of a rank there; nothing is skipped, receipt and all.
        payload: P,
    },
}

/// What switches do for some ranks of a group: they reduce what comes from below, and copy what comes from
/// above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Switched {
    /// What they do for these ranks, as [`Call::operation`].
    pub operation: Operation,
    /// The first of the ranks that take part.
    pub first: u32,
    /// From one of these ranks to the next.
    pub stride: u32,
    /// How many they are, at least 2.
    pub ranks: u32,
    /// Of a broadcast: which of these ranks, by its place among them.
    pub root: u32,
    /// Which of several trees of these ranks.
    pub tree: u32,
    /// The larger buffer of a rank, in bytes.
    pub bytes: u64,
}

impl Switched {
    /// What the rank at `place` must give another one, and that one must get of it, in bytes.
    pub fn passes(&self, from: u32, to: u32) -> u64 {
        let block = |place: u32| Blocks::new(self.bytes, self.ranks).len(u64::from(place));
        match self.operation {
            Operation::ReduceScatter => block(to),
            Operation::AllGather => block(from),
            Operation::Broadcast if from != self.root => 0,
            Operation::Reduce if to != self.root => 0,
            _ => self.bytes,
        }
    }
    /// What the switches of a scale-up network read from the rank at `place`, with what it writes by them,
    /// and what they bring it, in bytes: of an all-reduce its owners read sums and write them to all.
    pub fn within_server(&self, place: u32) -> (u64, u64) {
        let own = Blocks::new(self.bytes, self.ranks).len(u64::from(place));
        match self.operation {
            Operation::AllReduce => (self.bytes + own, own + self.bytes),
            _ => self.volume(place),
        }
    }
    /// How many times what they do crosses the links of a scale-up network, one after the other: to what is read,
    /// back with the sum, and to what is written.
    pub fn crossings(&self) -> u64 {
        match self.operation {
            Operation::AllReduce => 3,
            Operation::ReduceScatter | Operation::Reduce => 2,
            _ => 1,
        }
    }
    /// What the rank at `place` among those that take part gives, and what it gets, in bytes.
    pub fn volume(&self, place: u32) -> (u64, u64) {
        let own = Blocks::new(self.bytes, self.ranks).len(u64::from(place));
        let is_root = place == self.root;
        let all_if = |is: bool| if is { self.bytes } else { 0 };
        match self.operation {
            Operation::ReduceScatter => (self.bytes, own),
            Operation::AllGather => (own, self.bytes),
            Operation::Broadcast => (all_if(is_root), all_if(!is_root)),
            Operation::Reduce => (all_if(!is_root), all_if(is_root)),
            _ => (self.bytes, self.bytes),
        }
    }
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 7] = [
        Operation::AllReduce,
        Operation::AllGather,
        Operation::ReduceScatter,
        Operation::AllToAll,
        Operation::Broadcast,
        Operation::Reduce,
        Operation::SendReceive,
    ];

    /// What it is called in an experiment.
    pub fn name(self) -> &'static str {
        match self {
            Operation::AllReduce => "all-reduce",
            Operation::AllGather => "all-gather",
            Operation::ReduceScatter => "reduce-scatter",
            Operation::AllToAll => "all-to-all",
            Operation::Broadcast => "broadcast",
            Operation::Reduce => "reduce",
            Operation::SendReceive => "send-recv",
        }
    }

    /// What it does, in one sentence.
    pub fn summary(self) -> &'static str {
        match self {
            Operation::AllReduce => "every rank gets the sum of all buffers",
            Operation::AllGather => "every rank gets the blocks of all",
            Operation::ReduceScatter => "every rank gets its block of the sum",
            Operation::AllToAll => "every rank gets its block of every buffer",
            Operation::Broadcast => "every rank gets the buffer of the root",
            Operation::Reduce => "the root gets the sum of all buffers",
            Operation::SendReceive => "every rank gets the buffer of the one before it",
        }
    }

    /// Bus bandwidth over algorithm bandwidth (bytes over time), as nccl-tests define them: what
    /// makes the number comparable with the rate of a link.
    pub fn bus_factor(self, ranks: u32) -> f64 {
        let n = f64::from(ranks.max(1));
        match self {
            Operation::AllReduce => 2.0 * (n - 1.0) / n,
            Operation::AllGather | Operation::ReduceScatter | Operation::AllToAll => (n - 1.0) / n,
            Operation::Broadcast | Operation::Reduce | Operation::SendReceive => 1.0,
        }
    }
}

impl Call {
    /// Of the buffer with a block for each rank, `many` blocks from block `first` on, counted round.
    pub fn blocks(&self, first: u32, many: u32) -> Payload {
        Payload { many, ..Payload::share(0, 1).block(first, self.ranks) }
    }
    /// The rank `distance` after `rank`, counting on from zero at the end.
    pub fn ahead(&self, rank: u32, distance: u32) -> u32 {
        let (sum, ranks) = (u64::from(rank) + u64::from(distance), u64::from(self.ranks));
        // Once round at most, for nearly all: dividing takes longer.
        let once = if sum >= ranks { sum - ranks } else { sum };
        (if once < ranks { once } else { once % ranks }) as u32
    }
    /// The rank `distance` before `rank`.
    pub fn behind(&self, rank: u32, distance: u32) -> u32 {
        self.ahead(rank, self.ranks - distance % self.ranks)
    }
}

/// A rank keeps a little for each sequence.
const MOST_STRANDS: u32 = 1024;
/// Enough for any window or pipeline.
const MOST_CHUNKS: u32 = 1 << 20;

/// A line of the catalogue: what an algorithm is called, does and can be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AlgorithmInfo {
    /// The value of `workload.algorithm`.
    pub name: &'static str,
    /// How it goes about it, in one sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// What it can do.
    pub operations: &'static [Operation],
    /// Its own options.
    pub options: &'static [OptionInfo],
}

/// Rounds of a collective that are all alike: in each, some of its ranks send to the next one of theirs
/// and wait for as much from the one before, in a circle. Each round is two steps of every sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The first of these ranks.
    pub first: u32,
    /// From one of these ranks to the next.
    pub stride: u32,
    /// How many ranks these are.
    pub ranks: u32,
    /// How many rounds there are, at least one.
    pub rounds: u32,
}

/// What one sequence of a rank sends and receives in the rounds of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// To which rank.
    pub to: u32,
    /// Sizes of messages in bytes, and how many there are of each; of none, zero.
    pub sends: [(u64, u64); 2],
    /// From which rank.
    pub from: u32,
    /// As `sends`.
    pub receives: [(u64, u64); 2],
}

/// An algorithm of one or several operations.
pub trait Schedule: Sized {
    /// Its line of the catalogue.
    const INFO: AlgorithmInfo;
    /// Takes its options.
    ///
    /// # Errors
    /// If a value is not what an option takes.
    fn read(options: &mut Options<'_>) -> Result<Self, OptionError>;
    /// Whether its option `key` means anything to `operation`.
    fn has_use_for(_key: &str, _operation: Operation) -> bool {
        true
    }
    /// What of `call`, one of its operations, it cannot do all the same.
    ///
    /// # Errors
    /// With one line that names the key and says what to use instead.
    fn check(&self, _call: &Call) -> Result<(), WorkloadError> {
        Ok(())
    }
    /// How many sequences a rank has; the same for all of them.
    fn sequences(&self, call: &Call) -> u32;
    /// Step `at` of a sequence; `None`: it is over.
    fn step(&self, call: &Call, rank: u32, sequence: u32, at: u32) -> Option<Step<Payload>>;
    /// How many bytes a payload of `call` has.
    #[inline]
    fn bytes(&self, call: &Call, payload: Payload) -> u64 {
        payload.bytes(call.bytes)
    }
    /// The same step, in bytes.
    fn step_in_bytes(&self, call: &Call, rank: u32, sequence: u32, at: u32) -> Option<Step> {
        Some(match self.step(call, rank, sequence, at)? {
            Step::Send { to, payload, sequence, receipt } => {
                Step::Send { to, payload: self.bytes(call, payload), sequence, receipt }
            }
            Step::Receive { from, payload } => {
                Step::Receive { from, payload: self.bytes(call, payload) }
            }
            Step::Sent(send) => Step::Sent(send),
            Step::Switched { payload } => Step::Switched { payload: self.bytes(call, payload) },
        })
    }
    /// What switches do at step `at` of a sequence, which is a [`Step::Switched`]; but for the bytes.
    fn switched(&self, _call: &Call, _rank: u32, _sequence: u32, _at: u32) -> Switched {
        unreachable!("no step of it is done by switches")
    }
    /// Phase `phase` of `rank`, from 0, if all that its sequences do are such phases, one after the other;
    /// the same number of them, of as many rounds, for all ranks.
    fn phase(&self, _call: &Call, _rank: u32, _phase: u32) -> Option<Phase> {
        None
    }
    /// What a sequence of `rank` sends and receives in all rounds of such a phase together.
    fn around(&self, _call: &Call, _rank: u32, _sequence: u32, _phase: u32) -> Option<Around> {
        None
    }
    /// At which position in a buffer block `block` of an all-reduce lies best.
    fn position(&self, _call: &Call, block: u32) -> u32 {
        block
    }
    /// Of an all-reduce: whether receipt `receipt` of `sequence` is added to what the rank has. All
    /// others it keeps as they are.
    fn adds(&self, _call: &Call, _sequence: u32, _receipt: u32) -> bool {
        false
    }
}

macro_rules! algorithms {
    ($($module:ident::$Algorithm:ident),* $(,)?) => {
        $(pub use $module::$Algorithm;)*

        /// Any of the algorithms, with its options.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Algorithm {
            $(#[doc = concat!("See [`", stringify!($Algorithm), "`].")] $Algorithm($Algorithm)),*
        }

        /// All algorithms there are.
        pub const ALGORITHMS: &[AlgorithmInfo] = &[$($Algorithm::INFO),*];

        impl Algorithm {
            /// The catalogue's line about it.
            pub fn info(&self) -> &'static AlgorithmInfo {
                match self { $(Algorithm::$Algorithm(_) => const { &$Algorithm::INFO }),* }
            }
            /// The algorithm called `name` with options as an experiment file writes them, and
            /// all options as they were understood.
            ///
            /// # Errors
            /// If the name (key `algorithm`) or an option is unknown, or a value is not what the
            /// option takes.
            pub fn resolve(
                name: &str,
                given: &[(&str, &str)],
            ) -> Result<(Algorithm, ResolvedOptions), OptionError> {
                $(if name == $Algorithm::INFO.name {
                    let owner = format!("algorithm {name:?}");
                    let mut options = Options::new(&owner, $Algorithm::INFO.options, given)?;
                    let algorithm = Algorithm::$Algorithm($Algorithm::read(&mut options)?);
                    return Ok((algorithm, options.resolve()?));
                })*
                let known: Vec<_> = ALGORITHMS.iter().map(|info| info.name).collect();
                Err(OptionError::unknown("algorithm", name, &known))
            }
            /// Whether the option `key` of the algorithm called `name` means anything to
            /// `operation`.
            pub fn has_use_for(name: &str, key: &str, operation: Operation) -> bool {
                $(if name == $Algorithm::INFO.name {
                    return $Algorithm::has_use_for(key, operation);
                })*
                true
            }
            fn check_ranks(&self, call: &Call) -> Result<(), WorkloadError> {
                match self { $(Algorithm::$Algorithm(one) => one.check(call)),* }
            }
            /// How many sequences a rank has in `call`; the same for all of them.
            pub fn sequences(&self, call: &Call) -> u32 {
                match self { $(Algorithm::$Algorithm(one) => one.sequences(call)),* }
            }
            /// Step `at`, from 0, of sequence `sequence` of `rank` in a `call` that has been
            /// [checked](Algorithm::check); `None`: the sequence is over.
            #[inline]
            pub fn step(&self, call: &Call, rank: u32, sequence: u32, at: u32) -> Option<Step> {
                match self {
                    $(Algorithm::$Algorithm(one) => one.step_in_bytes(call, rank, sequence, at)),*
                }
            }
            /// What switches do at step `at` of a sequence, which is a [`Step::Switched`] of `bytes`.
            pub fn switched(
                &self,
                call: &Call,
                (rank, sequence, at): (u32, u32, u32),
                bytes: u64,
            ) -> Switched {
                let switched = match self {
                    $(Algorithm::$Algorithm(one) => one.switched(call, rank, sequence, at)),*
                };
                Switched { bytes, ..switched }
            }
            /// The same step with its payload in blocks, for who moves data. Nothing of it depends
            /// on `call.bytes`.
            pub fn step_in_blocks(
                &self,
                call: &Call,
                rank: u32,
                sequence: u32,
                at: u32,
            ) -> Option<Step<Payload>> {
                match self {
                    $(Algorithm::$Algorithm(one) => one.step(call, rank, sequence, at)),*
                }
            }
            /// Phase `phase` of `rank`, from 0, if all that it does are such phases, one after the
            /// other; the same number of them, of as many rounds, for all ranks.
            pub fn phase(&self, call: &Call, rank: u32, phase: u32) -> Option<Phase> {
                match self { $(Algorithm::$Algorithm(one) => one.phase(call, rank, phase)),* }
            }
            /// What a sequence of `rank` sends and receives in all rounds of such a phase together.
            pub fn around(
                &self,
                call: &Call,
                rank: u32,
                sequence: u32,
                phase: u32,
            ) -> Option<Around> {
                match self {
                    $(Algorithm::$Algorithm(one) => one.around(call, rank, sequence, phase)),*
                }
            }
            /// At which position in a buffer block `block` of an all-reduce, one for each rank, lies
            /// best: so that what a message carries lies together.
            pub fn position(&self, call: &Call, block: u32) -> u32 {
                match self { $(Algorithm::$Algorithm(one) => one.position(call, block)),* }
            }
            /// All steps of a sequence of `rank`, until `each` has enough.
            pub(crate) fn walk(
                &self,
                call: &Call,
                (rank, sequence): (u32, u32),
                each: &mut impl FnMut(Step) -> ControlFlow<()>,
            ) -> ControlFlow<()> {
                // One loop an algorithm: which it is, is not asked at every step.
                match self {
                    $(Algorithm::$Algorithm(one) => {
                        let step = |at| one.step_in_bytes(call, rank, sequence, at);
                        (0..).map_while(step).try_for_each(each)
                    }),*
                }
            }
            fn adds(&self, call: &Call, sequence: u32, receipt: u32) -> bool {
                match self { $(Algorithm::$Algorithm(one) => one.adds(call, sequence, receipt)),* }
            }
        }
    };
}

// The registry: one line an algorithm.
algorithms! {
    ring::Ring,
    direct::Direct,
    halving_doubling::HalvingDoubling,
    tree::Tree,
    pat::Pat,
    hierarchical::Hierarchical,
    sharp::Sharp,
    nvls::Nvls,
}

impl Algorithm {
    /// The algorithm called `name`; see [`Algorithm::resolve`].
    ///
    /// # Errors
    /// As there.
    pub fn read(name: &str, given: &[(&str, &str)]) -> Result<Algorithm, OptionError> {
        Algorithm::resolve(name, given).map(|(algorithm, _)| algorithm)
    }

    /// The same with what it draws drawn from `seed`.
    pub fn under(self, seed: u64) -> Algorithm {
        match self {
            Algorithm::Direct(direct) => {
                let skew = direct.skew.map(|skew| skew.under(seed));
                Algorithm::Direct(Direct { skew, ..direct })
            }
            fixed => fixed,
        }
    }

    /// Whether it does `operation`, as it has been told to go about it.
    pub fn does(&self, operation: Operation) -> bool {
        self.info().operations.contains(&operation)
            && (!self.is_skewed() || operation == Operation::AllToAll)
    }

    /// Whether ranks get unequal shares of an all-to-all.
    pub fn is_skewed(&self) -> bool {
        matches!(self, Algorithm::Direct(Direct { skew: Some(_), .. }))
    }

    /// Whether switches do some of its work: [`Step::Switched`].
    pub fn is_in_network(&self) -> bool {
        matches!(self, Algorithm::Sharp(_) | Algorithm::Nvls(_))
    }

    /// Whether a rank sends all that it sends in a phase of a collective at once.
    pub fn is_at_once(&self) -> bool {
        matches!(self, Algorithm::Direct(Direct { window: None, .. }))
    }

    /// Whether what a rank receives as receipt `receipt` of `sequence` is added to what it has, as
    /// opposed to kept as it is.
    pub fn reduces(&self, call: &Call, sequence: u32, receipt: u32) -> bool {
        match call.operation {
            Operation::ReduceScatter | Operation::Reduce => true,
            Operation::AllReduce => self.adds(call, sequence, receipt),
            _ => false,
        }
    }

    /// Whether some step waits for an acknowledgement.
    pub fn awaits_acknowledgements(&self) -> bool {
        matches!(self, Algorithm::Direct(Direct { window: Some(_), .. }))
    }

    /// Whether it can do `call`.
    ///
    /// # Errors
    /// With one line that names the key and says what to use instead.
    pub fn check(&self, call: &Call) -> Result<(), WorkloadError> {
        let error = |text: String| Err(WorkloadError(text));
        let (name, operation) = (self.info().name, call.operation);
        if !self.info().operations.contains(&operation) {
            let able = ALGORITHMS.iter().filter(|info| info.operations.contains(&operation));
            let able: Vec<String> = able.map(|info| format!("{:?}", info.name)).collect();
            return error(format!(
                "algorithm: {name:?} has no {}; use {}",
                operation.name(),
                able.join(" or ")
            ));
        }
        if call.ranks < 2 {
            return error(format!("ranks: {} cannot talk; use at least 2", call.ranks));
        }
        if call.bytes == 0 {
            return error("size: 0 bytes are nothing to send; use at least 1".into());
        }
        if call.root >= call.ranks {
            let last = call.ranks - 1;
            return error(format!("root: there is no rank {}; use 0 to {last}", call.root));
        }
        self.check_ranks(call)
    }
}
