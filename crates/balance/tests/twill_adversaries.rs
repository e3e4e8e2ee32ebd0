//! Twill against what misleads it: answers that are late though nothing is in the way, that come in
//! another order, or that stop for a while; and beside flows that know nothing of it. Of one host
//! the round trip of a lone chunk takes 4 us, so that what takes 16 us more than usual is late.

use crate::twill_network::shared::Shared;
use crate::twill_network::{LINK, Network, post};
use std::collections::BTreeMap;
use weft_balance::plan::LossSignal;
use weft_fabric::{Clos, Fabric, PathId};
use weft_trial::prelude::*;
use weft_units::{Draw, Time, random};

/// More than any test sends.
const ENDLESS: u64 = 4_000_000_000;
/// When paths begin to mislead, in microseconds.
const BEGIN: u64 = 300;
/// So many chunks may be under way to a receiver: 4 bandwidth-delay products.
const WINDOW: usize = 100;
/// A path that begins to be bad is tried so often within 500 us: at first, and after 160 to 300 us
/// in which it is left alone.
const TRIES: usize = 2;

/// How late answers are.
#[derive(Clone, Copy, Debug)]
enum Late {
    /// All alike.
    Alike(Time),
    /// Each by anything up to that.
    Random(Time),
    /// Twenty by that, and twenty not.
    Alternating(Time),
    /// One in n by n times that at least (Pareto), none by more than a thousand times.
    HeavyTailed(Time),
}

impl Late {
    /// By how much answers are late at the most.
    fn most(self) -> Time {
        match self {
            Late::Alike(most) | Late::Random(most) | Late::Alternating(most) => most,
            Late::HeavyTailed(least) => Time(least.0 * 1_000),
        }
    }
    /// By how much the next ones are late.
    fn delays(self, seed: u64) -> impl FnMut() -> Time {
        let (draw, mut count) = (Draw::new(seed, "late"), 0);
        move || {
            count += 1;
            let bits = draw.at(count, 0);
            match self {
                Late::Alike(time) => time,
                Late::Random(most) => Time(random::below(bits, most.0)),
                Late::Alternating(time) if count / 20 % 2 == 0 => time,
                Late::Alternating(_) => Time::ZERO,
                Late::HeavyTailed(least) => {
                    Time((least.0 as f64 / random::unit(bits).max(0.001)) as u64)
                }
            }
        }
    }
}

/// By 20 to 1,000 us, the most of them.
fn any_late() -> impl Strategy<Value = Late> {
    let time = || (20_u64..1_000).prop_map(Time::us);
    prop_oneof![
        time().prop_map(Late::Alike),
        time().prop_map(Late::Random),
        time().prop_map(Late::Alternating),
    ]
}

fn any_tail() -> impl Strategy<Value = Late> {
    (1_u64..1_000).prop_map(|least| Late::HeavyTailed(Time::ns(least)))
}

/// What watches over paths: lateness and time-outs, or one of both.
fn any_watch() -> impl Strategy<Value = &'static [(&'static str, &'static str)]> {
    prop::sample::select(vec![&[][..], &[("time_out", "0")][..], &[("late", "0")][..]])
}

/// A host whose paths carry so many times less than its NIC, and which answers in order. It sends
/// to hosts 4, 5, ..., in turn.
fn network(options: &[(&str, &str)], load: u32, receivers: u32, bytes: u64) -> Network {
    let mut network = Network::new(options, 0);
    (network.in_order, network.repeats) = (true, true);
    for index in 0..4 {
        network.paths.insert(network.path(index), (Time::ZERO, f64::from(load)));
    }
    for receiver in 0..receivers {
        network.post(post(receiver, 4 + receiver, bytes / u64::from(receivers)));
    }
    network
}

