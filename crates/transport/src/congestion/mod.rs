//! Congestion control: how many packets may be out, and how far apart they leave.
//!
//! One file each, below; here its `mod` line and one line in the registry. A control has two halves:
//! what it is told ([`CongestionControl`], one for a run) and the state of a queue pair
//! ([`CongestionState`]). Windows of states are in packets of the MTU.
//!
//! Invariant: a control's name, options and defaults are in its [`CongestionInfo`] and nowhere else.

mod dcqcn;
mod dctcp;
mod dctcp_rate;
mod fixed_rate;
mod mp_rdma;
mod nscc;
mod nscc_rccc;
mod rccc;
mod registry;
mod swift;

pub use dctcp::dctcp_after_round;
use registry::congestion_controls;
use weft_units::options::ResolvedOptions;
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Rate, Time};

/// A congestion control, as lists and help texts show it, and what the rest of Weft must know of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CongestionInfo {
    /// The value of `transport.congestion`.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Whether it says how fast a queue pair sends, rather than how much it may have out.
    pub sets_rate: bool,
    /// Whether it goes by the marks of switches (ECN).
    pub uses_marks: bool,
    /// Whether it aims at a round-trip time ([`CongestionState::is_late`]).
    pub aims_at_delay: bool,
    /// What it can be told. Keys begin with its name, since all controls share `[transport]`.
    pub options: &'static [OptionInfo],
}

/// What a control may measure its options by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathScale {
    /// Bandwidth-delay product of the longest path, in bytes.
    pub bdp: u64,
    /// The rate of a host's link.
    pub line: Rate,
    /// The time that a full packet and its acknowledgement take over the longest path, alone.
    pub round_trip: Time,
    /// Uplinks carry less than the hosts below them.
    pub oversubscribed: bool,
}

/// What congestion control knows of delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// The round trip without queues.
    pub base_rtt: Time,
    /// The delay in queues that it aims at.
    pub target: Time,
}

/// What a congestion control is told.
pub trait CongestionControl: Copy {
    /// What lists say.
    const INFO: CongestionInfo;
    /// The state of one queue pair.
    type State: CongestionState;

    /// What it is told.
    ///
    /// # Errors
    /// If an option is not what it may be.
    fn read(options: &mut Options<'_>, path: &PathScale) -> Result<Self, OptionError>;
    /// The state of a new queue pair.
    fn state(&self, flow: &FlowPace) -> Self::State;
    /// The credit that receivers grant, which takes a recovery that reports; `None`: they grant none.
    fn credit(&self) -> Option<RcccConfig> {
        None
    }
    /// Most payload that a queue pair has under way before it has learnt anything, where that is
    /// bounded.
    fn initial_window(&self) -> Option<u64> {
        None
    }
}

/// The state of one queue pair under a congestion control.
pub trait CongestionState {
    /// Whether [`CongestionState::pacing`] may ever ask for a gap.
    const PACED: bool = false;
    /// Whether a packet that the NIC was too busy to send in time leaves the due time of the next one
    /// as it was; else gaps count from when packets left.
    const PACES_ABSOLUTELY: bool = true;
    /// Whether acknowledgements must carry a round-trip time.
    const WANTS_RTT: bool = false;

