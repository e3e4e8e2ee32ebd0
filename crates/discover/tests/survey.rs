//! A survey against simulated switches: any hash, limits of answers, silence, loss, changes of routing.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use weft_discover::simulated::{Answers, Switches};
use weft_discover::{Known, Need, Rules, Step, Survey, TargetState, Trace};
use weft_units::{Draw, Time};

/// Simulated switches, and where a packet goes: target and source port to the switches on its way.
struct Net {
    route: Box<dyn Fn(u32, u16) -> Vec<Ipv4Addr>>,
    answers: Answers,
}

impl Net {
    fn new(route: impl Fn(u32, u16) -> Vec<Ipv4Addr> + 'static) -> Net {
        Net { route: Box::new(route), answers: Answers::all() }
    }
    fn drive(&self, survey: &mut Survey) -> Time {
        let hour = Time::secs(3_600);
        let mut switches = Switches::new(&self.route, self.answers.clone(), 1);
        switches.drive(survey, hour).expect("it ends within an hour")
    }
}

fn leaf(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, number, 0, 1)
}
fn spine(number: u32) -> Ipv4Addr {
    Ipv4Addr::new(100, 64, number as u8, 1)
}
fn hash(seed: u64, target: u32, port: u16, ways: u32) -> u32 {
    (Draw::new(seed, "switch").at(u64::from(target), u64::from(port)) % u64::from(ways)) as u32
}
/// Over one of so many spines, as the leaf hashes.
fn leaf_spine(seed: u64, spines: u32) -> impl Fn(u32, u16) -> Vec<Ipv4Addr> {
    move |target, port| vec![leaf(0), spine(hash(seed, target, port, spines)), leaf(1)]
}
fn ports() -> Vec<u16> {
    (0xC000..=65_534).collect()
}
/// What a table of a finished survey over three switches says.
fn known(asked: BTreeMap<u16, Trace>) -> Known {
    Known { hops: Some(3), asked, done: true, ..Known::default() }
}
/// Every port of every path meets the hops that the path names.
fn assert_true(net: &Net, target: u32, state: &TargetState) {
    for path in &state.paths {
        for port in &path.ports {
            let real = (net.route)(target, *port);
            for (named, real) in path.hops.iter().zip(&real) {
                assert!(named.is_none_or(|named| named == *real), "{port}: {path:?}, not {real:?}");
            }
        }
    }
}

#[test]
fn every_spine_is_found_with_some_ports_each() {
    for (spines, most) in [(2, 60), (4, 110), (8, 230), (32, 900)] {
        let net = Net::new(leaf_spine(7, spines));
        let mut survey = Survey::new(Rules::default(), &ports(), 1, 1);
        let took = net.drive(&mut survey);
        let state = survey.state(0);
        assert_eq!((state.hops, &state.branches[..]), (Some(3), &[2][..]));
        assert_eq!(state.paths.len(), spines as usize);
        assert!(state.paths.iter().all(|path| path.ports.len() >= 4), "{spines}: {state:?}");
        assert!(state.confidence >= 0.95 && state.done);
        assert_true(&net, 0, &state);
        let probes = survey.count().probes;
        assert!(probes < most, "{spines} spines: {probes} probes");
        assert!(took < Time::secs(12), "{spines}: {took:?}");
    }
}

#[test]
fn linux_limits_cost_time_and_nothing_else() {
    let net = Net { answers: Answers::linux(), ..Net::new(leaf_spine(3, 4)) };
    let mut survey = Survey::new(Rules::default(), &ports(), 5, 2);
    let took = net.drive(&mut survey);
    for target in 0..2 {
        let state = survey.state(target);
        assert_eq!(state.paths.len(), 4, "{state:?}");
        assert_true(&net, target, &state);
    }
    assert!(took < Time::secs(25), "{took:?} for {:?}", survey.count());
}

