//! `[fabric.switch]`: memory, marking, pausing.

use crate::error::ExperimentError;
use crate::kind::{Flag, Number, OneOf, Or, Size, Span};
use crate::reader::Reader;
use weft_sim::{Buffer, EcnConfig, PacketConfig, PfcConfig, SwitchConfig};
use weft_units::{Rate, Time};

type Result<T> = std::result::Result<T, ExperimentError>;

const KINDS: [&str; 2] = ["shared", "per-port"];
const SHARED: usize = 0;
const ALPHA: Number = Number { min: 0.001, max: 1_000.0 };

/// Reads `[fabric.switch]` of a fabric whose slowest link has `rate`: latency and the rest.
pub(crate) fn read(
    r: &mut Reader<'_>,
    rate: Rate,
    packet: &PacketConfig,
) -> Result<(Time, SwitchConfig)> {
    let latency =
        r.get("latency", Span::ANY, Some(Time::ZERO), "time in a switch besides queueing")?;
    let kind = r.get(
        "buffer_kind",
        OneOf(&KINDS),
        Some(SHARED),
        "\"shared\" by all ports of a switch, or \"per-port\"",
    )?;
    let buffer = read_buffer(r, kind)?;
    let ecn = read_ecn(r, rate)?;
    let pfc = read_pfc(r, kind, packet)?;
    let control_priority =
        r.get("control_priority", Flag, Some(false), "acknowledgements overtake data")?;
    let same_salt =
        r.get("same_salt", Flag, Some(false), "all switches hash alike (polarisation)")?;
    Ok((latency, SwitchConfig { buffer, ecn, pfc, control_priority, same_salt }))
}

fn read_buffer(r: &mut Reader<'_>, kind: usize) -> Result<Buffer> {
    let bytes =
        r.get("buffer", Size::SOME, Some(64_000_000), "memory of a switch, or of a port")?;
    let alpha = r.get(
        "buffer_alpha",
        ALPHA,
        Some(1.0),
        "without PFC a queue holds at most this times what is free of a shared buffer",
    )?;
    Ok(if kind == SHARED { Buffer::Shared { bytes, alpha } } else { Buffer::PerPort { bytes } })
}

/// 65 kB at 100 Gb/s, as the code behind paper 001 has it, in proportion to the rate.
fn threshold(rate: Rate) -> u64 {
    (u128::from(rate.as_bps()) * 65_000 / 100_000_000_000).max(1) as u64
}

fn read_ecn(r: &mut Reader<'_>, rate: Rate) -> Result<Option<EcnConfig>> {
    let on = r.get("ecn", Flag, Some(true), "mark packets of long queues")?;
    let usual = threshold(rate);
    let kmin = r.get(
        "ecn_kmin",
        Size::ANY,
        Some(usual),
        "no marks below this queue; 65KB for each 100Gbps of the slowest link",
    )?;
    let kmax = r.get(
        "ecn_kmax",
        Size::ANY,
        Some(usual.max(kmin)),
        "every packet is marked above this queue; as ecn_kmin unless that is raised",
    )?;
    let share = Number { min: 0.0, max: 1.0 };
    let pmax =
        r.get("ecn_pmax", share, Some(1.0), "share of packets marked just below ecn_kmax")?;
    if kmin > kmax {
        let what = "is below ecn_kmin; raise it to ecn_kmin or more";
        return Err(r.wrong("ecn_kmax", what));
    }
    Ok(on.then_some(EcnConfig { kmin, kmax, pmax }))
}

fn read_pfc(r: &mut Reader<'_>, kind: usize, packet: &PacketConfig) -> Result<Option<PfcConfig>> {
    let shared = kind == SHARED;
    let on = r.get(
        "pfc",
        Flag,
        Some(shared),
        "pause the sender instead of dropping; shared buffer only",
    )?;
    if on && !shared {
        let what = "needs a shared buffer; set buffer_kind = \"shared\" or pfc = false";
        return Err(r.wrong("pfc", what));
    }
    let alpha = r.get(
        "pfc_alpha",
        ALPHA,
        Some(1.0),
        "an ingress is paused when it holds more than this times the free shared buffer",
    )?;
    let reserve = r.get("pfc_reserve", Size::ANY, Some(4096), "bytes kept for each ingress")?;
    let headroom = r.get(
        "pfc_headroom",
        Or(Size::ANY, "auto"),
        Some(None),
        "bytes kept for what arrives after a pause; \"auto\": just enough to lose nothing",
    )?;
    let two_packets = 2 * u64::from(packet.mtu + packet.header);
    let resume_offset = r.get(
        "pfc_resume_offset",
        Size::ANY,
        Some(two_packets),
        "resume this far below the pause threshold; two full packets",
    )?;
    Ok(on.then_some(PfcConfig { alpha, reserve, headroom, resume_offset }))
}
