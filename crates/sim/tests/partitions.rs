//! However a fabric is cut, and on however many threads: the run of one partition on a plain heap
//! and real queues, to the byte.

use crate::common::compare::{confirmed, equals};
use crate::common::partitions::{drafted, drafts, fabrics, loaded, most_partitions, watched};
use crate::common::random::{Kind, must_finish, setup_on, wide_clos};
use crate::common::{LINK, Setup, all_to_all, dctcp, message, permutation, received, sent};
use std::sync::atomic::AtomicBool;
use weft_balance::scheme::SchemeConfig;
use weft_fabric::{Bundle, Clos, Link, Tiers};
use weft_sim::{Outcome, Rates, Simulation};
use weft_trial::is_drawn;
use weft_trial::prelude::*;
use weft_units::{MessageId, Rate, Time};
use weft_workload::{Message, Workload};

const KINDS: &[Kind] = Kind::ALL;

/// Compares `setup` in all `cuts` (partitions, threads) with one partition, and that with the oracle.
fn check(what: &str, setup: &Setup, cuts: impl IntoIterator<Item = (u32, u32)>) -> Outcome {
    let one = confirmed(setup);
    for (partitions, threads) in cuts {
        let equal = equals(&one, setup, partitions, threads);
        assert_eq!(equal, Ok(()), "{what}");
    }
    one.unwrap_or_else(|halt| panic!("{what}: {halt}"))
}

/// Every number of partitions, and all numbers of threads in turn.
fn every_cut(clos: &Clos, turn: u32) -> impl Iterator<Item = (u32, u32)> {
    (1..=most_partitions(clos)).map(move |partitions| (partitions, 1 + (partitions + turn) % 4))
}

/// Every scheme and a quarter of the numbers of partitions, on a fabric with switches of one kind.
fn every_scheme_and_cut(kind: Kind) {
    let (mut drops, mut pauses) = (0, 0);
    // What is new to a cut shows on few fabrics.
    let few = matches!(kind, Kind::Trim | Kind::Fixed);
    for (name, clos) in fabrics().into_iter().skip(if few { 4 } else { 0 }) {
        for (turn, scheme) in (0..).zip(SchemeConfig::all()) {
            let what = format!("{kind:?} on {name} under {}", scheme.name());
            let setup = loaded(clos, kind).under(scheme.clone());
            if scheme.needs_path_ids() && setup.fabric.check_path_ids().is_err() {
                continue;
            }
            let drawn = |(partitions, _): &(u32, u32)| is_drawn(&format!("{what}, {partitions}"));
            let outcome = check(&what, &setup, every_cut(&clos, turn).filter(drawn));
            assert!(outcome.series.iter().all(|series| series.bytes.len() > 10), "{what}");
            drops += outcome.totals.drops + outcome.totals.trims;
            pauses += outcome.totals.pauses;
        }
    }
    match kind {
        Kind::Lossless => assert!(pauses > 1000 && drops == 0, "{pauses} pauses"),
        Kind::Fixed => assert!(pauses > 200 && drops == 0, "{pauses} pauses, {drops} drops"),
        Kind::Trim => assert!(drops > 300, "{drops} trims"),
        _ => assert!(drops > 1000 && pauses == 0, "{drops} drops"),
    }
}

#[test]
fn ports_that_drop() {
    every_scheme_and_cut(Kind::PerPort);
}

#[test]
fn switches_that_drop() {
    every_scheme_and_cut(Kind::Shared);
}

#[test]
fn switches_that_pause() {
    every_scheme_and_cut(Kind::Lossless);
}

#[test]
fn switches_that_pause_at_a_threshold() {
    every_scheme_and_cut(Kind::Fixed);
}

#[test]
fn switches_that_trim() {
    every_scheme_and_cut(Kind::Trim);
}

trials! {
    #![cases(32)]

    /// Any traffic that follows a pattern.
    fn random_runs(
        (setup, partitions, threads) in (setup_on(wide_clos(), KINDS), 2..10u32, 1..4u32)
    ) {
        let setup = watched(setup, Time::us(3));
        let one = confirmed(&setup);
        prop_assert_eq!(equals(&one, &setup, partitions, threads), Ok(()));
        prop_assert!(one.is_ok() || !must_finish(&setup), "{:?}", one.err());
    }

    /// Messages that wait for each other, here and there.
    fn random_dependencies(
        (setup, drafts, partitions, threads) in
            (setup_on(wide_clos(), KINDS), drafts(), 2..10u32, 1..4u32)
    ) {
        let workload = drafted(setup.fabric.clos().expect("a Clos"), &drafts);
        let mut setup = watched(Setup { workload, ..setup }, Time::ns(777));
        if let Rates::Each(rates) = &setup.pacing.rates {
            let again = rates.iter().cycle().copied();
            setup.pacing.rates = Rates::Each(again.take(setup.workload.messages().len()).collect());
        }
        let one = confirmed(&setup);
        prop_assert_eq!(equals(&one, &setup, partitions, threads), Ok(()));
        prop_assert!(one.is_ok() || !must_finish(&setup), "{:?}", one.err());
    }
}