    /// How many packets may be out at once; at least one, unless credit decides.
    #[inline(always)]
    fn window(&self) -> u32 {
        u32::MAX
    }
    /// The most that it may become.
    fn largest_window(&self) -> u32 {
        self.window()
    }
    /// What it knows of delays, if it aims at one in queues.
    fn delays(&self) -> Option<Delays> {
        None
    }
    /// All the credit that it could use from its start on, in quanta of [`QUANTUM`](crate::credit::QUANTUM)
    /// bytes, wrapping, when `backlog` packets wait to leave and `sharing` queue pairs of its NIC have
    /// something to send; `None`: it needs none.
    fn pull_target(&self, backlog: u32, sharing: u32) -> Option<u32> {
        let _ = (backlog, sharing);
        None
    }
    /// The receiver says how much it has granted from the start on, in the same unit.
    fn on_credit(&mut self, granted: u32) {
        let _ = granted;
    }
    /// [`CongestionState::PACED`], unless an option changes it.
    #[inline(always)]
    fn is_paced(&self) -> bool {
        Self::PACED
    }
    /// From the departure of a packet of `wire_bytes`, headers included, to that of the next;
    /// `None`: the NIC may send back to back.
    #[inline(always)]
    fn pacing(&self, wire_bytes: u32) -> Option<Time> {
        let _ = wire_bytes;
        None
    }
    /// A packet of `wire_bytes`, headers included, leaves; [`CongestionState::pacing`] tells the gap
    /// after it.
    #[inline(always)]
    fn on_send(&mut self, now: Time, wire_bytes: u32) {
        let _ = (now, wire_bytes);
    }
    /// Whether a round trip was longer than it aims at now.
    #[inline(always)]
    fn is_late(&self, rtt: Time) -> bool {
        let _ = rtt;
        false
    }
    /// An acknowledgement came back.
    fn on_ack(&mut self, ack: &AckInfo);
    /// A loss was detected at `now`.
    fn on_loss(&mut self, now: Time, loss: Loss);
}

/// What loss recovery concluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The receiver reported a gap.
    Gap,
    /// A switch cut off the payload of a packet.
    Trimmed {
        /// The switch of the receiver's own link.
        last_hop: bool,
        /// Packets that were out, with that one.
        in_flight: u32,
    },
    /// A timer ran out.
    TimeOut,
}

/// What a new queue pair tells its congestion control about itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowPace {
    /// Payload bytes of a full packet.
    pub mtu: u32,
    /// A fixed rate of its own, of data packets with their headers.
    pub rate: Option<Rate>,
    /// It may send at no more than its NIC's line rate over this, where congestion control sets a
    /// rate. Never zero.
    pub share: u32,
    /// Links of its path, one way.
    pub hops: u32,
    /// Bytes of the header of a data packet.
    pub header: u32,
    /// Whether switches trim what finds no room.
    pub trims: bool,
}

impl FlowPace {
    /// A full packet, with its header.
    pub fn wire_bytes(&self) -> u32 {
        self.mtu + self.header
    }
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckInfo {
    /// The time at which it came.
    pub now: Time,
    /// The number of the packet that it answers.
    pub seq: u32,
    /// Packets that it newly acknowledges.
    pub packets: u32,
    /// The packet that it answers met congestion (ECN).
    pub marked: bool,
    /// Packets that were out before it.
    pub in_flight: u32,
    /// From the departure of the packet that it answers to `now`; zero: not known, or not asked
    /// for ([`Congestion::wants_rtt`]).
    pub rtt: Time,
}

// The registry: one line a control, with what it is told and the state of a queue pair.
congestion_controls! {
    dctcp::Dctcp(DctcpConfig),
    dctcp_rate::DctcpRate(DctcpRateConfig),
    dcqcn::Dcqcn(DcqcnConfig),
    fixed_rate::FixedRate(FixedRateConfig),
    swift::Swift(SwiftConfig),
    mp_rdma::MpRdma(MpRdmaConfig),
    nscc::Nscc(NsccConfig),
    rccc::Rccc(RcccConfig),
    nscc_rccc::NsccRccc(NsccRcccConfig),
}

/// Every flow has one, and each packet sent or acknowledged touches it.
const _: () = assert!(size_of::<Congestion>() <= 40);

/// The option of a first window.
const fn initial_window(key: &'static str) -> OptionInfo {
    let meaning = "window at the start; a size, or times the BDP";
    OptionInfo { key, default: "1bdp", kind: OptionKind::Window, meaning }
}
/// The option of a largest window.
const fn max_window(key: &'static str) -> OptionInfo {
    let meaning = "the window never grows beyond; a size, or times the BDP";
    OptionInfo { key, default: "8bdp", kind: OptionKind::Window, meaning }
}
/// The first and the largest window, in bytes, by their keys.
fn read_windows(
    o: &mut Options<'_>,
    [first, most]: [&str; 2],
    path: &PathScale,
) -> Result<(u64, u64), OptionError> {
    let (initial, max) = (o.window(first, path.bdp)?, o.window(most, path.bdp)?);
    if max >= initial {
        return Ok((initial, max));
    }
    Err(match o.has(most) {
        true => OptionError::new(most, format!("is below {first}; raise it or lower that")),
        false => OptionError::new(first, format!("is above {most}; lower it or raise that")),
    })
}
