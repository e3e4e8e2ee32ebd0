//! Operations over a network in memory, beside the definition of each; and by every algorithm of
//! the simulator, message by message.

mod exchanged;
mod network;
mod registry;

use crate::call::{Call, Operation};
use crate::element::{Element, Reduction};
use crate::memory::Segment;
use crate::run::Run;
use crate::schedule::{self, Schedule, Tuning};
use network::{Draw, Message, Network};
use weft_trial::prelude::*;

/// Buffers of all ranks, by rank: inputs and outputs.
type Buffers = Vec<(Vec<Vec<u8>>, Vec<Vec<u8>>)>;

/// Carries out an operation at all ranks, as groups do.
fn carry_out(
    operation: Operation,
    kind: (Element, Reduction),
    buffers: &mut Buffers,
    tuning: Tuning,
    seed: u64,
) {
    let usual = |call: &Call, rank, ranks| schedule::of(call, rank, ranks, tuning);
    carry_out_by(&usual, operation, kind, buffers, seed);
}

/// The same with these schedules; the messages that it took.
fn carry_out_by(
    schedule: &dyn Fn(&Call, u32, u32) -> Schedule,
    operation: Operation,
    (element, reduction): (Element, Reduction),
    buffers: &mut Buffers,
    seed: u64,
) -> Vec<Message> {
    let network = Network::default();
    let mut draw = Draw(seed);
    let most = 1 + draw.below(4);
    let ranks = buffers.len() as u32;
    let segment = |buffer: &mut Vec<u8>| Segment { start: buffer.as_mut_ptr(), len: buffer.len() };
    let mut runs: Vec<_> = Vec::new();
    for (rank, (inputs, outputs)) in buffers.iter_mut().enumerate() {
        let call = Call {
            operation,
            element,
            reduction,
            inputs: inputs.iter_mut().map(segment).collect(),
            outputs: outputs.iter_mut().map(segment).collect(),
        };
        call.check(rank as u32, ranks).expect("a call that makes sense");
        let schedule = schedule(&call, rank as u32, ranks);
        #[expect(unsafe_code, reason = "the memory is ours")]
        // SAFETY: buffers outlive runs and are touched by nobody else meanwhile.
        let run = unsafe { Run::new(&call, ranks, schedule) };
        runs.push((run, network.port(rank as u32, most)));
    }
    loop {
        let mut moved = false;
        for _ in 0..runs.len() {
            let (run, port) = &mut runs[draw.below(ranks as usize)];
            moved |= run.advance(port).expect("no channel fails");
        }
        for (run, port) in &mut runs {
            moved |= run.advance(port).expect("no channel fails");
        }
        for _ in 0..1 + draw.below(3) {
            moved |= network.deliver(&mut draw);
        }
        if runs.iter().all(|(run, _)| run.is_done()) {
            return network.log();
        }
        assert!(moved, "{operation:?} of {ranks} ranks stands still");
    }
}

/// Bytes of `count` whole numbers of 64 bits, drawn.
fn numbers(draw: &mut Draw, count: usize) -> Vec<u8> {
    (0..count).flat_map(|_| (draw.below(1 << 20) as i64 - (1 << 19)).to_ne_bytes()).collect()
}

fn read(bytes: &[u8]) -> Vec<i64> {
    let each = bytes.chunks_exact(8);
    each.map(|word| i64::from_ne_bytes(word.try_into().expect("eight bytes"))).collect()
}

/// What a reduction of 64-bit numbers is, one after the other.
fn reduced(reduction: Reduction, all: &[&Vec<u8>]) -> Vec<i64> {
    let mut rows = all.iter().map(|bytes| read(bytes));
    let first = rows.next().expect("a rank");
    let sum = rows.fold(first, |sum, row| {
        let pairs = sum.into_iter().zip(row);
        let one = |(a, b): (i64, i64)| match reduction {
            Reduction::Sum | Reduction::Avg => a.wrapping_add(b),
            Reduction::Product => a.wrapping_mul(b),
            Reduction::Min => a.min(b),
            Reduction::Max => a.max(b),
            Reduction::And => a & b,
            Reduction::Or => a | b,
            Reduction::Xor => a ^ b,
        };
        pairs.map(one).collect()
    });
    let ranks = all.len() as i64;
    let is_average = reduction == Reduction::Avg;
    sum.into_iter().map(|one| if is_average { one / ranks } else { one }).collect()
}

fn tuning(chunk: usize, small: usize) -> Tuning {
    Tuning { chunk: chunk * 64, small }
}

prop_compose! {
    /// Ranks, a seed, a reduction, and how buffers are cut.
    fn setting()(
        ranks in 1u32..=9,
        seed: u64,
        reduction in prop::sample::select(Reduction::ALL.to_vec()),
        chunk in 1usize..5,
        small in prop::sample::select(vec![0, 1 << 30]),
    ) -> (u32, u64, Reduction, Tuning) {
        (ranks, seed, reduction, tuning(chunk, small))
    }
}

