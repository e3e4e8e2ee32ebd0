//! The same algorithms as the simulator has: equal messages between equal ranks.

use super::*;
use std::collections::BTreeMap;
use weft_workload::collective::{self, Algorithm};

/// Messages of the simulator's algorithm, by sender and receiver in the order of posting.
fn simulated(name: &str, call: &collective::Call) -> BTreeMap<(u32, u32), Vec<u64>> {
    let algorithm = Algorithm::read(name, &[]).expect("known");
    algorithm.check(call).expect("a call that it can do");
    let mut found: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    for rank in 0..call.ranks {
        for sequence in 0..algorithm.sequences(call) {
            for at in 0.. {
                match algorithm.step(call, rank, sequence, at) {
                    None => break,
                    Some(collective::Step::Send { to, bytes, .. }) if bytes > 0 => {
                        found.entry((rank, to)).or_default().push(bytes);
                    }
                    Some(_) => {}
                }
            }
        }
    }
    found
}

/// The same of ours, of bytes, uncut.
fn ours(
    operation: Operation,
    ranks: u32,
    bytes: usize,
    small: usize,
) -> BTreeMap<(u32, u32), Vec<u64>> {
    let n = ranks as usize;
    let part = |rank: usize| bytes / n + usize::from(rank < bytes % n);
    let parts = || (0..n).map(|rank| vec![0u8; part(rank)]).collect::<Vec<_>>();
    let mut buffers: Buffers = (0..n)
        .map(|rank| match operation {
            Operation::AllGather => (vec![vec![0; part(rank)]], parts()),
            Operation::ReduceScatter => (parts(), vec![vec![0; part(rank)]]),
            // A rank's buffer is cut alike everywhere, so what it gets depends on its number alone.
            Operation::AllToAll => (parts(), vec![vec![0; part(rank)]; n]),
            _ => (vec![], vec![vec![0; bytes]]),
        })
        .collect();
    let tuning = Tuning { chunk: 1 << 30, small };
    let kind = (Element::U8, Reduction::Sum);
    let log = carry_out(operation, kind, &mut buffers, tuning, 3);
    let mut found: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    for (from, to, bytes) in log {
        found.entry((from, to)).or_default().push(bytes);
    }
    found
}

#[test]
fn messages_are_those_of_the_simulator() {
    let mut compared = 0;
    for ranks in 2..=9 {
        for bytes in [1, 7, 64, 1000, 4097] {
            let call = |operation, root| collective::Call {
                operation,
                ranks,
                bytes: bytes as u64,
                root,
                servers: collective::Servers::EACH,
            };
            use collective::Operation as Simulated;
            let root = bytes as u32 % ranks;
            let mut pairs = vec![
                ("ring", Simulated::AllReduce, Operation::AllReduce),
                ("ring", Simulated::AllGather, Operation::AllGather),
                ("ring", Simulated::ReduceScatter, Operation::ReduceScatter),
                ("ring", Simulated::Broadcast, Operation::Broadcast { root }),
                ("ring", Simulated::Reduce, Operation::Reduce { root }),
                ("direct", Simulated::AllToAll, Operation::AllToAll),
            ];
            if ranks.is_power_of_two() {
                pairs.push(("recursive-doubling", Simulated::AllReduce, Operation::AllReduce));
            }
            for (name, theirs, operation) in pairs {
                let small = if name == "recursive-doubling" { usize::MAX } else { 0 };
                let wanted = simulated(name, &call(theirs, root));
                let found = ours(operation, ranks, bytes, small);
                assert_eq!(found, wanted, "{name}: {operation:?} of {bytes} bytes, {ranks} ranks");
                compared += found.values().map(Vec::len).sum::<usize>();
            }
        }
    }
    assert!(compared > 1000, "{compared} messages");
}