#[test]
fn a_silent_spine_is_a_path_of_its_own() {
    let silent = [spine(2)].into();
    let answers = Answers { silent, burst: 10, refill: Time::ms(100), ..Answers::all() };
    let net = Net { answers, ..Net::new(leaf_spine(11, 4)) };
    let mut survey = Survey::new(Rules::default(), &ports(), 1, 1);
    let took = net.drive(&mut survey);
    assert!(took < Time::secs(30), "{took:?}");
    let state = survey.state(0);
    assert_eq!(state.paths.len(), 4, "{state:?}");
    let silent = state.paths.iter().find(|path| path.hops.get(1) == Some(&None)).unwrap();
    assert_eq!(silent.hops[2], Some(leaf(1)));
    for port in &silent.ports {
        assert_eq!((net.route)(0, *port)[1], spine(2), "{port}");
    }
}

/// Two of four are silent, and the leaf behind them answers by the link over which it was asked.
#[test]
fn silent_spines_are_told_apart_by_the_switch_behind() {
    let behind = |number: u32| Ipv4Addr::new(100, 65, number as u8, 0);
    let route = move |target: u32, port: u16| {
        let number = hash(2, target, port, 4);
        vec![leaf(0), spine(number), behind(number)]
    };
    let mut net = Net::new(route);
    net.answers.silent.extend((2..4).map(spine));
    let mut survey = Survey::new(Rules::default(), &ports(), 1, 1);
    net.drive(&mut survey);
    let state = survey.state(0);
    assert_eq!(state.paths.len(), 4, "{state:?}");
    assert_true(&net, 0, &state);
    let silent = state.paths.iter().filter(|path| path.hops[1].is_none());
    assert_eq!(silent.filter(|path| path.hops[2].is_some()).count(), 2);
}

/// It answers by the link that its answer takes, which another hash chooses: that says nothing.
#[test]
fn what_a_switch_on_the_way_down_answers_by_is_no_path() {
    let behind = |number: u32| Ipv4Addr::new(100, 65, number as u8, 0);
    for silent in [0, 1, 2] {
        let route = move |target: u32, port: u16| {
            let back = behind(hash(3, target, port, 4));
            vec![leaf(0), spine(hash(2, target, port, 4)), back]
        };
        let mut net = Net::new(route);
        net.answers.silent.extend((0..silent).map(spine));
        let mut survey = Survey::new(Rules::default(), &ports(), 1, 1);
        net.drive(&mut survey);
        let state = survey.state(0);
        assert_eq!(state.branches, [2]);
        // Silent ones are one path, as far as anybody can tell.
        assert_eq!(state.paths.len(), 4.min(5 - silent as usize), "{silent}: {state:?}");
        assert_true(&net, 0, &state);
    }
}

/// A silent spine among many, all with Linux' limit: no other port is taken for one of its own.
#[test]
fn under_a_limit_only_the_silent_are_silent() {
    for named in [false, true] {
        let behind = |number: u32| Ipv4Addr::new(100, 65, number as u8, 0);
        let route = move |target: u32, port: u16| {
            let number = hash(2, target, port, 16);
            vec![leaf(0), spine(number), if named { behind(number) } else { leaf(1) }]
        };
        let mut net = Net { answers: Answers::linux(), ..Net::new(route) };
        net.answers.silent.insert(spine(3));
        let mut survey = Survey::new(Rules::default(), &ports(), 1, 2);
        (0..2).for_each(|target| survey.expect(target, 3));
        let took = net.drive(&mut survey);
        for target in 0..2 {
            let state = survey.state(target);
            assert_eq!(state.paths.len(), 16, "{state:?}");
            assert_true(&net, target, &state);
            let silent = state.paths.iter().filter(|path| path.hops.get(1) == Some(&None));
            for port in silent.flat_map(|path| &path.ports) {
                assert_eq!((net.route)(target, *port)[1], spine(3), "{port}");
            }
        }
        assert!(took < Time::secs(120), "{took:?}");
    }
}

