//! The schemes in the simulator: theorem 1 on real links, pinned paths there and back, what
//! each recovery makes of multipath, and which randomness runs share.

use crate::common::{
    LINK, Setup, all_to_all, dctcp, ethereal, incast, messages, pattern, permutation,
};
use weft_balance::Planner;
use weft_balance::plan::Post;
use weft_balance::scheme::{Ecmp, SchemeConfig, Spray};
use weft_fabric::{Bundle, Clos, Fabric, Node};
use weft_sim::{Outcome, PacketConfig};
use weft_transport::RecoveryConfig;
use weft_units::{HostId, MessageId, PortId, SwitchId, Time};
use weft_workload::pattern::{Pattern, Permutation};

/// Bytes that each leaf sent up, and each spine port down, leaf by leaf.
fn leaf_links(fabric: &Fabric, outcome: &Outcome) -> Vec<(Vec<u64>, Vec<u64>)> {
    let of_leaf = |leaf| {
        let up = fabric.ports_of(SwitchId(leaf));
        let up: Vec<PortId> =
            up.ids().filter(|port| matches!(fabric.ports()[*port].peer, Node::Switch(_))).collect();
        let bytes = |port: &PortId| outcome.ports[*port].bytes;
        let down = |port: &PortId| outcome.ports[fabric.ports()[*port].reverse].bytes;
        (up.iter().map(bytes).collect(), up.iter().map(down).collect())
    };
    (0..fabric.leaves()).map(of_leaf).collect()
}
fn spread(bytes: &[u64]) -> u64 {
    bytes.iter().max().unwrap() - bytes.iter().min().unwrap()
}

/// With one packet a subflow and no headers, an uplink carries payload, and as many
/// acknowledgements as subflows came down its way. Theorem 1: the same everywhere, but for a
/// byte per source and leaf.
#[test]
fn theorem_one_on_real_links() {
    for spines in [1, 2, 3, 4, 6] {
        let clos = Clos::leaf_spine(3, spines, 4, LINK);
        let bytes = 10_001;
        let setup = Setup {
            packet: PacketConfig { mtu: 16_000, header: 0, ack: 40 },
            ..Setup::new(clos, all_to_all(&clos, bytes))
        };
        let planned = setup.clone().under(ethereal()).run();
        // 8 messages of every host leave its rack, 8 come in: 32 of each under a leaf.
        let payload = 32 * bytes;
        for (up, down) in leaf_links(&setup.fabric, &planned) {
            // A byte for each of 4 sources and 2 leaves up, 8 sources down.
            assert!(spread(&up) <= 8 && spread(&down) <= 8, "{up:?} {down:?}");
            let acks = up.iter().sum::<u64>() - payload;
            assert_eq!(acks % (40 * u64::from(spines)), 0, "as many pieces on every path");
        }
        if spines > 1 {
            let fabric = setup.fabric.clone();
            let hashed = setup.under(Ecmp).run();
            let worst =
                leaf_links(&fabric, &hashed).iter().map(|(up, _)| spread(up)).max().unwrap();
            assert!(worst > 2 * bytes, "ECMP is uneven: {worst}");
        }
    }
}

/// Where data of a pinned flow went, its acknowledgements come back, and nothing else moves.
#[test]
fn acknowledgements_of_pinned_flows_retrace_their_path() {
    let mut bundled = Clos::leaf_spine(2, 3, 2, LINK);
    bundled.leaf_bundle = Bundle { link: LINK, members: 2 };
    for clos in [Clos::leaf_spine(2, 3, 2, LINK), bundled, Clos::fat_tree(4, LINK)] {
        let last = clos.hosts() - 1;
        // Several sizes: several splits and paths.
        let list = [(0, last, 960 * 40), (0, last, 960 * 31 + 5), (0, 1, 960 * 7)];
        let setup = Setup::new(clos, messages(clos.hosts(), &list)).under(ethereal());
        let outcome = setup.run();
        let mut used = 0;
        for (id, port) in setup.fabric.ports().enumerate() {
            let (there, back) = (outcome.ports[id], outcome.ports[port.reverse]);
            assert_eq!(there.packets, back.packets, "{id:?} and back");
            let (data, acks) = (there.bytes.max(back.bytes), there.bytes.min(back.bytes));
            assert_eq!(acks, there.packets * 50);
            assert!(there.packets == 0 || data > acks);
            used += u64::from(there.packets > 0);
        }
        let paths = setup.fabric.path_set(HostId(0), HostId(last)).len();
        assert!(used >= 2 * u64::from(paths), "{used} ports in use");
    }
}

