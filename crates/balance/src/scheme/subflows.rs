//! Sub-flows: every message as some equal parts, each a queue pair with an entropy of its own.
//!
//! [`Subflows`] leaves the parts to the hash of the switches (Ethereal 2025 calls that MP-RDMA-x;
//! McClure et al. (2025), section 4), [`SubflowsAdaptive`] has switches place each of them as
//! [`super::EcmpAdaptive`] does (table 1 of McClure et al. 2025). Sub-flows that are no more than units of
//! accounting, on one route (its section 7), are the transport's and not here.
//!
//! Invariant: the parts of a message differ by a byte at most, and no message has more parts
//! than packets.

use super::ecmp_adaptive::{EcmpAdaptive, Per, Placing};
use super::{Scheme, SchemeInfo};
use crate::forward::loads::{Gauge, Levels};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{Carrier, HostContext, Plan, Post, Route, Starts, Subflow, Unsplit};
use crate::steer::{Fixed, FlowContext};
use weft_fabric::Fabric;
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

const COUNT: OptionInfo = OptionInfo {
    key: "count",
    default: "4",
    kind: OptionKind::Whole(1, 1024),
    meaning: "parts of a message, 1 to 1024; short messages have no more than packets",
};

fn read_count(options: &mut Options<'_>) -> Result<u32, OptionError> {
    options.number("count")
}

/// Equal parts, each on the path that its hash gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subflows {
    /// Into how many parts a message is cut. Never zero.
    pub count: u32,
}

impl Scheme for Subflows {
    const INFO: SchemeInfo = SchemeInfo {
        name: "subflows",
        summary: "every message in equal parts, one path each, chosen by the switches' hash",
        source: "MP-RDMA-x of Ethereal (2025); McClure et al. (2025)",
        numbered: Some("count"),
        options: &[COUNT],
        ..SchemeInfo::PLAIN
    };
    type Planner = Parts;
    type Steering = Fixed;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<Subflows, OptionError> {
        Ok(Subflows { count: read_count(options)? })
    }
    fn number(&self) -> Option<u32> {
        Some(self.count)
    }
    fn planner(&self, context: &HostContext) -> Parts {
        Parts::new(self.count, context)
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// Equal parts, each placed by switches past long queues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubflowsAdaptive {
    /// Into how many parts a message is cut. Never zero.
    pub count: u32,
    /// Share of the buffer above which a queue is too long for a new part.
    pub threshold: f64,
}

impl Scheme for SubflowsAdaptive {
    const INFO: SchemeInfo = SchemeInfo {
        name: "subflows-adaptive",
        summary: "every message in equal parts, one path each, past long queues",
        switches: "queue lengths, flow table",
        source: "McClure et al. (2025), table 1",
        in_switch: true,
        numbered: Some("count"),
        options: &[COUNT, EcmpAdaptive::THRESHOLD],
        ..SchemeInfo::PLAIN
    };
    type Planner = Parts;
    type Steering = Fixed;
    type Switching = Box<Placing>;

    fn read(options: &mut Options<'_>) -> Result<SubflowsAdaptive, OptionError> {
        let count = read_count(options)?;
        Ok(SubflowsAdaptive { count, threshold: options.fraction("threshold")? })
    }
    fn number(&self) -> Option<u32> {
        Some(self.count)
    }
    fn planner(&self, context: &HostContext) -> Parts {
        Parts::new(self.count, context)
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, context: &SwitchContext) -> Box<Placing> {
        let gauge = Gauge { levels: Levels::Exact, refresh: Time::ZERO };
        let placed = EcmpAdaptive { per: Per::Flow(self.threshold), gauge };
        Box::new(Placing::new(placed, context))
    }
}

/// The planner of equal parts.
#[derive(Clone, Debug)]
pub struct Parts {
    count: u64,
    mtu: u64,
    whole: Unsplit,
    starts: Starts,
}

impl Parts {
    /// For one host, `count` parts a message.
    pub fn new(count: u32, context: &HostContext) -> Parts {
        let mtu = u64::from(context.mtu.max(1));
        let whole = Unsplit::new(context);
        Parts { count: u64::from(count), mtu, whole, starts: context.starts }
    }
}

impl Plan for Parts {
    fn post(&mut self, _: Time, post: Post, _: &Fabric, out: &mut Vec<Subflow>) {
        let Post { message, dst, bytes, tag, .. } = post;
        // The first part is where the message would be as a whole; the others are next to it,
        // so that no two are alike.
        let first = self.whole.entropy(message);
        let parts = self.count.min(bytes.div_ceil(self.mtu)).max(1);
        out.extend((0u32..).take(parts as usize).map(|part| {
            let bytes = bytes / parts + u64::from(u64::from(part) < bytes % parts);
            let route = Route::Hashed(first.wrapping_add(part as u16));
            let delay = self.starts.delay(message, part);
            Subflow { message, dst, bytes, part, route, delay, tag, carrier: Carrier::Own }
        }));
    }
}