trials! {
    #![cases(200)]

    fn all_reduce((ranks, seed, reduction, tuning) in setting(), count in 0usize..300) {
        let mut draw = Draw(seed);
        let mut buffers: Buffers =
            (0..ranks).map(|_| (vec![], vec![numbers(&mut draw, count)])).collect();
        let given = buffers.clone();
        carry_out(Operation::AllReduce, (Element::I64, reduction), &mut buffers, tuning, seed);
        let wanted = reduced(reduction, &given.iter().map(|(_, out)| &out[0]).collect::<Vec<_>>());
        for (_, outputs) in &buffers {
            prop_assert_eq!(&read(&outputs[0]), &wanted);
        }
    }

    fn reduce((ranks, seed, reduction, tuning) in setting(), count in 0usize..300) {
        let mut draw = Draw(seed);
        let root = draw.below(ranks as usize) as u32;
        let mut buffers: Buffers =
            (0..ranks).map(|_| (vec![], vec![numbers(&mut draw, count)])).collect();
        let given = buffers.clone();
        let kind = (Element::I64, reduction);
        carry_out(Operation::Reduce { root }, kind, &mut buffers, tuning, seed);
        let wanted = reduced(reduction, &given.iter().map(|(_, out)| &out[0]).collect::<Vec<_>>());
        for (rank, (_, outputs)) in buffers.iter().enumerate() {
            if rank as u32 == root {
                prop_assert_eq!(&read(&outputs[0]), &wanted);
            } else {
                prop_assert_eq!(outputs, &given[rank].1, "others keep theirs");
            }
        }
    }

    fn reduce_scatter((ranks, seed, reduction, tuning) in setting(), most in 0usize..400) {
        let mut draw = Draw(seed);
        let counts: Vec<usize> = (0..ranks).map(|_| draw.below(most + 1)).collect();
        let mut buffers: Buffers = (0..ranks as usize).map(|rank| {
            let inputs = counts.iter().map(|count| numbers(&mut draw, *count)).collect();
            (inputs, vec![vec![0; counts[rank] * 8]])
        }).collect();
        let given = buffers.clone();
        carry_out(Operation::ReduceScatter, (Element::I64, reduction), &mut buffers, tuning, seed);
        for (rank, (inputs, outputs)) in buffers.iter().enumerate() {
            let parts: Vec<_> = given.iter().map(|(inputs, _)| &inputs[rank]).collect();
            prop_assert_eq!(read(&outputs[0]), reduced(reduction, &parts));
            prop_assert_eq!(inputs, &given[rank].0, "inputs stay");
        }
    }

    fn all_gather((ranks, seed, reduction, tuning) in setting(), most in 0usize..400) {
        let mut draw = Draw(seed);
        let counts: Vec<usize> = (0..ranks).map(|_| draw.below(most + 1)).collect();
        let mut buffers: Buffers = counts.iter().map(|own| {
            let outputs = counts.iter().map(|count| vec![0; count * 8]).collect();
            (vec![numbers(&mut draw, *own)], outputs)
        }).collect();
        carry_out(Operation::AllGather, (Element::I64, reduction), &mut buffers, tuning, seed);
        let wanted: Vec<Vec<u8>> = buffers.iter().map(|(inputs, _)| inputs[0].clone()).collect();
        for (_, outputs) in &buffers {
            prop_assert_eq!(outputs, &wanted);
        }
    }

    fn all_to_all((ranks, seed, reduction, tuning) in setting(), most in 0usize..200) {
        let mut draw = Draw(seed);
        let ranks = ranks as usize;
        let counts: Vec<Vec<usize>> =
            (0..ranks).map(|_| (0..ranks).map(|_| draw.below(most + 1)).collect()).collect();
        let mut buffers: Buffers = (0..ranks).map(|rank| {
            let inputs = counts[rank].iter().map(|count| numbers(&mut draw, *count)).collect();
            (inputs, counts.iter().map(|to| vec![0; to[rank] * 8]).collect())
        }).collect();
        carry_out(Operation::AllToAll, (Element::I64, reduction), &mut buffers, tuning, seed);
        for (rank, (_, outputs)) in buffers.iter().enumerate() {
            for (from, output) in outputs.iter().enumerate() {
                prop_assert_eq!(output, &buffers[from].0[rank]);
            }
        }
    }

    fn from_and_to_a_root((ranks, seed, reduction, tuning) in setting(), count in 0usize..400) {
        let mut draw = Draw(seed);
        let ranks = ranks as usize;
        let root = draw.below(ranks);
        let kind = (Element::I64, reduction);
        let name = root as u32;

        let mut all: Buffers =
            (0..ranks).map(|_| (vec![], vec![numbers(&mut draw, count)])).collect();
        let wanted = all[root].1.clone();
        carry_out(Operation::Broadcast { root: name }, kind, &mut all, tuning, seed);
        prop_assert!(all.iter().all(|(_, outputs)| *outputs == wanted));

        let parts: Vec<Vec<u8>> = (0..ranks).map(|_| numbers(&mut draw, count)).collect();
        let empty = vec![vec![0; count * 8]; ranks];
        let at_root = |rank: usize, of: &Vec<Vec<u8>>| if rank == root { of.clone() } else { vec![] };
        let mut all: Buffers =
            (0..ranks).map(|rank| (vec![parts[rank].clone()], at_root(rank, &empty))).collect();
        carry_out(Operation::Gather { root: name }, kind, &mut all, tuning, seed);
        prop_assert_eq!(&all[root].1, &parts);

        let mut all: Buffers =
            (0..ranks).map(|rank| (at_root(rank, &parts), vec![vec![0; count * 8]])).collect();
        carry_out(Operation::Scatter { root: name }, kind, &mut all, tuning, seed);
        for (rank, (_, outputs)) in all.iter().enumerate() {
            prop_assert_eq!(&outputs[0], &parts[rank]);
        }
    }
}

