//! The lower bound against pencil and paper, and against the simulator.

use std::sync::atomic::AtomicBool;
use weft_experiment::traffic::Traffic;
use weft_experiment::{Cell, Format, Request, Threads, expand, read_run, run};
use weft_fabric::{Bundle, Clos, Fabric, Failure, FailureKind, Failures, Link, LinkChoice, Tiers};
use weft_sim::PacketConfig;
use weft_trial::prelude::*;
use weft_units::{HostId, MessageId, Rate, Time};
use weft_workload::{Dependency, Message, When, Workload};

/// 80 ps a byte, 500 ns.
const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };
const PACKET: PacketConfig = PacketConfig { mtu: 1000, header: 50, ack: 60 };
/// A byte with its header on one link.
const SMALLEST: Time = Time::ps(51 * 80);

fn fabric(clos: Clos) -> Fabric {
    Fabric::build(&clos).expect("a valid fabric")
}

fn bound(fabric: &Fabric, failures: &Failures, workload: &Workload, packet: &PacketConfig) -> Time {
    weft_experiment::bound(fabric, failures, &Traffic::from(workload.clone()), packet)
}

fn sound() -> Failures {
    Failures::default()
}

/// One link by name, degraded by 90 % or down, for a while.
fn failing(fabric: &Fabric, link: &str, kind: FailureKind, window: (u64, u64)) -> Failures {
    let links = LinkChoice::Named(vec![link.into()]);
    let (start, end) = (Time::us(window.0), Time::us(window.1));
    Failures::new(fabric, &[Failure { links, kind, start, end }], 1).expect("failures")
}

fn message(src: u32, dst: u32, bytes: u64) -> Message {
    Message { src: HostId(src), dst: HostId(dst), bytes, start: Time::ZERO }
}

fn workload(hosts: u32, messages: &[Message]) -> Workload {
    let mut workload = Workload::new(hosts);
    for message in messages {
        workload.push(*message, &[]);
    }
    workload
}

#[test]
fn a_packet_that_comes_in_the_instant_of_a_failure_may_be_before_it() {
    let fabric = fabric(Clos::leaf_spine(2, 1, 1, LINK));
    let traffic = workload(2, &[message(0, 1, 1)]);
    // When it is at the spine, whose link to its leaf slows down.
    let there = (SMALLEST + LINK.delay) * 2;
    let of = |start: Time| {
        let links = LinkChoice::Named(vec!["spine-0 -> leaf-1".into()]);
        let kind = FailureKind::Degraded { lost: 0.999 };
        let failure = Failure { links, kind, start, end: Time::MAX };
        let failures = Failures::new(&fabric, &[failure], 1).expect("failures");
        bound(&fabric, &failures, &traffic, &PACKET)
    };
    assert_eq!(of(there), of(there + Time::ps(1)));
    assert!(of(there - Time::ps(1)) > of(there) * 2);
}

#[test]
fn one_message_serialises_once_and_its_last_byte_crosses_the_path() {
    let fabric = fabric(Clos::leaf_spine(2, 2, 2, LINK));
    // 2500 bytes are three packets: 2650 bytes on the wire, 212 ns.
    let wire = Time::ps(2650 * 80);
    let rack = bound(&fabric, &sound(), &workload(4, &[message(0, 1, 2500)]), &PACKET);
    assert_eq!(rack, wire + Time::ns(1000) + SMALLEST);
    let across = bound(&fabric, &sound(), &workload(4, &[message(0, 2, 2500)]), &PACKET);
    assert_eq!(across, wire + Time::ns(2000) + SMALLEST * 3);
}

#[test]
fn a_late_start_counts() {
    let fabric = fabric(Clos::leaf_spine(1, 1, 2, LINK));
    let late = Message { start: Time::us(7), ..message(0, 1, 1000) };
    let expected = Time::us(7) + Time::ps(1050 * 80) + Time::ns(1000) + SMALLEST;
    assert_eq!(bound(&fabric, &sound(), &workload(2, &[late]), &PACKET), expected);
}

