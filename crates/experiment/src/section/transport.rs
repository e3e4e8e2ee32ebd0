//! `[transport]`: congestion control and loss recovery.
//!
//! The options of recoveries stay with the recoveries: this reads whatever the registry lists.

use super::options;
use super::sending::{self, Sending};
use crate::error::ExperimentError;
use crate::kind::{Integer, OneOf, Or, Span};
use crate::pace::{PaceConfig, Subflows};
use crate::reader::{Asked, Reader, keys_asked_by};
use weft_balance::scheme::{SCHEMES, SchemeConfig};
use weft_transport::{
    CongestionConfig, PathScale, RECOVERIES, RecoveryConfig, RecoveryInfo, TransportConfig,
};
use weft_units::{Rate, Time};

type Result<T> = std::result::Result<T, ExperimentError>;

/// What the sections before this one determine.
pub(crate) struct Context {
    /// Bandwidth-delay product of the longest path, in bytes.
    pub(crate) bdp: u64,
    /// The time that a packet and its acknowledgement take over it, alone.
    pub(crate) round_trip: Time,
    /// The rate of a host's link.
    pub(crate) line: Rate,
    /// Uplinks carry less than the hosts below them.
    pub(crate) oversubscribed: bool,
}

/// Both axes, and the time-out, if the experiment names one; else it follows from the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transport {
    /// How much and how fast a queue pair sends.
    pub congestion: CongestionConfig,
    /// How it recovers from loss.
    pub recovery: RecoveryConfig,
    /// As [`TransportConfig::rto`].
    pub rto: Option<Time>,
}

impl Transport {
    /// For a run that `suited` would suit.
    pub(crate) fn with(&self, suited: Time) -> TransportConfig {
        let Transport { congestion, recovery, rto } = *self;
        // TCP does that by itself.
        let backs_off = rto.is_none() && !matches!(recovery, RecoveryConfig::Tcp(_));
        TransportConfig { congestion, recovery, rto: rto.unwrap_or(suited), backs_off }
    }
}

/// What `[transport]` says.
#[derive(Clone, Debug)]
pub(crate) struct TransportSection {
    pub(crate) transport: Transport,
    pub(crate) pace: PaceConfig,
    /// What to warn of.
    pub(crate) warning: Option<String>,
}

/// What suits the scheme.
pub(crate) const NATURAL: (&str, &str, &str) = (
    "natural",
    "what the scheme is used with: go-back-n on single paths, selective-repeat on several, \
     selective-nack under themis",
    "Ethereal (2024, 2025)",
);

/// Said when packets may overtake each other on the way to a receiver that keeps none.
pub(crate) const SPRAY_OVER_GO_BACK_N: &str = "spray over go-back-N without a reorder buffer: \
     every packet that overtakes another triggers a NACK and a rewind; expect many packets to \
     be sent again";

/// How often in a round trip a timer may run.
const MOST_LOOKS: u64 = 16;
pub(crate) const LONGEST_RTO: Time = Time::secs(100);

/// Reads `[transport]` for `scheme`.
pub(crate) fn read(
    r: &mut Reader<'_>,
    context: &Context,
    scheme: &SchemeConfig,
) -> Result<TransportSection> {
    let Context { bdp, round_trip, line, oversubscribed } = *context;
    let path = PathScale { bdp, line, round_trip, oversubscribed };
    let natural = if scheme.follows_delay() { "swift" } else { scheme.info().congestion };
    let Sending { congestion, mut pace } = sending::read(r, natural, &path)?;
    if scheme.follows_delay() && !congestion.info().aims_at_delay {
        let what = format!(
            "{} goes by the delay that congestion control aims at, and this aims at none; set \
             transport.congestion = \"swift\"",
            scheme.name()
        );
        return Err(r.wrong("congestion", what));
    }
    let recovery = read_recovery(r, scheme)?;
    check_fit(r, &congestion, &recovery)?;
    pace.subflows = read_subflows(r, &recovery)?;
    check_persistent(r, scheme, &congestion, pace.subflows)?;
    let rto = read_rto(r)?;
    if let Some(rto) = rto
        && rto > LONGEST_RTO
    {
        return Err(r.wrong("rto", format!("{rto} is beyond patience; use at most {LONGEST_RTO}")));
    }
    if let Some(rto) = rto
        && rto < context.round_trip
    {
        let what = format!(
            "{rto} is below the round trip of an idle path ({}), so that every packet would time \
             out; raise it",
            context.round_trip
        );
        return Err(r.wrong("rto", what));
    }
    if let RecoveryConfig::Tcp(tcp) = &recovery
        && r.has("min_rto")
        && tcp.min_rto.0 < context.round_trip.0 / MOST_LOOKS
    {
        let round_trip = context.round_trip;
        let what = format!(
            "is below a {MOST_LOOKS}th of the round trip of an idle path ({round_trip}), and timers \
             run as often as that; raise it"
        );
        return Err(r.wrong("min_rto", what));
    }
    let rewinds = !recovery.info().keeps_order && scheme.is_multipath();
    let warning = rewinds.then(|| format!("{}: {SPRAY_OVER_GO_BACK_N}", scheme.name()));
    let transport = Transport { congestion, recovery, rto };
    Ok(TransportSection { transport, pace, warning })
}

