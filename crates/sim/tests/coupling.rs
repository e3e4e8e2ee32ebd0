//! What the NIC tells schemes, seen in what they do: acknowledged messages, room in the window,
//! time-outs.

use crate::common::{LINK, Setup, message, messages, sent};
use weft_balance::scheme::SchemeConfig;
use weft_fabric::{Clos, Failure, FailureKind, LinkChoice};
use weft_sim::{Outcome, Rates};
use weft_transport::{CongestionConfig, FixedRateConfig, MpRdmaConfig};
use weft_units::{PortId, Rate, SwitchId, Time};
use weft_workload::Workload;

fn named(name: &str, options: &[(&str, &str)]) -> SchemeConfig {
    SchemeConfig::read(name, options).unwrap()
}
/// What each uplink of the first leaf has carried, whose hosts are `hosts`.
fn uplinks(setup: &Setup, outcome: &Outcome, hosts: u32) -> Vec<u64> {
    let ports = setup.fabric.ports_of(SwitchId(0));
    let first = ports.first.0 + hosts;
    (first..ports.first.0 + ports.count).map(|port| outcome.ports[PortId(port)].packets).collect()
}
/// A message of so many packets to the other rack, over the uplinks of four spines, one of which
/// is in trouble.
fn troubled(packets: u64, kind: FailureKind) -> Setup {
    let clos = Clos::leaf_spine(2, 4, 1, LINK);
    let mut setup = Setup::new(clos, messages(2, &[(0, 1, packets * 960)])).window(60);
    let links = LinkChoice::Named(vec!["leaf-0 -> spine-2".into()]);
    setup.failures.push(Failure { links, kind, start: Time::ZERO, end: Time::MAX });
    setup.transport.rto = Time::us(60);
    setup
}

/// 25 packets leave at 1 Gb/s, in 208 us. Meanwhile ten packets at a time are posted when the ten
/// before them are acknowledged: their connection is idle then, however much it has carried.
#[test]
fn a_connection_that_has_completed_is_the_least_loaded() {
    let mut workload = Workload::new(2);
    workload.push(message(0, 1, 10 * 960), &[]);
    workload.push(message(0, 1, 25 * 960), &[]);
    for last in [0, 2, 3] {
        workload.push(message(0, 1, 10 * 960), &[sent(last)]);
    }
    let mut setup = Setup::new(Clos::leaf_spine(2, 4, 1, LINK), workload);
    setup.transport.congestion = CongestionConfig::FixedRate(FixedRateConfig::default());
    setup.pacing.rates = Rates::Each([100, 1, 100, 100, 100].map(Rate::gbps).into_iter().collect());
    for (subflows, count) in [(1, "2"), (1, "4"), (3, "2")] {
        let mut setup = setup.clone().under(named("hpn", &[("connections", count)]));
        setup.pacing.subflows = subflows;
        let mut carried = uplinks(&setup, &setup.run(), 1);
        carried.sort_unstable();
        assert_eq!(carried, [0, 0, 25, 40], "{count} connections");
    }
}

/// Hashed or pinned, messages posted together go to connections of their own.
#[test]
fn connections_share_what_is_posted_together() {
    let clos = Clos::leaf_spine(2, 4, 1, LINK);
    let setup = Setup::new(clos, messages(2, &[(0, 1, 20 * 960); 8])).under(named("hpn", &[]));
    assert_eq!(uplinks(&setup, &setup.run(), 1), [40; 4]);
}

/// A link that has lost nine tenths brings back a tenth of the acknowledgements, so that
/// packets leave it to the others. Spraying sends it a quarter of all, and waits for those.
#[test]
fn acknowledgements_clock_packets_away_from_a_slow_path() {
    let setup = troubled(4_000, FailureKind::Degraded { lost: 0.9 });
    let mut clocked = setup.clone().under(named("mp-rdma", &[]));
    clocked.transport.congestion = CongestionConfig::MpRdma(MpRdmaConfig {
        initial_window: 60 * 960,
        max_window: 60 * 960,
        reordering: 32,
    });
    let (outcome, sprayed) = (clocked.run(), setup.under(named("spray", &[])).run());
    let slow = uplinks(&clocked, &outcome, 1)[2];
    let slow_sprayed = uplinks(&clocked, &sprayed, 1)[2];
    assert!((900..1100).contains(&slow_sprayed), "{slow_sprayed}");
    assert!(slow < 300, "{slow} of 4000 packets");
    assert!(outcome.totals.cct * 2 < sprayed.totals.cct);
    assert_eq!(outcome.totals.retransmits, 0);
}

/// A dead link that nobody detects: whoever remembers what timed out loses little there.
#[test]
fn what_times_out_is_left_alone() {
    let setup = troubled(8_000, FailureKind::down(None));
    let lost = |name| setup.clone().under(named(name, &[])).run().totals.retransmits;
    // A quarter of all that leaves, what is sent again included.
    let blind = lost("spray-counter");
    assert!((2_000..3_500).contains(&blind), "{blind}");
    for name in ["spray-mixed", "reps", "reps-freezing", "mp-rdma"] {
        let seeing = lost(name);
        assert!(seeing * 20 < blind, "{name}: {seeing} against {blind}");
    }
    // Fifteen rounds of 64 packets are over sooner than the time-out, and all are tried again.
    let forgetful = lost("spray-bitmap");
    assert!(forgetful * 2 < blind, "{forgetful} against {blind}");
}
