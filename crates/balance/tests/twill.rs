//! Twill at one host: what leaves when and where, by what came back.

use crate::twill_network::{BDP, CHUNK, LINK, Network, chunk, fabric, flow, path, planner, post};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use weft_balance::Planner;
use weft_balance::plan::{ChunkAnswer, FlowInfo, LossSignal, Route, Subflow};
use weft_fabric::{Clos, Fabric};
use weft_trial::prelude::*;
use weft_units::{Draw, HostId, Time, random};

#[test]
fn chunks_add_up_and_take_all_paths_in_turn() {
    let mut network = Network::new(&[], 0);
    network.post(post(0, 4, 401_500));
    network.run(Time::MAX);
    let sizes: Vec<u64> = network.left.iter().map(|(_, subflow)| subflow.bytes).collect();
    assert_eq!(sizes.iter().sum::<u64>(), 401_500);
    let (last, others) = sizes.split_last().unwrap();
    assert!(others.iter().all(|bytes| *bytes == CHUNK) && *last == 1_500, "{sizes:?}");
    let loads = network.loads(Time::ZERO);
    assert_eq!(loads.len(), 4);
    let (least, most) = (loads.values().min().unwrap(), loads.values().max().unwrap());
    assert!(most - least <= CHUNK, "{loads:?}");
    let parts = network.left.iter().map(|(_, subflow)| subflow.part);
    assert!(parts.eq(0..sizes.len() as u32));
}

/// How many chunks each message was cut into.
fn cuts(network: &Network, messages: u32) -> Vec<usize> {
    let of = |message| network.left.iter().filter(|(_, one)| one.message.0 == message).count();
    (0..messages).map(of).collect()
}

#[test]
fn few_messages_are_cut_so_that_each_path_has_as_many_parts() {
    let mut network = Network::new(&[("chunk", "10000B")], 0);
    for message in 0..3 {
        network.post(post(message, 4 + message, 48_000));
    }
    network.run(Time::MAX);
    // Five whole chunks each would be more on one path than on others.
    assert_eq!(cuts(&network, 3), [8, 8, 8]);
    let loads: Vec<u64> = network.loads(Time::ZERO).into_values().collect();
    assert_eq!(loads, [36_000; 4]);
}

#[test]
fn messages_to_more_receivers_than_there_are_paths_are_cut_no_more_than_they_must() {
    let mut network = Network::new(&[("chunk", "10000B")], 0);
    for message in 0..5 {
        network.post(post(message, 4 + message % 4, 8_000));
    }
    assert_eq!(cuts(&network, 5), [4, 4, 4, 4, 1]);
    // What is posted and waits for the NIC counts as well.
    let mut network = Network::new(&[("chunk", "10000B")], 0);
    for message in 0..6 {
        network.post(post(message, 4, 44_000));
    }
    network.run(Time::MAX);
    assert_eq!(cuts(&network, 6), [8, 8, 5, 5, 5, 5]);
}

#[test]
fn messages_of_no_bytes_come_and_go() {
    let mut network = Network::new(&[("chunk", "10000B")], 0);
    // The answers of some come before, and of some after those of what has bytes.
    for message in 0..12 {
        network.post(post(message, 4 + message % 4, if message % 3 == 1 { 44_000 } else { 0 }));
    }
    network.run(Time::MAX);
    assert!(network.under_way.is_empty());
    // None of their receivers is thought to have something out.
    network.post(post(12, 4, 44_000));
    network.run(Time::MAX);
    assert_eq!(cuts(&network, 13)[12], 8);
}

