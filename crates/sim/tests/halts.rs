//! Runs that do not come to their end, in several partitions and on several threads: all threads
//! stop, and say the same as one.

use crate::common::compare::{confirmed, equals};
use crate::common::hurry::{pause, within};
use crate::common::partitions::fabrics;
use crate::common::{LINK, Setup, incast, message, messages, permutation, received};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weft_fabric::{Clos, Failure, FailureKind, LinkChoice};
use weft_sim::{Halt, ProbeConfig, Simulation};
use weft_transport::{CongestionConfig, FixedRateConfig, RecoveryConfig};
use weft_units::{HostId, Rate, Time};
use weft_workload::{Message, Workload};

/// Four leaves of two hosts.
fn clos() -> Clos {
    Clos::leaf_spine(4, 2, 2, LINK)
}
fn at(start: Time, message: Message) -> Message {
    Message { start, ..message }
}
/// All cuts of [`clos`], on up to three threads.
fn cuts() -> impl Iterator<Item = (u32, u32)> {
    (1..=4).flat_map(|partitions| (1..=partitions.min(3)).map(move |threads| (partitions, threads)))
}
fn stalled(setup: &Setup, partitions: u32, threads: u32) -> String {
    match setup.run_in(partitions, threads) {
        Err(Halt::Stalled(stall)) => stall.text,
        other => panic!("{partitions} partitions on {threads} threads must stall, not {other:?}"),
    }
}

/// Every data packet is larger than a buffer. All time-outs are at the same instants.
#[test]
fn a_blackhole_stalls_everywhere_alike() {
    let clos = clos();
    let mut setup = Setup::new(clos, permutation(&clos, 5_000)).port_buffer(500);
    setup.transport.rto = Time::us(10);
    setup.stall_after = Time::us(95);
    let expected = "nothing delivered since 0ns (now 98.11us): message 0 (host-0 -> host-5) misses";
    for (partitions, threads) in cuts() {
        let text = stalled(&setup, partitions, threads);
        assert!(text.starts_with(expected) && text.ends_with("; and 4 more"), "{text}");
        assert_eq!(text, stalled(&setup, 1, 1));
    }
}

/// Some partitions are through, one is stuck, and others wait for it.
#[test]
fn who_is_stuck_and_who_waits_is_named_alike() {
    let mut workload = Workload::new(8);
    // Three at once to host 0: two find no room.
    for src in [3, 5, 7] {
        workload.push(message(src, 0, 960), &[]);
    }
    workload.push(message(6, 2, 50_000), &[]);
    workload.push(message(4, 3, 960), &[received(0), received(1), received(2)]);
    let mut setup = Setup::new(clos(), workload).port_buffer(1_000);
    setup.transport.rto = Time::ms(2);
    setup.stall_after = Time::us(16);
    let text = stalled(&setup, 1, 1);
    assert!(text.contains("misses 960 of 960 bytes on 1 queue pair, 1 packet sent"), "{text}");
    assert!(text.contains("message 4 (host-4 -> host-3) waits for 2 dependencies"), "{text}");
    for (partitions, threads) in cuts() {
        assert_eq!(text, stalled(&setup, partitions, threads));
    }
}

/// The timers of several partitions run out in one epoch. The first one has it.
#[test]
fn the_first_timer_tells_the_time_of_a_stall() {
    let mut workload = Workload::new(8);
    for src in 0..4 {
        let start = Time::ns(100 * u64::from((src * 3 + 2) % 4));
        workload.push(at(start, message(2 * src, 2 * src + 1, 960)), &[]);
    }
    let mut setup = Setup::new(clos(), workload).port_buffer(500);
    setup.transport.rto = Time::us(10);
    setup.stall_after = Time::us(30);
    let text = stalled(&setup, 1, 1);
    for (partitions, threads) in cuts() {
        assert_eq!(text, stalled(&setup, partitions, threads));
    }
}

/// Nothing is left to happen: no timer notices the loss, but the end of all events does.
#[test]
fn a_run_without_events_has_stalled() {
    let mut setup = Setup::new(clos(), incast(&clos(), 6 * 960)).port_buffer(4_000);
    setup.transport.rto = Time::MAX;
    setup.transport.recovery = RecoveryConfig::SELECTIVE_REPEAT;
    let text = stalled(&setup, 1, 1);
    for (partitions, threads) in cuts() {
        assert_eq!(text, stalled(&setup, partitions, threads));
    }
}

