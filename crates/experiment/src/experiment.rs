//! A table with every choice made, as what the simulator takes.

use crate::catalogue::{Catalogue, SaidKey};
use crate::completion::Completion;
use crate::digest::digest;
use crate::fidelity::Fidelity;
use crate::pace::PaceConfig;
use crate::reader::Reader;
use crate::section::background::{self, BackgroundSection};
use crate::section::server::Servers;
pub use crate::section::transport::Transport;
use crate::section::transport::TransportSection;
use crate::section::workload::WorkloadSource;
use crate::section::{balance, fabric, failures, probe, run, stragglers, transport, workload};
use crate::traffic::{Stream, Traffic};
use crate::value::{Item, Table, Value};
use std::path::Path;
use weft_balance::scheme::BalanceConfig;
use weft_config::{ExperimentError, Origin, only_clos};
use weft_fabric::{Clos, Fabric, Failure, Failures};
use weft_sim::{Buffer, PacketConfig, ProbeConfig, Service, SwitchConfig};
use weft_units::Time;
use weft_units::options::WORD;
use weft_workload::Stragglers;

/// Version of this crate and a hash of all native sources: part of the key of a result.
pub const CODE_VERSION: &str = env!("WEFT_CODE_VERSION");

/// One experiment without sweep, ready to run under any seed.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The network.
    pub fabric: Fabric,
    /// GPUs and NICs of a server.
    pub servers: Servers,
    /// Which of its links fail.
    pub failures: Vec<Failure>,
    /// How switches treat packets.
    pub switch: SwitchConfig,
    /// Packet sizes.
    pub packet: PacketConfig,
    /// Whose turn it is at a NIC.
    pub service: Service,
    /// Congestion control and loss recovery.
    pub transport: Transport,
    /// The load balancer.
    pub balance: BalanceConfig,
    /// How queue pairs that send at a rate do so.
    pub pace: PaceConfig,
    /// What to sample.
    pub probes: ProbeConfig,
    /// Whether to keep what every rank did when.
    pub timeline: bool,
    /// When a message counts as complete.
    pub completion: Completion,
    /// Give up after this much simulated time without progress.
    pub stall_after: Option<Time>,
    /// As [`weft_sim::RunConfig::stall_packets`].
    pub stall_packets: u64,
    /// What is simulated.
    pub fidelity: Fidelity,
    /// What the user should know; one line each.
    pub warnings: Vec<String>,
    pub(crate) workload: WorkloadSource,
    /// How unequally fast GPUs are, if they are.
    pub(crate) stragglers: Option<Stragglers>,
    /// What others send meanwhile, if they do.
    pub(crate) background: Option<BackgroundSection>,
    table: Table,
}

impl Resolved {
    /// Reads `table`, which holds neither title nor sweep. Workload and topology files are
    /// looked for in `folder`.
    ///
    /// # Errors
    /// The first mistake.
    pub fn read(table: &Table, folder: &Path) -> Result<Resolved, ExperimentError> {
        // First, since a section that is missing may be there under a wrong name.
        check_sections(table)?;
        let mut root = Reader::root(table);
        let sections = read_sections(&mut root, folder);
        let mut resolved = sections.map_err(|error| error.located_in(table))?;
        resolved.table = root.finish()?;
        check_memory(&resolved).map_err(|error| error.located_in(table))?;
        Ok(resolved)
    }

    /// What a run under `seed` sends.
    ///
    /// # Errors
    /// If it does not fit the fabric or the simulator, or the workload file is wrong.
    pub fn traffic(&self, seed: u64) -> Result<Traffic, ExperimentError> {
        let traffic =
            self.workload.build(&self.fabric, &self.servers, self.stragglers.as_ref(), seed)?;
        check_counts(&traffic, &self.packet)?;
        check_rails(&traffic, &self.fabric)?;
        if traffic.ranks.is_some() {
            self.pace.check_jobs()?;
        }
        Ok(traffic)
    }

    /// The folded Clos that the fabric is, for `what` is only done there.
    ///
    /// # Errors
    /// If it is another network, or NICs have several ports.
    pub(crate) fn clos(&self, what: &str) -> Result<&Clos, ExperimentError> {
        only_clos(&self.fabric, what).map_err(|error| error.located_in(&self.table))
    }

    /// The experiment with every default written out. Reads back as the same.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Stands for what [`Resolved::traffic`] depends on besides the seed.
    pub(crate) fn traffic_key(&self) -> String {
        let part = |key| self.table.get(key).map(|item| item.value.to_json()).unwrap_or_default();
        let (shape, servers) = (self.fabric.shape(), &self.servers);
        let (what, late) = (part("workload"), part(stragglers::NAME));
        format!("{what} {late} {shape:?} {servers:?} {} {:?}", self.packet.mtu, self.pace)
    }