/// The part of line rate that is used between two times, in microseconds, by what leaves for the
/// first time.
fn rate(network: &Network, from: u64, end: u64) -> f64 {
    let times = Time::us(from)..Time::us(end);
    let first = network.left.iter().zip(0..).filter(|(_, copy)| !network.again.contains_key(copy));
    let sent = first.filter(|((at, _), _)| times.contains(at)).map(|((_, one), _)| one.bytes);
    let sent: u64 = sent.sum();
    LINK.rate.serialize(sent + sent / 1_000 * 64).0 as f64 / Time::us(end - from).0 as f64
}
/// The share of the path that has least between two times, in microseconds: a quarter at the most.
fn least_share(network: &Network, from: u64, end: u64) -> f64 {
    let loads: BTreeMap<PathId, u64> = network.loads_between(Time::us(from), Time::us(end));
    let all = loads.values().sum::<u64>().max(1) as f64;
    let of = |index| *loads.get(&network.path(index)).unwrap_or(&0) as f64 / all;
    (0..4).map(of).fold(1.0, f64::min)
}
/// Whether all paths carry as much at line rate between two times, in microseconds, and nothing has gone again. Else what was
/// used of line rate, what went again, and the least share.
fn undisturbed(network: &Network, from: u64, end: u64) -> Result<(), (f64, usize, f64)> {
    let found = (rate(network, from, end), again(network, 0), least_share(network, from, end));
    match found {
        (rate, 0, least) if rate > 0.99 && least > 0.98 / 4.0 => Ok(()),
        other => Err(other),
    }
}
/// How many copies have left since `from`, in microseconds.
fn again(network: &Network, from: u64) -> usize {
    let copies = network.again.keys().map(|copy| network.left[*copy as usize].0);
    copies.filter(|at| *at >= Time::us(from)).count()
}
/// How much later than now each path has nine tenths of its share for 50 us, in microseconds.
fn even_after(network: &mut Network, most: u64) -> Option<u64> {
    let now = network.now.0 / Time::us(1).0 + 1;
    (0..most / 50).map(|step| step * 50).find(|after| {
        let from = now + after;
        network.run(Time::us(from + 50));
        least_share(network, from, from + 50) > 0.9 / 4.0
    })
}
/// After how long a path that was bad for `length` is to have its share again, both in
/// microseconds: after a time-out it is left alone for eight times as long as that took, then for
/// 64 times. The first one takes 20 us, those after it 36: so 2,300 us after no less than 200. Then
/// its window grows.
fn soon(length: u64) -> u64 {
    length * 2_300 / 200 + 500
}