#[test]
fn an_incast_drains_through_the_last_link() {
    let fabric = fabric(Clos::leaf_spine(2, 2, 4, LINK));
    let senders = [1, 2, 4, 5].map(|src| message(src, 0, 10_000));
    // 4 * 10 packets of 1050 bytes; the first byte comes from the rack, over one link.
    let expected = LINK.delay + SMALLEST + Time::ps(42_000 * 80) + LINK.delay;
    assert_eq!(bound(&fabric, &sound(), &workload(8, &senders), &PACKET), expected);
}

#[test]
fn an_oversubscribed_all_to_all_waits_for_the_uplinks() {
    // 4 hosts under a leaf with one uplink; 4 * 4 messages of one packet cross each way.
    let fabric = fabric(Clos::leaf_spine(2, 1, 4, LINK));
    let pairs = (0..8).flat_map(|src| (0..8).map(move |dst| (src, dst)));
    let all: Vec<_> = pairs.filter(|(a, b)| a != b).map(|(a, b)| message(a, b, 1000)).collect();
    // One link to the leaf, the uplink, then two links more.
    let expected = SMALLEST + LINK.delay + Time::ps(16 * 1050 * 80) + LINK.delay * 3 + SMALLEST * 2;
    assert_eq!(bound(&fabric, &sound(), &workload(8, &all), &PACKET), expected);
}

#[test]
fn pods_wait_for_their_core_links() {
    // Two pods of two leaves with two hosts, one core link a pod.
    let tiers = Tiers::Three { pods: 2, leaves_per_pod: 2, aggs_per_pod: 1, cores: 1 };
    let fabric = fabric(Clos::uniform(tiers, 2, LINK));
    let all: Vec<_> = (0..4).map(|host| message(host, host + 4, 1000)).collect();
    let expected =
        (SMALLEST + LINK.delay) * 2 + Time::ps(4 * 1050 * 80) + LINK.delay * 4 + SMALLEST * 3;
    assert_eq!(bound(&fabric, &sound(), &workload(8, &all), &PACKET), expected);
    // Four times the rate up there, and half the messages: the hosts' own links decide.
    let link = Link { rate: Rate::gbps(400), ..LINK };
    let fast = Bundle { link, members: 1 };
    let clos = Clos { leaf_bundle: fast, agg_bundle: fast, ..Clos::uniform(tiers, 2, LINK) };
    let fabric = Fabric::build(&clos).expect("a valid fabric");
    let expected = Time::ps(1050 * 80) + LINK.delay * 6 + SMALLEST + Time::ps(51 * 20) * 4;
    assert_eq!(bound(&fabric, &sound(), &workload(8, &all[..2]), &PACKET), expected);
}

#[test]
fn a_chain_adds_up() {
    let fabric = fabric(Clos::leaf_spine(2, 2, 2, LINK));
    let hop = |links: u64| Time::ps(1050 * 80) + LINK.delay * links + SMALLEST * (links - 1);
    let mut workload = Workload::new(4);
    let after = |on, when| Dependency { on: MessageId(on), when };
    workload.push(message(0, 1, 1000), &[]);
    // Host 1 sends on what it received: within a host nothing is lost.
    workload.push(message(1, 2, 1000), &[after(0, When::Received)]);
    let two = hop(2) + hop(4);
    assert_eq!(bound(&fabric, &sound(), &workload, &PACKET), two);
    // Host 1 sends again once message 1 is acknowledged: 60 bytes over four links back.
    let back = LINK.delay * 4 + Time::ps(60 * 80) * 4;
    workload.push(message(1, 0, 1000), &[after(1, When::Sent)]);
    assert_eq!(bound(&fabric, &sound(), &workload, &PACKET), two + back + hop(2));
    // Host 3 waits for host 0's receipt: the news crosses one link; and it rests for 3 us.
    let start = Time::us(3);
    let last = Message { start, ..message(3, 2, 1000) };
    workload.push(last, &[after(2, When::Received), after(0, When::Sent)]);
    let expected = two + back + hop(2) + LINK.delay + start + hop(2);
    assert_eq!(bound(&fabric, &sound(), &workload, &PACKET), expected);
}