    /// Names the result of running this under `seed` with this build: 32 hex digits. A
    /// workload file counts by its content, not by where it lies.
    pub fn key(&self, seed: u64) -> String {
        let mut table = self.table.clone();
        if let Some(Item { value: Value::Table(section), .. }) = table.get_mut("workload") {
            self.workload.name_contents(section);
        }
        let text = format!("{}\n{seed}\n{CODE_VERSION}\n", Value::Table(table).to_json());
        digest(text.as_bytes())
    }
}

/// All sections, and what each means.
const SECTIONS: [(&str, &str); 7] = [
    ("fabric", "the network"),
    ("failures", "links that fail"),
    ("workload", "the traffic"),
    ("balance", "the load balancer"),
    ("transport", "congestion control and loss recovery"),
    ("probe", "what to sample"),
    ("run", "limits of a run"),
];

/// Sections about the runs of an experiment and what is shown of them, and what each means.
const BESIDE: [(&str, &str); 5] = [
    ("sweep", "what varies"),
    ("quick", "what --quick changes"),
    ("report", "what tables and figures show"),
    ("best", "the best value of a swept key"),
    ("printed", "what a paper prints, to stand beside what is measured"),
];

/// The keys above the first section.
pub(crate) const ABOVE: &[SaidKey] = &[
    SaidKey {
        key: "title",
        default: "none",
        kind: "text",
        meaning: "the title of tables and reports",
    },
    SaidKey { key: "notes", default: "none", kind: "text", meaning: "what the report says of it" },
    SaidKey {
        key: crate::presets::KEY,
        default: "none",
        kind: WORD,
        meaning: "keys that go together, where nothing else is said; weft list presets",
    },
    SaidKey {
        key: "extends",
        default: "none",
        kind: "a file, or a list of files",
        meaning: "experiments that this one is written over, table by table; relative to this file",
    },
];

/// What a section means; `name` may go on behind a dot. Empty: it is none.
pub(crate) fn meaning_of(name: &str) -> &'static str {
    let first = name.split('.').next().unwrap_or_default();
    let found = SECTIONS.iter().chain(&BESIDE).find(|(section, _)| *section == first);
    found.map_or("keys above the first section", |(_, meaning)| meaning)
}

fn check_sections(table: &Table) -> Result<(), ExperimentError> {
    let beside = SECTIONS.iter().chain(&BESIDE).map(|(name, _)| *name);
    let above = ABOVE.iter().map(|one| one.key);
    let valid = beside.chain([stragglers::NAME, background::NAME]).chain(above);
    for (key, item) in table.iter() {
        if !valid.clone().any(|name| name == key) {
            let what = match keys_ending(key).as_slice() {
                [] => crate::reader::unknown_key(key, valid),
                whole => format!("unknown key; did you mean {}?", whole.join(" or ")),
            };
            return Err(ExperimentError::new(key, item.origin, what));
        }
    }
    Ok(())
}

/// The keys of sections whose last part is `key`: somebody may have left out the section.
fn keys_ending(key: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (_, list) in Catalogue::NAMES {
        for option in list.entries().into_iter().flat_map(|entry| entry.options) {
            let is_it = option.key.rsplit_once('.').is_some_and(|(_, last)| last == key);
            if is_it && !found.contains(&option.key) {
                found.push(option.key);
            }
        }
    }
    found
}

