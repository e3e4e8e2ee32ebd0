//! Ethereal on switches as they are: port segments and known hashes carry every byte where path ids
//! carry it.

use crate::common::{LINK, Setup, all_to_all, dctcp, message, messages, received};
use weft_balance::enforce::{HashFunction, MICROSOFT_KEY};
use weft_balance::scheme::{Ecmp, SchemeConfig};
use weft_fabric::{Bundle, Clos, Failure, FailureKind, LinkChoice, Node, Tiers};
use weft_sim::{Outcome, PacketConfig};
use weft_units::Time;
use weft_workload::Workload;

fn enforced(enforce: &str) -> SchemeConfig {
    SchemeConfig::read("ethereal", &[("enforce", enforce)]).unwrap()
}

/// Two tiers, bundles, three tiers: 16 hosts each.
fn fabrics() -> [Clos; 4] {
    let mut bundles = Clos::leaf_spine(4, 3, 4, LINK);
    bundles.leaf_bundle = Bundle { link: LINK, members: 2 };
    let uneven = Tiers::Three { pods: 2, leaves_per_pod: 2, aggs_per_pod: 2, cores: 6 };
    [
        Clos::leaf_spine(4, 4, 4, LINK),
        bundles,
        Clos::fat_tree(4, LINK),
        Clos::uniform(uneven, 4, LINK),
    ]
}

/// Pairs at distance 1, 2, 4 and so on, each after what was received before.
fn recursive_doubling(hosts: u32, bytes: u64) -> Workload {
    let mut workload = Workload::new(hosts);
    let mut last: Vec<Option<u32>> = vec![None; hosts as usize];
    for step in 0..hosts.ilog2() {
        let before = last.clone();
        for host in 0..hosts {
            let waits: Vec<_> = before[host as usize].into_iter().map(received).collect();
            let id = workload.push(message(host, host ^ 1 << step, bytes), &waits);
            last[(host ^ 1 << step) as usize] = Some(id.0);
        }
    }
    workload
}

fn setups(bytes: u64) -> impl Iterator<Item = Setup> {
    let both = move |clos: Clos| {
        let doubling = recursive_doubling(clos.hosts(), bytes);
        [all_to_all(&clos, bytes), doubling].map(|workload| Setup::new(clos, workload))
    };
    let setups = fabrics().into_iter().flat_map(both);
    setups.flat_map(|setup| (1..4).map(move |seed| setup.clone().seeded(seed)))
}

/// Under DCTCP with marks, and queues that overflow: the whole run is the same, to the byte.
#[test]
fn segments_are_path_ids() {
    let mut moved = 0;
    for setup in setups(60_000) {
        let mut setup = setup.port_buffer(40_000);
        setup.transport.congestion = dctcp(30_000, 200_000);
        setup.transport.rto = Time::us(200);
        let by_id = setup.clone().under(enforced("path-id")).run();
        let by_port = setup.under(enforced("segments")).run();
        assert_eq!(by_port, by_id);
        moved += by_id.totals.drops;
    }
    assert!(moved > 1000, "losses make flows move: {moved}");
}

/// Bytes of data over every link. Without headers, in packets of 10,000 bytes and with
/// acknowledgements of one, what is left of 10,000 are acknowledgements.
fn data(outcome: &Outcome) -> Vec<u64> {
    let of = |bytes: u64, packets: u64| {
        let acknowledgements = bytes % 10_000;
        assert_eq!(bytes / 10_000 + acknowledgements, packets);
        bytes - acknowledgements
    };
    outcome.ports.iter().map(|port| of(port.bytes, port.packets)).collect()
}

#[test]
fn hashed_ports_carry_data_where_path_ids_do() {
    for setup in setups(60_000) {
        let packet = PacketConfig { mtu: 10_000, header: 0, ack: 1 };
        let whole = |enforce: &str| {
            let options = [("enforce", enforce), ("unit", "packet")];
            SchemeConfig::read("ethereal", &options).unwrap()
        };
        let setup = Setup { packet, ..setup };
        let by_id = setup.clone().under(whole("path-id")).run();
        let seed = setup.seed as usize;
        // Two functions a seed.
        for (name, function) in HashFunction::NAMED.iter().skip(2 * (seed - 1)).take(2) {
            let mut setup = setup.clone().under(whole("hash"));
            setup.switch.hash = Some(*function);
            let by_hash = setup.run();
            assert_eq!(data(&by_hash), data(&by_id), "{name}");
            let totals = (by_hash.totals, by_id.totals);
            assert_eq!((totals.0.packets, totals.0.drops), (totals.1.packets, 0));
            // What the hash alone makes of it is something else.
            let hashed = setup.under(Ecmp).run();
            assert_ne!(data(&hashed), data(&by_id), "{name}");
        }
    }
}