#[test]
fn hosts_of_a_leaf_begin_at_different_uplinks_as_far_apart_as_can_be_in_three_tiers_too() {
    let (three_tiers, many_uplinks) = (Clos::fat_tree(4, LINK), Clos::leaf_spine(2, 8, 4, LINK));
    let build = |clos: Clos| Fabric::build(&clos).unwrap();
    for fabric in [fabric(), build(three_tiers), build(many_uplinks)] {
        let mut out = Vec::new();
        let far = fabric.hosts() - 1;
        let beside = fabric.hosts_of_leaf(0);
        for host in beside.clone() {
            planner(&[], host).post(Time::ZERO, post(0, far, 1), &fabric, &mut out);
        }
        let uplink = |(host, subflow): (u32, &Subflow)| {
            fabric.trace(HostId(host), HostId(far), path(subflow))[1]
        };
        let mut uplinks: Vec<_> = beside.clone().zip(&out).map(uplink).collect();
        uplinks.sort_unstable();
        let apart = fabric.uplinks_of(HostId(0)) / beside.len() as u32;
        let gaps = uplinks.windows(2).map(|two| two[1].0 - two[0].0);
        assert_eq!(gaps.collect::<Vec<_>>(), vec![apart; beside.len() - 1]);
    }
}

/// In which order the last chunks of messages leave, of which the second one is posted 1 us after the first.
fn order(options: &[(&str, &str)], first: u64, second: u64) -> Vec<u32> {
    let mut network = Network::new(options, 0);
    network.post(post(0, 4, first));
    network.run(Time::us(1));
    network.now = Time::us(1);
    network.post(post(1, 5, second));
    network.run(Time::MAX);
    let last = |message| network.left.iter().rposition(|(_, one)| one.message.0 == message);
    let mut both = [(last(0), 0), (last(1), 1)];
    both.sort_unstable();
    both.map(|(_, message)| message).to_vec()
}

#[test]
fn what_would_be_done_first_goes_first() {
    assert_eq!(order(&[], 1_000_000, 50_000), [1, 0]);
    assert_eq!(order(&[], 1_000_000, 1_000_000), [0, 1]);
    assert_eq!(order(&[("order", "oldest")], 1_000_000, 50_000), [0, 1]);
    assert_eq!(order(&[("order", "turn")], 1_000_000, 50_000), [1, 0]);
}

#[test]
fn messages_of_one_batch_take_turns_whatever_their_sizes() {
    let mut network = Network::new(&[], 0);
    // What comes first finds an idle NIC.
    network.post(post(0, 4, 100_000));
    network.post(post(1, 5, 400_000));
    network.post(post(2, 6, 100_000));
    network.run(Time::MAX);
    let first: Vec<u32> = network.left.iter().map(|(_, one)| one.message.0).collect();
    let from = first.iter().position(|message| *message == 2).unwrap();
    assert!(first[from..from + 6].windows(2).all(|two| two[0] != two[1]), "{first:?}");
}

#[test]
fn a_nic_has_a_bdp_and_a_receiver_its_window() {
    let fabric = fabric();
    let mut out = Vec::new();
    planner(&[], 0).post(Time::ZERO, post(0, 4, 1_000_000), &fabric, &mut out);
    assert_eq!(out.iter().map(|one| one.bytes).sum::<u64>(), BDP);
    out.clear();
    let mut host = planner(&[("window", "40"), ("most_window", "40")], 0);
    host.post(Time::ZERO, post(0, 4, 1_000_000), &fabric, &mut out);
    assert_eq!(out.iter().map(|one| one.bytes).sum::<u64>(), BDP * 40 / 100);
    // Another receiver has one of its own.
    host.post(Time::ZERO, post(1, 5, 4_000), &fabric, &mut out);
    assert_eq!(out.iter().map(|one| one.bytes).sum::<u64>(), BDP * 40 / 100 + 4_000);
}

#[test]
fn a_message_whose_receiver_waits_for_another_one_has_little_out() {
    let most_out = |options: &[(&str, &str)], defers: &[bool]| {
        let mut network = Network::new(options, 0);
        network.post(post(0, 4, 4_000_000));
        for (us, defers) in (10..).step_by(10).zip(defers) {
            let (_, one) = network.under_way.first_key_value().expect("something is out");
            let info = flow(one);
            network.planner.hear(&info, ChunkAnswer { defers: *defers, marked: false });
            network.run(Time::us(us + 10));
        }
        network.under_way.values().map(|one| one.bytes).sum::<u64>()
    };
    assert_eq!(most_out(&[], &[true, true]), CHUNK);
    let free = most_out(&[], &[false]);
    assert!(free > BDP / 2, "{free}");
    assert_eq!(most_out(&[], &[true, false]), free);
    assert_eq!(most_out(&[("defer", "false")], &[true]), free);
}