/// Hosts that only send see nothing delivered where they are, for many times the patience of
/// the run; what is delivered elsewhere counts.
#[test]
fn no_stall_while_others_deliver() {
    let (mut workload, senders) = (Workload::new(8), [0, 1, 2, 3]);
    for src in senders {
        let start = Time::ns(130 * u64::from(src));
        workload.push(at(start, message(src, src + 4, 96_000)), &[]);
    }
    let mut setup = Setup::new(clos(), workload);
    setup.transport.congestion =
        CongestionConfig::FixedRate(FixedRateConfig { rate: Some(Rate::gbps(4)) });
    setup.transport.rto = Time::us(3);
    setup.stall_after = Time::us(5);
    let one = confirmed(&setup);
    assert!(one.as_ref().is_ok_and(|outcome| outcome.totals.cct > Time::us(190)));
    for (partitions, threads) in cuts() {
        assert_eq!(equals(&one, &setup, partitions, threads), Ok(()));
    }
}

/// One host is stuck and looks again and again, in a partition where nothing is ever delivered;
/// elsewhere things go on, for long at first, and then they do not.
#[test]
fn a_stall_after_many_false_suspicions() {
    let mut workload = Workload::new(8);
    workload.push(message(0, 1, 960), &[]);
    workload.push(at(Time::ns(300), message(1, 0, 960)), &[]);
    for src in 2..5 {
        workload.push(message(src, src + 3, 480), &[]);
        for step in 1..40u32 {
            let last = workload.messages().len() as u32 - 1;
            let (src, dst) = if step % 2 == 0 { (src, src + 3) } else { (src + 3, src) };
            workload.push(at(Time::us(2), message(src, dst, 400)), &[received(last)]);
        }
    }
    // Full packets do not fit, small ones do.
    let mut setup = Setup::new(clos(), workload).port_buffer(600);
    setup.transport.rto = Time::us(7);
    setup.stall_after = Time::us(20);
    let text = stalled(&setup, 1, 1);
    for (partitions, threads) in cuts() {
        assert_eq!(text, stalled(&setup, partitions, threads));
    }
}

/// Many timers run out one after the other in a partition where nothing is ever delivered, while
/// something is delivered elsewhere every few of them: what one partition has heard of may lie in
/// the future of its next timer.
#[test]
fn suspicions_in_a_row() {
    let mut workload = Workload::new(8);
    for step in 0..40 {
        workload.push(at(Time::ns(9 * step), message(0, 1, 960)), &[]);
    }
    for step in 0..400 {
        workload.push(at(Time::ns(150 * step), message(6, 7, 480)), &[]);
    }
    let mut setup = Setup::new(clos(), workload).port_buffer(600);
    setup.transport.rto = Time::us(2);
    setup.stall_after = Time::us(3);
    let text = stalled(&setup, 1, 1);
    assert!(text.contains("; and 36 more"), "{text}");
    for (partitions, threads) in cuts() {
        assert_eq!(text, stalled(&setup, partitions, threads));
    }
}

/// A timer runs out after the patience of the run is over; a moment later something is posted
/// elsewhere. Whether that comes too late does not depend on the partitioning.
#[test]
fn a_stall_a_moment_before_something_happens_elsewhere() {
    let mut stalls = 0;
    for after in [Time::ps(1), Time::ns(1), Time::ns(400), Time::ns(600), Time::ns(1100)] {
        let mut workload = Workload::new(8);
        for src in [3, 5] {
            workload.push(message(src, 0, 960), &[]);
        }
        workload.push(at(Time::us(100) + after, message(6, 7, 960)), &[]);
        // The second to come finds no room, and its timer runs out after 100 us.
        let mut setup = Setup::new(clos(), workload).port_buffer(1_000);
        setup.transport.rto = Time::us(100);
        setup.stall_after = Time::us(16);
        let one = confirmed(&setup);
        stalls += u32::from(one.is_err());
        for (partitions, threads) in cuts() {
            assert_eq!(equals(&one, &setup, partitions, threads), Ok(()));
        }
    }
    assert_eq!(stalls, 1);
}

/// The same timer, and something is posted elsewhere within a link delay before it; in the other
/// run after it as well. So it is no stall, though nothing had happened before for too long.
#[test]
fn a_stall_that_something_elsewhere_just_prevents() {
    for again in [false, true] {
        let mut workload = messages(8, &[(3, 0, 960), (5, 0, 960)]);
        let timer = Time::us(100);
        workload.push(at(timer - Time::ns(100), message(6, 7, 960)), &[]);
        if again {
            workload.push(at(timer + Time::ns(100), message(7, 6, 960)), &[]);
        }
        let mut setup = Setup::new(clos(), workload).port_buffer(1_000);
        setup.transport.rto = timer;
        setup.stall_after = Time::us(95);
        let one = confirmed(&setup);
        assert!(one.as_ref().is_ok_and(|outcome| outcome.totals.retransmits == 1));
        for (partitions, threads) in cuts() {
            assert_eq!(equals(&one, &setup, partitions, threads), Ok(()));
        }
    }
}