fn read_sections(root: &mut Reader<'_>, folder: &Path) -> Result<Resolved, ExperimentError> {
    let [on_fabric, on_failures, on_workload, on_balance, on_transport, on_probe, on_run] =
        SECTIONS;
    let network = root.section(on_fabric.0, on_fabric.1, |r| fabric::read(r, folder))?;
    let (fabric, packet, servers) = (network.fabric, network.packet, network.servers);
    let failures = root.section(on_failures.0, on_failures.1, |r| failures::read(r, &fabric))?;
    let workload = root.section(on_workload.0, on_workload.1, |r| workload::read(r, folder))?;
    // Where nobody is slow, nothing of it is written out.
    let late = "GPUs that are slower than others";
    let stragglers = match root.has(stragglers::NAME) {
        true => Some(root.section(stragglers::NAME, late, stragglers::read)?),
        false => None,
    };
    let meanwhile = "what others send meanwhile";
    let background = match root.has(background::NAME) {
        true => {
            Some(root.section(background::NAME, meanwhile, |r| background::read(r, Some(&fabric)))?)
        }
        false => None,
    };
    let bdp = bdp(&fabric, &packet);
    let balance = root.section(on_balance.0, on_balance.1, |r| balance::read(r, &fabric, bdp))?;
    let context = transport::Context {
        bdp,
        round_trip: round_trip(&fabric, &packet),
        line: fabric.line_rate(),
        oversubscribed: fabric.is_oversubscribed(),
    };
    let sending = root.section(on_transport.0, on_transport.1, |r| {
        transport::read(r, &context, &balance.scheme)
    })?;
    let TransportSection { transport, pace, warning } = sending;
    let switch = network.switch.resolve(
        transport.recovery.name(),
        transport.recovery.info().trims,
        transport.congestion.grants_credit(),
    )?;
    balance::check_hash(&balance.scheme, &fabric, &switch)?;
    let probes = root.section(on_probe.0, on_probe.1, |r| probe::read(r, &fabric))?;
    let in_vain = packets_in_vain(&fabric, &packet, bdp);
    let unfit = weft_fluid::unfit(balance.scheme.info(), &fabric, &failures);
    let relayed = servers.pxn.map(|_| "runs where GPUs pass on messages (fabric.server.pxn)");
    let in_network = workload
        .in_network()
        .map(|name| format!("switches add up for workload.algorithm = {name:?}, packet by packet"));
    let unfit = unfit.or(relayed).map(|why| format!("{} {why}", balance.scheme.name()));
    let unfit = in_network.or(unfit);
    let limits = root
        .section(on_run.0, on_run.1, |r| run::read(r, transport.rto, in_vain, unfit.as_deref()))?;
    let idle = (workload.is_of_messages() && servers != Servers::usual(fabric.rails()))
        .then(|| SERVERS_IDLE.into());
    Ok(Resolved {
        fabric,
        servers,
        failures,
        switch,
        packet,
        service: network.service,
        transport,
        pace,
        balance,
        probes: probes.samples,
        timeline: probes.timeline,
        completion: limits.completion,
        stall_after: limits.stall_after,
        stall_packets: limits.stall_packets,
        fidelity: limits.fidelity,
        warnings: network
            .warnings
            .into_iter()
            .chain(warning)
            .chain(idle)
            .chain(limits.fidelity.remark())
            .collect(),
        workload,
        stragglers,
        background,
        table: Table::new(),
    })
}

/// Why servers make no difference.
const SERVERS_IDLE: &str = "fabric.server has no effect on patterns and files of messages, which go from \
                            NIC to NIC; use a job (a collective, trace or model), or do without servers";

/// Host rate times the round trip of a lone full packet over the longest path, at least one
/// packet.
fn bdp(fabric: &Fabric, packet: &PacketConfig) -> u64 {
    let round_trip = round_trip(fabric, packet);
    fabric.line_rate().bytes_in(round_trip).max(u64::from(packet.mtu))
}

/// Data packets after which a run without progress is given up: a million, and of each host as many
/// as fill some round trips.
fn packets_in_vain(fabric: &Fabric, packet: &PacketConfig, bdp: u64) -> u64 {
    const ROUND_TRIPS: u64 = 8;
    const LEAST: u64 = 4096;
    let of_host = (ROUND_TRIPS * bdp / u64::from(packet.mtu)).max(LEAST);
    (1 << 20) + u64::from(fabric.hosts()) * of_host
}

/// Of a lone full packet and its acknowledgement over the longest path.
pub(crate) fn round_trip(fabric: &Fabric, packet: &PacketConfig) -> Time {
    let data = u64::from(packet.mtu) + u64::from(packet.header);
    fabric.base_rtt(data, u64::from(packet.ack))
}

/// A start, or a wait after a dependency, beyond this is taken for a mistake.
const LATEST_START: Time = Time::secs(1_000);

/// Packets of a message; the simulator counts them in 32 bits.
const MAX_PACKETS: u64 = 1 << 30;

/// The most payload of a message in packets of so many bytes.
pub(crate) fn most_payload(mtu: u32) -> u64 {
    MAX_PACKETS * u64::from(mtu)
}