#[test]
fn receivers_that_answer_nothing_leave_something_to_others() {
    let options = [("window", "10000"), ("most_window", "10000"), ("backlog", "10000")];
    let mut network = Network::new(&options, 0);
    let out = |network: &Network, dst| {
        network.under_way.values().filter(|one| one.dst == HostId(dst)).count()
    };
    // Of 256 chunks each may have as many as are left.
    for (dst, share) in [(4, 128), (5, 64), (6, 32)] {
        network.post(post(dst, dst, 4_000_000));
        assert_eq!(out(&network, dst), share);
    }
    network.coming.clear();
    network.post(post(7, 7, 4_000));
    network.run(Time::us(100));
    let to_last = network.left.iter().filter(|(_, one)| one.dst == HostId(7));
    assert_eq!(to_last.map(|(_, one)| one.bytes).sum::<u64>(), 4_000);
    assert_eq!(out(&network, 7), 0);
}

#[test]
fn less_is_under_way_where_switches_mark_and_more_again_where_they_do_not() {
    let out_after = |marks: &str, marked: u64, not_marked: u64| {
        let options = [("window", "100"), ("most_window", "100"), ("marks", marks)];
        let mut network = Network::new(&options, 0);
        network.post(post(0, 4, 40_000_000));
        for chunk in 0..marked + not_marked {
            let (_, one) = network.under_way.first_key_value().expect("something is out");
            let answer = ChunkAnswer { defers: false, marked: chunk < marked };
            network.planner.hear(&flow(one), answer);
            let next = network.coming.peek().map(|Reverse((at, _))| *at).expect("it comes");
            network.run(next);
        }
        network.under_way.values().map(|one| one.bytes).sum::<u64>()
    };
    let least = BDP * 7 / 10;
    assert_eq!(out_after("true", 1_000, 0), least.next_multiple_of(CHUNK));
    assert_eq!(out_after("true", 1_000, 2_000), BDP);
    assert_eq!(out_after("false", 1_000, 0), BDP);
}

#[test]
fn windows_grow_while_no_queue_shows_and_not_where_one_does() {
    let most_out = |noise: Time| {
        let mut network = Network::new(&[("window", "10"), ("most_window", "80")], 0);
        network.noise = Box::new(move |_| noise);
        network.post(post(0, 4, 4_000_000));
        let mut most = 0;
        for us in 0..200 {
            network.run(Time::us(us));
            most = most.max(network.under_way.values().map(|one| one.bytes).sum::<u64>());
        }
        most
    };
    assert_eq!(most_out(Time::ZERO), BDP * 80 / 100);
    assert!(most_out(Time::us(100)) <= BDP * 10 / 100 + CHUNK);
}

#[test]
fn a_slow_path_gets_what_it_carries() {
    // A quarter of the NIC's rate is what each path has to carry: the first one carries a quarter of that.
    let share = |options: &[(&str, &str)]| {
        let mut network = Network::new(options, 0);
        let slow = network.path(0);
        network.paths.insert(slow, (Time::ZERO, 16.0));
        network.post(post(0, 4, 20_000_000));
        network.run(Time::MAX);
        let loads = network.loads(Time::ZERO);
        (loads[&slow] as f64 / loads.values().sum::<u64>() as f64, network.now)
    };
    // The other three can carry all, so that anything up to what it carries is right.
    let (least, most) = (0.01, 1.0 / 16.0 * 1.1);
    let (watched, done) = share(&[]);
    assert!((least..most).contains(&watched), "{watched}");
    let (unwatched, late) = share(&[("late", "0")]);
    assert!((0.24..0.26).contains(&unwatched), "{unwatched}");
    assert!(late > done * 3, "{late} {done}");
}