#[test]
fn somebody_else_cancels() {
    for threads in [1, 2, 3] {
        let cancel = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&cancel);
        let run = move || {
            // Minutes of work.
            let clos = Clos::fat_tree(6, LINK);
            let mut setup = Setup::new(clos, permutation(&clos, 1 << 32));
            setup.transport.recovery = RecoveryConfig::GO_BACK_N;
            let config = setup.config();
            Simulation::in_partitions(&config, 6, threads).run(&flag)
        };
        let canceller = move || {
            pause(100);
            cancel.store(true, Ordering::Relaxed);
        };
        let cancelled = within(30, move || {
            let canceller = move || within(30, canceller);
            let (run, canceller) = at_once(run, canceller);
            assert_eq!(canceller, Ok(()));
            run
        });
        assert_eq!(cancelled, Ok(Err(Halt::Cancelled)), "{threads} threads");
    }
}

/// Does two things at once.
#[expect(clippy::disallowed_methods, reason = "somebody must cancel from outside")]
fn at_once<A, B: Send>(one: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> (A, B) {
    std::thread::scope(|scope| {
        let other = scope.spawn(other);
        (one(), other.join().expect("it does not panic"))
    })
}

/// Half a gigabyte of samples, by probes in all partitions or in a few.
#[test]
fn too_many_samples() {
    let clos = clos();
    let mut setup = Setup::new(clos, messages(8, &[(0, 7, 960)]));
    let nics = [0, 7, 3].map(|host| setup.fabric.nic(HostId(host)));
    // 1017 rounds are too many, and the message takes a few more.
    let ports = nics.iter().cycle().take(66_000).copied().collect();
    setup.probes = ProbeConfig { interval: Some(Time::ns(4)), ports, ..ProbeConfig::default() };
    assert_eq!(setup.run_in(4, 2).err(), Some(Halt::TooManySamples));
    // Fewer probes, and it is a result.
    setup.probes.ports.truncate(1000);
    assert!(setup.run_in(4, 3).is_ok());
}

/// A thread that panics takes the others with it, wherever in the run it is.
#[test]
fn a_panic_is_no_hang() {
    for (_, clos) in fabrics().into_iter().take(2) {
        for (src, start) in [(0, Time::ZERO), (9, Time::us(5)), (15, Time::us(5))] {
            let run = move || {
                let mut workload = permutation(&clos, 1 << 20);
                // The engine counts the packets of a queue pair in 32 bits.
                workload.push(at(start, message(src, 3, 960 << 32)), &[]);
                Setup::new(clos, workload).run_in(clos.pods(), 3).is_ok()
            };
            assert_eq!(within(30, run), Err(()));
        }
    }
}

/// Who codes never stops sending, here into a link that is dead for good: given up after so many
/// packets, long before the patience of the run is over.
#[test]
fn a_livelock_ends_after_so_many_packets() {
    let clos = clos();
    let dead = |end| Failure {
        links: LinkChoice::Named(vec!["leaf-0 <-> host-0".into()]),
        kind: FailureKind::down(None),
        start: Time::ZERO,
        end,
    };
    let mut setup = Setup::new(clos, messages(8, &[(2, 0, 960_000)]));
    setup.transport.recovery = RecoveryConfig::read("coding", &[]).expect("a recovery");
    setup.stall_packets = 5_000;
    setup.failures = vec![dead(Time::MAX)];
    let text = stalled(&setup, 1, 1);
    let (what, rest) = text.split_once(" data packets were sent (now ").expect(&text);
    let (since, packets) = what.rsplit_once(", while ").expect(&text);
    assert_eq!(since, "no message has got nearer to its end since 0ns");
    let packets: u64 = packets.parse().expect(&text);
    assert!((5_000..6_000).contains(&packets), "{text}");
    assert!(rest.contains(" symbols sent beyond those that it needs"), "{text}");
    for (partitions, threads) in cuts() {
        assert_eq!(text, stalled(&setup, partitions, threads));
    }
    // A link that comes back later is waited for.
    setup.failures = vec![dead(Time::ms(3))];
    assert!(setup.run().totals.packets > 30_000);
}