/// A few ports are never answered, though all spines answer others: as if answers came too late.
#[test]
fn silence_of_some_ports_is_not_waited_for() {
    let nobody = Ipv4Addr::new(192, 0, 2, 1);
    let route = move |target: u32, port: u16| {
        let via = spine(hash(2, target, port, 4));
        vec![leaf(0), if port.is_multiple_of(40) { nobody } else { via }, leaf(1)]
    };
    let mut net = Net::new(route);
    net.answers.silent.insert(nobody);
    for seed in 0..20 {
        let rules = Rules { expected: 4, ..Rules::default() };
        let mut survey = Survey::new(rules, &ports(), seed, 1);
        survey.expect(0, 3);
        net.drive(&mut survey);
        let state = survey.state(0);
        assert!(state.traces.len() < 80, "{seed}: {state:?}");
        assert!(state.paths.iter().filter(|path| path.names(2)).count() == 4);
    }
}

#[test]
fn loss_is_not_silence() {
    let mut net = Net::new(leaf_spine(1, 8));
    net.answers.lost = 100_000;
    let mut survey = Survey::new(Rules::default(), &ports(), 1, 1);
    net.drive(&mut survey);
    let state = survey.state(0);
    let silent = state.paths.iter().filter(|path| path.hops.get(1) == Some(&None));
    // Three losses in a row: one port of a thousand.
    assert!(silent.map(|path| path.ports.len()).sum::<usize>() <= 1, "{state:?}");
    assert_true(&net, 0, &state);
}

#[test]
fn three_tiers_have_paths_of_two_choices() {
    let route = |target: u32, port: u16| {
        let (first, second) = (hash(1, target, port, 2), hash(2, target, port, 3));
        let core = Ipv4Addr::new(100, 70, first as u8, second as u8);
        vec![leaf(0), spine(first), core, spine(10 + first), leaf(1)]
    };
    let mut net = Net::new(route);
    net.answers.targets = true;
    let mut survey = Survey::new(Rules::default(), &ports(), 1, 1);
    net.drive(&mut survey);
    let state = survey.state(0);
    assert_eq!((state.hops, state.branches.as_slice()), (Some(5), &[2, 3][..]));
    assert_eq!(state.paths.len(), 6);
    assert_true(&net, 0, &state);
}

#[test]
fn a_target_in_the_own_rack_and_one_that_nobody_leads_to_have_no_paths() {
    let route = |target: u32, _| match target {
        0 => vec![leaf(0)],
        _ => Vec::new(),
    };
    for hosts_answer in [false, true] {
        let mut net = Net::new(route);
        net.answers.targets = hosts_answer;
        let mut survey = Survey::new(Rules::default(), &ports(), 1, 2);
        net.drive(&mut survey);
        assert_eq!(survey.state(0).hops, Some(1));
        assert!(survey.state(0).branches.is_empty());
        assert_eq!(survey.state(1).hops, Some(0));
    }
}

/// Targets do not answer, and are not asked.
#[test]
fn nobody_is_asked_behind_the_last_switch_where_its_distance_is_known() {
    for last_is_silent in [false, true] {
        let mut net = Net::new(leaf_spine(7, 4));
        if last_is_silent {
            net.answers.silent.insert(leaf(1));
        }
        let mut survey = Survey::new(Rules::default(), &ports(), 1, 2);
        (0..2).for_each(|target| survey.expect(target, 3));
        let took = net.drive(&mut survey);
        assert_eq!((survey.state(0).hops, survey.state(1).paths.len()), (Some(3), 4));
        assert!(last_is_silent || took < Time::secs(1) && survey.count().lost == 0, "{took:?}");
    }
}

#[test]
fn an_uneven_group_shows_in_the_counts() {
    let route = |target, port| {
        let number = [0, 0, 0, 0, 0, 0, 1, 2][hash(1, target, port, 8) as usize];
        vec![leaf(0), spine(number), leaf(1)]
    };
    let rules = Rules { ports_per_path: 12, ..Rules::default() };
    let mut survey = Survey::new(rules, &ports(), 1, 1);
    Net::new(route).drive(&mut survey);
    let even = survey.state(0).evenness.unwrap();
    assert!(even.p_value < 0.001 && even.max_over_mean > 1.8, "{even:?}");
}

