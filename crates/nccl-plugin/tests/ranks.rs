//! What a job asks of a plugin, with two ranks and with four, each a process of its own: connections that
//! come and go, messages, grouped and late receives, rings, and channels that are closed in the middle.
//!
//! | scenario | test |
//! |---|---|
//! | connection | [`connections_come_and_go`] |
//! | message transfer | [`messages_of_all_sizes_go_both_ways`] |
//! | grouped receives | [`grouped_receives_take_their_sends_by_tag`] |
//! | eager: sent before it is received | [`sends_may_come_before_their_receives`] |
//! | reuse of communicators | [`a_listener_serves_one_channel_after_the_other`] |
//! | ring | [`what_goes_around_the_ring_comes_back`] |
//! | several threads of a rank | [`threads_have_channels_of_their_own`] |
//! | in-flight close | [`channels_are_closed_with_messages_in_flight`], [`a_peer_that_closes_first_leaves_errors_not_hangs`] |

#![expect(unsafe_code, reason = "drives C functions")]

mod common;

use common::job::{Job, Rank, handle_of, join, pause};
use common::{Pair, fill, is_filled};
use std::ffi::c_void;
use weft_nccl_abi::Version;
use weft_net_bench::table::Net;

const RANKS: [usize; 2] = [2, 4];
const SMALL: usize = 1_000;
/// More than is sent in one piece.
const LARGE: usize = 1 << 20;

fn jobs(test: &str, work: fn(&mut Rank, &Net)) {
    for ranks in RANKS {
        Job { test, ranks, ..Job::USUAL }.run(work);
    }
}

/// Which message `number` of a rank is.
fn message(rank: usize, number: usize) -> usize {
    1 + rank * 1_000 + number
}

/// Each sends a message and receives one, whose contents are those of the rank before.
fn pass(rank: &Rank, pair: &mut Pair<'_>, places: usize, number: usize, len: usize) {
    let before = rank.after(rank.ranks - places);
    fill(&mut pair.out[..len], message(rank.rank, number));
    pair.into.fill(0);
    let receive = pair.receive(&[(0, len, 3)]);
    let send = pair.send(0, len, 3);
    pair.wait(send);
    assert_eq!(pair.wait(receive)[0] as usize, len);
    assert!(is_filled(&pair.into[..len], message(before, number)), "{len} bytes from {before}");
}

#[test]
fn connections_come_and_go() {
    for version in [Version::V8, Version::V12] {
        for ranks in RANKS {
            let job = Job { test: "connections_come_and_go", ranks, version, ..Job::USUAL };
            job.run(|rank, net| {
                for round in 0..5 {
                    // To everybody and from everybody, all at once.
                    let all: Vec<_> = (1..rank.ranks)
                        .map(|places| (places, rank.ring(net, places, SMALL)))
                        .collect();
                    for (places, mut pair) in all {
                        pass(rank, &mut pair, places, round, SMALL);
                        pair.close();
                    }
                }
            });
        }
    }
}

#[test]
fn messages_of_all_sizes_go_both_ways() {
    jobs("messages_of_all_sizes_go_both_ways", |rank, net| {
        let mut pair = rank.ring(net, 1, 4 * LARGE);
        let sizes = [0, 1, 3, 511, 4_096, 65_535, 262_145, LARGE, 4 * LARGE];
        for (number, len) in sizes.into_iter().enumerate() {
            pass(rank, &mut pair, 1, number, len);
        }
        // A receive may be longer than what comes.
        for (number, len) in [0, 1, 4_095, LARGE].into_iter().enumerate() {
            fill(&mut pair.out[..len], message(rank.rank, number));
            pair.into.fill(0xEE);
            let receive = pair.receive(&[(0, 4 * LARGE, 0)]);
            let send = pair.send(0, len, 0);
            pair.wait(send);
            assert_eq!(pair.wait(receive)[0] as usize, len);
            let (came, rest) = pair.into.split_at(len);
            assert!(is_filled(came, message(rank.after(rank.ranks - 1), number)));
            assert!(rest.iter().all(|byte| *byte == 0xEE), "more than the message of {len} bytes");
        }
        pair.close();
    });
}