#[test]
fn a_slow_path_is_learnt_within_some_round_trips_and_used_again_after_it_heals() {
    let mut network = Network::new(&[], 0);
    let slow = network.path(2);
    network.post(post(0, 4, 40_000_000));
    network.run(Time::us(500));
    network.paths.get_mut(&slow).unwrap().1 = 16.0;
    // 25 round trips of 4 us later.
    network.run(Time::us(600));
    let from = network.now;
    network.run(Time::us(1_500));
    let loads = network.loads(from);
    let share = loads[&slow] as f64 / loads.values().sum::<u64>() as f64;
    assert!(share < 1.0 / 16.0 * 1.2, "{share}");
    network.paths.get_mut(&slow).unwrap().1 = 0.0;
    network.run(Time::us(2_000));
    let from = network.now;
    network.run(Time::us(2_500));
    let loads = network.loads(from);
    let share = loads[&slow] as f64 / loads.values().sum::<u64>() as f64;
    assert!((0.2..0.3).contains(&share), "{share}");
}

#[test]
fn congestion_of_all_paths_moves_nobody() {
    let mut network = Network::new(&[], 0);
    // 40 us, ten round trips, and after a while 80.
    let mut sent = 0;
    network.noise = Box::new(move |_| {
        sent += 1;
        Time::us(if sent < 10_000 { 40 } else { 80 })
    });
    network.post(post(0, 4, 60_000_000));
    network.run(Time::MAX);
    let (before, after) = (network.left[9_000].0, network.left[11_000].0);
    for loads in [network.loads_between(Time::us(200), before), network.loads(after)] {
        let (least, most) = (loads.values().min().unwrap(), loads.values().max().unwrap());
        assert!(*most as f64 <= *least as f64 * 1.05, "{loads:?}");
    }
}

#[test]
fn a_lost_chunk_goes_by_another_path_and_the_old_one_is_left_alone_for_a_while() {
    let mut network = Network::new(&[], 0);
    network.post(post(0, 4, 200_000));
    network.run(Time::us(10));
    let (number, subflow) = network.under_way.pop_first().unwrap();
    let (dead, since) = (path(&subflow), network.left[number as usize].0);
    network.dead = Some(dead);
    network.coming.retain(|Reverse((_, number))| {
        network.under_way.get(number).is_some_and(|one| path(one) != dead)
    });
    network.run(Time::us(100));
    network.now = Time::us(100);
    let (fabric, now) = (&network.fabric, network.now);
    assert!(chunk(&subflow).time_out < Time::us(60), "{:?}", chunk(&subflow).time_out);
    assert_eq!(network.planner.patience(now, &flow(&subflow), fabric), None);
    let route = network.planner.on_loss(now, &flow(&subflow), LossSignal::TimeOut, fabric);
    assert!(route.is_some_and(|route| route != subflow.route));
    for other in network.under_way.values().filter(|one| path(one) == dead) {
        network.planner.on_loss(now, &flow(other), LossSignal::TimeOut, fabric);
    }
    // Eight times as long as it was waited for.
    let bar = since.until(now) * 8;
    network.post(post(1, 5, 60_000_000));
    network.run(now + bar);
    assert_eq!(network.loads(now).get(&dead), None);
    network.run(now + bar * 2);
    assert!(network.loads(now).contains_key(&dead));
}

/// What is sent for the first time finds out whether a path still is dead, and not what has been lost already.
#[test]
fn what_goes_again_takes_a_path_that_has_answered_since_its_last_time_out() {
    let mut network = Network::new(&[], 0);
    network.post(post(0, 4, 8_000));
    let (number, first) = network.under_way.pop_first().unwrap();
    network.coming.retain(|Reverse((_, other))| *other != number);
    let (dead, now) = (path(&first), Time::us(50));
    network.run(now);
    network.planner.on_loss(now, &flow(&first), LossSignal::TimeOut, &network.fabric).unwrap();
    // It was left alone for 400 us, and takes its turn.
    network.now = Time::us(500);
    network.post(post(1, 5, 8_000));
    let (on_dead, others): (Vec<Subflow>, Vec<Subflow>) =
        network.under_way.values().partition(|subflow| path(subflow) == dead);
    assert!(!on_dead.is_empty() && !others.is_empty());
    for subflow in others {
        let (fabric, now) = (&network.fabric, Time::us(600));
        let again = network.planner.on_loss(now, &flow(&subflow), LossSignal::TimeOut, fabric);
        assert_ne!(again.unwrap(), Route::Pinned(dead));
    }
}

