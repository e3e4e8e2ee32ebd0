//! Training iterations of any shape: nothing panics, everything ends, no byte is lost.

use crate::ideal::run;
use crate::training::{FAST, FREE, busy, degrees, end, generate, gpt2, volume};
use weft_trial::prelude::*;
use weft_units::Time;
use weft_workload::job::{Algorithms, Job};
use weft_workload::model::{
    Attention, Experts, GPT2_SMALL, Model, Pace, Recompute, Schedule, Training, Zero,
};
use weft_workload::trace::{Degrees, Node, Trace, Work, check};

/// Anything at all.
fn anything() -> impl Strategy<Value = (Training, u32)> {
    let number = || prop_oneof![0u32..5, Just(12), Just(64), Just(u32::MAX), any::<u32>()];
    let numbers = prop::collection::vec(number(), 17);
    let flags = prop::collection::vec(any::<bool>(), 6);
    let pace = (any::<f64>(), any::<f64>());
    (numbers, flags, pace, any::<u64>()).prop_map(|(n, f, (peak, efficiency), wide)| {
        let time = Time(wide);
        let given =
            Pace::Given { forward: time, backward: time, head_forward: time, head_backward: time };
        let training = Training {
            name: String::new(),
            model: Model {
                layers: n[0],
                hidden: n[1],
                feed_forward: n[2],
                heads: n[3],
                kv_heads: n[4],
                sequence: n[5],
                vocabulary: n[6],
                positions: n[7],
                tied: f[0],
                gated: f[1],
                biases: f[2],
                experts: f[3].then_some(Experts { count: n[8], top_k: n[9], ..Experts::PLAIN }),
                latent: None,
            },
            global_batch: if f[4] { wide } else { u64::from(n[10]) },
            micro_batch: n[11],
            degrees: Degrees { context: n[16], ..degrees(n[12], n[13], n[14]) },
            bucket: wide,
            pace: if f[5] { given } else { Pace::Operations { peak, efficiency } },
            update: time,
            ..gpt2()
        };
        (training, n[15])
    })
}

/// Small jobs that can be.
fn sound() -> impl Strategy<Value = (Training, u32)> {
    let shape = (1u32..4, 1u32..4, 1u32..4, any::<[bool; 3]>(), 0u32..3);
    let cut = (1u32..4, 1u32..3, 1u32..4, 1u32..3, 1u64..6);
    let zero = prop_oneof![
        Just(Zero::Nothing),
        Just(Zero::Optimizer),
        Just(Zero::Gradients),
        Just(Zero::Parameters)
    ];
    let recompute =
        prop_oneof![Just(Recompute::Nothing), Just(Recompute::Selective), Just(Recompute::Full)];
    let how = (zero, recompute, any::<[bool; 3]>(), 0u64..5000);
    (shape, cut, how).prop_map(|(shape, (t, e, p, copies, micros), how)| {
        let (layers, heads, share, [tied, gated, biases], experts) = shape;
        let experts = (experts > 0).then_some(Experts {
            count: 2 * experts,
            top_k: experts,
            ..Experts::PLAIN
        });
        let (zero, recompute, [sequence_parallel, overlap, pipe], bucket) = how;
        let e = if experts.is_some() { e } else { 1 };
        let data = e * copies;
        // Copies of a model may share sequences.
        let context = if bucket % 2 == 0 { copies } else { 1 };
        let attention = if bucket % 3 == 0 { Attention::Ring } else { Attention::AllGather };
        let training = Training {
            model: Model {
                layers: layers * p,
                hidden: 4 * heads * share * t,
                feed_forward: 10 * t,
                heads: heads * share * t,
                kv_heads: heads * t,
                sequence: 8 * t * context,
                vocabulary: 101,
                positions: 0,
                tied,
                gated,
                biases,
                experts,
                latent: None,
            },
            global_batch: u64::from(2 * data) * micros,
            micro_batch: 2,
            degrees: Degrees { context, ..degrees(t, e, p) },
            attention,
            zero,
            sequence_parallel,
            recompute,
            overlap,
            bucket,
            schedule: if pipe { Schedule::GPipe } else { Schedule::OneForwardOneBackward },
            pace: Pace::Operations { peak: 1e9, efficiency: 0.5 },
            ..Training::of("small", GPT2_SMALL)
        };
        (training, t * p * data)
    })
}

/// Bytes of gradients of a rank, over all stages.
fn reduced(trace: &Trace, training: &Training) -> u64 {
    let kind = if training.zero == Zero::Nothing { "all-reduce" } else { "reduce-scatter" };
    let stages = 0..trace.graphs.len();
    stages
        .map(|stage| volume(trace, stage, kind, "data") + volume(trace, stage, kind, "expert-data"))
        .sum()
}