#[test]
fn late_messages_count_on_their_own_and_not_from_the_start() {
    // 1 packet at once, 10 packets 100 us later, from one host.
    let fabric = fabric(Clos::leaf_spine(1, 1, 3, LINK));
    let late = |dst| Message { start: Time::us(100), ..message(0, dst, 5_000) };
    let all = [message(0, 1, 1000), late(1), late(2)];
    let expected = Time::us(100) + Time::ps(10_500 * 80) + Time::ns(1000) + SMALLEST;
    assert_eq!(bound(&fabric, &sound(), &workload(3, &all), &PACKET), expected);
}

#[test]
fn nothing_takes_no_time() {
    let fabric = fabric(Clos::leaf_spine(1, 1, 1, LINK));
    assert_eq!(bound(&fabric, &sound(), &Workload::new(1), &PACKET), Time::ZERO);
}

const DEGRADED: FailureKind = FailureKind::Degraded { lost: 0.9 };
const DOWN: FailureKind = FailureKind::down(None);

#[test]
fn a_degraded_link_counts_for_as_long_as_it_is() {
    let fabric = fabric(Clos::leaf_spine(1, 1, 3, LINK));
    let all = [message(0, 2, 100_000), message(1, 2, 100_000)];
    let link = "leaf-0 -> host-2";
    let (bounded, first) = (
        |failures: &Failures| bound(&fabric, failures, &workload(3, &all), &PACKET),
        LINK.delay + SMALLEST,
    );
    // 200 packets of 1050 bytes, 16.8 us at full rate, from the first on.
    assert_eq!(bounded(&sound()), first + Time::ps(210_000 * 80) + LINK.delay);
    // At a tenth of the rate from the beginning to the end.
    let always = failing(&fabric, link, DEGRADED, (0, 1_000));
    assert_eq!(bounded(&always), first + Time::ps(2_100_000 * 80) + LINK.delay);
    // For 4 of the 20 us: what does not come then comes later, less the packet in service at
    // either end.
    let once = failing(&fabric, link, DEGRADED, (5, 9));
    let lost = Time::ps(3_600_000 - 2 * 1050 * 80);
    assert_eq!(bounded(&once), bounded(&sound()) + lost);
    // Too late to matter, or the other direction.
    assert_eq!(bounded(&failing(&fabric, link, DEGRADED, (50, 90))), bounded(&sound()));
    let back = failing(&fabric, "host-2 -> leaf-0", DEGRADED, (0, 1_000));
    assert_eq!(bounded(&back), bounded(&sound()));
}

#[test]
fn a_dead_link_is_waited_for_unless_it_never_returns() {
    let fabric = fabric(Clos::leaf_spine(1, 1, 2, LINK));
    let one = workload(2, &[message(0, 1, 10_000)]);
    let bounded = |failures: &Failures| bound(&fabric, failures, &one, &PACKET);
    let dead = failing(&fabric, "leaf-0 -> host-1", DOWN, (0, 100));
    // One packet may have been in service when the link came back.
    let rest = Time::ps(9 * 1050 * 80);
    assert_eq!(bounded(&dead), Time::us(100) + rest + LINK.delay);
    // The run will stall, and say so.
    let links = LinkChoice::Named(vec!["leaf-0 -> host-1".into()]);
    let failure = Failure { links, kind: DOWN, start: Time::ZERO, end: Time::MAX };
    let gone = Failures::new(&fabric, &[failure], 1).expect("failures");
    assert_eq!(bounded(&gone), bounded(&sound()));
}

#[test]
fn one_of_several_links_leaves_the_others() {
    let fabric = fabric(Clos::leaf_spine(2, 4, 4, LINK));
    let all = [(0, 4), (1, 5), (2, 6), (3, 7)].map(|(src, dst)| message(src, dst, 1_000_000));
    let slow = failing(&fabric, "leaf-0 -> spine-2", DEGRADED, (0, 1_000));
    // 3.1 of 4 uplinks for four times 1000 packets; the first byte comes over a link, the last
    // packet crosses three.
    let bits = 4 * 1_050_000 * 8;
    let expected = LINK.delay * 4 + SMALLEST * 3 + Time::ps(bits * 1_000 / 310);
    assert_eq!(bound(&fabric, &slow, &workload(8, &all), &PACKET), expected);
}

