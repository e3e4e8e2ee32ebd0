//! `[fabric.switch]`: memory, marking, pausing, trimming.

use crate::kind::{Flag, Number, OneOf, Or, Size, Span, Speed};
use crate::reader::Reader;
use crate::{ExperimentError, Origin};
use weft_balance::enforce::HashFunction;
use weft_fabric::{
    Buffer, EcnConfig, MarkAt, PacketConfig, PfcConfig, ReductionConfig, SwitchConfig, TrimConfig,
    Victim,
};
use weft_units::{Rate, Time};

type Result<T> = std::result::Result<T, ExperimentError>;

const KINDS: [&str; 2] = ["shared", "per-port"];
const SHARED: usize = 0;
const PER_PORT: usize = 1;
const ALPHA: Number = Number { min: 0.001, max: 1_000.0 };

/// What `[fabric.switch]` says.
#[derive(Clone, Copy, Debug)]
pub struct SwitchSection {
    /// Time in the switch.
    pub latency: Time,
    /// Without trimming, which may depend on other sections.
    pub switch: SwitchConfig,
    /// Whether ports that lead to hosts mark; `None`: unless receivers grant credit.
    pub mark_last_hop: Option<bool>,
    /// Whether switches trim; `None`: if the loss recovery is made for it.
    pub trims: Option<bool>,
    /// How, if they do.
    pub trim: TrimConfig,
}

/// What a topology file says of its switches; keys that are given go before.
#[derive(Clone, Debug, Default)]
pub struct Usual {
    /// Time in a switch.
    pub latency: Time,
    /// Bytes of queue at every port, or why there is no such number; `None`: it says nothing.
    pub queue: Option<std::result::Result<u64, String>>,
}

/// Reads `[fabric.switch]` of a fabric whose slowest link has `rate`.
pub fn read(
    r: &mut Reader<'_>,
    rate: Rate,
    packet: &PacketConfig,
    usual: &Usual,
) -> Result<SwitchSection> {
    let latency =
        r.get("latency", Span::ANY, Some(usual.latency), "time in a switch besides queueing")?;
    let kind = r.get(
        "buffer_kind",
        OneOf(&KINDS),
        Some(if usual.queue.is_some() { PER_PORT } else { SHARED }),
        "\"shared\" by all ports of a switch, or \"per-port\"",
    )?;
    let buffer = read_buffer(r, kind, usual)?;
    let ecn = read_ecn(r, rate, packet)?;
    const MARKS: [&str; 2] = ["enqueue", "dequeue"];
    let mark = r.get(
        "mark",
        OneOf(&MARKS),
        Some(0),
        "a packet is marked on arrival (\"enqueue\"), by the queue that it finds, or when its first \
         bit leaves (\"dequeue\"), by what waits behind it",
    )?;
    let mark = [MarkAt::Enqueue, MarkAt::Dequeue][mark];
    let whole_packets = r.get(
        "whole_packets",
        Flag,
        Some(false),
        "a packet counts in full until its last bit has left a queue; else what is left of it",
    )?;
    let mark_control = r.get(
        "mark_control",
        Flag,
        Some(false),
        "acknowledgements are marked too, and report congestion on their own way",
    )?;
    let mark_last_hop = r.get(
        "mark_last_hop",
        Or(Flag, "auto"),
        Some(None),
        "ports that lead to hosts mark, too; \"auto\": unless receivers grant credit",
    )?;
    let pfc = read_pfc(r, &buffer, packet)?;
    let (trims, trim) = read_trim(r, &buffer)?;
    if trims == Some(true) {
        check_trim(&buffer, pfc.is_some()).map_err(|what| r.wrong("trim", what))?;
    }
    let control_priority =
        r.get("control_priority", Flag, Some(false), "acknowledgements overtake data")?;
    let same_salt =
        r.get("same_salt", Flag, Some(false), "all switches hash alike (polarisation)")?;
    let names = std::iter::once("weft").chain(HashFunction::NAMED.map(|(name, _)| name));
    let names: Vec<&str> = names.collect();
    let hash = r.get(
        "hash",
        OneOf(&names),
        Some(0),
        "what switches hash with: \"weft\", a mix of a number of the flow and its source port; or a \
         function of switches that are sold, over addresses and ports",
    )?;
    let hash = hash.checked_sub(1).map(|index| HashFunction::NAMED[index].1);
    let reduction = read_reduction(r, packet)?;
    let switch = SwitchConfig {
        buffer,
        ecn,
        mark,
        trim: None,
        pfc,
        whole_packets,
        mark_control,
        mark_last_hop: mark_last_hop.unwrap_or(true),
        control_priority,
        same_salt,
        hash,
        reduction,
    };
    Ok(SwitchSection { latency, switch, mark_last_hop, trims, trim })
}