/// Lengths of the messages of a group, by tag: small ones, large ones and none.
const GROUP: [usize; 8] = [1_024, 16_384, 0, 1, 300_000, 1_024, 7, 16_384];
const GROUP_ROOM: usize = 300_000;

/// Posts a receive of the first `count` of [`GROUP`].
fn receive_group(pair: &mut Pair<'_>, count: usize) -> *mut c_void {
    let parts: Vec<_> = (0..count).map(|tag| (tag * GROUP_ROOM, GROUP_ROOM, tag as i32)).collect();
    pair.receive(&parts)
}

/// Sends message `tag` of [`GROUP`].
fn send_of_group(rank: &Rank, pair: &mut Pair<'_>, tag: usize) -> *mut c_void {
    let (from, len) = (tag * GROUP_ROOM, GROUP[tag]);
    fill(&mut pair.out[from..from + len], message(rank.rank, tag));
    pair.send(from, len, tag as i32)
}

/// Waits for a receive of the first `count` of [`GROUP`].
fn check_group(rank: &Rank, pair: &Pair<'_>, receive: *mut c_void, count: usize) {
    let before = rank.after(rank.ranks - 1);
    let sizes = pair.wait(receive);
    for tag in 0..count {
        assert_eq!(sizes[tag] as usize, GROUP[tag], "tag {tag}");
        let came = &pair.into[tag * GROUP_ROOM..][..GROUP[tag]];
        assert!(is_filled(came, message(before, tag)), "tag {tag}");
    }
}

#[test]
fn grouped_receives_take_their_sends_by_tag() {
    jobs("grouped_receives_take_their_sends_by_tag", |rank, net| {
        let mut pair = rank.ring(net, 1, 8 * GROUP_ROOM);
        for order in [[0, 1, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 2, 1, 0], [4, 2, 0, 6, 1, 7, 3, 5]]
        {
            for count in [8, 2, 1, 3] {
                let receive = receive_group(&mut pair, count);
                let mut sends = Vec::new();
                for tag in order.into_iter().filter(|tag| *tag < count) {
                    sends.push(send_of_group(rank, &mut pair, tag));
                }
                sends.into_iter().for_each(|send| {
                    pair.wait(send);
                });
                check_group(rank, &pair, receive, count);
            }
        }
        pair.close();
    });
}

#[test]
fn sends_may_come_before_their_receives() {
    jobs("sends_may_come_before_their_receives", |rank, net| {
        let mut pair = rank.ring(net, 1, 8 * GROUP_ROOM);
        // Even ranks send first and odd ones are late, then the other way around.
        for round in 0..4 {
            let sends_first = (rank.rank + round) % 2 == 0;
            let mut sends = Vec::new();
            if sends_first {
                for tag in 0..3 {
                    sends.push(send_of_group(rank, &mut pair, tag));
                }
            }
            rank.barrier();
            pause(10);
            let receive = receive_group(&mut pair, 3);
            if !sends_first {
                // Each is over before the next is sent, though its group is not.
                for tag in [2, 0, 1] {
                    let send = send_of_group(rank, &mut pair, tag);
                    pair.wait(send);
                }
            }
            sends.into_iter().for_each(|send| {
                pair.wait(send);
            });
            check_group(rank, &pair, receive, 3);
            rank.barrier();
        }
        pair.close();
    });
}

#[test]
fn a_listener_serves_one_channel_after_the_other() {
    jobs("a_listener_serves_one_channel_after_the_other", |rank, net| {
        let (handle, listener) = net.listen(0).expect("it listens");
        let its = handle_of(&rank.share(&handle)[rank.after(1)]);
        for round in 0..10 {
            let mut pair = join(net, its, listener, LARGE);
            pass(rank, &mut pair, 1, round, LARGE);
            pair.close();
        }
        // SAFETY: it is open.
        unsafe { net.close_listen(listener).expect("it closes") };
    });
}

