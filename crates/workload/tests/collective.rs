//! Collectives against the tables of their sources, and against what they are for.

use std::collections::{BTreeMap, BTreeSet};
use weft_trial::prelude::*;
use weft_workload::collective::{
    ALGORITHMS, Algorithm, Blocks, Call, Operation, Payload, Servers, Step, Switched,
};

fn algorithm(name: &str, options: &[(&str, &str)]) -> Algorithm {
    Algorithm::read(name, options).expect("an algorithm")
}

fn call(operation: Operation, ranks: u32, bytes: u64) -> Call {
    Call { operation, ranks, bytes, root: 0, servers: Servers::EACH }
}

/// All steps of a sequence.
fn steps(algorithm: &Algorithm, call: &Call, rank: u32, sequence: u32) -> Vec<Step> {
    (0..).map_while(|at| algorithm.step(call, rank, sequence, at)).collect()
}

/// Who sends what to whom, in the order of each sender's sequence.
fn sends(algorithm: &Algorithm, call: &Call, rank: u32, sequence: u32) -> Vec<(u32, u64)> {
    let sent = |step| match step {
        Step::Send { to, payload, .. } => Some((to, payload)),
        _ => None,
    };
    steps(algorithm, call, rank, sequence).into_iter().filter_map(sent).collect()
}

/// What one run of a call did.
#[derive(Default)]
struct Trace {
    /// Bytes that each rank sent and received.
    sent: Vec<u64>,
    received: Vec<u64>,
    /// Messages with payload.
    messages: u32,
}

/// Runs all sequences of all ranks, one step of a random runnable sequence at a time.
///
/// Checks on the way: every receipt comes from exactly one send, is the one that the receiver
/// expects, with the bytes and blocks that it expects; all cut the buffer alike; and everything ends.
fn run(algorithm: &Algorithm, call: &Call, mut order: impl FnMut(usize) -> usize) -> Trace {
    algorithm.check(call).expect("a call that it can do");
    let sequences = algorithm.sequences(call);
    let mut trace = Trace {
        sent: vec![0; call.ranks as usize],
        received: vec![0; call.ranks as usize],
        messages: 0,
    };
    let mut here: BTreeMap<(u32, u32, u32), (u32, u64, Payload)> = BTreeMap::new();
    let mut cuts = BTreeSet::new();
    // Where each sequence stands: its step, and how many receipts and sends lie behind it.
    let mut open: Vec<(u32, u32, u32, u32, u32)> = (0..call.ranks)
        .flat_map(|rank| (0..sequences).map(move |sequence| (rank, sequence, 0, 0, 0)))
        .collect();
    // Who has come to what switches do, in which sequence.
    let mut switched: BTreeMap<(Switched, u32), BTreeSet<u32>> = BTreeMap::new();
    let mut idle = 0;
    while !open.is_empty() {
        let pick = order(open.len());
        let (rank, sequence, at, receipts, posted) = &mut open[pick];
        idle += 1;
        assert!(idle < 1_000_000, "{call:?} is stuck: rank {rank} sequence {sequence} step {at}");
        let blocks = match algorithm.step_in_blocks(call, *rank, *sequence, *at) {
            Some(
                Step::Send { payload, .. }
                | Step::Receive { payload, .. }
                | Step::Switched { payload },
            ) => {
                assert!(payload.many <= payload.count && payload.blocks().count() > 0);
                cuts.insert((payload.shares, payload.count));
                Some(payload)
            }
            _ => None,
        };
        let blocks = || blocks.expect("a message has a payload");
        match algorithm.step(call, *rank, *sequence, *at) {
            None => {
                open.swap_remove(pick);
                continue;
            }
            Some(Step::Send { to, payload: bytes, sequence: target, receipt }) => {
                assert_ne!(to, *rank, "{call:?}");
                let old = here.insert((to, target, receipt), (*rank, bytes, blocks()));
                assert_eq!(old, None, "{call:?}: two sends for one receipt");
                trace.sent[*rank as usize] += bytes;
                trace.received[to as usize] += bytes;
                trace.messages += u32::from(bytes > 0);
                *posted += 1;
            }
            Some(Step::Receive { from, payload: bytes }) => {
                let Some(came) = here.remove(&(*rank, *sequence, *receipts)) else { continue };
                assert_eq!(came, (from, bytes, blocks()), "{call:?}: rank {rank} step {at}");
                *receipts += 1;
            }
            Some(Step::Sent(number)) => assert!(number < *posted, "{call:?}: not sent yet"),
            Some(Step::Switched { payload: bytes }) => {
                let part = algorithm.switched(call, (*rank, *sequence, *at), bytes);
                let place = (*rank - part.first) / part.stride;
                assert!(part.ranks > 1 && place < part.ranks && part.root < part.ranks);
                assert_eq!(part.first + place * part.stride, *rank, "{call:?}: {part:?}");
                // All ranks of the set come to the same.
                let joined = switched.entry((part, *sequence)).or_default();
                joined.insert(*rank);
                if joined.len() < part.ranks as usize {
                    continue;
                }
                let (gives, gets) = part.volume(place);
                trace.sent[*rank as usize] += gives;
                trace.received[*rank as usize] += gets;
                trace.messages += 1;
                *receipts += 1;
            }
        }
        *at += 1;
        idle = 0;
    }
    assert_eq!(cuts.len(), 1, "{call:?}: {cuts:?}");
    assert!(here.is_empty(), "{call:?}: nobody waits for {here:?}");
    trace
}