/// Refuses what the simulator cannot number.
fn check_counts(traffic: &Traffic, packet: &PacketConfig) -> Result<(), ExperimentError> {
    const MAX_MESSAGES: usize = 1 << 28;
    let wrong = |what| Err(ExperimentError::new("workload.size", Origin::Unknown, what));
    let messages = traffic.workload.messages();
    if let Some((id, late)) = messages.enumerate().find(|(_, m)| m.start > LATEST_START) {
        let what = format!(
            "message {} starts after {}, but a run is made for at most {LATEST_START}; start it \
             earlier",
            id.0, late.start
        );
        return Err(ExperimentError::new("workload.start", Origin::Unknown, what));
    }
    if messages.len() > MAX_MESSAGES {
        let count = messages.len();
        return wrong(format!("{count} messages are more than {MAX_MESSAGES}; use fewer hosts"));
    }
    let packets = |bytes: u64| bytes.div_ceil(u64::from(packet.mtu));
    // The largest message takes going through all of them; no buffer is larger than allowed, mostly.
    if packets(traffic.largest_buffer()) <= MAX_PACKETS {
        return Ok(());
    }
    let packets = packets(traffic.volume().largest);
    if packets > MAX_PACKETS {
        return wrong(format!(
            "a message has {packets} packets, more than {MAX_PACKETS}; make it smaller or \
             fabric.nic.mtu larger"
        ));
    }
    Ok(())
}

/// Refuses messages between rails that never meet.
fn check_rails(traffic: &Traffic, fabric: &Fabric) -> Result<(), ExperimentError> {
    if fabric.rails().is_none()
        || traffic.ranks.as_ref().is_some_and(|ranks| ranks.relays.is_some())
    {
        return Ok(());
    }
    let mut apart = None;
    traffic.streams(|Stream { src, dst, .. }| {
        if !fabric.reaches(src, dst) {
            apart.get_or_insert((src, dst));
        }
    });
    let Some((src, dst)) = apart else { return Ok(()) };
    let what = format!(
        "a message goes from host-{} of rail {} to host-{} of rail {}, and rails never meet",
        src.0,
        fabric.pod_of(src),
        dst.0,
        fabric.pod_of(dst)
    );
    let (key, mend) = match traffic.ranks {
        Some(_) => ("fabric.server.pxn", "set pxn = true, so that GPUs of a server pass it on"),
        None => ("workload", "use a job (a collective, trace or model), whose GPUs can pass it on"),
    };
    Err(ExperimentError::new(key, Origin::Unknown, format!("{what}; {mend}")))
}

/// Refuses a buffer that cannot hold a packet, and a shared one that is all reserves and
/// headroom.
fn check_memory(resolved: &Resolved) -> Result<(), ExperimentError> {
    let SwitchConfig { buffer, pfc, .. } = &resolved.switch;
    let room = match buffer {
        Buffer::PerPort { bytes } => *bytes,
        Buffer::Shared { bytes, .. } if pfc.is_some() => *bytes,
        Buffer::Shared { bytes, alpha } => (*bytes as f64 * alpha.min(1.0)) as u64,
    };
    let largest = resolved.packet.largest();
    if room < largest {
        let what = format!("leaves a queue {room} bytes, less than a packet of {largest}; enlarge");
        let what = what + " buffer, or raise buffer_alpha, or lower fabric.nic.mtu";
        let error = ExperimentError::new("fabric.switch.buffer", Origin::Unknown, what);
        return Err(error.caused_by(&["fabric.switch.buffer_alpha", "fabric.nic.mtu"]));
    }
    let (Buffer::Shared { bytes, .. }, Some(pfc)) = (buffer, pfc) else { return Ok(()) };
    let Resolved { fabric, packet, failures, .. } = resolved;
    // Which links fail may depend on the seed; what that asks for hardly does.
    let failures = Failures::new(fabric, failures, 1).unwrap_or_default();
    let taken = weft_sim::ports::pfc_set_aside(fabric, &failures, packet, pfc);
    if taken < *bytes {
        return Ok(());
    }
    let what = format!(
        "the buffer has {bytes} bytes, and reserves and headroom of the largest switch alone take \
         {taken}; enlarge fabric.switch.buffer, or lower pfc_headroom or pfc_reserve, or what makes links \
         hold much, or set pfc = false"
    );
    let error = ExperimentError::new("fabric.switch.buffer", Origin::Unknown, what);
    Err(error.caused_by(HEADROOM))
}

/// What headroom follows from.
const HEADROOM: &[&str] = &[
    "fabric.switch.pfc_headroom",
    "fabric.switch.pfc_reserve",
    "fabric.switch.pfc_threshold",
    "fabric.delay",
    "fabric.uplink_delay",
    "fabric.core_delay",
    "fabric.switch.latency",
    "fabric.link",
    "fabric.uplink",
    "fabric.core_link",
    "fabric.nic.mtu",
    "fabric.nic.latency",
];