#[test]
fn a_path_that_answers_after_a_time_out_is_not_left_alone() {
    let load_later = |by_old_path: bool| {
        let mut network = Network::new(&[], 0);
        // A chunk for each path, all of which have a queue of 100 us.
        network.noise = Box::new(|_| Time::us(100));
        network.post(post(0, 4, 8_000));
        let (number, subflow) = network.under_way.pop_first().unwrap();
        network.coming.retain(|Reverse((_, other))| *other != number);
        network.run(Time::us(110));
        (network.now, network.noise) = (Time::us(110), Box::new(|_| Time::ZERO));
        let (now, fabric, info) = (network.now, &network.fabric, flow(&subflow));
        let again = network.planner.on_loss(now, &info, LossSignal::TimeOut, fabric).unwrap();
        let route = if by_old_path { info.route } else { again };
        network.planner.sent(now, &FlowInfo { route, ..info }, fabric, &mut Vec::new());
        network.post(post(1, 5, 4_000_000));
        network.run(Time::us(310));
        network.loads(Time::us(210)).get(&path(&subflow)).copied().unwrap_or(0)
    };
    assert_eq!(load_later(false), 0);
    // A quarter of line rate for 100 us.
    let load = load_later(true);
    assert!((250_000..350_000).contains(&load), "{load}");
}

/// Where something has come back in the later half of the time that a chunk was out, others are before it.
#[test]
fn a_path_by_which_something_still_comes_back_is_slow_and_not_left_alone() {
    let is_used_later = |heard: u64| {
        let mut network = Network::new(&[], 0);
        network.post(post(0, 4, 16_000));
        let slow = path(&network.left[0].1);
        let (two, others) = network.under_way.into_iter().partition(|(_, one)| path(one) == slow);
        network.under_way = others;
        let two: Vec<Subflow> = BTreeMap::into_values(two).collect();
        network.coming.retain(|Reverse((_, number))| network.under_way.contains_key(number));
        network.run(Time::us(heard));
        let (fabric, now) = (&network.fabric, Time::us(100));
        network.planner.sent(Time::us(heard), &flow(&two[0]), fabric, &mut Vec::new());
        network.planner.on_loss(now, &flow(&two[1]), LossSignal::TimeOut, fabric).unwrap();
        network.now = now;
        network.post(post(1, 5, 6_000_000));
        network.run(Time::us(400));
        network.loads(Time::us(300)).contains_key(&slow)
    };
    assert!(is_used_later(60) && !is_used_later(40));
}

/// Of a path by which nothing has ever come back nobody knows how long it takes: one chunk tries it, and no other before
/// that is back.
#[test]
fn a_path_that_was_left_alone_is_tried_by_one_chunk() {
    let mut network = Network::new(&[], 0);
    network.repeats = true;
    let dead = network.fabric.path_set(HostId(0), HostId(4)).get(0);
    network.dead = Some(dead);
    network.post(post(0, 4, 10_000_000));
    network.run(Time::us(700));
    let by_it = network.left.iter().filter(|(_, subflow)| path(subflow) == dead);
    let times: Vec<Time> = by_it.map(|(at, _)| *at).collect();
    let pauses = times.windows(2).position(|two| two[0].until(two[1]) > Time::us(100));
    let tries = &times[pauses.expect("it is left alone for a while") + 1..];
    assert_eq!(tries.len(), 1, "{tries:?}");
}