fn in_order(algorithm: &Algorithm, call: &Call) -> Trace {
    let mut next = 0usize;
    run(algorithm, call, move |count| {
        next += 1;
        next % count
    })
}

#[test]
fn pieces_add_up() {
    let blocks = Blocks::new(10, 4);
    assert_eq!([0, 1, 2, 3].map(|block| blocks.len(block)), [3, 3, 2, 2]);
    assert_eq!((blocks.len(4), blocks.sum(0, 1, 4), blocks.sum(1, 2, 2)), (3, 10, 5));
}

#[test]
fn payloads_are_counted_round() {
    let all = Payload { share: 1, shares: 2, count: 5, first: 3, stride: 2, many: 3 };
    assert_eq!(all.blocks().collect::<Vec<_>>(), [3, 0, 2]);
    // The second share of 27 is 13 long: 3 3 3 2 2.
    assert_eq!(all.bytes(27), 2 + 3 + 3);
}

#[test]
fn a_ring_is_the_table_of_its_source() {
    let ring = algorithm("ring", &[]);
    let all_reduce = call(Operation::AllReduce, 4, 400);
    // Rank r sends block (r - 1 - j) mod n at step j; the blocks tell apart by their length.
    let uneven = Call { bytes: 403, ..all_reduce };
    let blocks = Blocks::new(403, 4);
    for rank in 0..4 {
        let expected: Vec<_> =
            (0..6).map(|j| ((rank + 1) % 4, blocks.len(u64::from(rank + 7 - j)))).collect();
        assert_eq!(sends(&ring, &uneven, rank, 0), expected);
    }
    assert_eq!(sends(&ring, &call(Operation::AllGather, 4, 400), 2, 0), vec![(3, 100); 3]);
    assert_eq!(sends(&ring, &call(Operation::ReduceScatter, 4, 400), 3, 0), vec![(0, 100); 3]);
    // A send, then its receipt, by turns.
    let alternating = steps(&ring, &all_reduce, 1, 0);
    assert!(alternating.iter().step_by(2).all(|step| matches!(step, Step::Send { .. })));
    assert!(alternating.iter().skip(1).step_by(2).all(|s| matches!(s, Step::Receive { .. })));
    // Two channels share the buffer.
    let two = algorithm("ring", &[("channels", "2")]);
    assert_eq!(two.sequences(&all_reduce), 2);
    assert_eq!(sends(&two, &all_reduce, 0, 1), vec![(1, 50); 6]);
}