/// A group of unequal weights: shares come out, and how rare a path may be that was missed is said truly.
#[test]
fn a_rare_path_is_missed_no_more_often_than_is_said() {
    let weights = [5, 5, 5, 1];
    let route = |seed: u64| {
        move |target, port| {
            let place = hash(seed, target, port, 16);
            let next = weights.iter().scan(0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            });
            let number = next.take_while(|end| *end <= place).count() as u32;
            vec![leaf(0), spine(number), leaf(1)]
        }
    };
    let (mut told, mut missed, mut shares) = (0, 0, [0; 4]);
    for seed in 0..400 {
        let rules = Rules { ports_per_path: 12, ..Rules::default() };
        let mut survey = Survey::new(rules, &ports(), seed, 1);
        Net::new(route(seed)).drive(&mut survey);
        let state = survey.state(0);
        if state.smallest_share <= 1.0 / 16.0 {
            told += 1;
            missed += u32::from(state.paths.len() < 4);
        }
        for path in &state.paths {
            let number = (0..4).find(|number| path.hops[1] == Some(spine(*number))).unwrap();
            shares[number as usize] += path.ports.len();
        }
    }
    assert!(told > 200 && missed * 20 <= told, "{missed} of {told}");
    let sum: usize = shares.iter().sum();
    for (weight, ports) in weights.iter().zip(shares) {
        let (share, real) = (ports as f64 / sum as f64, f64::from(*weight) / 16.0);
        assert!((share - real).abs() < 0.1 * real, "{share} of {real}");
    }
}

#[test]
fn it_goes_on_where_it_was_interrupted() {
    let mut whole = Survey::new(Rules::default(), &ports(), 1, 1);
    let net = Net::new(leaf_spine(9, 8));
    net.drive(&mut whole);
    let half: BTreeMap<_, _> = whole.state(0).traces.into_iter().take(20).collect();
    let mut rest = Survey::new(Rules::default(), &ports(), 1, 1);
    rest.restore(0, Known { done: false, ..known(half) });
    net.drive(&mut rest);
    let state = rest.state(0);
    assert_eq!(state.paths.len(), 8);
    assert!(rest.count().probes + 15 < whole.count().probes, "{:?}", rest.count());
    assert_true(&net, 0, &state);
}

#[test]
fn a_table_that_holds_is_checked_with_few_probes_and_one_that_does_not_is_made_anew() {
    let mut first = Survey::new(Rules::default(), &ports(), 1, 2);
    let net = Net::new(leaf_spine(4, 4));
    net.drive(&mut first);
    let again = |net: &Net| {
        let mut survey = Survey::new(Rules::default(), &ports(), 2, 2);
        (0..2).for_each(|target| survey.restore(target, known(first.state(target).traces)));
        net.drive(&mut survey);
        survey
    };
    let same = again(&net);
    assert_eq!((same.state(0).changed, same.state(0).checked), (0, 16));
    assert_eq!(same.state(0).paths, first.state(0).paths);
    assert_eq!(same.count().probes, 32);

    // Without one spine: as after a failure.
    let net = Net::new(leaf_spine(4, 3));
    let other = again(&net);
    for target in 0..2 {
        let state = other.state(target);
        assert!(state.changed > 0 && state.paths.len() == 3, "{state:?}");
        assert_true(&net, target, &state);
    }
}

/// Over one spine, or by two switches alone.
#[test]
fn a_single_path_is_asked_again_where_paths_could_part() {
    let two = |last: u8| move |_: u32, _: u16| vec![leaf(0), leaf(last)];
    let cases = [
        (Net::new(leaf_spine(4, 1)), Net::new(leaf_spine(4, 2)), 4, 2),
        (Net::new(two(1)), Net::new(two(2)), 8, 1),
    ];
    for (before, after, most, paths) in cases {
        let mut first = Survey::new(Rules::default(), &ports(), 1, 1);
        before.drive(&mut first);
        let again = |net: &Net| {
            let mut survey = Survey::new(Rules::default(), &ports(), 2, 1);
            let TargetState { hops, traces, .. } = first.state(0);
            survey.restore(0, Known { hops, ..known(traces) });
            net.drive(&mut survey);
            (survey.state(0), survey.count().probes)
        };
        let (same, probes) = again(&before);
        assert_eq!((same.checked, same.changed, same.paths.len(), probes), (4, 0, 1, most));
        let (other, _) = again(&after);
        assert!(other.changed > 0 && other.paths.len() == paths, "{other:?}");
        assert_true(&after, 0, &other);
    }
}