/// A path is left alone after a time-out until a new connection by it is answered, and not one by another path.
#[test]
fn a_path_that_takes_a_new_connection_is_not_left_alone() {
    let is_used = |connected: Option<bool>| {
        let mut network = Network::new(&[], 0);
        network.post(post(0, 4, 2_000));
        let (_, subflow) = network.under_way.pop_first().unwrap();
        network.coming.clear();
        let (now, fabric) = (Time::us(60), &network.fabric);
        network.planner.on_loss(now, &flow(&subflow), LossSignal::TimeOut, fabric).unwrap();
        let other = (0..).map(|at| network.path(at)).find(|one| *one != path(&subflow)).unwrap();
        if let Some(is_other) = connected {
            let path = if is_other { other } else { path(&subflow) };
            network.planner.works(now, HostId(5), path, fabric);
        }
        network.now = now;
        network.post(post(1, 5, 1_000_000));
        network.run(Time::us(160));
        network.loads(now).contains_key(&path(&subflow))
    };
    assert!(is_used(Some(false)));
    assert!(!is_used(None) && !is_used(Some(true)));
}

#[test]
fn a_chunk_of_which_something_is_missing_keeps_its_path() {
    // What shows it came by the same path.
    let mut network = Network::new(&[], 0);
    network.post(post(0, 4, 20_000));
    let (_, subflow) = network.under_way.first_key_value().unwrap();
    let route = |signal| {
        network.planner.clone().on_loss(Time::us(5), &flow(subflow), signal, &network.fabric)
    };
    assert_eq!(route(LossSignal::Nack), Some(subflow.route));
    assert_ne!(route(LossSignal::TimeOut), Some(subflow.route));
}

#[test]
fn without_a_time_out_of_its_own_a_chunk_has_that_of_the_transport() {
    let fabric = fabric();
    let mut host = planner(&[("time_out", "0")], 0);
    let mut out = Vec::new();
    host.post(Time::ZERO, post(0, 4, 20_000), &fabric, &mut out);
    assert!(out.iter().all(|one| chunk(one).time_out == Time::MAX));
    assert_eq!(host.patience(Time::us(100), &flow(&out[0]), &fabric), None);
}

/// When chunks of `out`, of which none is answered, are taken for lost before `end`, and their payload.
fn lost_before(end: u64, mut out: Vec<Subflow>, host: &mut Planner) -> Vec<(Time, u64)> {
    let fabric = fabric();
    let mut lost = Vec::new();
    for now in (0..end).map(Time::us) {
        out.retain(|one| {
            let is_lost =
                chunk(one).time_out <= now && host.patience(now, &flow(one), &fabric).is_none();
            if is_lost {
                host.on_loss(now, &flow(one), LossSignal::TimeOut, &fabric);
                lost.push((now, one.bytes));
            }
            !is_lost
        });
    }
    lost
}

#[test]
fn chunks_wait_longer_where_all_wait_for_the_receiver() {
    let (mut host, mut out) = (planner(&[], 0), Vec::new());
    host.post(Time::ZERO, post(0, 4, 20_000), &fabric(), &mut out);
    // Nothing has ever come back: one after the other is taken for lost, each after a longer time.
    let lost = lost_before(2_000, out, &mut host);
    let gaps: Vec<Time> = lost.windows(2).map(|two| two[0].0.until(two[1].0)).collect();
    assert!(lost[0].0 >= Time::us(40) && gaps[0] >= lost[0].0 && gaps[1] >= gaps[0], "{lost:?}");
}

#[test]
fn chunks_that_nobody_answers_are_looked_at_less_often() {
    let (mut host, mut out, fabric) = (planner(&[], 0), Vec::new(), fabric());
    host.post(Time::ZERO, post(0, 4, 20_000), &fabric, &mut out);
    let now = Time::ms(1);
    // The first is lost, and the next one waits for its turn.
    assert_eq!(host.patience(now, &flow(&out[0]), &fabric), None);
    let more = host.patience(now, &flow(&out[1]), &fabric).unwrap();
    assert!(more >= Time::us(60), "{more}");
}