#[test]
fn chains_run_from_and_to_the_root() {
    let ring = algorithm("ring", &[("chunks", "3")]);
    let broadcast = Call { root: 2, ..call(Operation::Broadcast, 4, 9) };
    assert_eq!(sends(&ring, &broadcast, 2, 0), vec![(3, 3); 3]);
    assert_eq!(sends(&ring, &broadcast, 0, 0), vec![(1, 3); 3]);
    assert_eq!(sends(&ring, &broadcast, 1, 0), vec![]);
    let reduce = Call { operation: Operation::Reduce, ..broadcast };
    // On the same way, as NCCL's: 3, 0, 1, 2.
    assert_eq!(sends(&ring, &reduce, 3, 0), vec![(0, 3); 3]);
    assert_eq!(sends(&ring, &reduce, 1, 0), vec![(2, 3); 3]);
    assert_eq!(sends(&ring, &reduce, 2, 0), vec![]);
}

#[test]
fn halving_doubling_is_the_table_of_its_source() {
    let halving = algorithm("recursive-doubling", &[]);
    // Partner i XOR 2^k: m/2, m/4, ... and back again.
    let all_reduce = call(Operation::AllReduce, 8, 800);
    let expected = vec![(4, 400), (7, 200), (1, 100), (1, 100), (7, 200), (4, 400)];
    assert_eq!(sends(&halving, &all_reduce, 5, 0), expected);
    let scatter = call(Operation::ReduceScatter, 8, 800);
    assert_eq!(sends(&halving, &scatter, 0, 0), [(1, 400), (2, 200), (4, 100)]);
    let gather = call(Operation::AllGather, 8, 800);
    assert_eq!(sends(&halving, &gather, 0, 0), [(4, 100), (2, 200), (1, 400)]);
}

#[test]
fn direct_is_the_table_of_its_source() {
    let direct = algorithm("direct", &[]);
    let exchange = call(Operation::AllToAll, 4, 40);
    assert_eq!(sends(&direct, &exchange, 2, 0), [(3, 10), (0, 10), (1, 10)]);
    // With a window the third send waits for the first, and so on.
    let windowed = algorithm("direct", &[("window", "2")]);
    let steps = steps(&windowed, &call(Operation::AllToAll, 5, 50), 0, 0);
    let send = |to| Step::Send { to, payload: 10, sequence: 0, receipt: to - 1 };
    let expected = [send(1), send(2), Step::Sent(0), send(3), Step::Sent(1), send(4)];
    assert_eq!(steps[..6], expected);
    assert!(steps[6..].iter().all(|step| matches!(step, Step::Receive { .. })));
    assert_eq!(steps.len(), 10);
}

#[test]
fn a_skew_follows_zipfs_law() {
    let exchange = call(Operation::AllToAll, 8, 1_000_000);
    let skewed = algorithm("direct", &[("skew", "1")]);
    // What each rank is sent, by everybody alike; its own share from somebody else's row.
    let row = |rank| sends(&skewed, &exchange, rank, 0).into_iter().collect::<BTreeMap<_, _>>();
    let mut sizes = row(0);
    sizes.extend(row(1));
    assert!((0..8).all(|rank| row(rank).iter().all(|(to, bytes)| sizes[to] == *bytes)));
    assert_eq!(sizes.values().sum::<u64>(), 1_000_000);
    let mut sizes: Vec<u64> = sizes.into_values().collect();
    sizes.sort_unstable_by_key(|size| std::cmp::Reverse(*size));
    let harmonic: f64 = (1..=8).map(|j| 1.0 / f64::from(j)).sum();
    for (j, size) in (1..).zip(&sizes) {
        let share = 1e6 / (harmonic * f64::from(j));
        assert!((*size as f64 - share).abs() < 1.0 + 1e-3 * share, "{sizes:?}");
    }
    let even = algorithm("direct", &[("skew", "0")]);
    assert_eq!(even, algorithm("direct", &[]));
    assert_eq!(skewed.under(3), skewed.under(3));
    assert!((0..8).any(|rank| {
        steps(&skewed.under(3), &exchange, rank, 0) != steps(&skewed, &exchange, rank, 0)
    }));
}