#[test]
fn spines_that_must_be_there_are_looked_for_as_long_as_chance_could_hide_them() {
    let rules = Rules { expected: 4, ..Rules::default() };
    let mut survey = Survey::new(rules, &ports(), 1, 1);
    Net::new(leaf_spine(1, 3)).drive(&mut survey);
    let state = survey.state(0);
    assert_eq!(state.paths.len(), 3);
    assert!((30..60).contains(&state.traces.len()), "{}", state.traces.len());
}

#[test]
fn a_port_that_is_taken_is_left_out() {
    let mut survey = Survey::new(Rules::default(), &ports(), 1, 1);
    let Step::Send(probe) = survey.poll(Time::ZERO) else { panic!("nothing to send") };
    survey.refused(probe);
    let net = Net::new(leaf_spine(1, 2));
    net.drive(&mut survey);
    let state = survey.state(0);
    assert!(state.done && !state.traces.contains_key(&probe.port));
}

/// How often a spine is missed, over many hashes: no more than was allowed.
#[test]
fn unseen_paths_are_as_rare_as_was_asked_for() {
    let rules = Rules { ports_per_path: 1, unseen: 0.05, ..Rules::default() };
    let missed = (0..400)
        .filter(|seed| {
            let mut survey = Survey::new(rules, &ports(), *seed, 1);
            Net::new(leaf_spine(1_000 + seed, 4)).drive(&mut survey);
            survey.state(0).paths.len() < 4
        })
        .count();
    // At each of three stops 5 % at most, by a bound that is not tight.
    assert!(missed <= 40, "{missed} of 400");
}

/// A spine that has lost its link to the leaf of the target, and says so.
#[test]
fn ports_that_lead_nowhere_are_left_out() {
    let mut net = Net::new(leaf_spine(6, 4));
    let mut first = Survey::new(Rules::default(), &ports(), 1, 1);
    net.drive(&mut first);
    net.answers.dead.insert(spine(1));
    let mut survey = Survey::new(Rules::default(), &ports(), 1, 1);
    net.drive(&mut survey);
    let mut checked = Survey::new(Rules::default(), &ports(), 1, 1);
    checked.restore(0, known(first.state(0).traces));
    net.drive(&mut checked);
    assert!(checked.state(0).changed > 0);
    for state in [survey.state(0), checked.state(0)] {
        assert_eq!((state.hops, state.paths.len()), (Some(3), 3), "{state:?}");
        for path in &state.paths {
            let leads = |port: &u16| (net.route)(0, *port)[1] != spine(1);
            assert!(path.ports.iter().all(leads), "{path:?}");
        }
    }
    net.answers.dead.insert(leaf(0));
    let mut none = Survey::new(Rules::default(), &ports(), 1, 1);
    net.drive(&mut none);
    assert_eq!((none.state(0).hops, none.state(0).paths.len()), (Some(0), 0));
    assert!(none.count().probes < 20);
}

/// Three bits of a linear hash of the port, and a constant for each target: as CRCs do it.
fn linear(seed: u64) -> impl Fn(u32, u16) -> Vec<Ipv4Addr> {
    let row =
        |number: u64| 1 << (3 * number) | Draw::new(seed, "row").at(number, 0) as u16 & 0x3E00;
    let rows = [row(0), row(1), row(2)];
    move |target, port| {
        let bit = |row: &u16| u32::from((row & port).count_ones() as u8 & 1);
        let value = rows.iter().fold(0, |value, row| value << 1 | bit(row));
        vec![leaf(0), spine(value ^ hash(seed, target, 0, 8)), leaf(1)]
    }
}