#[test]
fn the_last_chunks_go_again_sooner() {
    let first_lost = |bytes| {
        let fabric = fabric();
        let (mut host, mut out) = (planner(&[], 0), Vec::new());
        host.post(Time::ZERO, post(0, 4, 500), &fabric, &mut out);
        host.sent(Time::us(4), &flow(&out[0]), &fabric, &mut Vec::new());
        out.clear();
        host.post(Time::us(4), post(1, 4, bytes), &fabric, &mut out);
        lost_before(200, out, &mut host)[0].0
    };
    // By three round trips of some 4 us each.
    let (last, others_wait) = (first_lost(CHUNK), first_lost(100 * CHUNK));
    assert!(last + Time::us(10) < others_wait, "{last} {others_wait}");
}

/// A chunk to the receiver 4 and one to 5, both of which have answered before, are out at the same time, and after how long
/// each of them times out: that to 4 first, after which `then` is done. `heard`: 5 answers something meanwhile that had
/// left before.
fn two_lost(heard: bool, then: impl FnOnce(&mut Network, Time)) -> (Time, Time) {
    let mut network = Network::new(&[], 0);
    for message in 0..2 {
        network.post(post(message, 4 + message, 1));
    }
    network.run(Time::us(20));
    network.now = Time::us(100);
    for (message, dst) in [(2, 5), (3, 4), (4, 5)] {
        network.post(post(message, dst, 1));
    }
    let (_, before) = network.under_way.pop_first().unwrap();
    if heard {
        let info = flow(&before);
        network.planner.sent(Time::us(104), &info, &network.fabric, &mut Vec::new());
    }
    let both: Vec<Subflow> = network.under_way.values().copied().collect();
    let is_lost = |network: &mut Network, now, one: &Subflow| {
        network.planner.patience(now, &flow(one), &network.fabric).is_none()
    };
    let mut times = (100..).map(Time::us);
    let first = times.find(|now| is_lost(&mut network, *now, &both[0])).unwrap();
    then(&mut network, first);
    let second = times.find(|now| is_lost(&mut network, *now, &both[1])).unwrap();
    (Time::us(100).until(first), Time::us(100).until(second))
}
fn go_again(network: &mut Network, now: Time) -> FlowInfo {
    let first = flow(network.under_way.values().next().unwrap());
    let lost = LossSignal::TimeOut;
    let route = network.planner.on_loss(now, &first, lost, &network.fabric).unwrap();
    FlowInfo { route, ..first }
}

#[test]
fn an_answer_to_what_went_again_shows_that_not_all_are_silent() {
    let (first, second) = two_lost(false, |network, now| {
        let again = go_again(network, now);
        let back = now + Time::us(1);
        network.planner.sent(back, &again, &network.fabric, &mut Vec::new());
    });
    assert!(second <= first + Time::us(2), "{first} {second}");
    // Else it waits its turn: two time-outs after that of the other.
    let (first, second) = two_lost(false, |network, now| _ = go_again(network, now));
    assert!(second > first * 2, "{first} {second}");
}

#[test]
fn little_may_go_again_whatever_part_it_is_of_what_is_out() {
    let (first, second) = two_lost(true, |network, now| _ = go_again(network, now));
    assert!(second <= first + Time::us(1), "{first} {second}");
}

/// After how long a chunk that left at `since` times out, as its planner is asked each microsecond.
fn times_out(network: &mut Network, since: Time, one: &FlowInfo) -> Time {
    let is_lost = |now: &Time| network.planner.patience(*now, one, &network.fabric).is_none();
    since.until((0..).map(|us| since + Time::us(us)).find(is_lost).unwrap())
}

#[test]
fn what_left_before_something_that_is_back_waits_for_no_variation() {
    let wait = |is_overtaken: bool| {
        let (mut network, mut sent) = (Network::new(&[], 0), 0);
        network.noise = Box::new(move |_| {
            sent += 1;
            Time::us(sent / 4 % 2 * 20)
        });
        for message in 10..40 {
            network.post(post(message, 4, 1));
            network.run(Time::us(200));
        }
        network.now = Time::us(200);
        (1..3).for_each(|message| network.post(post(message, 4, 1)));
        let (_, first) = network.under_way.pop_first().unwrap();
        if is_overtaken {
            let next = flow(network.under_way.values().next().unwrap());
            network.planner.sent(Time::us(204), &next, &network.fabric, &mut Vec::new());
        }
        times_out(&mut network, Time::us(200), &flow(&first))
    };
    let (overtaken, not) = (wait(true), wait(false));
    assert!(overtaken + Time::us(20) < not, "{overtaken} {not}");
}