#[test]
fn spray_over_go_back_n_resends_what_was_only_late() {
    let clos = Clos::leaf_spine(4, 4, 4, LINK);
    let setup = Setup::new(clos, permutation(&clos, 200 * 960)).under(Spray);
    let mut go_back_n = setup.clone();
    go_back_n.transport.recovery = RecoveryConfig::GO_BACK_N;
    let (selective, go_back_n) = (setup.run(), go_back_n.run());
    assert_eq!((selective.totals.drops, selective.totals.retransmits), (0, 0));
    assert_eq!(go_back_n.totals.drops, 0, "nothing was lost");
    assert!(go_back_n.totals.retransmits > 1000, "{}", go_back_n.totals.retransmits);
    assert!(go_back_n.totals.cct > selective.totals.cct);
}

#[test]
fn every_scheme_recovers_in_a_lossy_network() {
    let clos = Clos::leaf_spine(4, 2, 4, LINK);
    for scheme in SchemeConfig::all() {
        let setup = Setup::new(clos, incast(&clos, 60 * 960)).port_buffer(20_000);
        let outcome = setup.under(scheme.clone()).run();
        let totals = outcome.totals;
        assert!(totals.drops > 50, "{scheme:?}: {} drops", totals.drops);
        assert!(totals.retransmits > 0 && totals.retransmits >= totals.spurious);
        assert!(outcome.messages.iter().all(|message| message.received > Time::ZERO));
    }
}

/// Four messages from host 0 share a receiver with its neighbour, whose queue overflows. Each
/// starts on an uplink of its own. If nobody moved, every uplink would carry exactly the
/// packets, retransmissions included, of the messages that it was given.
#[test]
fn ethereal_leaves_a_path_in_trouble() {
    let clos = Clos::leaf_spine(2, 4, 2, LINK);
    let mut list = vec![(0, 2, 100 * 960); 4];
    list.push((3, 2, 200 * 960));
    let nobody_moved = |scheme: SchemeConfig| {
        let setup = Setup::new(clos, messages(4, &list)).port_buffer(20_000).under(scheme);
        let outcome = setup.run();
        let first = setup.fabric.ports_of(SwitchId(0)).first.0 + 2;
        let up = [0, 1, 2, 3].map(|spine| outcome.ports[PortId(first + spine)].packets);
        let own = [0, 1, 2, 3].map(|id| {
            let again = outcome.messages[MessageId(id)].retransmits;
            assert!(again > 0, "message {id} met no trouble");
            100 + u64::from(again)
        });
        assert_eq!(up.iter().sum::<u64>(), own.iter().sum::<u64>());
        // All ways to give four messages an uplink each.
        (0..256usize).any(|way| {
            let mut carried = [0; 4];
            (0..4).for_each(|id| carried[(way >> (2 * id)) & 3] += own[id]);
            carried == up
        })
    };
    assert!(nobody_moved(Ecmp.into()));
    assert!(!nobody_moved(ethereal()));
}

#[test]
fn another_seed_is_another_run() {
    let clos = Clos::leaf_spine(4, 4, 4, LINK);
    for scheme in SchemeConfig::all() {
        let setup = Setup::new(clos, all_to_all(&clos, 20_000)).under(scheme.clone());
        let one = setup.clone().seeded(1).run();
        assert_eq!(one, setup.clone().seeded(1).run(), "{scheme:?}");
        let two = setup.seeded(2).run();
        // Who pins paths may do so without chance; Ethereal does not.
        let pins = scheme.needs_path_ids()
            || ["path-pinning", "dnlb", "rlb"].contains(&scheme.info().name);
        let by_chance = !pins || scheme == ethereal();
        assert!(!by_chance || one.ports != two.ports, "{scheme:?}");
    }
}

