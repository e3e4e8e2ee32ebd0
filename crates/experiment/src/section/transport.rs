//! `[transport]`: congestion control and loss recovery.

use crate::error::ExperimentError;
use crate::kind::{Number, OneOf, Or, Span, Speed, Window, Windows};
use crate::reader::{Asked, Choice, Reader};
use crate::value::Table;
use weft_balance::scheme::SchemeConfig;
use weft_transport::{CongestionConfig, DctcpConfig, RecoveryConfig, TransportConfig};
use weft_units::Time;

type Result<T> = std::result::Result<T, ExperimentError>;

/// What the sections before this one determine.
pub(crate) struct Context {
    /// Bandwidth-delay product of the longest path, in bytes.
    pub(crate) bdp: u64,
    /// The time that a packet and its acknowledgement take over it, alone.
    pub(crate) round_trip: Time,
}

/// All congestion controls.
pub(crate) const CONGESTION: &[Choice<Context, CongestionConfig>] = &[
    Choice {
        name: "dctcp",
        summary: "window cut in proportion to the share of marked bytes; starts at one BDP",
        source: "Alizadeh et al. (SIGCOMM 2010); Ethereal (2024, 2025)",
        decode: dctcp,
    },
    Choice {
        name: "fixed-rate",
        summary: "always the same rate, whatever happens",
        source: "McClure et al. (2025)",
        decode: fixed_rate,
    },
];

/// Loss recovery: name, summary, source.
pub(crate) const RECOVERY: [(&str, &str, &str); 3] = [
    (
        "natural",
        "what the scheme is used with: go-back-n on single paths, selective-repeat on several",
        "Ethereal (2024, 2025)",
    ),
    (
        "go-back-n",
        "one NACK a gap, everything sent again from there; nothing kept out of order",
        "RoCE; Ethereal (2024, 2025); McClure et al. (2025)",
    ),
    (
        "selective-repeat",
        "reorder buffer at the receiver, a timer for every packet at the sender, no NACKs",
        "Ethereal (2024, 2025), for spraying",
    ),
];

/// Said when packets may overtake each other on the way to a receiver that keeps none.
pub(crate) const SPRAY_OVER_GO_BACK_N: &str = "spray over go-back-N without a reorder buffer: \
     every packet that overtakes another triggers a NACK and a rewind; expect many packets to \
     be sent again";

const LONGEST_RTO: Time = Time::secs(100);

/// Reads `[transport]` for `scheme`; also what to warn of.
pub(crate) fn read(
    r: &mut Reader<'_>,
    context: &Context,
    scheme: &SchemeConfig,
) -> Result<(TransportConfig, Option<String>)> {
    let congestion =
        r.choose("congestion", Some("dctcp"), "how much and how fast", CONGESTION, context)?;
    let names = RECOVERY.map(|(name, _, _)| name);
    let recovery = r.get("recovery", OneOf(&names), Some(0), "what happens after a loss")?;
    let recovery = match names[recovery] {
        "go-back-n" => RecoveryConfig::GoBackN,
        "selective-repeat" => RecoveryConfig::SelectiveRepeat,
        _ if scheme.is_multipath() => RecoveryConfig::SelectiveRepeat,
        _ => RecoveryConfig::GoBackN,
    };
    let rewinds = recovery == RecoveryConfig::GoBackN;
    r.settle("recovery", if rewinds { "go-back-n" } else { "selective-repeat" });
    let rto = read_rto(r)?;
    if rto > LONGEST_RTO {
        return Err(r.wrong("rto", format!("{rto} is beyond patience; use at most {LONGEST_RTO}")));
    }
    if rto < context.round_trip {
        let what = format!(
            "{rto} is below the round trip of an idle path ({}), so that every packet would time \
             out; raise it",
            context.round_trip
        );
        return Err(r.wrong("rto", what));
    }
    let warning = (rewinds && scheme.is_multipath())
        .then(|| format!("{}: {SPRAY_OVER_GO_BACK_N}", scheme.name()));
    Ok((TransportConfig { congestion, recovery, rto }, warning))
}

fn read_rto(r: &mut Reader<'_>) -> Result<Time> {
    let meaning = "time without progress after which a flow, or a packet, counts as lost";
    r.get("rto", Span::SOME, Some(Time::ms(1)), meaning)
}

/// The keys of every loss recovery.
pub(crate) fn recovery_keys() -> Vec<Asked> {
    let empty = Table::new();
    let mut r = Reader::rehearse("transport", &empty);
    let _ = read_rto(&mut r);
    r.asked().to_vec()
}

fn dctcp(r: &mut Reader<'_>, context: &Context) -> Result<CongestionConfig> {
    let share = Number { min: 0.0, max: 1.0 };
    let gain =
        r.get("dctcp_gain", share, Some(0.0625), "weight of the newest window in the average")?;
    let initial_alpha =
        r.get("dctcp_initial_alpha", share, Some(0.0), "share of marked bytes assumed at first")?;
    let first = r.get(
        "dctcp_initial_window",
        Windows,
        Some(Window::Bdp(1.0)),
        "window at the start and after a time-out; a size, or times the BDP",
    )?;
    let most = r.get(
        "dctcp_max_window",
        Windows,
        Some(Window::Bdp(8.0)),
        "the window never grows beyond; a size, or times the BDP",
    )?;
    let (initial_window, max_window) = (first.bytes(context.bdp), most.bytes(context.bdp));
    if max_window < initial_window {
        let what = "is below dctcp_initial_window; raise it or lower that";
        return Err(r.wrong("dctcp_max_window", what));
    }
    Ok(CongestionConfig::Dctcp(DctcpConfig { gain, initial_alpha, initial_window, max_window }))
}

fn fixed_rate(r: &mut Reader<'_>, _: &Context) -> Result<CongestionConfig> {
    let rate = r.get(
        "rate",
        Or(Speed, "line"),
        Some(None),
        "of data packets with headers; \"line\": the NIC's own",
    )?;
    Ok(CongestionConfig::FixedRate { rate })
}