trials! {
    #![cases(64)]

    /// A path carries what it gets, but its answers are late. Three others can carry all: they do. Time-outs alone do not
    /// learn from those that were wrong, and lose up to 3 %.
    fn a_path_that_lies_costs_nothing_where_others_can_carry_all(
        late in any_late(),
        watch in any_watch(),
        load in 0_u32..4,
        which in 0_u32..4,
        seed in any::<u64>(),
    ) {
        let mut network = network(watch, load, 1, ENDLESS);
        let liar = network.path(which);
        network.run(Time::us(BEGIN));
        let mut delays = late.delays(seed);
        network.noise = Box::new(move |path| if path == liar { delays() } else { Time::ZERO });
        network.run(Time::us(BEGIN + 500));
        let rate = rate(&network, BEGIN, BEGIN + 500);
        prop_assert!(rate > if watch == [("late", "0")] { 0.95 } else { 0.98 }, "{rate}");
        prop_assert!(again(&network, BEGIN) < TRIES * WINDOW, "{}", again(&network, BEGIN));
    }

    /// Where each path has as much as it carries, nobody can tell a path that lies from a slow one.
    /// It costs what it carries.
    fn a_path_that_lies_costs_no_more_than_the_path(
        late in any_late(),
        watch in any_watch(),
        which in 0_u32..4,
        seed in any::<u64>(),
    ) {
        let mut network = network(watch, 4, 1, ENDLESS);
        let liar = network.path(which);
        network.run(Time::us(BEGIN));
        let mut delays = late.delays(seed);
        network.noise = Box::new(move |path| if path == liar { delays() } else { Time::ZERO });
        network.run(Time::us(BEGIN + 500));
        let rate = rate(&network, BEGIN, BEGIN + 500);
        prop_assert!(rate > 3.0 / 4.0 * 0.98, "{rate}");
        prop_assert!(again(&network, BEGIN) < TRIES * WINDOW, "{}", again(&network, BEGIN));
    }

    /// Until the last answer that is late is here, nobody can know that a path lies no more. And the least window, 1/32 of a
    /// chunk, is a pause of 32 times as long as a chunk takes, then of half of that, and so on: 64 in all.
    fn a_path_that_lied_is_used_again(
        late in any_late(),
        load in 0_u32..5,
        which in 0_u32..4,
        length in 50_u64..500,
        seed in any::<u64>(),
    ) {
        let mut network = network(&[], load, 1, ENDLESS);
        let liar = network.path(which);
        network.run(Time::us(BEGIN));
        let mut delays = late.delays(seed);
        network.noise = Box::new(move |path| if path == liar { delays() } else { Time::ZERO });
        network.run(Time::us(BEGIN + length));
        network.noise = Box::new(|_| Time::ZERO);
        let late = late.most().0 / Time::us(1).0;
        let after = even_after(&mut network, soon(length + late) + 64 * (late + 4));
        prop_assert!(after.is_some(), "{after:?}");
    }

    /// A path is dead for a while. Three others can carry all: they do.
    fn a_path_that_was_dead_is_used_again(
        load in 0_u32..4,
        which in 0_u32..4,
        length in 20_u64..500,
    ) {
        let mut network = network(&[], load, 1, ENDLESS);
        network.run(Time::us(BEGIN));
        network.dead = Some(network.path(which));
        network.run(Time::us(BEGIN + length));
        network.dead = None;
        prop_assert!(rate(&network, BEGIN, BEGIN + length) > 0.98);
        prop_assert!(again(&network, BEGIN) < TRIES * WINDOW, "{}", again(&network, BEGIN));
        let after = even_after(&mut network, soon(length));
        prop_assert!(after.is_some(), "{after:?}");
    }

    /// Answers by all paths are late, more and more, and each by something else of less than 12 us;
    /// loads are not to blame. What may be out is enough for 41 us.
    fn delays_on_all_paths_move_nobody(
        of_each in 1_u64..12,
        of_all in 0_u64..20,
        load in 0_u32..5,
        seed in any::<u64>(),
    ) {
        let mut network = network(&[], load, 4, ENDLESS);
        let mut delays = Late::Random(Time::us(of_each)).delays(seed);
        let mut count = 0;
        network.noise = Box::new(move |_| {
            count += 1;
            delays() + Time(Time::us(of_all).0 * count.min(2_000) / 2_000)
        });
        network.run(Time::us(1_500));
        let rate = rate(&network, 500, 1_500);
        prop_assert!(rate > 0.99, "{rate}");
        prop_assert_eq!(again(&network, 0), 0);
        for from in (500..1_500).step_by(100) {
            let least = least_share(&network, from, from + 100);
            prop_assert!(least > 0.98 / 4.0, "{least}");
        }
    }

    /// Answers by all paths are late, a few of them by much more than the others, and hold up those
    /// behind them: with a least delay of 60 ns each path by more than 16 us for an eighth of the
    /// time. Loads do not stay even, but little is lost where half of the paths can carry all.
    fn heavy_tails_cost_little_where_there_is_room(
        least in 20_u64..60,
        load in 0_u32..3,
        receivers in 3_u32..5,
        seed in any::<u64>(),
    ) {
        let mut network = network(&[], load, receivers, ENDLESS);
        let mut delays = Late::HeavyTailed(Time::ns(least)).delays(seed);
        network.noise = Box::new(move |_| delays());
        network.run(Time::us(2_500));
        let rate = rate(&network, 500, 2_500);
        let again = network.part_again(LossSignal::TimeOut);
        prop_assert!(rate > 0.93, "{rate}");
        prop_assert!(again < 0.07, "{again}");
    }

    /// Each path has a delay of its own and some that is random: answers by different paths come in
    /// any order. None of them is late.
    fn queue_pairs_may_answer_in_any_order(load in 0_u32..5, seed in any::<u64>()) {
        let mut network = network(&[], load, 4, ENDLESS);
        let (of_path, draw) = (Draw::new(seed, "path"), Draw::new(seed, "chunk"));
        let mut count = 0;
        network.noise = Box::new(move |path| {
            count += 1;
            let of_path = random::below(of_path.at(u64::from(path.0), 0), Time::us(12).0);
            Time(of_path + random::below(draw.at(count, 0), Time::us(4).0))
        });
        network.run(Time::us(1_500));
        let found = undisturbed(&network, 500, 1_500);
        prop_assert!(found.is_ok(), "{found:?}");
    }

    /// A queue pair may mix up what is less than 4 us apart: that is how long the NIC has chunks,
    /// and only chunks that came to the NIC after another one had left show that this is lost.
    fn a_queue_pair_may_answer_a_little_out_of_order(
        worst in 0_u64..4_000,
        load in 0_u32..5,
        receivers in 1_u32..5,
        seed in any::<u64>(),
    ) {
        let mut network = network(&[], load, receivers, ENDLESS);
        network.in_order = false;
        let mut delays = Late::Random(Time::ns(worst)).delays(seed);
        network.noise = Box::new(move |_| delays());
        network.run(Time::us(1_000));
        let found = undisturbed(&network, 300, 1_000);
        prop_assert!(found.is_ok(), "{found:?}");
    }

    /// A queue pair that mixes up more says that much is lost, and that goes again in vain. But no
    /// path is left for good: for no longer than 4,096 times as long as a chunk was out, which is
    /// so long beyond 16 us of other chunks.
    fn paths_of_queue_pairs_that_answered_in_any_order_are_used_again(
        worst in 4_u64..50,
        load in 0_u32..5,
        receivers in 1_u32..5,
        seed in any::<u64>(),
    ) {
        let mut network = network(&[], load, receivers, ENDLESS);
        network.in_order = false;
        let mut delays = Late::Random(Time::us(worst)).delays(seed);
        network.noise = Box::new(move |_| delays());
        network.run(Time::us(1_000));
        network.noise = Box::new(|_| Time::ZERO);
        let after = even_after(&mut network, 4_096 * (4 + worst + 16));
        prop_assert!(after.is_some(), "{after:?}");
    }

    /// Whatever answers do, and in whatever order they come: all arrives, and nothing is forgotten.
    fn whatever_answers_do_all_arrives(
        late in prop_oneof![any_late(), any_tail()],
        watch in any_watch(),
        in_order in any::<bool>(),
        load in 0_u32..6,
        sizes in prop::collection::vec(1_u64..300_000, 1..20),
        seed in any::<u64>(),
    ) {
        let mut network = network(watch, load, 0, 0);
        network.in_order = in_order;
        let mut delays = late.delays(seed);
        network.noise = Box::new(move |_| delays());
        for (message, bytes) in sizes.iter().enumerate() {
            network.post(post(message as u32, 4 + message as u32 % 4, *bytes));
            network.now += Time::us(1);
        }
        network.run(Time::MAX);
        prop_assert!(network.under_way.is_empty());
        let mut arrived = BTreeMap::<u32, u64>::new();
        for ((_, subflow), copy) in network.left.iter().zip(0..) {
            if !network.again.contains_key(&copy) {
                *arrived.entry(subflow.message.0).or_default() += subflow.bytes;
            }
        }
        prop_assert!(arrived.into_values().eq(sizes));
    }
}

