//! How good ports are, as chips measure and quantise it, and the choice of flowlets by that.
//!
//! A switch measures each port every [`Options::sample`]: what it has sent since, against what its rate allows, and
//! what it has in its queue, against what it sends in that time. Each is averaged (new = old + (sample - old) /
//! 2^exponent), both are weighted alike and cut into [`Options::bands`] bands. Of the hops of a packet those in the
//! best band are equally good, and one is drawn. Flows share a table of few entries by their hash (macro-flows); an
//! entry keeps its hop until it was idle for [`Options::idle`].
//!
//! Source: `saiars.h`, `saiarsprofile.h` and `doc/ARS` of the Switch Abstraction Interface, whose defaults these
//! are. What is ours: bytes count when a packet is queued at a port, since they will leave it; packets that have
//! one hop only, or follow a path id, are not counted. Rates are those of the fabric: that a link has become slow shows
//! in its queue. Alternate (longer) paths are left out.

use super::{Forward, Hops, Passing};
use rustc_hash::FxHashMap;
use weft_fabric::Fabric;
use weft_units::{Draw, OptionError, OptionInfo, OptionKind, PortId, Rate, Stream, SwitchId, Time};

/// What switches are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What chooses when.
    pub mode: Mode,
    /// An entry of the table may get another hop once it was idle for longer than this.
    pub idle: Time,
    /// Entries of the table. Never zero.
    pub flows: u32,
    /// How often ports are measured. Never zero.
    pub sample: Time,
    /// Of both averages.
    pub exponent: u32,
    /// Bands of quality, from 1 to 256.
    pub bands: u32,
}

/// What chooses when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// For a flow that has paused, the best band.
    FlowletQuality,
    /// For a flow that has paused, chance.
    FlowletRandom,
    /// For every packet, the best band.
    PacketQuality,
    /// For every packet, chance.
    PacketRandom,
    /// For a new flow, the best band: it stays.
    Fixed,
}

impl Options {
    /// Their names and defaults.
    pub const INFO: &[OptionInfo] = &[
        OptionInfo {
            key: "mode",
            default: "flowlet-quality",
            kind: OptionKind::Word(&[
                "flowlet-quality",
                "flowlet-random",
                "packet-quality",
                "packet-random",
                "fixed",
            ]),
            meaning: "\"flowlet-quality\": the best band for a flow that has paused; \"flowlet-random\": \
                          any hop; \"packet-quality\" and \"packet-random\": for every packet; \"fixed\": for a \
                          new flow, which stays",
        },
        OptionInfo {
            key: "idle",
            default: "256us",
            kind: OptionKind::Time(Time::ZERO),
            meaning: "pause after which a flow may get another hop",
        },
        OptionInfo {
            key: "flows",
            default: "512",
            kind: OptionKind::Whole(1, 1 << 16),
            meaning: "entries of a switch's flow table, 1 to 65536; flows with the same hash share one",
        },
        OptionInfo {
            key: "sample",
            default: "16us",
            kind: OptionKind::Time(Time::ns(1)),
            meaning: "how often a switch measures its ports",
        },
        OptionInfo {
            key: "exponent",
            default: "2",
            kind: OptionKind::Whole(0, 15),
            meaning: "a new sample counts 1 / 2^exponent in the average, 0 to 15",
        },
        OptionInfo {
            key: "bands",
            default: "8",
            kind: OptionKind::Whole(1, 256),
            meaning: "bands of quality, 1 to 256",
        },
    ];

    /// Reads them.
    ///
    /// # Errors
    /// If one is not what it may be.
    pub fn read(options: &mut weft_units::Options<'_>) -> Result<Options, OptionError> {
        let modes = [
            ("flowlet-quality", Mode::FlowletQuality),
            ("flowlet-random", Mode::FlowletRandom),
            ("packet-quality", Mode::PacketQuality),
            ("packet-random", Mode::PacketRandom),
            ("fixed", Mode::Fixed),
        ];
        Ok(Options {
            mode: options.choice("mode", &modes)?,
            idle: options.time("idle")?,
            flows: options.number("flows")?,
            sample: options.time("sample")?,
            exponent: options.number("exponent")?,
            bands: options.number("bands")?,
        })
    }
    /// The band of a load, where 1 is full.
    pub fn band(&self, load: f64) -> u8 {
        ((load * f64::from(self.bands)) as u32).min(u32::from(self.worst())) as u8
    }
    /// The last band.
    pub fn worst(&self) -> u8 {
        (self.bands - 1) as u8
    }
}

/// The ports of a switch, and where its flows go.
#[derive(Clone, Debug)]
pub struct Ports {
    options: Options,
    /// By port. Never iterated.
    measured: FxHashMap<PortId, Measured>,
    /// Of a port that it knows no better: its fastest one.
    rate: Rate,
    /// By the hash of flows; empty where packets are placed one by one.
    table: Box<[Entry]>,
    stream: Stream,
    /// Scratch: the best hops.
    best: Vec<u32>,
    moves: u64,
}

/// Where macro-flows go.
#[derive(Clone, Copy, Debug)]
struct Entry {
    port: PortId,
    /// When its last packet passed; [`Time::MAX`]: none has.
    last: Time,
}

/// What is measured of a port.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// What it sends in a sample's time, in bytes.
    full: f64,
    /// How many samples were taken.
    samples: u64,
    /// Bytes since the last one.
    sent: u64,
    /// Averages, in parts of `full`.
    past: f64,
    future: f64,
}