/// Under one seed all schemes that keep messages whole see the same starts: nothing that a
/// message does before its first packet depends on the scheme.
#[test]
fn schemes_share_jitter() {
    let clos = Clos::leaf_spine(4, 4, 4, LINK);
    let first_arrivals = |scheme: SchemeConfig| {
        // One packet from each host, over idle links: what differs is the jitter.
        let mut setup = Setup::new(clos, permutation(&clos, 300)).under(scheme);
        setup.balance.start_jitter = Time::us(500);
        let outcome = setup.run();
        outcome.messages.iter().map(|message| (message.posted, message.received)).collect()
    };
    let ecmp: Vec<_> = first_arrivals(Ecmp.into());
    assert!(ecmp.iter().any(|(_, received)| *received > Time::us(250)));
    let posted = |list: &[(Time, Time)]| list.iter().map(|(at, _)| *at).collect::<Vec<_>>();
    for scheme in SchemeConfig::all() {
        let arrivals = first_arrivals(scheme.clone());
        assert_eq!(posted(&arrivals), posted(&ecmp), "{scheme:?}");
        // Others, Ethereal among them, wait for a batch or split even one packet.
        if sends_whole_at_once(&scheme) {
            assert_eq!(arrivals, ecmp, "{scheme:?}");
        }
    }
    assert!(sends_whole_at_once(&Spray.into()) && !sends_whole_at_once(&ethereal()));
}

fn sends_whole_at_once(scheme: &SchemeConfig) -> bool {
    let setup = Setup::new(Clos::leaf_spine(2, 4, 1, LINK), messages(2, &[])).under(scheme.clone());
    let mut planner = Planner::new(&setup.balance, HostId(0), 1, setup.packet.mtu);
    let post =
        Post { message: MessageId(0), dst: HostId(1), bytes: 300, job: 0, ranks: (0, 0), tag: 0 };
    let mut subflows = Vec::new();
    planner.post(Time::ZERO, post, &setup.fabric, &mut subflows);
    subflows.len() == 1 && subflows[0].bytes == post.bytes
}

/// With one salt everywhere the switches of all tiers choose alike, and paths are wasted.
#[test]
fn equal_salts_polarise() {
    let clos = Clos::fat_tree(8, LINK);
    let mut setup = Setup::new(clos, permutation(&clos, 4 * 960));
    let unused = |setup: &Setup| {
        let outcome = setup.run();
        let core = (setup.fabric.switches() - 16..setup.fabric.switches()).map(SwitchId);
        core.filter(|switch| {
            let ports = setup.fabric.ports_of(*switch);
            ports.ids().all(|port| outcome.ports[port].packets == 0)
        })
        .count()
    };
    assert_eq!(unused(&setup), 0);
    setup.switch.same_salt = true;
    // Data and acknowledgements hash different keys, each wasting most cores on its own.
    assert!(unused(&setup) >= 8, "{} cores idle", unused(&setup));
}

/// Marks on the way back concern whoever sends data there, not the sender whose
/// acknowledgements stand in the same queue.
#[test]
fn marks_on_the_way_back_do_not_slow_the_sender() {
    let clos = Clos::leaf_spine(1, 1, 10, LINK);
    // Host 0 sends to host 1 over idle links while eight others fill the queue to host 0.
    let mut list: Vec<_> = (2..10).map(|src| (src, 0, 1000 * 960)).collect();
    list.push((0, 1, 2000 * 960));
    let mut setup = Setup::new(clos, messages(10, &list));
    setup.switch.ecn = Some(weft_sim::EcnConfig { kmin: 10_000, kmax: 10_000, pmax: 1.0 });
    setup.transport.congestion = dctcp(50 * 960, 50 * 960);
    let outcome = setup.run();
    // At line rate it takes 160 us; the acknowledgements are late by the first burst of the
    // others, 32 us, now and then.
    let received = outcome.messages[MessageId(8)].received;
    assert!(received < Time::us(240), "{received}");
    // The eight others are marked: they get an eighth of the link each.
    assert!(outcome.totals.marks > 1000);
}

/// A gap moves a flow to another path. What is still queued on the old one makes the receiver
/// see a gap again; a sender that rewound for that would send what is on its way already.
#[test]
fn a_nack_about_a_path_that_was_left_is_ignored() {
    let clos = Clos::leaf_spine(4, 4, 8, LINK);
    let traffic = Pattern::Permutation(Permutation { count: 4 });
    let mut setup = Setup::new(clos, pattern(&clos, &traffic, 1_000_000)).port_buffer(50_000);
    setup.transport.congestion = dctcp(60_000, 500_000);
    let totals = setup.under(ethereal()).run().totals;
    assert!(totals.drops > 100 && totals.retransmits > 1000, "{totals:?}");
    assert!(totals.spurious * 50 < totals.retransmits, "{totals:?}");
}