/// So many links at a tenth of their rate, from the beginning until `end`.
fn slow(fabric: &Fabric, links: &[&str], end: Time) -> Failures {
    let links = LinkChoice::Named(links.iter().map(|link| (*link).into()).collect());
    let failure = Failure { links, kind: DEGRADED, start: Time::ZERO, end };
    Failures::new(fabric, &[failure], 1).expect("failures")
}

/// What a leaf sends to another goes as fast as the slower link of each spine.
#[test]
fn links_that_fail_at_both_ends_count_together() {
    let traffic = workload(4, &[message(0, 2, 1_000_000), message(1, 3, 1_000_000)]);
    let back = workload(4, &[message(2, 0, 1_000_000), message(3, 1, 1_000_000)]);
    let sound_time = bound(&fabric(Clos::leaf_spine(2, 2, 2, LINK)), &sound(), &back, &PACKET);
    // The first byte comes over a link; the last packet crosses two, the second of which may be
    // the slow one.
    let (first, after) = (LINK.delay + SMALLEST, LINK.delay * 2 + SMALLEST);
    let wire = 2 * 1_050_000;
    for planes in [1, 2] {
        let fabric = fabric(Clos::leaf_spine(2, 2, 2, LINK)).in_planes(planes).expect("planes");
        let of = |plane: u32| if planes == 1 { String::new() } else { format!("plane-{plane}-") };
        let both = |plane| {
            let of = of(plane);
            [format!("{of}leaf-0 -> {of}spine-0"), format!("{of}spine-1 -> {of}leaf-1")]
        };
        let names: Vec<String> = (0..planes).flat_map(both).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let always = slow(&fabric, &names, Time::MAX);
        // Two links at 10 Gb/s: 400 ps a byte.
        let expected = first + Time::ps(wire * 400 / u64::from(planes)) + after;
        assert_eq!(bound(&fabric, &always, &traffic, &PACKET), expected);
        let unhurt = bound(&fabric, &always, &back, &PACKET);
        assert!(unhurt <= sound_time, "{unhurt} {sound_time}");
        // Whole again after 100 us, when both have a packet in service.
        let once = slow(&fabric, &names, Time::us(100));
        let until = Time::us(100).0 - first.0;
        let slow_part = (until * u64::from(planes)).div_ceil(400) + 2 * u64::from(planes) * 1_050;
        let rest = Time::ps((wire - slow_part) * 40 / u64::from(planes));
        assert_eq!(bound(&fabric, &once, &traffic, &PACKET), Time::us(100) + rest + after);
    }
}

/// A spine that several leaves can hardly be reached by is one of less use to who sends to all of them.
#[test]
fn a_spine_with_slow_links_to_several_leaves_is_a_slow_one() {
    let fabric = fabric(Clos::leaf_spine(3, 2, 2, LINK));
    let ends = [(0, 2), (0, 4), (1, 3), (1, 5)];
    let traffic = workload(6, &ends.map(|(src, dst)| message(src, dst, 1_000_000)));
    let failures = slow(&fabric, &["spine-0 -> leaf-1", "spine-0 -> leaf-2"], Time::MAX);
    // 100 Gb/s over one spine and twice 10 over the other, for all four: by the links of a leaf
    // alone it would be 200 for four, or 110 for two.
    let bits = 4 * 1_050_000 * 8;
    let expected = LINK.delay * 3 + SMALLEST * 2 + Time::ps(bits * 1_000 / 120);
    assert_eq!(bound(&fabric, &failures, &traffic, &PACKET), expected);
    // Who receives from two leaves likewise.
    let back = workload(6, &ends.map(|(src, dst)| message(dst, src, 1_000_000)));
    let failures = slow(&fabric, &["leaf-1 -> spine-0", "leaf-2 -> spine-0"], Time::MAX);
    assert_eq!(bound(&fabric, &failures, &back, &PACKET), expected);
}