/// Both also where path ids have no byte for the members of bundles: every uplink carries the same,
/// and so does every link down.
#[test]
fn segments_balance_bundles_under_three_tiers() {
    let tiers = Tiers::Three { pods: 3, leaves_per_pod: 1, aggs_per_pod: 2, cores: 4 };
    let mut clos = Clos::uniform(tiers, 4, LINK);
    clos.leaf_bundle = Bundle { link: LINK, members: 2 };
    clos.agg_bundle = Bundle { link: LINK, members: 3 };
    let packet = PacketConfig { mtu: 10_000, header: 0, ack: 1 };
    // 4 x 6 paths across pods: a packet each.
    let setup = Setup { packet, ..Setup::new(clos, all_to_all(&clos, 240_000)) };
    let setup = setup.under(enforced("segments"));
    let carried = data(&setup.run());
    let fabric = &setup.fabric;
    let tier_of = |node| match node {
        Node::Host(_) => None,
        Node::Switch(switch) => Some(fabric.tier(switch)),
    };
    for (from, to) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
        let between = fabric.ports().enumerate().filter(|(_, port)| {
            (tier_of(port.owner), tier_of(port.peer)) == (Some(from), Some(to))
        });
        let bytes: Vec<u64> = between.map(|(id, _)| carried[id.0 as usize]).collect();
        assert!(bytes[0] > 0 && bytes.iter().all(|one| *one == bytes[0]), "{from}-{to}: {bytes:?}");
    }
}

/// An uplink that is known to be dead is no hop: its segment is hashed among the others. One that is
/// dead and not known is left at the time-out, for a port of another path.
#[test]
fn flows_leave_dead_uplinks() {
    let clos = Clos::leaf_spine(2, 4, 4, LINK);
    let pairs: Vec<_> = (0..4).map(|host| (host, host + 4, 400 * 960)).collect();
    for (detect, enforce) in [(0, "segments"), (1_000, "segments"), (1_000, "hash")] {
        let mut setup = Setup::new(clos, messages(8, &pairs)).under(enforced(enforce));
        if enforce == "hash" {
            setup.switch.hash = Some(HashFunction::Toeplitz(MICROSOFT_KEY));
        }
        let detect = Time::ms(detect);
        setup.failures = vec![dead_link("leaf-0 <-> spine-2", detect)];
        let outcome = setup.run();
        let lost = outcome.totals.wire_drops;
        assert_eq!(lost > 0, detect > Time::ZERO, "{enforce}: {lost} lost");
        assert!(outcome.messages.iter().all(|message| message.received > Time::ZERO));
        assert!(outcome.totals.cct < Time::ms(20), "{}", outcome.totals.cct);
    }
}

fn dead_link(link: &str, detect: Time) -> Failure {
    let links = LinkChoice::Named(vec![link.into()]);
    let kind = FailureKind::down(Some(detect));
    Failure { links, kind, start: Time::ZERO, end: Time::MAX }
}

/// A hash that hosts do not choose for is one like any other: runs end, and repeat.
#[test]
fn every_hash_carries_every_scheme() {
    let clos = Clos::leaf_spine(4, 4, 4, LINK);
    for (index, scheme) in SchemeConfig::all().into_iter().enumerate() {
        if !scheme.info().tor.is_none() {
            continue;
        }
        let mut setup = Setup::new(clos, all_to_all(&clos, 20_000)).under(scheme.clone());
        let (name, function) = HashFunction::NAMED[index % HashFunction::NAMED.len()];
        setup.switch.hash = Some(function);
        let outcome = setup.run();
        assert_eq!(outcome, setup.run_in(4, 2).unwrap(), "{scheme:?} over {name}");
        assert!(outcome.messages.iter().all(|message| message.received > Time::ZERO));
    }
}