/// What is told as a rule in `samples_until`: one sample at the last acknowledgement or the
/// first time after it, wherever the probe is and whoever is through first.
#[test]
fn the_last_sample_of_a_run() {
    let clos = Clos::leaf_spine(4, 2, 2, LINK);
    // Hosts 0 and 6 are in the first and the last of four partitions.
    for (src, dst) in [(0, 6), (6, 0), (0, 1), (3, 2)] {
        let mut workload = Workload::new(8);
        workload.push(message(src, dst, 9600), &[]);
        let setup = Setup::new(clos, workload);
        let end = setup.run().messages[MessageId(0)].sent;
        // An interval that ends on the last acknowledgement, just before it, just after it; one
        // of many to a lookahead, and one of which the first is the last.
        let half = Time(end.0 / 2);
        for interval in [end, Time(end.0 - 1), Time(end.0 + 1), half, Time(7001), Time::ms(1)] {
            let setup = watched(setup.clone(), interval);
            let cuts = (1..=4).flat_map(|partitions| [(partitions, 1), (partitions, 2)]);
            let outcome = check("samples", &setup, cuts);
            let samples = end.0.div_ceil(interval.0) + 1;
            assert!(outcome.series.iter().all(|series| series.bytes.len() as u64 == samples));
        }
    }
}

/// Nothing to do: everybody takes the one sample at the beginning.
#[test]
fn an_empty_workload() {
    let clos = Clos::leaf_spine(4, 2, 2, LINK);
    let setup = watched(Setup::new(clos, Workload::new(8)), Time::ns(10));
    let outcome = check("nothing", &setup, [(1, 1), (3, 2), (4, 4)]);
    assert!(outcome.series.iter().all(|series| series.bytes == [0]));
}

/// A dependency that is met here, next door, and elsewhere, by hand.
#[test]
fn dependencies_are_met_as_in_one_partition() {
    let clos = Clos::leaf_spine(4, 2, 2, LINK);
    let later = |message: Message, start| Message { start, ..message };
    let mut workload = Workload::new(8);
    workload.push(message(0, 4, 9600), &[]);
    let waiting = [(4, received(0)), (5, received(0)), (7, received(0))];
    let waiting = waiting.into_iter().chain([(0, sent(0)), (1, sent(0)), (6, sent(0))]);
    for (host, dependency) in waiting.clone() {
        workload.push(message(host, (host + 2) % 8, 960), &[dependency]);
        workload.push(later(message(host, (host + 3) % 8, 960), Time::us(2)), &[dependency]);
    }
    let setup = Setup::new(clos, workload);
    let cuts = (1..=4).flat_map(|partitions| (1..=3).map(move |threads| (partitions, threads)));
    let outcome = check("news", &setup, cuts);
    let first = outcome.messages[MessageId(0)];
    for (at, (host, dependency)) in (0..).zip(waiting) {
        let seen = if dependency == sent(0) { first.sent } else { first.received };
        let news = if host == 0 || host == 4 { Time::ZERO } else { LINK.delay };
        assert_eq!(outcome.messages[MessageId(1 + 2 * at)].posted, seen + news);
        assert_eq!(outcome.messages[MessageId(2 + 2 * at)].posted, seen + news + Time::us(2));
    }
}

/// The shortest lookahead there is: every epoch is one instant.
#[test]
fn links_of_a_picosecond() {
    let link = Link { delay: Time::ps(1), ..LINK };
    for (clos, bytes) in [
        (Clos::leaf_spine(3, 2, 2, link), 4_800),
        (Clos::uniform(Clos::fat_tree(4, link).tiers, 1, link), 2_000),
    ] {
        let mut setup = Setup::new(clos, all_to_all(&clos, bytes)).port_buffer(3_000);
        setup.transport.rto = Time::us(20);
        check("1 ps", &setup, [(1, 1), (2, 1), (3, 2), (4, 3)]);
    }
    // One of the links only: in the fabric, or at the hosts.
    let clos = Clos::leaf_spine(3, 2, 2, LINK);
    let inside = Clos { leaf_bundle: Bundle { link, members: 2 }, ..clos };
    let outside = Clos { host_link: link, ..clos };
    for clos in [inside, outside] {
        let setup = Setup::new(clos, all_to_all(&clos, 4_800)).port_buffer(3_000);
        check("a 1 ps link", &setup, [(2, 1), (3, 2)]);
    }
}