#[test]
fn of_a_linear_hash_few_ports_give_all() {
    let rules = Rules { ports_per_path: 16, ..Rules::default() };
    let net = Net::new(linear(3));
    let mut survey = Survey::new(rules, &ports(), 1, 20);
    net.drive(&mut survey);
    let mut asked = Vec::new();
    for target in 0..20 {
        let state = survey.state(target);
        assert!(state.linear && state.confidence > 0.98, "{state:?}");
        assert_eq!(state.paths.len(), 8);
        for path in &state.paths {
            assert_eq!(path.ports.len().max(16), path.ports.len() + path.predicted.len());
            for port in path.ports.iter().chain(&path.predicted) {
                assert_eq!(Some((net.route)(target, *port)[1]), path.hops[1], "{port}");
            }
        }
        asked.push(state.traces.len());
    }
    // The first shows it; the others need a port a path, and some that show that it holds.
    assert!(asked[0] < 40 && asked[1..].iter().all(|ports| *ports <= 24), "{asked:?}");
}

/// Towards one target switches hash otherwise: what the others have shown does not hold there.
#[test]
fn a_hash_that_is_not_linear_everywhere_is_noticed() {
    let (crc, other) = (linear(3), leaf_spine(5, 8));
    let net = Net::new(move |target, port| match target {
        7 => other(target, port),
        _ => crc(target, port),
    });
    let mut survey = Survey::new(Rules::default(), &ports(), 1, 12);
    net.drive(&mut survey);
    for target in 0..12 {
        let state = survey.state(target);
        assert_eq!(state.linear, target != 7);
        assert_eq!(state.paths.len(), 8);
        assert_true(&net, target, &state);
    }
}

/// Switches on the way to targets in other racks, all as far away.
fn expect_three(survey: &mut Survey, targets: u32) {
    (0..targets).for_each(|target| survey.expect(target, 3));
}

/// One port shows by which difference of ports a target is the first one; two check it.
#[test]
fn of_a_linear_hash_one_target_gives_all() {
    let net = Net::new(linear(3));
    let mut survey = Survey::new(Rules::default(), &ports(), 1, 200);
    expect_three(&mut survey, 200);
    net.drive(&mut survey);
    let mut table = Vec::new();
    for target in 0..200 {
        let state = survey.state(target);
        assert!(state.linear && state.done && state.confidence > 0.98, "{state:?}");
        assert_eq!(state.paths.len(), 8);
        for path in &state.paths {
            assert!(path.ports.len() + path.predicted.len() >= 4, "{path:?}");
            for port in path.ports.iter().chain(&path.predicted) {
                assert_eq!(Some((net.route)(target, *port)[1]), path.hops[1], "{port}");
            }
        }
        let of = |ports: fn(&weft_discover::Path) -> &[u16]| {
            let hop = |hop: &Option<Ipv4Addr>| {
                hop.map_or(weft_discover::Seen::Silent, weft_discover::Seen::Hop)
            };
            let trace =
                |path: &weft_discover::Path| Trace((1..).zip(path.hops.iter().map(hop)).collect());
            let one =
                |path| ports(path).iter().map(move |port| (*port, trace(path))).collect::<Vec<_>>();
            state.paths.iter().flat_map(one).collect::<BTreeMap<_, _>>()
        };
        let (asked, predicted) = (of(|path| &path.ports), of(|path| &path.predicted));
        table.push(Known { hops: state.hops, asked, predicted, done: true });
    }
    let probes = survey.count().probes;
    let counts: Vec<usize> = (0..200).map(|one| survey.state(one).traces.len()).collect();
    assert!(probes < 60 + 5 * 200, "{probes} probes: {counts:?}");
    // A table of it is checked by few ports, and is as before.
    let mut again = Survey::new(Rules::default(), &ports(), 2, 200);
    expect_three(&mut again, 200);
    (0..).zip(&table).for_each(|(target, known)| again.restore(target, known.clone()));
    net.drive(&mut again);
    for target in [0, 1, 199] {
        let (before, now) = (survey.state(target), again.state(target));
        assert_eq!((now.changed, now.paths.len()), (0, 8), "{now:?}");
        assert_eq!(before.paths[0].hops, now.paths[0].hops);
    }
    assert!(again.count().probes < 5 * 200, "{:?}", again.count());
}