#[test]
fn what_goes_around_the_ring_comes_back() {
    jobs("what_goes_around_the_ring_comes_back", |rank, net| {
        let mut pair = rank.ring(net, 1, LARGE);
        for len in [0, 8, 100_000, LARGE] {
            fill(&mut pair.out[..len], message(rank.rank, len));
            for step in 1..=rank.ranks {
                let receive = pair.receive(&[(0, len, 0)]);
                let send = pair.send(0, len, 0);
                pair.wait(send);
                pair.wait(receive);
                let from = rank.after(rank.ranks - step);
                assert!(
                    is_filled(&pair.into[..len], message(from, len)),
                    "step {step}, {len} bytes"
                );
                let Pair { out, into, .. } = &mut pair;
                out[..len].copy_from_slice(&into[..len]);
            }
        }
        pair.close();
    });
}

/// A channel that one thread uses.
struct OfThread<'a>(Pair<'a>);

// SAFETY: calls may come from any thread, by the interface; one at a time has the pair.
unsafe impl Send for OfThread<'_> {}

#[test]
fn threads_have_channels_of_their_own() {
    jobs("threads_have_channels_of_their_own", |rank, net| {
        let channels: Vec<_> = (0..4).map(|_| OfThread(rank.ring(net, 1, LARGE))).collect();
        let rank = &*rank;
        std::thread::scope(|scope| {
            for (thread, mut channel) in channels.into_iter().enumerate() {
                scope.spawn(move || {
                    let OfThread(pair) = &mut channel;
                    for round in 0..20 {
                        pass(rank, pair, 1, 20 * thread + round, LARGE - round);
                    }
                    let OfThread(pair) = channel;
                    pair.close();
                });
            }
        });
    });
}

const IN_FLIGHT: usize = 8;

/// Posts sends or receives of 1 MiB each.
fn in_flight(pair: &mut Pair<'_>, sends: bool) -> Vec<*mut c_void> {
    let mut post = |at: usize| match sends {
        true => pair.send(at * LARGE, LARGE, 1),
        false => pair.receive(&[(at * LARGE, LARGE, 1)]),
    };
    (0..IN_FLIGHT).map(&mut post).collect()
}

/// NCCL does so when a job is aborted: memory is forgotten, channels are closed, buffers are freed.
#[test]
fn channels_are_closed_with_messages_in_flight() {
    jobs("channels_are_closed_with_messages_in_flight", |rank, net| {
        for round in 0..5 {
            let mut pair = rank.ring(net, 1, IN_FLIGHT * LARGE);
            in_flight(&mut pair, true);
            in_flight(&mut pair, false);
            // What is posted after the peer has closed is refused.
            rank.barrier();
            pair.close();
            let mut pair = rank.ring(net, 1, LARGE);
            pass(rank, &mut pair, 1, round, LARGE);
            pair.close();
        }
    });
}

/// Who goes on asking is told of every request: done, or failed. Who has another neighbour is not touched.
#[test]
fn a_peer_that_closes_first_leaves_errors_not_hangs() {
    jobs("a_peer_that_closes_first_leaves_errors_not_hangs", |rank, net| {
        for round in 0..6 {
            let mut pair = rank.ring(net, 1, IN_FLIGHT * LARGE);
            let closes = round % rank.ranks;
            let all = [in_flight(&mut pair, true), in_flight(&mut pair, false)].concat();
            rank.barrier();
            if closes != rank.rank {
                let touched =
                    [1, rank.ranks - 1].map(|places| rank.after(places)).contains(&closes);
                for request in all {
                    let outcome = pair.outcome(request);
                    assert!(touched || outcome.is_ok(), "round {round}: {outcome:?}");
                }
            }
            pair.close();
            rank.barrier();
        }
    });
}