trials! {
    fn nothing_panics((training, ranks) in anything()) {
        if let Err(error) = training.generate(ranks) {
            let line = error.to_string();
            prop_assert!(line.contains(": ") && !line.contains('\n'), "{}", line);
        }
    }

    fn nothing_panics_in_sound_jobs_with_one_odd_number(
        (training, ranks) in sound(),
        field in 0usize..14,
        number in prop_oneof![0u32..9, Just(1 << 24), Just(1 << 20), any::<u32>()],
    ) {
        let mut training = training;
        let (model, degrees) = (&mut training.model, &mut training.degrees);
        let mut batch = 0;
        let fields = [
            &mut model.layers,
            &mut model.hidden,
            &mut model.feed_forward,
            &mut model.heads,
            &mut model.kv_heads,
            &mut model.sequence,
            &mut model.vocabulary,
            &mut model.positions,
            &mut training.micro_batch,
            &mut degrees.tensor,
            &mut degrees.expert,
            &mut degrees.pipeline,
            &mut batch,
        ];
        match fields.into_iter().nth(field) {
            Some(field) => *field = number,
            None => training.pace = Pace::Operations { peak: f64::from(number), efficiency: 1.0 },
        }
        training.global_batch += u64::from(batch);
        if let Err(error) = training.generate(ranks) {
            let line = error.to_string();
            prop_assert!(line.contains(": ") && !line.contains('\n'), "{}", line);
        }
    }

    /// One rank speaks for its stage: whatever is wrong with a stage is found either way.
    fn stages_are_judged_as_their_ranks_are(
        (training, ranks) in sound(),
        stage in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        kind in 0u32..6,
    ) {
        let mut trace = generate(&training, ranks);
        let stage = stage.index(trace.graphs.len());
        let graph = &mut trace.graphs[stage];
        let count = graph.nodes().len() as u32;
        let like = at.index(count as usize);
        // Across stages: what only some of them know of.
        let across = |work: &Work| match work {
            Work::Collective(one) => one.group == 4,
            work => matches!(work, Work::Send(_) | Work::Receive(_)),
        };
        let works = graph.nodes().iter().map(|node| node.work.clone());
        let across: Vec<Work> = works.filter(across).collect();
        let (work, waits) = match kind {
            0 => (Work::Nothing, vec![count]),
            1 => (Work::Nothing, vec![]),
            2 | 3 if !across.is_empty() => (at.get(&across).clone(), vec![like as u32]),
            _ => (graph.nodes()[like].work.clone(), vec![like as u32]),
        };
        let node = Node { id: u64::from(count), name: "odd".into(), work, start: Time::ZERO };
        graph.push(node, &waits);
        graph.number_turns();
        let each = (0..ranks).map(|rank| trace.graph(rank).clone()).collect();
        let apart = Trace { graphs: each, ..trace.clone() };
        let (one, all) = (check(&trace), check(&apart));
        prop_assert_eq!(one.is_clean(), all.is_clean(), "{:?} {:?}", one, all);
        prop_assert_eq!(one.stuck == 0, all.stuck == 0);
    }

    fn sound_jobs_run_to_their_end((training, ranks) in sound()) {
        let trace = generate(&training, ranks);
        let findings = check(&trace);
        prop_assert!(findings.is_clean(), "{:?}", findings);
        let busiest = (0..trace.graphs.len()).map(|stage| busy(&trace, stage)).max();
        let job = Job::new(trace.clone(), Algorithms::usual()).expect("a job");
        let outcome = run(&job, FAST);
        for ((rank, node), at) in &outcome.finished {
            // The last that computes, after all gradients of its rank.
            let nodes = trace.graph(*rank).nodes();
            let name = &nodes[*node as usize].name;
            if name.contains("gradients") && !name.starts_with("send") {
                let step = nodes.iter().rposition(|node| *node.name == *"optimizer step");
                let step = step.expect("there is one") as u32;
                prop_assert!(*at <= outcome.finished[&(*rank, step)]);
            }
        }
        let slow = outcome.end;
        prop_assert!(slow >= end(trace, FREE));
        prop_assert!(Some(slow) >= busiest);
    }

    /// Without tensor parallelism and copies of the embedding, what is reduced is the model.
    fn gradients_are_reduced_to_the_byte((training, _) in sound(), stages in 1u32..3) {
        let mut training = training;
        training.model.layers = 2 * stages;
        training.model.tied &= stages == 1;
        training.degrees = degrees(1, 1, stages);
        training.global_batch = 12;
        // Two data-parallel ranks, three micro-batches.
        let trace = generate(&training, 2 * stages);
        let times = if training.zero >= Zero::Gradients { 3 } else { 1 };
        prop_assert_eq!(reduced(&trace, &training), times * 4 * training.model.parameters());
    }
}