/// What hosts 0 to 3 of a leaf deliver to another, in parts of line rate: the first two under Twill
/// or not, and the last two.
fn rates(first: bool, last: bool, seed: u64) -> [f64; 2] {
    let mut shared = Shared::new(Fabric::build(&Clos::leaf_spine(2, 4, 4, LINK)).unwrap(), seed);
    for (host, is_twill) in [first, first, last, last].into_iter().enumerate() {
        shared.send(is_twill, 4 + host as u32);
    }
    shared.run(Time::us(500));
    let before = shared.arrived();
    shared.run(Time::us(2_500));
    let rate = |host: usize| {
        let bytes = shared.arrived()[host] - before[host];
        LINK.rate.serialize(bytes + bytes / 1_000 * 64).0 as f64 / Time::ms(2).0 as f64
    };
    [(rate(0) + rate(1)) / 2.0, (rate(2) + rate(3)) / 2.0]
}

/// Four hosts have four uplinks. The two under Twill have half of each, so that a hashed flow has half
/// of line rate, or a quarter where two meet: 0.44 in the mean, where four hashed flows have some
/// 0.55. Nothing is marked of Twill's here.
#[test]
fn hashed_flows_beside_twill_do_not_starve() {
    let (mut beside, mut alone) = (0.0, 0.0);
    for seed in 0..16 {
        let [twill, hashed] = rates(true, false, seed);
        assert!(twill > 0.97, "{twill}");
        beside += hashed;
        alone += rates(false, false, seed)[1];
    }
    assert!(beside > alone * 0.6, "{beside} {alone}");
}