/// Nobody may be through before everybody has begun.
#[test]
fn a_barrier_holds_everybody_back() {
    for ranks in 2..=9u32 {
        for late in 0..ranks {
            let network = Network::default();
            let mut draw = Draw(u64::from(ranks * 10 + late));
            let call = Call {
                operation: Operation::Barrier,
                element: Element::U8,
                reduction: Reduction::Sum,
                inputs: vec![],
                outputs: vec![],
            };
            let schedule = |rank| schedule::of(&call, rank, ranks, Tuning::default());
            #[expect(unsafe_code, reason = "the trait asks for it")]
            // SAFETY: a barrier has no buffers.
            let run = |rank| unsafe { Run::new(&call, ranks, schedule(rank)) };
            let mut runs: Vec<_> =
                (0..ranks).map(|rank| (run(rank), network.port(rank, 4))).collect();
            let step = |runs: &mut Vec<(Run<usize>, network::Port)>, draw: &mut Draw, all: bool| {
                for _ in 0..100 {
                    for (rank, (run, port)) in runs.iter_mut().enumerate() {
                        if all || rank as u32 != late {
                            run.advance(port).expect("no channel fails");
                        }
                    }
                    while network.deliver(draw) {}
                }
            };
            step(&mut runs, &mut draw, false);
            assert!(runs.iter().all(|(run, _)| !run.is_done()), "{ranks} ranks without {late}");
            step(&mut runs, &mut draw, true);
            assert!(runs.iter().all(|(run, _)| run.is_done()), "{ranks} ranks with {late}");
        }
    }
}

/// All ranks end with the same bits, though rounding depends on the order of sums.
#[test]
fn all_ranks_have_the_same_floats() {
    for (ranks, small) in [(3, 0), (4, 0), (4, 1 << 20), (8, 1 << 20), (7, 0)] {
        let mut draw = Draw(7);
        let mut row = || -> Vec<u8> {
            let one = |_| (draw.below(1 << 24) as f32 / 1000.0).to_ne_bytes();
            (0..1000).flat_map(one).collect()
        };
        let mut buffers: Buffers = (0..ranks).map(|_| (vec![], vec![row()])).collect();
        let given = buffers.clone();
        let kind = (Element::F32, Reduction::Avg);
        carry_out(Operation::AllReduce, kind, &mut buffers, tuning(2, small), 1);
        assert!(buffers.iter().all(|(_, outputs)| *outputs == buffers[0].1));
        let float = |bytes: &[u8], at: usize| {
            f64::from(f32::from_ne_bytes(bytes[4 * at..4 * at + 4].try_into().expect("four")))
        };
        for at in 0..1000 {
            let exact = given.iter().map(|(_, out)| float(&out[0], at)).sum::<f64>();
            let exact = exact / f64::from(ranks);
            let found = float(&buffers[0].1[0], at);
            assert!((found - exact).abs() <= 1e-6 * exact.abs(), "{found} {exact}");
        }
    }
}

/// A message of another length than was agreed is an error that names the peer.
#[test]
fn unequal_sizes_are_refused() {
    let network = Network::default();
    let mut draw = Draw(1);
    let mut buffers = [vec![0u8; 80], vec![0u8; 160]];
    let mut runs: Vec<_> = buffers
        .iter_mut()
        .enumerate()
        .map(|(rank, buffer)| {
            let call = Call {
                operation: Operation::Broadcast { root: 0 },
                element: Element::F32,
                reduction: Reduction::Sum,
                inputs: vec![],
                outputs: vec![Segment { start: buffer.as_mut_ptr(), len: buffer.len() }],
            };
            let schedule = schedule::of(&call, rank as u32, 2, Tuning::default());
            #[expect(unsafe_code, reason = "the memory is ours")]
            // SAFETY: buffers outlive runs.
            let run = unsafe { Run::new(&call, 2, schedule) };
            (run, network.port(rank as u32, 4))
        })
        .collect();
    for (run, port) in &mut runs {
        run.advance(port).expect("posts");
    }
    assert!(network.deliver(&mut draw));
    let (run, port) = &mut runs[1];
    let error = run.advance(port).expect_err("80 bytes where 160 were due").to_string();
    assert!(
        error.starts_with("weft: broadcast: rank 0: a message of 80 bytes where 160"),
        "{error}"
    );
}