/// Slow hosts far from fast switches, and the other way round, with all that a switch can do.
#[test]
fn links_that_are_very_different() {
    let link = |gbps, delay| Link { rate: Rate::gbps(gbps), delay };
    let (near, far) = (link(400, Time::ns(10)), link(10, Time::us(1)));
    for (host_link, fabric_link) in [(far, near), (near, far)] {
        let tiers = Tiers::Three { pods: 4, leaves_per_pod: 2, aggs_per_pod: 2, cores: 2 };
        let bundle = Bundle { link: fabric_link, members: 1 };
        let clos = Clos {
            host_link,
            leaf_bundle: bundle,
            agg_bundle: Bundle { members: 2, ..bundle },
            ..Clos::uniform(tiers, 3, LINK)
        };
        for kind in KINDS {
            let mut setup = loaded(clos, *kind);
            setup.transport.rto = Time::us(200);
            setup.probes.interval = Some(Time::us(17));
            check("different links", &setup, every_cut(&clos, 1));
        }
    }
}

#[test]
fn more_threads_than_partitions() {
    let clos = Clos::leaf_spine(3, 2, 4, LINK);
    let setup = loaded(clos, Kind::Lossless);
    check("few partitions", &setup, [(1, 4), (2, 9), (3, 5), (1000, 7)]);
}

/// A packet has 6 bits for its sender's partition.
#[test]
fn as_many_partitions_as_there_can_be() {
    let tiers = Tiers::Three { pods: 67, leaves_per_pod: 1, aggs_per_pod: 2, cores: 2 };
    for clos in [Clos::leaf_spine(70, 3, 1, LINK), Clos::uniform(tiers, 1, LINK)] {
        for kind in [Kind::PerPort, Kind::Lossless] {
            let setup = loaded(clos, kind);
            check("many partitions", &setup, [(63, 1), (64, 2), (65, 1), (1000, 2)]);
        }
    }
}

/// Whatever cut is chosen for a number of threads.
#[test]
fn the_cut_that_suits_a_number_of_threads() {
    let clos = Clos::fat_tree(6, LINK);
    let mut setup = Setup::new(clos, permutation(&clos, 40_000));
    setup.transport.congestion = dctcp(10_000, 40_000);
    let config = setup.config();
    let one = Simulation::new(&config).run(&AtomicBool::new(false));
    for threads in [0, 2, 3, 100] {
        let run = Simulation::on_threads(&config, threads).run(&AtomicBool::new(false));
        assert!(one == run, "{threads} threads");
    }
}

/// The run is the same, and every event of it is in some partition and epoch; a run that starts over on
/// queues has those of its second start.
#[test]
fn the_epochs_of_a_run() {
    let clos = Clos::leaf_spine(4, 2, 4, LINK);
    for kind in [Kind::Shared, Kind::Lossless] {
        let setup = loaded(clos, kind);
        let config = setup.config();
        let simulation = || Simulation::in_partitions(&config, 4, 1);
        let run = simulation().run(&AtomicBool::new(false)).expect("it finishes");
        let (logged, epochs) =
            simulation().run_logging(&AtomicBool::new(false)).expect("it finishes");
        assert!(epochs.len() > 10 && epochs.iter().all(|events| events.len() == 4));
        assert_eq!(epochs.iter().flatten().sum::<u64>(), run.totals.events, "{kind:?}");
        assert!(run == logged, "{kind:?}");
    }
}

/// A queue pair's receiving half is known before its first packet comes, even where host, leaf
/// and switch are one link apart and the packet is the smallest there is.
#[test]
fn queue_pairs_open_in_time() {
    let clos = Clos::leaf_spine(6, 1, 1, LINK);
    let mut workload = Workload::new(6);
    for step in 0..200u32 {
        let earlier = step.checked_sub(7).map(received);
        workload.push(message(step % 6, (step * 5 + 1) % 6, 1), earlier.as_slice());
    }
    let setup = Setup::new(clos, workload);
    let outcome = check("single bytes", &setup, every_cut(&clos, 0));
    assert_eq!(outcome.totals.packets, 200);
}

/// Threads keep to their cores for a while: the one that called is let go when the run is over, however short it was.
#[cfg(target_os = "linux")]
#[test]
fn a_run_on_two_threads_leaves_its_caller_free() {
    let allowed = || nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
    let clos = Clos::leaf_spine(4, 2, 2, LINK);
    let setup = Setup::new(clos, permutation(&clos, 5_000));
    let before = allowed();
    assert!(setup.run_in(4, 2).is_ok());
    assert_eq!(allowed(), before);
}
