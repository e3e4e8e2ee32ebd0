//! The end of a run: what the partitions found becomes one outcome, and the books are checked.

use crate::audit::{self, Seen};
use crate::counts::Delivered;
use crate::engine::Engine;
use crate::halt::{Halt, Silence};
use crate::histogram::DurationHistogram;
use crate::jobs::{self, Jobs};
use crate::losses::Losses;
use crate::messages;
use crate::outcome::{MessageResult, Outcome, PortResult, RankMessage, Series, Totals};
use crate::ports::Ports;
use crate::probes::samples_until;
use crate::progress::Progress;
use crate::stall;
use crate::tor::{Tags, Tors};
use crate::world::World;
use weft_balance::tor::CONTROL_BYTES;
use weft_units::{IdVec, MessageId, PortId, Time};

/// The outcome of a run that has no events left.
///
/// # Errors
/// [`Halt::Stalled`] if messages are not done all the same.
///
/// # Panics
/// If packets got lost without being counted: the engine is wrong, and so would be its result.
pub(crate) fn outcome<Q, P: Ports>(
    world: &World,
    mut engines: Vec<Engine<Q, P>>,
) -> Result<Outcome, Halt> {
    let end = engines.iter().map(|engine| engine.latest).max().unwrap_or(Time::ZERO);
    if engines.iter().any(Engine::is_unfinished) {
        let since = Progress::of_all(engines.iter().map(|engine| engine.counts.progress)).last;
        return Err(stalled(world, &engines, Silence { since, now: end, packets: None }));
    }
    let ports = port_results(world, &engines, end);
    let messages = messages(world, &engines);
    let mut totals = totals(&engines, &ports);
    let (rank_messages, durations) = rank_messages(world, &mut engines);
    let mut nodes: Vec<_> = jobs(&engines).flat_map(|jobs| jobs.nodes().iter().copied()).collect();
    nodes.sort_unstable();
    let received = messages.iter().map(|message| message.received);
    let finished = nodes.iter().map(|node| node.finished);
    totals.cct = received.chain(finished).max().unwrap_or(Time::ZERO);
    check_conservation(world, &engines, &ports, &totals);
    let posted = rank_messages.iter().map(|message| &message.result);
    let last = messages.iter().chain(posted).map(|message| message.sent).max();
    let last = last.unwrap_or(Time::ZERO).max(totals.cct);
    let series = series(world, &mut engines, last);
    Ok(Outcome { messages, nodes, rank_messages, durations, ports, series, totals })
}

/// A run that ended because nothing got on.
pub(crate) fn stalled<Q, P: Ports>(
    world: &World,
    engines: &[Engine<Q, P>],
    silence: Silence,
) -> Halt {
    let totals = totals(engines, &port_results(world, engines, silence.now));
    Halt::Stalled(Box::new(stall::diagnose(world, engines, silence, totals)))
}

/// In the order of the fabric's ports.
fn port_results<Q, P: Ports>(
    world: &World,
    engines: &[Engine<Q, P>],
    end: Time,
) -> IdVec<PortId, PortResult> {
    let by_partition: Vec<_> = engines.iter().map(|engine| engine.ports.results(end)).collect();
    let places = world.partitioning.ports.iter();
    places.map(|place| by_partition[usize::from(place.partition)][place.own]).collect()
}

fn messages<Q, P: Ports>(
    world: &World,
    engines: &[Engine<Q, P>],
) -> IdVec<MessageId, MessageResult> {
    let known = |host| &engines[usize::from(world.partitioning.hosts[host].partition)].messages;
    let result = |(id, message): (MessageId, &weft_workload::Message)| {
        let sending = known(message.src).sending(world.sending[id]);
        let receiving = known(message.dst).receiving(world.receiving[id]);
        messages::result(sending, receiving)
    };
    let mut messages = world.config.workload.messages().enumerate().map(result).collect();
    if world.config.job.is_none() {
        add_losses(world, engines, &mut messages);
        add_reordering(engines, &mut messages);
    }
    messages
}

/// What ranks sent, and how long it took. Nothing more comes for what stands in any place.
fn rank_messages<Q, P: Ports>(
    world: &World,
    engines: &mut [Engine<Q, P>],
) -> (Vec<RankMessage>, DurationHistogram) {
    if world.config.job.is_none() {
        return (Vec::new(), DurationHistogram::default());
    }
    let mut sent = Vec::new();
    for engine in engines.iter_mut() {
        let Engine { jobs, messages, nics, .. } = engine;
        let records = &mut jobs.as_mut().expect("a job").records;
        messages.all_receiving().for_each(|receiving| records.add_received(receiving));
        for (from, flows) in nics.receivers().iter().enumerate() {
            for (number, flow) in (0..).zip(flows) {
                records.add_reordering(from, number, flow.reordering);
            }
        }
        sent.push(records.take_sent());
    }
    let losses = engines.iter().flat_map(|engine| [engine.ports.losses(), &engine.counts.losses]);
    let losses = losses.flat_map(Losses::all).map(|(dst, id, count)| {
        let partition = usize::from(world.partitioning.hosts[dst].partition);
        let records = &engines[partition].jobs.as_ref().expect("a job").records;
        (records.served(id.partition(), id.number() as u32), count)
    });
    jobs::join(sent, jobs(engines).map(|jobs| &jobs.records).collect(), losses)
}

fn jobs<'e, 'a, Q, P>(engines: &'e [Engine<'a, Q, P>]) -> impl Iterator<Item = &'e Jobs<'a>> {
    engines.iter().filter_map(|engine| engine.jobs.as_ref())
}

