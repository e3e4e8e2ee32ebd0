//! MP-RDMA (Lu et al., NSDI 2018): one window over many paths, and every packet takes the path of
//! the acknowledgement that lets it out.
//!
//! A path is an entropy value. Packets that no acknowledgement lets out, those of the first window
//! and those after time-outs, take new ones. So a path carries as many packets as it brings back
//! acknowledgements, less what its marks take off the window: congested paths fade, without any
//! state for each. Once a round trip one packet may take a new path instead, with a small
//! probability, to find better ones.
//!
//! The window itself is congestion control's, with which this is meant to run: `mp-rdma` also
//! tells paths that are too slow, whose acknowledgements then let nothing out. Under any other
//! window packets follow acknowledgements too.
//!
//! Invariant: an acknowledgement lets out two packets at most. What this simplifies: receivers keep
//! all that comes early, where those of the paper have a bitmap of 64 packets and a recovery mode
//! for what does not fit; nothing waits for the memory of others (its synchronise mechanism); a
//! burst that a large step of the window would cause waits for further acknowledgements
//! instead of a timer.

use super::{PathUse, Scheme, SchemeInfo};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{HostContext, Route, Unsplit};
use crate::steer::{Departure, Feedback, FlowContext, Steer};
use std::collections::VecDeque;
use weft_units::{Draw, OptionError, OptionInfo, OptionKind, Options, Stream};

/// Packets that leave on the paths of acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MpRdma {
    /// Probability, once a round trip, that a packet takes a new path.
    pub probe: f64,
}

impl Scheme for MpRdma {
    const INFO: SchemeInfo = SchemeInfo {
        name: "mp-rdma",
        summary: "every packet on the path of the acknowledgement that lets it out",
        source: "MP-RDMA (Lu et al., NSDI 2018)",
        multipath: true,
        congestion: "mp-rdma",
        options: &[OptionInfo {
            key: "probe",
            default: "0.01",
            kind: OptionKind::Number(0.0, 1.0),
            meaning: "probability, once a round trip, that a packet takes a new path",
        }],
        paths: PathUse::AsPacketsFind,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Box<Clocked>;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<MpRdma, OptionError> {
        Ok(MpRdma { probe: options.fraction("probe")? })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, context: &FlowContext<'_>) -> Box<Clocked> {
        Box::new(Clocked::new(*self, context))
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// The most packets that one acknowledgement lets out: its own place in the window, and one by
/// which that has grown.
const BURST: u32 = 2;

/// The most paths that wait for their packet: a bound for windows that are always open.
const MOST_DUE: usize = 1024;

/// A flow under [`MpRdma`].
#[derive(Clone, Debug)]
pub struct Clocked {
    scheme: MpRdma,
    stream: Stream,
    /// Paths of acknowledgements whose packet has not left yet, the oldest first.
    due: VecDeque<u16>,
    /// Packets of this round trip that are still to leave.
    round: u32,
}

impl Clocked {
    /// For one flow.
    pub fn new(scheme: MpRdma, context: &FlowContext<'_>) -> Clocked {
        let stream = Draw::new(context.seed, "mp-rdma").stream(context.flow);
        Clocked { scheme, stream, due: VecDeque::new(), round: 0 }
    }
    fn new_path(&mut self) -> u16 {
        (self.stream.bits() >> 48) as u16
    }
    /// Whether a packet that leaves while `in_flight` are out is to look for a new path.
    #[inline]
    fn probes(&mut self, in_flight: u32) -> bool {
        if self.round > 0 {
            self.round -= 1;
            return false;
        }
        // What is out now is back within a round trip.
        self.round = in_flight;
        self.stream.unit() < self.scheme.probe
    }
}

impl Steer for Clocked {
    #[inline]
    fn route(&mut self, base: Route, at: Departure) -> Route {
        let due = self.due.pop_front();
        match (base, due) {
            (Route::Pinned(_), _) => base,
            (_, Some(path)) if !self.probes(at.in_flight) => Route::Hashed(path),
            _ => Route::Hashed(self.new_path()),
        }
    }
    #[inline]
    fn on_ack(&mut self, feedback: Feedback) {
        let due = self.due.len();
        let more = feedback.room.saturating_sub(due as u32).min(BURST) as usize;
        let more = more.min(MOST_DUE - due);
        self.due.extend(std::iter::repeat_n(feedback.entropy, more));
    }
}