/// For each rank of one tree: its parent, from the sends of a reduction.
fn parents(tree: &Algorithm, call: &Call, sequence: u32) -> Vec<Option<u32>> {
    let parent = |rank| sends(tree, call, rank, sequence).first().map(|(to, _)| *to);
    (0..call.ranks).map(parent).collect()
}

#[test]
fn one_tree_is_the_in_order_tree_of_astra_sim() {
    // Numbered in order, the last rank on top of it: 0 1 2 3 4 5 6 under 7.
    let tree = algorithm("double-binary-tree", &[("trees", "1")]);
    let all_reduce = call(Operation::AllReduce, 8, 100);
    let up: Vec<_> = (0..7).map(|rank| sends(&tree, &all_reduce, rank, 0)).collect();
    let parents: Vec<_> = up.iter().map(|sends| sends[0].0).collect();
    assert_eq!(parents, [1, 3, 1, 7, 5, 3, 5]);
    // Whole chunks, along every edge once up and once down.
    assert_eq!(sends(&tree, &all_reduce, 7, 0), [(3, 100)]);
    let mut down = sends(&tree, &all_reduce, 3, 1);
    down.sort_unstable();
    assert_eq!(down, [(1, 100), (5, 100)]);
}

#[test]
fn leaves_of_one_tree_are_inner_ranks_of_the_other() {
    let double = algorithm("double-binary-tree", &[]);
    for ranks in 3..=1100 {
        let all_reduce = call(Operation::AllReduce, ranks, 2 * u64::from(ranks));
        let inner = |sequence: u32| -> BTreeSet<u32> {
            // The root of a tree sends only down.
            let down = |rank: &u32| !sends(&double, &all_reduce, *rank, sequence + 1).is_empty();
            let is_root = |rank: &u32| {
                matches!(steps(&double, &all_reduce, *rank, sequence)[0], Step::Receive { .. })
                    && steps(&double, &all_reduce, *rank, sequence + 1).is_empty()
            };
            (0..ranks).filter(|rank| down(rank) || is_root(rank)).collect()
        };
        let (first, second) = (inner(0), inner(2));
        let nowhere: Vec<_> =
            (0..ranks).filter(|r| !first.contains(r) && !second.contains(r)).collect();
        assert!(nowhere.is_empty(), "{ranks} ranks: {nowhere:?} are leaves of both");
    }
}

#[test]
fn nccls_trees_for_some_ranks_by_hand() {
    let double = algorithm("double-binary-tree", &[]);
    let six = call(Operation::AllReduce, 6, 12);
    // First: 0 over 4, 4 over 2 and 5, 2 over 1 and 3. Second: its mirror.
    let first = parents(&double, &Call { operation: Operation::Reduce, ..six }, 0);
    assert_eq!(first, [None, Some(2), Some(4), Some(2), Some(0), Some(4)]);
    let mut down = sends(&double, &six, 1, 3);
    down.sort_unstable();
    assert_eq!(down, [(0, 6), (3, 6)]);
    // Five ranks: moved on by one.
    let five = call(Operation::AllReduce, 5, 10);
    assert_eq!(sends(&double, &five, 1, 2), [(0, 5)]);
    // Another root: turned.
    let reduce = Call { root: 2, ..call(Operation::Reduce, 6, 12) };
    assert_eq!(parents(&double, &reduce, 0)[2], None);
    assert_eq!(parents(&double, &reduce, 0)[3], Some(4));
}