/// The keys of `[transport]`, with those of what is usual under the first scheme, which hashes flows.
pub(crate) fn section_keys() -> Vec<Asked> {
    let (round_trip, line) = (Time::us(1), Rate::gbps(100));
    let context = Context { bdp: 1, round_trip, line, oversubscribed: false };
    let (scheme, _) = SchemeConfig::resolve(SCHEMES[0].name, &[]).expect("it is in the registry");
    keys_asked_by("transport", |r| read(r, &context, &scheme))
}

/// Whether these go together.
fn check_fit(
    r: &Reader<'_>,
    congestion: &CongestionConfig,
    recovery: &RecoveryConfig,
) -> Result<()> {
    match weft_transport::unfit(congestion, recovery) {
        None => Ok(()),
        Some(why) => {
            let what = format!("{why}; set transport.recovery = \"uet\"");
            Err(r.wrong("congestion", what))
        }
    }
}

/// Whether persistent queue pairs can be had with these.
fn check_persistent(
    r: &Reader<'_>,
    scheme: &SchemeConfig,
    congestion: &CongestionConfig,
    subflows: Subflows,
) -> Result<()> {
    let info = scheme.info();
    if info.persistent && subflows != Subflows::Fixed(1) {
        let what = format!("{} has queue pairs of its own; leave it at 1", info.name);
        return Err(r.wrong("subflows", what));
    }
    if info.shares && !congestion.info().sets_rate {
        let what = format!(
            "{}'s queue pairs send at a share of line rate, which takes a control that sets a \
             rate; use dctcp-rate, dcqcn or fixed-rate",
            info.name
        );
        return Err(r.wrong("congestion", what));
    }
    Ok(())
}

/// The recovery with its options; `natural` becomes what it stands for.
fn read_recovery(r: &mut Reader<'_>, scheme: &SchemeConfig) -> Result<RecoveryConfig> {
    let names: Vec<&str> =
        std::iter::once(NATURAL.0).chain(RECOVERIES.iter().map(|info| info.name)).collect();
    let taken = r.get("recovery", OneOf(&names), Some(0), "what happens after a loss")?;
    let natural = match (scheme.info().recovery, scheme.is_multipath()) {
        (Some(name), _) => name,
        (None, true) => RecoveryConfig::SELECTIVE_REPEAT.info().name,
        (None, false) => RecoveryConfig::GO_BACK_N.info().name,
    };
    let natural =
        RECOVERIES.iter().find(|info| info.name == natural).expect("it is in the registry");
    let info = match taken {
        0 => natural,
        taken => &RECOVERIES[taken - 1],
    };
    for other in RECOVERIES.iter().filter(|other| other.name != info.name) {
        let keys = other.options.iter().map(|option| option.key.to_owned());
        r.others("recovery", info.name, other.name, keys);
    }
    let recovery =
        options::read(r, info.options, |given| RecoveryConfig::resolve(info.name, given))?;
    r.record("recovery", info.name);
    Ok(recovery)
}

fn read_subflows(r: &mut Reader<'_>, recovery: &RecoveryConfig) -> Result<Subflows> {
    let count = r.get(
        "subflows",
        Or(Integer { min: 1, max: 65_536 }, "auto"),
        Some(Some(1)),
        "queue pairs, on one route, into which accounting cuts every flow; \"auto\": the least \
         that keeps spraying from looking like loss",
    )?;
    Ok(match (count, recovery) {
        (Some(count), _) => Subflows::Fixed(count),
        (None, RecoveryConfig::Tcp(tcp)) => Subflows::Against(tcp.dup_acks),
        // A NACK is a duplicate acknowledgement with a threshold of one.
        (None, RecoveryConfig::GoBackN(_)) => Subflows::Against(1),
        (None, _) => Subflows::Fixed(1),
    })
}

fn read_rto(r: &mut Reader<'_>) -> Result<Option<Time>> {
    let meaning = "time without progress after which a flow, or a packet, counts as lost; where \
                   TCP's adaptive time-out starts; \"auto\": longer than packets can queue, from \
                   fabric, buffers and messages, and doubled while nothing gets through";
    r.get("rto", Or(Span::SOME, "auto"), Some(None), meaning)
}

/// The keys of a loss recovery; `None`: of all.
pub(crate) fn recovery_keys(info: Option<&RecoveryInfo>) -> Vec<Asked> {
    keys_asked_by("transport", |r| {
        if let Some(info) = info {
            options::read(r, info.options, |given| RecoveryConfig::resolve(info.name, given))?;
        }
        read_subflows(r, &RecoveryConfig::GO_BACK_N)?;
        read_rto(r)
    })
}