fn read_reduction(r: &mut Reader<'_>, packet: &PacketConfig) -> Result<ReductionConfig> {
    let usual = ReductionConfig::USUAL;
    let unlimited = "unlimited";
    let meaning = "what a switch adds up at, of all its ports together; of sharp and nvls";
    let rate = r.get("reduction_rate", Or(Speed, unlimited), Some(usual.rate), meaning)?;
    let meaning = "from the last contribution to a sum until that can leave";
    let latency = r.get("reduction_latency", Span::ANY, Some(usual.latency), meaning)?;
    let meaning = "memory for sums, shared by all trees over a switch";
    let memory =
        r.get("reduction_memory", Or(Size::SOME, unlimited), Some(usual.memory), meaning)?;
    let meaning =
        "payload that a rank may have sent up a tree without its result, in one operation";
    let window = r.get("reduction_window", Size::SOME, Some(usual.window), meaning)?;
    let segment = Or(Size { min: 1, max: u64::from(packet.mtu) }, "mtu");
    let meaning = "payload of a packet that goes up a tree; at most fabric.nic.mtu";
    let segment = r.get("reduction_segment", segment, Some(None), meaning)?;
    let segment = segment.map(|bytes| bytes as u32);
    Ok(ReductionConfig { rate, latency, memory, window, segment })
}

fn read_buffer(r: &mut Reader<'_>, kind: usize, usual: &Usual) -> Result<Buffer> {
    let size = match &usual.queue {
        Some(Ok(bytes)) if kind == PER_PORT => *bytes,
        Some(Err(what)) if kind == PER_PORT && !r.has("buffer") => {
            return Err(r.wrong("buffer", what));
        }
        _ => 64_000_000,
    };
    let bytes = r.get("buffer", Size::SOME, Some(size), "memory of a switch, or of a port")?;
    let alpha = r.get(
        "buffer_alpha",
        ALPHA,
        Some(1.0),
        "without PFC a queue holds at most this times what is free of a shared buffer",
    )?;
    Ok(if kind == SHARED { Buffer::Shared { bytes, alpha } } else { Buffer::PerPort { bytes } })
}

/// 65 kB at 100 Gb/s, as the code behind Ethereal (2024) has it, in proportion to the rate; but two full
/// packets are no long queue, however slow the link.
fn threshold(rate: Rate, packet: &PacketConfig) -> u64 {
    let in_proportion = u128::from(rate.as_bps()) * 65_000 / 100_000_000_000;
    (in_proportion as u64).max(two_packets(packet))
}

fn two_packets(packet: &PacketConfig) -> u64 {
    2 * u64::from(packet.mtu + packet.header)
}