#[test]
fn pat_sends_far_little_and_near_much() {
    let pat = algorithm("pat", &[]);
    let gather = call(Operation::AllGather, 8, 80);
    assert_eq!(sends(&pat, &gather, 0, 0), [(4, 10), (2, 20), (1, 40)]);
    let scatter = call(Operation::ReduceScatter, 8, 80);
    assert_eq!(sends(&pat, &scatter, 0, 0), [(7, 40), (6, 20), (4, 10)]);
    // Any number of ranks: 5 blocks but one's own arrive.
    let five = call(Operation::AllGather, 5, 50);
    assert_eq!(sends(&pat, &five, 0, 0), [(4, 10), (2, 10), (1, 20)]);
}

#[test]
fn two_levels_are_rings_within_servers_and_across_them() {
    let two = algorithm("hierarchical", &[]);
    let servers = Servers { ranks: 4, nics: 4 };
    let all_reduce = Call { servers, ..call(Operation::AllReduce, 12, 1_200) };
    // Quarters round the server, then twelfths round the three GPUs at one place, and back.
    let (within, across) = ([(6, 300); 3], [(9, 100); 4]);
    assert_eq!(sends(&two, &all_reduce, 5, 0), [&within[..], &across, &within].concat());
    let gather = Call { operation: Operation::AllGather, ..all_reduce };
    assert_eq!(sends(&two, &gather, 5, 0), [&across[..2], &within].concat());
    let scatter = Call { operation: Operation::ReduceScatter, ..all_reduce };
    assert_eq!(sends(&two, &scatter, 5, 0), [&within[..], &across[..2]].concat());
    // Without servers, or with all ranks in one, it is a ring.
    let alone = Call { servers: Servers::EACH, ..all_reduce };
    assert_eq!(sends(&two, &alone, 5, 0), sends(&algorithm("ring", &[]), &alone, 5, 0));
    let racks = algorithm("hierarchical", &[("local_ranks", "6")]);
    assert_eq!(
        sends(&racks, &all_reduce, 5, 0)[..6],
        [[(0, 200); 5].as_slice(), &[(11, 100)]].concat()
    );
    let odd = algorithm("hierarchical", &[("local_ranks", "5")]);
    let refused = odd.check(&all_reduce).unwrap_err().to_string();
    assert_eq!(refused, "local_ranks: 12 ranks are no multiple of 5; use a divisor of 12");
}

#[test]
fn a_send_recv_goes_one_rank_on() {
    let shift = call(Operation::SendReceive, 4, 9);
    assert_eq!(sends(&algorithm("ring", &[]), &shift, 3, 0), [(0, 9)]);
    let two = algorithm("ring", &[("channels", "2")]);
    assert_eq!(sends(&two, &shift, 2, 1), [(3, 4)]);
    assert_eq!(Operation::SendReceive.bus_factor(4), 1.0);
}

#[test]
fn what_an_algorithm_cannot_do_is_said() {
    let text = |name: &str, call: &Call| algorithm(name, &[]).check(call).unwrap_err().to_string();
    let odd = call(Operation::AllReduce, 6, 60);
    assert_eq!(
        text("recursive-doubling", &odd),
        "algorithm: \"recursive-doubling\" needs a power of two of ranks, not 6; use \"ring\""
    );
    let able = |operation| {
        let able = ALGORITHMS.iter().filter(|info| info.operations.contains(&operation));
        able.map(|info| format!("{:?}", info.name)).collect::<Vec<_>>().join(" or ")
    };
    assert_eq!(
        text("ring", &call(Operation::AllToAll, 6, 60)),
        format!("algorithm: \"ring\" has no all-to-all; use {}", able(Operation::AllToAll))
    );
    assert!(able(Operation::AllReduce).starts_with("\"ring\" or \"direct\" or "));
    assert_eq!(
        text("pat", &odd),
        format!("algorithm: \"pat\" has no all-reduce; use {}", able(Operation::AllReduce))
    );
    let skewed = algorithm("direct", &[("skew", "1")]);
    assert_eq!(
        skewed.check(&odd).unwrap_err().to_string(),
        "skew: only an all-to-all has one, not all-reduce; remove it"
    );
    assert_eq!(skewed.check(&call(Operation::AllToAll, 6, 60)), Ok(()));
    let alone = call(Operation::AllReduce, 1, 60);
    assert_eq!(text("ring", &alone), "ranks: 1 cannot talk; use at least 2");
    let nobody = Call { root: 6, ..call(Operation::Reduce, 6, 60) };
    assert_eq!(text("ring", &nobody), "root: there is no rank 6; use 0 to 5");
}