/// A switch that fails takes a link from every cut that it stands in.
#[test]
fn a_dead_switch_leaves_the_others() {
    let fabric = fabric(Clos::leaf_spine(2, 4, 4, LINK));
    let all = [(0, 4), (1, 5), (2, 6), (3, 7)].map(|(src, dst)| message(src, dst, 1_000_000));
    let failures = |names: &[&str], end| {
        let links = LinkChoice::Switches(names.iter().map(|name| (*name).into()).collect());
        let failure = Failure { links, kind: DOWN, start: Time::ZERO, end };
        Failures::new(&fabric, &[failure], 1).expect("failures")
    };
    let bounded = |failures: &Failures| bound(&fabric, failures, &workload(8, &all), &PACKET);
    // Three of four uplinks for four times 1000 packets; the first byte comes over a link, the
    // last packet crosses three.
    let outside = LINK.delay * 4 + SMALLEST * 3;
    let bits = 4 * 1_050_000 * 8;
    let spine = failures(&["spine-2"], Time::MAX);
    assert_eq!(bounded(&spine), outside + Time::ps(bits * 1_000 / 300));
    assert_eq!(
        bounded(&failures(&["spine-0", "spine-3"], Time::MAX)),
        outside + Time::ps(bits * 1_000 / 200)
    );
    // A leaf carries nothing until it is back, but for the packets in service on its four links
    // down.
    let leaf = failures(&["leaf-1"], Time::us(200));
    let rest = Time::ps((bits - 4 * 1_050 * 8) * 1_000 / 400);
    let to_host = LINK.delay * 2 + SMALLEST;
    assert_eq!(bounded(&leaf), Time::us(200) + rest + to_host);
}

/// An experiment over everything that might let a run look faster than it can be.
fn experiment() -> impl Strategy<Value = String> {
    let fabric = prop_oneof![
        Just("topology = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 3"),
        Just(
            "topology = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 4\n\
             links_per_pair = 2\nuplink = \"40Gbps\""
        ),
        Just(
            "topology = \"leaf-spine\"\nleaves = 2\nspines = 3\nhosts_per_leaf = 2\nuplink = \"400Gbps\""
        ),
        Just("topology = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 3\nplanes = 2"),
        Just(
            "topology = \"fat-tree\"\nk = 4\ncore_delay = \"2us\"\nnic.latency = \"700ns\"\nswitch.latency = \"300ns\""
        ),
    ];
    let workload = prop_oneof![
        Just("pattern = \"all-to-all\""),
        Just("pattern = \"permutation\"\ncount = 2"),
        Just("pattern = \"incast\"\nsenders = 3"),
        Just("pattern = \"ring\"\nchannels = 3\ncross_rack = false"),
    ];
    let schemes = ["ecmp", "spray", "spray-counter", "reps", "reps-sticky", "ethereal"];
    let scheme = prop::sample::select(schemes.to_vec());
    let links = "tier = \"leaf-up\"\ncount = 1\nstart = \"2us\"\nduration = \"30us\"";
    let failure = prop_oneof![
        2 => Just(String::new()),
        1 => Just(format!("[failures.slow]\n{links}\nkind = \"degraded\"\nlost = 0.95\n")),
        1 => Just(format!("[failures.dead]\n{links}\nkind = \"down\"\ndetect = \"1us\"\n")),
        1 => prop::sample::select(vec!["leaves", "spines"]).prop_map(|tier| {
            format!(
                "[failures.dead]\ntier = \"{tier}\"\nstart = \"2us\"\nduration = \"30us\"\n\
                 kind = \"down\"\ndetect = \"1us\"\n"
            )
        }),
    ];
    (fabric, workload, 1u32..60_000, scheme, any::<bool>(), any::<bool>(), failure).prop_map(
        |(fabric, workload, bytes, scheme, pfc, fixed, failure)| {
            let congestion = if fixed { "fixed-rate" } else { "dctcp" };
            format!(
                "[fabric]\n{fabric}\nswitch.pfc = {pfc}\n[workload]\n{workload}\n\
                 size = \"{bytes}B\"\n[balance]\nscheme = \"{scheme}\"\nstart_jitter = \"0ns\"\n\
                 [transport]\ncongestion = \"{congestion}\"\n{failure}"
            )
        },
    )
}

trials! {
    #![cases(300)]

    fn no_run_beats_its_bound(text in experiment(), seed in 1u64..1000) {
        let result = run(&resolved(&text), seed, Threads::ONE, &AtomicBool::new(false))
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        let value = |name: &str| match result.row.iter().find(|(column, _)| *column == name) {
            Some((_, Cell::F64(value))) => *value,
            other => panic!("{name} is {other:?}"),
        }; prop_assert!(value("bound_s") > 0.0);
        prop_assert!(value("cct_s") >= value("bound_s"), "{}: {} {}", text, value("cct_s"), value("bound_s"));
        prop_assert!(value("slowdown") >= 1.0);
    }
}

