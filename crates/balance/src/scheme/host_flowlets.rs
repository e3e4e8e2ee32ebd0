//! Flowlets made by hosts: every few packets a flow may leave a path whose packets come back
//! marked.
//!
//! As in McClure et al. (2025), section 4, after PLB (Qureshi et al. 2022). The threshold of the marks
//! (60 % of the buffer there) is the fabric's. A flow counts the acknowledgements of its
//! present entropy only: those of the path that it has left say nothing about the new one.
//! The study's code sees the marks of the acknowledgements themselves, on their way back
//! ([`Marks::Answers`]).

use super::{PathUse, Scheme, SchemeInfo};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{HostContext, Route, Unsplit};
use crate::steer::{Departure, Feedback, FlowContext, Steer, TimeOut};
use weft_units::{Draw, OptionError, OptionInfo, OptionKind, Options, Stream, Time};

/// New entropy after every few packets, if many of them were marked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostFlowlets {
    /// A flow looks at this many packets before it may move. Never zero.
    pub packets: u32,
    /// It moves if a larger share of them than this was marked.
    pub bad: f64,
    /// Whose marks count.
    pub marks: Marks,
    /// Whether a time-out moves it too.
    pub time_outs: bool,
}

/// Which way marks are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// Those that data packets meet.
    Data,
    /// Those that the acknowledgements meet.
    Answers,
}

impl Scheme for HostFlowlets {
    const INFO: SchemeInfo = SchemeInfo {
        name: "host-flowlets",
        summary: "every few packets a new path, if many of them were marked",
        source: "McClure et al. (2025), flowlets in hosts after PLB (Qureshi et al. 2022)",
        multipath: true,
        options: &[
            OptionInfo {
                key: "packets",
                default: "10",
                kind: OptionKind::Whole(1, u32::MAX),
                meaning: "packets on one path before a flow may leave it, 1 or more",
            },
            OptionInfo {
                key: "bad",
                default: "0.4",
                kind: OptionKind::Number(0.0, 1.0),
                meaning: "share of marked packets above which a flow leaves a path",
            },
            OptionInfo {
                key: "marks",
                default: "data",
                kind: OptionKind::Word(&["data", "answers"]),
                meaning: "\"data\": marks that data packets meet; \"answers\": those that \
                          acknowledgements meet on their way back, as in the study's code",
            },
            OptionInfo {
                key: "time_outs",
                default: "true",
                kind: OptionKind::Flag,
                meaning: "whether a flow leaves its path after a time-out too, as under PLB",
            },
        ],
        paths: PathUse::AsPacketsFind,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Box<HostFlowlet>;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<HostFlowlets, OptionError> {
        Ok(HostFlowlets {
            packets: options.number("packets")?,
            bad: options.fraction("bad")?,
            marks: options
                .choice("marks", &[("data", Marks::Data), ("answers", Marks::Answers)])?,
            time_outs: options.flag("time_outs")?,
        })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, context: &FlowContext<'_>) -> Box<HostFlowlet> {
        Box::new(HostFlowlet::new(*self, context))
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// A flow under [`HostFlowlets`].
#[derive(Clone, Debug)]
pub struct HostFlowlet {
    scheme: HostFlowlets,
    stream: Stream,
    /// What its packets carry; `None` before the first.
    entropy: Option<u16>,
    /// Packets under this entropy that were acknowledged since it last looked.
    acked: u32,
    /// How many of them were marked.
    marked: u32,
    /// When it left a path last.
    since: Time,
}

impl HostFlowlet {
    /// For one flow.
    pub fn new(scheme: HostFlowlets, context: &FlowContext<'_>) -> HostFlowlet {
        let stream = Draw::new(context.seed, "host-flowlets").stream(context.flow);
        HostFlowlet { scheme, stream, entropy: None, acked: 0, marked: 0, since: Time::ZERO }
    }
    fn leave(&mut self, now: Time) {
        self.entropy = Some((self.stream.bits() >> 48) as u16);
        (self.acked, self.marked, self.since) = (0, 0, now);
    }
}

impl Steer for HostFlowlet {
    #[inline]
    fn route(&mut self, base: Route, _: Departure) -> Route {
        match base {
            Route::Hashed(first) => Route::Hashed(*self.entropy.get_or_insert(first)),
            pinned => pinned,
        }
    }
    #[inline]
    fn on_ack(&mut self, feedback: Feedback) {
        if self.entropy != Some(feedback.entropy) {
            return;
        }
        let marked = match self.scheme.marks {
            Marks::Data => feedback.marked,
            Marks::Answers => feedback.answer_marked,
        };
        self.acked += 1;
        self.marked += u32::from(marked);
        if self.acked < self.scheme.packets {
            return;
        }
        // Divided, the share rounds as the text of the option does.
        if f64::from(self.marked) / f64::from(self.acked) > self.scheme.bad {
            self.leave(feedback.now);
        }
        (self.acked, self.marked) = (0, 0);
    }
    fn on_time_out(&mut self, time_out: TimeOut) {
        if self.scheme.time_outs && time_out.reaches(self.since) {
            self.leave(time_out.now);
        }
    }
}