fn read_ecn(r: &mut Reader<'_>, rate: Rate, packet: &PacketConfig) -> Result<Option<EcnConfig>> {
    let on = r.get("ecn", Flag, Some(true), "mark packets of long queues")?;
    let usual = threshold(rate, packet);
    let kmin = r.get(
        "ecn_kmin",
        Size::ANY,
        Some(usual),
        "no marks below this queue; 65KB for each 100Gbps of the slowest link, and two full packets \
         at least",
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

/// Whether to trim, `None` if that is left to the loss recovery, and how.
fn read_trim(r: &mut Reader<'_>, buffer: &Buffer) -> Result<(Option<bool>, TrimConfig)> {
    let trims = r.get(
        "trim",
        Or(Flag, "auto"),
        Some(None),
        "cut off the payload of what does not fit; \"auto\": if transport.recovery = \"trim\"",
    )?;
    let size = r.get(
        "trim_size",
        Or(Size { min: 1, max: 65_535 }, "full"),
        Some(Some(64)),
        "what is left of a packet; \"full\": as many bytes as before",
    )?;
    let (Buffer::PerPort { bytes } | Buffer::Shared { bytes, .. }) = *buffer;
    let queue = r.get(
        "trim_queue",
        Size::SOME,
        Some(bytes),
        "most bytes of trimmed packets that wait at a port, ahead of its data; as buffer",
    )?;
    let return_to_sender = r.get(
        "trim_return_to_sender",
        Flag,
        Some(false),
        "trimmed packets turn round at the switch instead of at the receiver",
    )?;
    const VICTIMS: [&str; 3] = ["either", "arriving", "tail"];
    let victim = r.get(
        "trim_victim",
        OneOf(&VICTIMS),
        Some(0),
        "who is trimmed: the \"arriving\" packet, the last of the queue, or one by a coin",
    )?;
    let victim = [Victim::Either, Victim::Arriving, Victim::Tail][victim];
    // A buffer that is too small for anything is to be blamed for that.
    let given = ["trim_queue", "trim_size"].into_iter().find(|key| r.has(key));
    if let (Some(size), Some(key)) = (size.filter(|size| *size > queue), given) {
        let what = match key {
            "trim_queue" => {
                format!("holds no trimmed packet; use trim_size, {size} bytes, or more")
            }
            _ => format!("is more than trim_queue holds, {queue} bytes; use less, or enlarge that"),
        };
        return Err(r.wrong(key, what));
    }
    let size = size.map(|size| size as u16);
    Ok((trims, TrimConfig { size, queue, return_to_sender, victim }))
}

impl SwitchSection {
    /// Switches for the loss recovery of this name; `wanted`: it is made for switches that trim. `credit`:
    /// receivers grant credit.
    ///
    /// # Errors
    /// If it needs them to trim, and they cannot.
    pub fn resolve(&self, recovery: &str, wanted: bool, credit: bool) -> Result<SwitchConfig> {
        let trims = self.trims.unwrap_or(wanted);
        if trims {
            let SwitchConfig { buffer, pfc, .. } = &self.switch;
            check_trim(buffer, pfc.is_some()).map_err(|what| {
                let what = format!("{recovery} has switches trim, which {what}");
                ExperimentError::new("transport.recovery", Origin::Unknown, what)
            })?;
        }
        let mark_last_hop = self.mark_last_hop.unwrap_or(!credit);
        Ok(SwitchConfig { trim: trims.then_some(self.trim), mark_last_hop, ..self.switch })
    }
}

/// Whether switches with such memory can trim, and if not, why.
pub fn check_trim(buffer: &Buffer, pfc: bool) -> std::result::Result<(), &'static str> {
    match buffer {
        Buffer::Shared { .. } => Err("needs per-port buffers; set buffer_kind = \"per-port\""),
        Buffer::PerPort { .. } if pfc => Err("never happens under PFC; set pfc = false"),
        Buffer::PerPort { .. } => Ok(()),
    }
}

fn read_pfc(
    r: &mut Reader<'_>,
    buffer: &Buffer,
    packet: &PacketConfig,
) -> Result<Option<PfcConfig>> {
    let own = match buffer {
        Buffer::Shared { .. } => None,
        Buffer::PerPort { bytes } => Some(*bytes),
    };
    let on = r.get("pfc", Flag, Some(own.is_none()), "pause the sender instead of dropping")?;
    let threshold = r.get(
        "pfc_threshold",
        Or(Size::SOME, "dynamic"),
        Some(own),
        "an ingress is paused when it holds more than this; \"dynamic\": more than its share of \
         a shared buffer; with per-port buffers as buffer",
    )?;
    if on && threshold.is_none() && own.is_some() {
        let what = "with per-port buffers there is nothing to share; give a size";
        return Err(r.wrong("pfc_threshold", what));
    }
    let alpha = r.get(
        "pfc_alpha",
        ALPHA,
        Some(1.0),
        "the share: this times what is free of the shared buffer",
    )?;
    let reserve = r.get("pfc_reserve", Size::ANY, Some(4096), "bytes kept for each ingress")?;
    let headroom = r.get(
        "pfc_headroom",
        Or(Size::ANY, "auto"),
        Some(None),
        "bytes kept for what arrives after a pause; \"auto\": just enough to lose nothing",
    )?;
    let resume_offset = r.get(
        "pfc_resume_offset",
        Size::ANY,
        Some(two_packets(packet)),
        "resume this far below the pause threshold; two full packets",
    )?;
    Ok(on.then_some(PfcConfig { threshold, alpha, reserve, headroom, resume_offset }))
}
