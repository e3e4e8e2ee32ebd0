//! Congestion controls that set a rate and have no window: DCTCP as a rate, and DCQCN.

use super::super::transport::Context;
use super::{Result, SHARE, Sending};
use crate::kind::{Flag, Integer, Or, Size, Span, Speed};
use crate::reader::Reader;
use weft_transport::{CongestionConfig, DcqcnConfig, DctcpRateConfig};
use weft_units::{Rate, Time};

pub(super) fn dctcp_rate(r: &mut Reader<'_>, context: &Context) -> Result<Sending> {
    let gain = r.get(
        "dctcp_rate_gain",
        SHARE,
        Some(1.0 / 256.0),
        "weight of the newest round trip in the average",
    )?;
    let initial_alpha =
        r.get("dctcp_rate_initial_alpha", SHARE, Some(1.0), "share of marks assumed at first")?;
    let increase = r.get(
        "dctcp_rate_increase",
        Speed,
        Some(Rate::gbps(1)),
        "what the rate grows by in a round trip without a cut",
    )?;
    let least =
        r.get("dctcp_rate_least", Speed, Some(Rate::bps(100_000_000)), "the lowest rate")?;
    let config = DctcpRateConfig { gain, initial_alpha, line: context.line, least, increase };
    Ok(CongestionConfig::DctcpRate(config).into())
}

/// A byte counter that runs out more than once a packet would count packets.
const COUNTER: Size = Size { min: 65_536, max: 1_000_000_000_000 };

pub(super) fn dcqcn(r: &mut Reader<'_>, context: &Context) -> Result<Sending> {
    let usual = DcqcnConfig::published(context.line);
    let cnp_interval = r.get(
        "dcqcn_cnp_interval",
        Span::ANY,
        Some(usual.cnp_interval),
        "marks count as one notification, and cut the rate, at most so often",
    )?;
    let alpha_timer = r.get(
        "dcqcn_alpha_timer",
        TIMER,
        Some(usual.alpha_timer),
        "time without a notification after which alpha decays, again and again",
    )?;
    let increase_timer = r.get(
        "dcqcn_increase_timer",
        TIMER,
        Some(usual.increase_timer),
        "the rate is raised whenever so much time has passed since the last cut",
    )?;
    let byte_counter = r.get(
        "dcqcn_byte_counter",
        Or(COUNTER, "none"),
        Some(usual.byte_counter),
        "and whenever so many bytes have left since; \"none\": the timer alone counts, as in NICs",
    )?;
    let fast_recovery = r.get(
        "dcqcn_fast_recovery",
        Integer { min: 0, max: 1_000 },
        Some(usual.fast_recovery),
        "how often timer or counter run out before the target grows",
    )?;
    let increase = r.get(
        "dcqcn_increase",
        Speed,
        Some(usual.increase),
        "what the target then grows by each time",
    )?;
    let hyper_increase = r.get(
        "dcqcn_hyper_increase",
        Speed,
        Some(usual.hyper_increase),
        "what it grows by once both have run out more often; times how much more often, if there \
         is a counter",
    )?;
    let gain =
        r.get("dcqcn_gain", SHARE, Some(usual.gain), "weight of the newest mark in alpha")?;
    let clamp = r.get(
        "dcqcn_clamp",
        Flag,
        Some(usual.clamp),
        "every cut makes the rate the target; false: only one that follows an increase",
    )?;
    let gaps = r.get(
        "dcqcn_gaps",
        Flag,
        Some(usual.gaps),
        "a gap that the receiver reports counts as a mark, as in NICs",
    )?;
    let least = r.get("dcqcn_least", Speed, Some(usual.least), "the lowest rate")?;
    let config = DcqcnConfig {
        cnp_interval,
        alpha_timer,
        increase_timer,
        byte_counter,
        fast_recovery,
        increase,
        hyper_increase,
        gain,
        clamp,
        gaps,
        line: context.line,
        least,
    };
    Ok(CongestionConfig::Dcqcn(config).into())
}

/// Shorter ones would run out many times a packet.
const TIMER: Span = Span { min: Time::ns(1), ..Span::ANY };