const LEAF_SPINE: &str = "[fabric]\ntopology = \"leaf-spine\"\nleaves = 3\nspines = 2\n\
                          hosts_per_leaf = 3\n[workload]\npattern = \"incast\"\nsenders = 1\n\
                          size = \"1B\"\n[balance]\nscheme = \"ecmp\"\n";

fn resolved(text: &str) -> weft_experiment::Resolved {
    let (format, source) = (Format::Toml, "test.toml");
    let request = Request { text, format, source, overrides: &[], seeds: None };
    let all = expand(&request).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let table = weft_experiment::value::Value::Table(all.runs[0].experiment.clone());
    read_run(&table.to_json()).expect("resolved")
}

#[test]
fn a_lone_byte_meets_its_bound_exactly() {
    let result =
        run(&resolved(LEAF_SPINE), 1, Threads::ONE, &AtomicBool::new(false)).expect("a run");
    let slowdown = result.row.iter().find(|(column, _)| *column == "slowdown");
    assert_eq!(slowdown, Some(&("slowdown", Cell::F64(1.0))));
}

#[test]
fn a_chain_of_bytes_meets_its_bound_exactly() {
    // No host sends where it has just received: its acknowledgement would go first.
    let after = |on, when| [Dependency { on: MessageId(on), when }];
    let mut workload = Workload::new(9);
    workload.push(message(0, 4, 1), &[]);
    workload.push(message(3, 8, 1), &after(0, When::Received));
    workload.push(message(3, 5, 1), &after(1, When::Sent));
    let start = Time::us(2);
    workload.push(Message { start, ..message(6, 1, 1) }, &after(2, When::Received));
    workload.push(message(2, 3, 1), &after(3, When::Sent));
    assert_eq!(simulated(LEAF_SPINE, &workload), bounded(LEAF_SPINE, &workload));
}

/// How long `workload` takes under everything else that `text` says.
fn simulated(text: &str, workload: &Workload) -> Time {
    let experiment = resolved(text);
    let traffic = Traffic::from(workload.clone());
    let config = experiment.run_config(&traffic, Failures::default(), 1);
    let outcome = weft_sim::Simulation::new(&config).run(&AtomicBool::new(false));
    outcome.expect("no stall").totals.cct
}

fn bounded(text: &str, workload: &Workload) -> Time {
    let experiment = resolved(text);
    bound(&experiment.fabric, &sound(), workload, &experiment.packet)
}

/// Messages that wait for up to two earlier ones.
fn dag() -> impl Strategy<Value = Workload> {
    let end = prop_oneof![Just(When::Sent), Just(When::Received)];
    let wait = (any::<prop::sample::Index>(), end);
    let one = (0u32..9, 1u32..9, 1u64..3_000, 0u64..3_000, prop::collection::vec(wait, 0..3));
    prop::collection::vec(one, 1..30).prop_map(|messages| {
        let mut workload = Workload::new(9);
        for (id, (src, ahead, bytes, start, waits)) in messages.into_iter().enumerate() {
            let waits = if id == 0 { Vec::new() } else { waits };
            let on = |index: prop::sample::Index| MessageId(index.index(id) as u32);
            let waits: Vec<_> =
                waits.into_iter().map(|(i, when)| Dependency { on: on(i), when }).collect();
            let dst = (src + ahead) % 9;
            workload.push(Message { start: Time::ns(start), ..message(src, dst, bytes) }, &waits);
        }
        workload
    })
}

trials! {
    #![cases(300)]

    fn no_dependencies_beat_the_bound(workload in dag(), ethereal in any::<bool>()) {
        let scheme = if ethereal { "ethereal" } else { "spray" };
        let text = LEAF_SPINE.replace("\"ecmp\"", &format!("\"{scheme}\"\nstart_jitter = \"0ns\""));
        let (cct, bound) = (simulated(&text, &workload), bounded(&text, &workload));
        prop_assert!(cct >= bound, "{cct} < {bound}");
    }
}