#[test]
fn what_goes_again_waits_for_the_queue_of_its_own_receiver() {
    let mut network = Network::new(&[], 0);
    network.post(post(0, 4, 1));
    network.run(Time::us(20));
    network.noise = Box::new(|_| Time::us(40));
    network.post(post(1, 5, 64_000));
    network.run(Time::us(200));
    network.now = Time::us(200);
    network.post(post(2, 4, 1));
    let one = flow(network.under_way.values().next().unwrap());
    let first = times_out(&mut network, Time::us(200), &one);
    let now = Time::us(200) + first;
    let again = go_again(&mut network, now);
    let second = times_out(&mut network, now, &again);
    assert!(first > Time::us(40) && second < Time::us(30), "{first} {second}");
}

#[test]
fn a_chunk_of_a_receiver_that_has_never_answered_is_looked_at_after_two_round_trips() {
    let mut network = Network::new(&[], 0);
    network.post(post(0, 4, 1));
    let (_, one) = network.under_way.first_key_value().unwrap();
    let (at, fabric) = (chunk(one).time_out, &network.fabric);
    assert!(at < Time::us(10), "{at}");
    assert!(network.planner.patience(at, &flow(one), fabric).is_some());
}

#[test]
fn time_outs_that_are_wrong_send_little_again() {
    // Nobody answers for long, and the network is not to blame.
    let (mut host, mut out) = (planner(&[], 0), Vec::new());
    for dst in 4..8 {
        host.post(Time::ZERO, post(dst, dst, 4_000), &fabric(), &mut out);
    }
    let sent: u64 = out.iter().map(|one| one.bytes).sum();
    let lost = lost_before(250, out, &mut host);
    let again: u64 = lost.iter().map(|(_, bytes)| bytes).sum();
    assert!(again > 0 && again <= sent / 8 + CHUNK, "{again} of {sent}");
}

trials! {
    #![cases(128)]

    /// Every path has to carry a quarter of the NIC's rate and can; one loses half of that. Whatever else delays chunks: some
    /// hundred round trips later it has half of what each other one has, and goes on having it.
    fn a_path_that_loses_half_gets_half_and_nothing_swings(
        seed in any::<u64>(),
        which in 0_u32..4,
        worst in 1_u64..10,
    ) {
        let mut network = Network::new(&[], 0);
        for index in 0..4 {
            network.paths.insert(network.path(index), (Time::ZERO, 4.0));
        }
        let (delays, mut sent) = (Draw::new(seed, "delays"), 0);
        network.noise = Box::new(move |_| {
            sent += 1;
            Time(random::below(delays.at(sent, 0), Time::us(worst).0))
        });
        network.post(post(0, 4, 60_000_000));
        network.run(Time::us(500));
        let half = network.path(which);
        network.paths.get_mut(&half).unwrap().1 = 8.0;
        // 400 round trips of a lone chunk, and 25 at a time.
        network.run(Time::us(2_100));
        let mut off = Vec::new();
        for from in (21..40).map(|step| Time::us(step * 100)) {
            let end = from + Time::us(100);
            network.run(end);
            let loads = network.loads_between(from, end);
            let share = loads[&half] as f64 / loads.values().sum::<u64>() as f64;
            if !(0.8..1.2).contains(&(share * 7.0)) {
                off.push((from, share));
            }
        }
        // It may have been found late.
        prop_assert!(off.len() <= 2, "{off:?}");
        let loads = network.loads_between(Time::us(2_100), Time::us(4_000));
        let share = loads[&half] as f64 / loads.values().sum::<u64>() as f64;
        prop_assert!((0.95..1.05).contains(&(share * 7.0)), "{share}");
    }
}
