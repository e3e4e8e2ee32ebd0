//! Small runs of every scheme, pinned: whoever makes the engine faster shows here that nothing
//! else has changed. After a change to the model, check the new table by eye and paste it.

use crate::common::{LINK, Setup, all_to_all, dctcp, incast, permutation};
use std::fmt::Write;
use weft_balance::scheme::SchemeConfig;
use weft_fabric::{Clos, Failures};
use weft_sim::ports::pfc_set_aside;
use weft_sim::{Buffer, EcnConfig, Outcome, PfcConfig};
use weft_units::Time;
use weft_units::random::mix64;

/// All-to-all on a leaf-spine, DCTCP, small buffers of their own, a ramp of marks.
fn lossy() -> Setup {
    let clos = Clos::leaf_spine(4, 4, 4, LINK);
    let mut setup = Setup::new(clos, all_to_all(&clos, 50_000)).port_buffer(60_000);
    setup.switch.ecn = Some(EcnConfig { kmin: 10_000, kmax: 40_000, pmax: 0.5 });
    setup.transport.congestion = dctcp(30_000, 200_000);
    setup.transport.rto = Time::us(200);
    setup
}

/// Incast with PFC, acknowledgements first, DCTCP.
fn lossless() -> Setup {
    let clos = Clos::leaf_spine(4, 4, 4, LINK);
    let mut setup = Setup::new(clos, incast(&clos, 100_000));
    let pfc = PfcConfig {
        threshold: None,
        alpha: 1.0,
        reserve: 2000,
        headroom: None,
        resume_offset: 4000,
    };
    let aside = pfc_set_aside(&setup.fabric, &Failures::default(), &setup.packet, &pfc);
    setup.switch.buffer = Buffer::Shared { bytes: aside + 50_000, alpha: 1.0 };
    setup.switch.pfc = Some(pfc);
    setup.switch.control_priority = true;
    setup.switch.ecn = Some(EcnConfig { kmin: 20_000, kmax: 20_000, pmax: 1.0 });
    setup.transport.congestion = dctcp(50_000, 400_000);
    setup
}

/// Permutation on a fat-tree, shared buffers that drop, random starts and positions.
fn shared() -> Setup {
    let clos = Clos::fat_tree(4, LINK);
    let mut setup = Setup::new(clos, permutation(&clos, 200_000));
    setup.switch.buffer = Buffer::Shared { bytes: 80_000, alpha: 1.0 };
    setup.balance.start_jitter = Time::us(5);
    setup.balance.random_position = true;
    setup.transport.congestion = dctcp(100_000, 400_000);
    setup.transport.rto = Time::us(300);
    setup
}

/// Every number of every message and port in one.
fn digest(outcome: &Outcome) -> u64 {
    let messages = outcome.messages.iter().flat_map(|m| {
        [
            m.posted.0,
            m.received.0,
            m.sent.0,
            m.subflows.into(),
            m.retransmits.into(),
            m.spurious.into(),
        ]
    });
    let ports = outcome.ports.iter().flat_map(|p| {
        [p.bytes, p.packets, p.drops, p.dropped_bytes, p.marks, p.pauses, p.paused.0, p.peak_queue]
    });
    messages.chain(ports).fold(0, |hash, number| mix64(hash ^ mix64(number)))
}

const HEAD: &str = "\
run      scheme              cct   hops drops marks resent spurious pauses qps digest
";

/// `schemes`: which to run.
fn table(schemes: &[SchemeConfig]) -> String {
    let mut table = String::from(HEAD);
    for (name, setup) in [("lossy", lossy()), ("lossless", lossless()), ("shared", shared())] {
        for scheme in schemes {
            let mut setup = setup.clone().under(scheme.clone());
            setup.balance.bdp = 20_000;
            let outcome = setup.run();
            let t = &outcome.totals;
            writeln!(
                table,
                "{name:8} {:13} {:>9} {:>6} {:>5} {:>5} {:>6} {:>8} {:>6} {:>3} {:016x}",
                scheme.name(),
                t.cct.0,
                t.packet_hops,
                t.drops,
                t.marks,
                t.retransmits,
                t.spurious,
                t.pauses,
                t.max_qps,
                digest(&outcome),
            )
            .unwrap();
        }
    }
    table
}

#[test]
fn results_are_as_pinned() {
    let (pinned, new): (Vec<_>, Vec<_>) =
        SchemeConfig::all().into_iter().partition(|scheme| is_pinned(&scheme.name()));
    let table_now = table(&pinned);
    assert!(table_now == PINNED, "another table than pinned:\n{table_now}");
    // A new scheme runs too; `cargo test -- --nocapture` prints what to pin.
    println!("{}", table(&new));
}

fn is_pinned(scheme: &str) -> bool {
    PINNED.lines().any(|line| line.split_whitespace().nth(1) == Some(scheme))
}

const PINNED: &str = "\
run      scheme              cct   hops drops marks resent spurious pauses qps digest
lossy    ecmp          279602400  92115   103  1907    195        0      0  15 36827b0d174bbc23
lossy    spray          68300000  91584     0     1      0        0      0  15 87dc352a21667bc9
lossy    spray-counter  68220000  91584     0     0      0        0      0  15 302e9068a4bebe9a
lossy    reps           68236000  91584     0     0      0        0      0  15 42888971013054fb
lossy    reps-sticky    76776000  91584     0   336      0        0      0  15 252213f835780983
lossy    ethereal       68130400  91584     0     0      0        0      0  15 a2468719e8843129
lossless ecmp          130072000  11340     0  2896      0        0    106   1 d0598937afa8ad47
lossless spray         133368000  11340     0  2607      0        0    126   1 1e2f949ad28e1e05
lossless spray-counter 133448000  11340     0  2642      0        0    122   1 18e34d423b63aff2
lossless reps          133464000  11340     0  2641      0        0    119   1 3b9488308ffee733
lossless reps-sticky   133384000  11340     0  2623      0        0    118   1 4b2b23808d57d177
lossless ethereal      126251520  11628     0  2855      0        0    145   4 679b7a38e2d7e3eb
shared   ecmp          355264163  46365   964     0   2506        0      0   1 2ef55346c2d7c4b7
shared   spray          26893315  35948     0     0      0        0      0   1 02526f5fa000c882
shared   spray-counter  27688656  35948     0     0      0        0      0   1 c72069c6ff9f34f8
shared   reps           27153456  35948     0     0      0        0      0   1 f26661107b702cc8
shared   reps-sticky   325883235  36004   576     0    459       15      0   1 1cd7d9da2373328a
shared   ethereal      331473012  36397     5     0      3        0      0   4 09546ffa31db4d26
";