/// Of one target no port is where the others say: it is found out by itself, and no port is predicted.
#[test]
fn a_target_apart_from_a_linear_hash_is_noticed() {
    let (crc, other) = (linear(3), leaf_spine(5, 8));
    let net = Net::new(move |target, port| match target {
        7 => other(target, port),
        _ => crc(target, port),
    });
    for seed in 0..20 {
        let mut survey = Survey::new(Rules::default(), &ports(), seed, 12);
        expect_three(&mut survey, 12);
        net.drive(&mut survey);
        for target in 0..12 {
            let state = survey.state(target);
            assert_eq!(state.linear, target != 7, "{seed}: {target}");
            assert_eq!(state.paths.len(), 8, "{seed}: {target}");
            let all = state.paths.iter().flat_map(|path| {
                path.ports.iter().chain(&path.predicted).map(|port| (path.hops[1], *port))
            });
            for (hop, port) in all {
                assert_eq!(hop, Some((net.route)(target, port)[1]), "{seed}: {target}: {port}");
            }
        }
    }
}

/// What is needed is found, and no more is looked for; where paths part one target has shown.
#[test]
fn a_search_ends_when_all_is_there_that_is_needed() {
    let net = Net::new(leaf_spine(7, 16));
    let some = |through: Vec<Ipv4Addr>, ports| Need { through, ports };
    let all: Vec<Need> = (0..16).map(|number| some(vec![spine(number)], 1)).collect();
    for (needs, most) in [
        (vec![some(vec![], 2)], 4.0),
        (vec![some(vec![spine(3)], 1)], 30.0),
        (vec![some(vec![spine(3)], 2), some(vec![spine(4)], 1)], 55.0),
        (all, 75.0),
    ] {
        let mut survey = Survey::new(Rules::default(), &ports(), 1, 15);
        expect_three(&mut survey, 15);
        (0..15).for_each(|target| survey.need(target, needs.clone()));
        net.drive(&mut survey);
        for target in 0..15 {
            let state = survey.state(target);
            assert!(state.done && needs.iter().all(|need| state.meets(need)), "{state:?}");
            assert_eq!(state.paths[0].hops[0], Some(leaf(0)));
            assert_true(&net, target, &state);
        }
        let each = survey.count().probes as f64 / 15.0;
        assert!(each < most, "{each} probes a target for {needs:?}");
        // A change is noticed, and what is needed is found anew.
        let moved = Net::new(leaf_spine(8, 16));
        let mut again = Survey::new(Rules::default(), &ports(), 2, 15);
        expect_three(&mut again, 15);
        for target in 0..15 {
            again.need(target, needs.clone());
            again.restore(target, known(survey.state(target).traces));
        }
        moved.drive(&mut again);
        let states: Vec<_> = (0..15).map(|target| again.state(target)).collect();
        assert!(states.iter().filter(|state| state.changed > 0).count() >= 13, "{needs:?}");
        for state in states.iter().filter(|state| state.changed > 0) {
            assert!(needs.iter().all(|need| state.meets(need)), "{state:?}");
        }
        (0..15).zip(&states).for_each(|(target, state)| {
            if state.changed > 0 {
                assert_true(&moved, target, state)
            }
        });
    }
}

/// A path that nobody takes any more ends a search as it ever did.
#[test]
fn what_cannot_be_found_is_not_looked_for_forever() {
    let net = Net::new(leaf_spine(7, 4));
    let mut survey = Survey::new(Rules::default(), &ports(), 1, 1);
    survey.expect(0, 3);
    survey.need(0, vec![Need { through: vec![spine(9)], ports: 1 }]);
    net.drive(&mut survey);
    let state = survey.state(0);
    assert!(state.done && state.paths.len() == 4 && state.traces.len() < 60, "{state:?}");
}