impl Measured {
    /// Of a port of `rate`.
    fn new(rate: Rate, sample: Time) -> Measured {
        let full = rate.bytes_in(sample).max(1) as f64;
        Measured { full, samples: 0, sent: 0, past: 0.0, future: 0.0 }
    }
    /// Takes the samples that are due, with so many bytes in the queue; the load then, where 1 is full.
    fn load(&mut self, now: Time, options: &Options, queued: u64) -> f64 {
        let due = now.0 / options.sample.0;
        let gain = 1.0 / f64::from(1u32 << options.exponent);
        // What came before is nearly forgotten after some time: no need to count further.
        let first = self.samples.max(due.saturating_sub(64 << options.exponent));
        for _ in first..due {
            let sent = std::mem::take(&mut self.sent);
            self.past += gain * (sent as f64 / self.full - self.past);
            self.future += gain * (queued as f64 / self.full - self.future);
        }
        self.samples = due;
        (self.past + self.future) / 2.0
    }
    /// Whether samples are due.
    fn is_due(&self, now: Time, options: &Options) -> bool {
        now.0 / options.sample.0 > self.samples
    }
}

impl Ports {
    /// For one switch.
    pub fn new(options: Options, fabric: &Fabric, switch: SwitchId, seed: u64) -> Ports {
        let ports = fabric.ports_of(switch);
        let rate = |port| fabric.ports()[port].rate;
        let measured = |port| (port, Measured::new(rate(port), options.sample));
        let entries = match options.mode {
            Mode::PacketQuality | Mode::PacketRandom => 0,
            _ => options.flows as usize,
        };
        Ports {
            options,
            measured: ports.ids().map(measured).collect(),
            rate: ports.ids().map(rate).max().expect("a switch has ports"),
            table: vec![Entry { port: PortId(0), last: Time::MAX }; entries].into(),
            stream: Draw::new(seed, "dlb").stream(u64::from(switch.0)),
            best: Vec::new(),
            moves: 0,
        }
    }
    fn measured(&mut self, port: PortId) -> &mut Measured {
        let new = || Measured::new(self.rate, self.options.sample);
        self.measured.entry(port).or_insert_with(new)
    }
    /// Any hop of the best band, where what is behind a port may be worse than the port itself.
    fn best<H: Hops>(&mut self, now: Time, hops: &H, behind: impl Fn(PortId) -> u8) -> u32 {
        let mut least = u8::MAX;
        self.best.clear();
        for hop in 0..hops.count() {
            let port = hops.port(hop);
            let band = self.band(now, port, hops.queued(hop)).max(behind(port));
            if band < least {
                least = band;
                self.best.clear();
            }
            if band == least {
                self.best.push(hop);
            }
        }
        self.best[self.stream.below(self.best.len() as u32) as usize]
    }
    fn place<H: Hops>(&mut self, packet: &Passing, hops: &H, behind: impl Fn(PortId) -> u8) -> u32 {
        let now = packet.now;
        let by_quality = !matches!(self.options.mode, Mode::FlowletRandom | Mode::PacketRandom);
        if self.table.is_empty() {
            return match by_quality {
                true => self.best(now, hops, behind),
                false => self.stream.below(hops.count()),
            };
        }
        let mixed = packet.flow.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let at = ((mixed * self.table.len() as u64) >> 32) as usize;
        let Entry { port, last } = self.table[at];
        let may_move = last == Time::MAX
            || self.options.mode != Mode::Fixed && last.until(now) > self.options.idle;
        let own = (0..hops.count()).find(|hop| hops.port(*hop) == port);
        let hop = match own {
            Some(hop) if !may_move => hop,
            _ if by_quality => self.best(now, hops, behind),
            _ => self.stream.below(hops.count()),
        };
        let port = hops.port(hop);
        self.moves += u64::from(last != Time::MAX && self.table[at].port != port);
        self.table[at] = Entry { port, last: now };
        hop
    }
    /// The hop of `packet`, below `hops.count()`, where the band of what is `behind` a port counts if it is the worse.
    #[inline]
    pub fn choose_by<H: Hops>(
        &mut self,
        packet: &Passing,
        hops: &H,
        behind: impl Fn(PortId) -> u8,
    ) -> u32 {
        if hops.count() == 1 {
            return 0;
        }
        let hop = self.place(packet, hops, behind);
        self.send(packet.now, hops.port(hop), packet.bytes, hops.queued(hop));
        hop
    }
    /// `port`, with so many bytes in its queue, gets `bytes` more.
    pub(crate) fn send(&mut self, now: Time, port: PortId, bytes: u32, queued: u64) {
        let options = self.options;
        let measured = self.measured(port);
        if measured.is_due(now, &options) {
            // What was sent before belongs to a sample that is over, though no choice has asked for it.
            measured.load(now, &options, queued);
        }
        measured.sent += u64::from(bytes);
    }
    /// The band of `port`, with so many bytes in its queue, once the samples that are due are taken.
    pub(crate) fn band(&mut self, now: Time, port: PortId, queued: u64) -> u8 {
        let options = self.options;
        options.band(self.measured(port).load(now, &options, queued))
    }
    /// How often an entry of the table got another hop.
    pub fn moves(&self) -> u64 {
        self.moves
    }
}

impl Forward for Ports {
    #[inline]
    fn choose<H: Hops>(&mut self, packet: &Passing, hops: &H) -> u32 {
        self.choose_by(packet, hops, |_| 0)
    }
}