/// Two servers of four GPUs and two NICs: a ring for each NIC, and in each of them a server is left
/// by another NIC.
#[test]
fn a_ring_of_each_channel_leaves_servers_by_another_nic() {
    let ring = algorithm("ring", &[]);
    let servers = Servers { ranks: 4, nics: 2 };
    let gather = Call { servers, ..call(Operation::AllGather, 8, 64) };
    assert_eq!(ring.sequences(&gather), 2);
    let next = |rank, channel| sends(&ring, &gather, rank, channel)[0].0;
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(|rank| next(rank, 0)), [1, 2, 3, 4, 5, 6, 7, 0]);
    assert_eq!([2, 3, 0, 1, 6, 7, 4, 5].map(|rank| next(rank, 1)), [3, 0, 1, 6, 7, 4, 5, 2]);
    let one = algorithm("ring", &[("channels", "1")]);
    assert_eq!(one.sequences(&gather), 1);
}

/// Every algorithm with options, on any call that it can do.
fn any_call() -> impl Strategy<Value = (Algorithm, Call)> {
    let ranks = 2u32..40;
    let index = 0..ALGORITHMS.len();
    let operation = prop::sample::select(Operation::ALL.to_vec());
    let options = (1u32..4, 1u32..5, 1u32..3, prop::option::of(1u32..6));
    let options = (options, (1u32..9, 1u32..9));
    (index, operation, ranks, 1u64..5_000, any::<u32>(), options).prop_filter_map(
        "the algorithm can do it",
        |(index, operation, ranks, bytes, root, (options, (gpus, nics)))| {
            let (channels, chunks, trees, window) = options;
            let name = ALGORITHMS[index].name;
            let power = name == "recursive-doubling";
            let ranks = if power { ranks.next_power_of_two() } else { ranks };
            let (channels, chunks, trees) =
                (channels.to_string(), chunks.to_string(), trees.to_string());
            let window = window.map(|window| window.to_string());
            let mut given = Vec::new();
            match name {
                "ring" => given.extend([("channels", &*channels), ("chunks", &*chunks)]),
                "double-binary-tree" => given.extend([("trees", &*trees), ("chunks", &*chunks)]),
                "hierarchical" => {
                    given.extend([("channels", &*channels), ("local_ranks", &*chunks)])
                }
                "sharp" | "nvls" => given.extend([("chunks", &*chunks), ("trees", &*trees)]),
                "direct" => {
                    given.extend(window.as_deref().map(|window| ("window", window)));
                    given.extend((channels == "2").then_some(("skew", "1.2")));
                }
                _ => {}
            }
            let algorithm = algorithm(name, &given);
            let servers = match ranks.is_multiple_of(gpus) {
                true => Servers { ranks: gpus, nics: nics.min(gpus) },
                false => Servers::EACH,
            };
            let call = Call { operation, ranks, bytes, root: root % ranks, servers };
            algorithm.check(&call).is_ok().then_some((algorithm, call))
        },
    )
}