/// Losses are noted by queue pair, where they happen.
fn add_losses<Q, P: Ports>(
    world: &World,
    engines: &[Engine<Q, P>],
    messages: &mut IdVec<MessageId, MessageResult>,
) {
    let losses = engines.iter().flat_map(|engine| [engine.ports.losses(), &engine.counts.losses]);
    for (dst, id, count) in losses.flat_map(Losses::all) {
        let partition = usize::from(world.partitioning.hosts[dst].partition);
        let flow = engines[partition].nics.receiver(id);
        messages[engines[partition].messages.receiving(flow.message).message].lost += count;
    }
}

fn add_reordering<Q, P>(engines: &[Engine<Q, P>], messages: &mut IdVec<MessageId, MessageResult>) {
    for engine in engines {
        for flow in engine.nics.receivers().iter().flatten() {
            let message = &mut messages[engine.messages.receiving(flow.message).message];
            message.reordered += flow.reordering.packets;
            message.farthest = message.farthest.max(flow.reordering.farthest);
        }
    }
}

fn totals<Q, P: Ports>(engines: &[Engine<Q, P>], ports: &IdVec<PortId, PortResult>) -> Totals {
    let mut totals = Totals::default();
    for engine in engines {
        totals.add(&engine.counts.totals);
        totals.pauses += engine.ports.pauses_sent();
        totals.held += engine.ports.held().packets;
        totals.places += engine.nics.senders().len() as u32;
        engine.switches.tors().iter().for_each(|tors| tors.add_counts(&mut totals.tor));
        for host in engine.nics.hosts() {
            totals.max_qps = totals.max_qps.max(host.most_active());
            totals.established_qps = totals.established_qps.max(host.established());
        }
    }
    for port in ports.iter() {
        totals.packet_hops += port.packets;
        totals.drops += port.drops;
        totals.header_drops += port.header_drops;
        totals.trims += port.trims;
        totals.trimmed_bytes += port.trimmed_bytes;
        totals.marks += port.marks;
    }
    totals
}

/// Every run accounts for every packet: what the NICs sent reached a host, was dropped or was
/// lost on a link; what switches cut off was trimmed; control packets between leaves are read, and those of
/// aggregation trees taken in, or lost as others are; and nothing is held in a switch, but by pauses that wait for
/// each other.
fn check_conservation<Q, P: Ports>(
    world: &World,
    engines: &[Engine<Q, P>],
    ports: &IdVec<PortId, PortResult>,
    totals: &Totals,
) {
    let nics = || world.config.fabric.nics().map(|nic| &ports[nic]);
    let sent = Delivered {
        packets: nics().map(|nic| nic.packets).sum(),
        bytes: nics().map(|nic| nic.bytes).sum(),
    };
    let tors = || engines.iter().filter_map(|engine| engine.switches.tors());
    let (written, read) = (tors().map(|tors| tors.written), tors().map(|tors| tors.read));
    let (written, read) = (written.sum::<u64>(), read.sum::<u64>());
    let reductions = || engines.iter().filter_map(|engine| engine.reduction.as_ref());
    let made = reductions().fold(Delivered::default(), |sum, one| sum.and(one.made));
    let taken = reductions().fold(Delivered::default(), |sum, one| sum.and(one.taken));
    let held = engines.iter().map(|engine| engine.ports.held());
    let held = held.fold(Delivered::default(), Delivered::and);
    // What waits for good has a tag and a header, and leaves may wait for it.
    let all_through = held.packets == 0;
    let tors_hold = tors().map(Tors::holding).sum::<u64>();
    assert!(tors_hold == 0 || !all_through, "{tors_hold} packets held in switches");
    for Engine { agenda, ports, counts, .. } in engines.iter().filter(|_| all_through) {
        let idle = ports.losses().idle_tags() + counts.losses.idle_tags();
        assert_eq!(agenda.tags.as_ref().map_or(0, Tags::count), idle, "tags of no packet");
        let idle = ports.losses().idle_headers() + counts.losses.idle_headers();
        let left = agenda.headers.as_ref().map_or(0, |headers| headers.count_but(idle));
        assert_eq!(left, 0, "headers of no packet");
    }
    let delivered = engines.iter().map(|engine| engine.counts.delivered());
    let delivered = delivered.fold(Delivered::default(), Delivered::and);
    let accounted = Delivered {
        packets: delivered.packets
            + totals.wire_drops
            + ports.iter().map(|port| port.drops).sum::<u64>(),
        bytes: delivered.bytes
            + totals.wire_dropped_bytes
            + ports.iter().map(|port| port.dropped_bytes + port.trimmed_bytes).sum::<u64>(),
    };
    let control_packets =
        |count: u64| Delivered { packets: count, bytes: count * u64::from(CONTROL_BYTES) };
    assert_eq!(
        sent.and(control_packets(written)).and(made),
        accounted.and(control_packets(read)).and(taken).and(held),
        "sent against delivered, dropped and held"
    );
    assert_eq!(sent.packets, totals.packets + totals.control_packets);
    if world.config.audit && all_through {
        let mut links: IdVec<PortId, Seen> = ports.iter().map(|_| Seen::default()).collect();
        for (engine, partition) in engines.iter().zip(&world.partitioning.partitions) {
            let audit = engine.counts.audit().expect("every partition has one");
            audit.gather(partition, &mut links);
        }
        audit::check(world.config.fabric, &links, ports.as_slice());
    }
}

/// All samples, in the order of the probes, of a run whose last acknowledgement came at `last`.
fn series<Q, P>(world: &World, engines: &mut [Engine<Q, P>], last: Time) -> Vec<Series> {
    let probes = &world.config.probes;
    let mut all = vec![Series::default(); probes.series()];
    for (at, mut series) in engines.iter_mut().flat_map(|engine| engine.probes.take()) {
        if let Some(interval) = probes.interval {
            series.bytes.truncate(samples_until(last, interval));
        }
        all[at].add(&series);
    }
    all
}
