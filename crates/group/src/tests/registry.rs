//! Every algorithm that the simulator has, on real buffers: the right result, by the messages that
//! the simulator sends. An algorithm that is added is tested here without being named.

use super::*;
use std::collections::{BTreeMap, BTreeSet};
use weft_workload::collective::{self, ALGORITHMS, Algorithm, Blocks, Servers, Step};

/// Bytes between two ranks: of each message, in the order of posting.
type Messages = BTreeMap<(u32, u32), Vec<u64>>;

/// What algorithms do on real buffers.
fn operations(root: u32) -> [Operation; 6] {
    [
        Operation::AllReduce,
        Operation::AllGather,
        Operation::ReduceScatter,
        Operation::AllToAll,
        Operation::Broadcast { root },
        Operation::Reduce { root },
    ]
}

/// Every algorithm, as it is and with each of its options at 2.
fn algorithms() -> Vec<(String, Algorithm)> {
    let each = |info: &'static collective::AlgorithmInfo| {
        let keys = info.options.iter().map(|option| Some(option.key));
        [None].into_iter().chain(keys).map(|key| {
            let given: Vec<_> = key.into_iter().map(|key| (key, "2")).collect();
            let algorithm = Algorithm::read(info.name, &given).expect("takes 2");
            (format!("{} {given:?}", info.name), algorithm)
        })
    };
    // No switch adds up real buffers.
    let real = |(_, one): &(String, Algorithm)| !one.is_in_network();
    ALGORITHMS.iter().flat_map(each).filter(real).collect()
}

/// Messages of the simulator, unless it cuts otherwise than real buffers are cut: sizes that it
/// draws, and channels, which share a buffer of the simulator but each block of a real one. And
/// whether each message is one of a real buffer: blocks of other buffers than one are sent singly.
fn simulated(algorithm: &Algorithm, call: &collective::Call) -> Option<(Messages, bool)> {
    let (mut found, mut is_one) = (Messages::new(), true);
    let in_one = call.operation == collective::Operation::AllReduce;
    for rank in 0..call.ranks {
        for sequence in 0..algorithm.sequences(call) {
            for at in 0.. {
                let Some(step) = algorithm.step(call, rank, sequence, at) else { break };
                let blocks = algorithm.step_in_blocks(call, rank, sequence, at);
                let (Step::Send { to, payload: bytes, .. }, Some(Step::Send { payload, .. })) =
                    (step, blocks)
                else {
                    continue;
                };
                if bytes != payload.bytes(call.bytes) || payload.shares > 1 && !in_one {
                    return None;
                }
                is_one &= payload.many == 1 || in_one;
                if bytes > 0 {
                    found.entry((rank, to)).or_default().push(bytes);
                }
            }
        }
    }
    Some((found, is_one))
}

/// Buffers of all ranks with `count` numbers, cut into equal blocks where ranks have blocks.
fn buffers(operation: Operation, ranks: u32, count: usize, draw: &mut Draw) -> Buffers {
    let blocks = Blocks::new(count as u64, ranks);
    let mut row = |rank: u32| numbers(draw, blocks.len(u64::from(rank)) as usize);
    let each = |rank: u32| match operation {
        Operation::AllGather => (vec![row(rank)], (0..ranks).map(&mut row).collect()),
        Operation::ReduceScatter => ((0..ranks).map(&mut row).collect(), vec![row(rank)]),
        Operation::AllToAll => {
            ((0..ranks).map(&mut row).collect(), (0..ranks).map(|_| row(rank)).collect())
        }
        _ => (vec![], vec![(0..ranks).flat_map(&mut row).collect()]),
    };
    (0..ranks).map(each).collect()
}