trials! {
    #![cases(400)]

    fn every_send_has_its_receipt_and_nothing_gets_stuck((algorithm, call) in any_call(), seed in any::<u64>()) {
        let mut state = seed | 1;
        let random = |count: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % count
        };
        let trace = run(&algorithm, &call, random);
        prop_assert!(trace.messages > 0);
    }

    fn volumes_are_those_of_the_formulas((algorithm, call) in any_call()) {
        let trace = in_order(&algorithm, &call);
        let (n, bytes) = (u64::from(call.ranks), call.bytes);
        let total: u64 = trace.sent.iter().sum();
        if algorithm.is_in_network() {
            // Once up and once down, however many there are; in several stages that much or more.
            let (up, down) = match call.operation {
                Operation::AllReduce => (n * bytes, n * bytes),
                Operation::ReduceScatter => (n * bytes, bytes),
                Operation::AllGather => (bytes, n * bytes),
                _ => (bytes, (n - 1) * bytes),
            };
            let both = (total, trace.received.iter().sum::<u64>());
            match call.servers.ranks {
                1 => prop_assert_eq!(both, (up, down), "{:?} {:?}", algorithm, call),
                _ => prop_assert!(both.1 + n * bytes >= down, "{:?} {:?}", algorithm, call),
            }
            return Ok(());
        }
        prop_assert_eq!(total, trace.received.iter().sum::<u64>());
        // However it is done: what a rank gets of others crosses to it, at least once.
        let expected = match call.operation {
            Operation::AllReduce => 2 * (n - 1) * bytes,
            Operation::AllGather | Operation::ReduceScatter => (n - 1) * bytes,
            Operation::Broadcast | Operation::Reduce => (n - 1) * bytes,
            // All but each rank's own block.
            Operation::AllToAll => (n - 1) * bytes,
            Operation::SendReceive => n * bytes,
        };
        prop_assert_eq!(total, expected, "{:?} {:?}", algorithm, call);
    }

    /// Phases told together are all steps one by one.
    fn rounds_add_up_to_steps((algorithm, call) in any_call(), rank in any::<u32>()) {
        let rank = rank % call.ranks;
        let arounds = |sequence| (0..).map_while(move |p| algorithm.around(&call, rank, sequence, p));
        for sequence in 0..algorithm.sequences(&call) {
            let (mut sent, mut received) = (BTreeMap::new(), BTreeMap::new());
            for around in arounds(sequence) {
                for (size, times) in around.sends {
                    *sent.entry((around.to, size)).or_insert(0) += times;
                }
                for (size, times) in around.receives {
                    *received.entry((around.from, size)).or_insert(0) += times;
                }
            }
            if sent.is_empty() {
                continue;
            }
            for step in steps(&algorithm, &call, rank, sequence) {
                let left = match step {
                    Step::Send { to, payload, .. } => sent.get_mut(&(to, payload)),
                    Step::Receive { from, payload } => received.get_mut(&(from, payload)),
                    Step::Sent(_) | Step::Switched { .. } => None,
                };
                let left = left.expect("a message that was told");
                prop_assert!(*left > 0, "{:?}", step);
                *left -= 1;
            }
            prop_assert!(sent.values().chain(received.values()).all(|left| *left == 0));
        }
    }

    fn a_skewed_buffer_is_sent_to_the_byte(
        ranks in 2u32..300,
        bytes in prop_oneof![0u64..5_000, any::<u64>().prop_map(|bytes| bytes >> 10)],
        thousandths in 1u32..=4_000,
        seed in any::<u64>(),
    ) {
        let exponent = (f64::from(thousandths) / 1_000.0).to_string();
        let skewed = algorithm("direct", &[("skew", &exponent)]).under(seed);
        let exchange = call(Operation::AllToAll, ranks, bytes);
        // Two rows have all blocks, for a rank keeps its own.
        let rows = [0, 1].map(|rank| sends(&skewed, &exchange, rank, 0));
        let mut sizes: BTreeMap<u32, u64> = rows.into_iter().flatten().collect();
        prop_assert_eq!(sizes.values().map(|size| u128::from(*size)).sum::<u128>(), u128::from(bytes));
        // The more popular get no less, but for rounding.
        let largest = sizes.values().copied().max().unwrap();
        prop_assert!(largest >= bytes / u64::from(ranks));
        sizes.retain(|_, size| *size == 0);
        prop_assert!(sizes.len() < ranks as usize || bytes == 0);
    }
}
