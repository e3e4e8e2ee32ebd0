//! NICs with ports at several leaves of one network: which port a flow takes, and what a dead link does.

use crate::common::compare::{but_events, difference};
use crate::common::{LINK, PACKET, Setup, messages};
use weft_balance::scheme::SchemeConfig;
use weft_fabric::{Clos, Fabric, FailureKind, Wiring};
use weft_transport::RecoveryConfig;
use weft_units::{HostId, Time};
use weft_workload::{Message, Workload};

/// Four leaves, two for each four hosts, and two spines.
fn dual(list: &[(u32, u32, u64)]) -> Setup {
    let clos = Clos::leaf_spine(4, 2, 4, LINK);
    let mut setup = Setup::new(Clos::leaf_spine(2, 2, 4, LINK), messages(8, list));
    setup.fabric = Fabric::of_wiring(Wiring::homed(&clos, 2).unwrap()).unwrap();
    setup
}

fn schemes(fabric: &Fabric) -> impl Iterator<Item = SchemeConfig> + '_ {
    SchemeConfig::all().into_iter().filter(|scheme| scheme.fits(fabric).is_ok())
}

/// The packets that left each port of a host.
fn sent(setup: &Setup, host: u32) -> [u64; 2] {
    let outcome = setup.run();
    [0, 1].map(|home| outcome.ports[setup.fabric.nic_in_plane(HostId(host), home)].packets)
}

/// 1000 packets of 1000 bytes take 80 us on one port and 40 on two.
#[test]
fn a_flow_has_one_port_and_sprayed_packets_both() {
    let list = [(0, 4, 1_000 * u64::from(PACKET.mtu))];
    for scheme in ["ecmp", "ethereal"] {
        let setup = dual(&list).under(SchemeConfig::read(scheme, &[]).unwrap());
        let mut ports = sent(&setup, 0);
        ports.sort_unstable();
        let whole = if scheme == "ecmp" { [0, 1_000] } else { ports };
        assert_eq!((ports, ports[0] + ports[1]), (whole, 1_000), "{scheme}");
    }
    let ecmp = dual(&list).run().totals.cct;
    let line = Setup::line(1_000).run().totals.cct;
    assert_eq!(ecmp, line, "a port of a NIC is like any other");
    let sprayed = dual(&list).under(SchemeConfig::read("spray", &[]).unwrap());
    assert_eq!(sent(&sprayed, 0), [500, 500]);
    let cct = sprayed.run().totals.cct;
    assert!(cct >= Time::us(40) && cct < Time::us(44), "{cct}");
}

/// 64 flows are hashed to both ports: so unevenly that either has less than a quarter once in 10,000 times.
#[test]
fn flows_are_hashed_to_ports() {
    let list: Vec<_> = (0..64).map(|_| (0, 4, 960)).collect();
    let ports = sent(&dual(&list), 0);
    assert!(ports.iter().all(|sent| *sent >= 16) && ports[0] + ports[1] == 64, "{ports:?}");
}

/// Whose link is known to be dead is reached over the other leaf, and sends there: nothing is lost.
#[test]
fn who_knows_of_a_dead_link_loses_nothing_to_it() {
    let list: Vec<_> =
        (0..8).flat_map(|turn| [(1, 4 + turn % 4, 9_600), (4 + turn % 4, 1, 9_600)]).collect();
    let mut later = Workload::new(8);
    for (src, dst, bytes) in &list {
        let [src, dst] = [*src, *dst].map(HostId);
        later.push(Message { src, dst, bytes: *bytes, start: Time::us(1) }, &[]);
    }
    let down = FailureKind::down(Some(Time::ns(1)));
    for link in ["host-1 <-> leaf-0", "host-1 -> leaf-1", "leaf-1 -> host-1"] {
        let setup = dual(&list);
        for scheme in schemes(&setup.fabric) {
            let name = scheme.name();
            let mut setup = setup.clone().under(scheme).failing(link, down, Time::ZERO, Time::MAX);
            setup.workload = later.clone();
            let outcome = setup.run();
            let lost = outcome.totals.wire_drops + outcome.totals.retransmits;
            assert_eq!(lost, 0, "{name} {link}");
        }
    }
}

/// Links of hosts die and come back while all send to all: everything arrives, in however many partitions.
#[test]
fn every_scheme_survives_dead_links_of_hosts() {
    let all = |src| (0..8).filter(move |dst| *dst != src).map(move |dst| (src, dst, 30_000));
    let list: Vec<_> = (0..8).flat_map(all).collect();
    let setup = dual(&list);
    for (turn, scheme) in schemes(&setup.fabric).enumerate() {
        let name = scheme.name();
        let mut setup = setup.clone().under(scheme);
        if setup.transport.recovery == RecoveryConfig::GO_BACK_N && turn % 2 == 0 {
            setup.transport.recovery = RecoveryConfig::SELECTIVE_REPEAT;
        }
        setup.transport.rto = Time::us(60);
        let end = [Time::MAX, Time::us(30)][turn % 2];
        let down = FailureKind::down(Some(Time::us(4)));
        let setup = setup.failing("host-1 <-> leaf-0", down, Time::us(5), end);
        let setup = setup.failing("host-6 <-> leaf-3", down, Time::us(7), end);
        let one = setup.run_in(1, 1).map(but_events);
        let outcome = one.as_ref().unwrap_or_else(|halt| panic!("{name}: {halt:?}"));
        assert!(outcome.messages.iter().all(|message| message.received > Time::ZERO), "{name}");
        let many = setup.run_in(4, 2).map(but_events);
        assert_eq!(difference(&one, &many), None, "{name}");
    }
}