/// What a rank's outputs must become.
fn wanted(
    operation: Operation,
    reduction: Reduction,
    rank: usize,
    given: &Buffers,
) -> Vec<Vec<i64>> {
    let outputs = || given.iter().map(|(_, outputs)| &outputs[0]).collect::<Vec<_>>();
    match operation {
        Operation::AllReduce => vec![reduced(reduction, &outputs())],
        Operation::AllGather => given.iter().map(|(inputs, _)| read(&inputs[0])).collect(),
        Operation::ReduceScatter => {
            let parts: Vec<_> = given.iter().map(|(inputs, _)| &inputs[rank]).collect();
            vec![reduced(reduction, &parts)]
        }
        Operation::AllToAll => given.iter().map(|(inputs, _)| read(&inputs[rank])).collect(),
        Operation::Broadcast { root } => vec![read(outputs()[root as usize])],
        Operation::Reduce { root } if root as usize == rank => {
            vec![reduced(reduction, &outputs())]
        }
        _ => vec![read(outputs()[rank])],
    }
}

/// One operation at all ranks, cut into chunks of so many bytes: results and messages. How many pairs of
/// ranks were compared with the simulator's.
fn compare(
    name: &str,
    algorithm: &Algorithm,
    operation: Operation,
    call: &collective::Call,
    chunk: usize,
) -> usize {
    let (ranks, count) = (call.ranks, call.bytes as usize);
    let mut draw = Draw(u64::from(ranks) + call.bytes);
    let reduction = [Reduction::Sum, Reduction::Avg][draw.below(2)];
    let given = buffers(operation, ranks, count, &mut draw);
    let mut found = given.clone();
    let tuning = Tuning { chunk, small: 0 };
    let by = |call: &Call, rank, ranks| schedule::by(algorithm, call, rank, ranks, tuning);
    let log = carry_out_by(&by, operation, (Element::I64, reduction), &mut found, call.bytes);
    let what = format!("{name}: {operation:?} of {count} numbers, {ranks} ranks");
    for (rank, (inputs, outputs)) in found.iter().enumerate() {
        let outputs: Vec<_> = outputs.iter().map(|output| read(output)).collect();
        assert_eq!(outputs, wanted(operation, reduction, rank, &given), "{what}: rank {rank}");
        assert_eq!(inputs, &given[rank].0, "{what}: inputs stay");
    }
    let mut messages = Messages::new();
    for (from, to, bytes) in log {
        messages.entry((from, to)).or_default().push(bytes / 8);
    }
    let Some((mut simulated, is_one)) = simulated(algorithm, call) else { return 0 };
    if !is_one || chunk < 8 * count {
        for all in messages.values_mut().chain(simulated.values_mut()) {
            *all = vec![all.iter().sum()];
        }
    }
    assert_eq!(messages, simulated, "{what}");
    messages.len()
}

#[test]
fn every_algorithm_moves_real_buffers() {
    let (mut done, mut compared) = (BTreeSet::new(), 0);
    for (name, algorithm) in algorithms() {
        for ranks in 1..=17 {
            for (count, chunk) in [(1, 1 << 20), (23, 1 << 20), (301, 1 << 20), (301, 64)] {
                let root = count as u32 % ranks;
                for operation in operations(root) {
                    let (kind, root) = operation.collective().expect("has algorithms");
                    let (bytes, servers) = (count, Servers::EACH);
                    let call = collective::Call { operation: kind, ranks, bytes, root, servers };
                    if ranks == 1 || algorithm.check(&call).is_ok() {
                        compared += compare(&name, &algorithm, operation, &call, chunk);
                        done.insert((algorithm.info().name, kind.name()));
                    }
                }
            }
        }
    }
    let real = |name| !Algorithm::read(name, &[]).expect("an algorithm").is_in_network();
    for info in ALGORITHMS.iter().filter(|info| real(info.name)) {
        for kind in info.operations {
            // Groups have single sends and receives instead.
            let is_known = done.contains(&(info.name, kind.name()));
            assert_eq!(is_known, *kind != collective::Operation::SendReceive, "{kind:?} {info:?}");
        }
    }
    assert!(compared > 1000, "{compared} pairs of ranks");
}
