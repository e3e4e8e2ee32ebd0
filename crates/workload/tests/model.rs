//! Training iterations: parameters, volumes and times by hand and by formula.

use crate::training::{
    FAST, FREE, busy, calls, degrees, end, generate, gpt2, llama, names, sends, volume,
};
use std::collections::BTreeMap;
use weft_units::Time;
use weft_workload::model::{
    Attention, DEEPSEEK_V3, Experts, GPT2_SMALL, GPT3_13B, Gradients, Ground, LLAMA2_7B,
    MIXTRAL_8X7B, MODELS, Model, Pace, Recompute, Schedule, Training, Zero,
};
use weft_workload::trace::{Degrees, Trace, check, summarise};

#[test]
fn models_have_the_published_parameters() {
    assert_eq!(GPT2_SMALL.parameters(), 124_439_808);
    assert_eq!(LLAMA2_7B.parameters(), 6_738_415_616);
    assert_eq!(GPT3_13B.parameters(), 12_853_386_240);
    assert_eq!(MIXTRAL_8X7B.parameters(), 46_702_792_704);
    assert_eq!(DEEPSEEK_V3.parameters(), 671_026_404_352);
    for info in MODELS {
        assert_eq!(Model::named(info.name), Ok(info.model));
    }
    let line = Model::named("gpt5").unwrap_err().to_string();
    assert_eq!(
        line,
        "model: unknown value \"gpt5\"; use one of gpt2-small, llama2-7b, gpt-13b, mixtral-8x7b, \
         deepseek-v3"
    );
}

#[test]
fn data_parallel_ranks_reduce_all_gradients() {
    const WHOLE: u64 = 4 * 124_439_808;
    let training = Training { overlap: false, ..gpt2() };
    let trace = generate(&training, 16);
    assert_eq!((trace.graphs.len(), trace.ranks), (1, Some(16)));
    assert_eq!(calls(&trace, 0), BTreeMap::from([(("all-reduce", "data", WHOLE), 1)]));
    let bf16 = Training { gradients: Gradients::Bf16, ..training };
    assert_eq!(volume(&generate(&bf16, 16), 0, "all-reduce", "data"), WHOLE / 2);
    // In buckets: the last normalisation joins the last layer's 7,087,872 parameters; embeddings
    // come last.
    let buckets = BTreeMap::from([
        (("all-reduce", "data", 28_357_632), 1),
        (("all-reduce", "data", 28_351_488), 11),
        (("all-reduce", "data", 157_535_232), 1),
    ]);
    assert_eq!(calls(&generate(&gpt2(), 16), 0), buckets);
    let large = Training { bucket: 100_000_000, ..gpt2() };
    let trace = generate(&large, 16);
    assert_eq!(calls(&trace, 0).values().sum::<u32>(), 4);
    assert_eq!(volume(&trace, 0, "all-reduce", "data"), WHOLE);
}

#[test]
fn gradients_are_reduced_once_however_many_micro_batches_there_are() {
    let training = Training { global_batch: 256, ..gpt2() };
    let trace = generate(&training, 16);
    assert_eq!(volume(&trace, 0, "all-reduce", "data"), 4 * 124_439_808);
    let forward = names(&trace, 0).iter().filter(|name| name.contains("layer 3 forward")).count();
    assert_eq!(forward, 4);
}

#[test]
fn zero_shares_optimizer_gradients_and_parameters() {
    const P: u64 = 124_439_808;
    for (zero, overlap, gathers, scatters) in [
        (Zero::Optimizer, false, 1, 1),
        (Zero::Optimizer, true, 1, 1),
        (Zero::Gradients, false, 1, 2),
        (Zero::Gradients, true, 1, 2),
        (Zero::Parameters, false, 2 * 2, 2),
        (Zero::Parameters, true, 2 * 2, 2),
    ] {
        // Two micro-batches.
        let training = Training { zero, overlap, global_batch: 128, ..gpt2() };
        let trace = generate(&training, 16);
        assert_eq!(volume(&trace, 0, "all-gather", "data"), gathers * 2 * P, "{zero:?}");
        assert_eq!(volume(&trace, 0, "reduce-scatter", "data"), scatters * 4 * P, "{zero:?}");
        assert_eq!(volume(&trace, 0, "all-reduce", "data"), 0);
    }
    // ZeRO 3 goes layer by layer: embedding, 12 layers, last normalisation.
    let three = generate(&Training { zero: Zero::Parameters, ..gpt2() }, 16);
    assert_eq!(calls(&three, 0)[&("all-gather", "data", 2 * 7_087_872)], 2 * 12);
    assert_eq!(calls(&three, 0)[&("reduce-scatter", "data", 4 * 7_087_872)], 12);
    assert_eq!(calls(&three, 0).values().sum::<u32>(), 3 * 14);
}

/// Megatron's trace of GPT-2 has as many of the same sizes: 50 and 3.
#[test]
fn tensor_parallel_ranks_reduce_activations() {
    let training = Training { degrees: degrees(4, 1, 1), global_batch: 4, ..gpt2() };
    let trace = generate(&training, 4);
    let expected = BTreeMap::from([
        (("all-reduce", "tensor", 6_291_456), 4 * 12 + 2),
        (("all-reduce", "tensor", 16_384), 3),
    ]);
    assert_eq!(calls(&trace, 0), expected);
}

#[test]
fn llama_on_64_ranks() {
    const A: u64 = 33_554_432;
    let trace = generate(&Training { overlap: false, ..llama() }, 64);
    assert_eq!(trace.graphs.len(), 2);
    let first = BTreeMap::from([
        (("all-reduce", "tensor", A), 16 * 4 * 8 + 8),
        (("all-reduce", "data", 4 * 421_265_408), 1),
    ]);
    let last = BTreeMap::from([
        (("all-reduce", "tensor", A), 16 * 4 * 8 + 8),
        (("all-reduce", "tensor", 4 * 4096), 3 * 8),
        // The last normalisation.
        (("all-reduce", "data", 4 * (421_265_408 + 4096)), 1),
    ]);
    assert_eq!((calls(&trace, 0), calls(&trace, 1)), (first, last));
    assert_eq!((sends(&trace, 0), sends(&trace, 1)), (vec![(32, A); 8], vec![(-32, A); 8]));
    // P / (t p), but for the normalisations, which all ranks hold: 65 of 4096 numbers.
    let mean = (421_265_408 + 421_269_504) / 2 - 65 * 4096 * 7 / 16;
    assert_eq!(mean, 6_738_415_616u64 / 16);
}

/// Two stages of half the layers; eight ranks share each tensor, and eight have the same.
#[test]
fn gpt_13b_on_128_ranks() {
    const A: u64 = 2 * 2048 * 5120;
    const H: u64 = 5120;
    let training = Training {
        overlap: false,
        global_batch: 64,
        degrees: degrees(8, 1, 2),
        ..Training::of("gpt-13b", GPT3_13B)
    };
    let trace = generate(&training, 128);
    // Matrices and the first kind of biases are cut in eight, the rest is whole.
    let layer = (12 * H * H + 7 * H) / 8 + 6 * H;
    let tokens = 50_257_u64.div_ceil(8) * H;
    let first = BTreeMap::from([
        (("all-reduce", "tensor", A), 20 * 4 * 8 + 8),
        (("all-reduce", "data", 4 * (20 * layer + tokens + 2048 * H)), 1),
        (("all-reduce", "ends", 4 * tokens), 1),
    ]);
    let last = BTreeMap::from([
        (("all-reduce", "tensor", A), 20 * 4 * 8 + 8),
        (("all-reduce", "tensor", 4 * 2048), 3 * 8),
        (("all-reduce", "data", 4 * (20 * layer + tokens + 2 * H)), 1),
        (("all-reduce", "ends", 4 * tokens), 1),
    ]);
    assert_eq!((calls(&trace, 0), calls(&trace, 1)), (first, last));
    assert_eq!((sends(&trace, 0), sends(&trace, 1)), (vec![(64, A); 8], vec![(-64, A); 8]));
}

#[test]
fn sequence_parallel_ranks_gather_and_scatter() {
    const A: u64 = 33_554_432;
    let training = Training { sequence_parallel: true, overlap: false, ..llama() };
    let trace = generate(&training, 64);
    let count = |stage: usize, what| calls(&trace, stage)[&(what, "tensor", A)];
    // 6 and 4 a layer and micro-batch; the embedding 1 and 1, the projection 2 and 1.
    assert_eq!(
        (count(0, "all-gather"), count(0, "reduce-scatter")),
        (16 * 8 * 6 + 8, 16 * 8 * 4 + 8)
    );
    assert_eq!(
        (count(1, "all-gather"), count(1, "reduce-scatter")),
        (16 * 8 * 6 + 16, 16 * 8 * 4 + 8)
    );
    assert_eq!(volume(&trace, 0, "all-reduce", "tensor"), 0);
    assert_eq!(volume(&trace, 1, "all-reduce", "tensor"), 3 * 8 * 16_384);
    assert_eq!(sends(&trace, 0), vec![(32, A / 8); 8]);
}

#[test]
fn recomputation_repeats_exchanges_and_operations() {
    const A: u64 = 33_554_432;
    let plain = generate(&llama(), 64);
    let full = generate(&Training { recompute: Recompute::Full, ..llama() }, 64);
    let selective = generate(&Training { recompute: Recompute::Selective, ..llama() }, 64);
    assert_eq!(calls(&full, 0)[&("all-reduce", "tensor", A)], 16 * 6 * 8 + 8);
    assert_eq!(calls(&selective, 0), calls(&plain, 0));
    // By token: 2 for each weight of a matrix, and 4 s h for the scores.
    let scores = 4 * 4096 * 4096;
    let layer = 2 * (4 * 4096 * 4096 + 3 * 4096 * 11_008) + scores;
    let head = 2 * 32_000 * 4096;
    let tokens = 4096 * 8 / 8;
    let operations = |trace: &Trace| summarise(trace).operations;
    assert_eq!(operations(&plain), tokens * 3 * (16 * layer + head));
    assert_eq!(operations(&full), tokens * (16 * 4 * layer + 3 * head));
    assert_eq!(operations(&selective), tokens * (16 * (3 * layer + scores) + 3 * head));
    // Where layers are not cut, too.
    let whole = Training { degrees: degrees(1, 1, 2), ..llama() };
    let selective = Training { recompute: Recompute::Selective, ..whole.clone() };
    let more = operations(&generate(&selective, 64)) - operations(&generate(&whole, 64));
    assert_eq!(more, 4096 * 16 * scores);
}

/// Narayanan et al. (2021), without recomputation: 72 B s L h^2 (1 + s / 6h + V / 12Lh).
#[test]
fn operations_are_the_well_known_ones() {
    let (b, s, l, h, v) = (4, 1024, 12, 768, 50_257);
    let formula = 72 * b * s * l * h * h + 12 * b * s * s * l * h + 6 * b * s * h * v;
    let trace = generate(&gpt2(), 16);
    assert_eq!(summarise(&trace).operations, formula);
    // At half of 312 TFLOP/s.
    let seconds = formula as f64 / 156e12;
    assert!((busy(&trace, 0).as_secs_f64() - seconds).abs() < 1e-9);
}

#[test]
fn first_and_last_stage_agree_on_tied_embeddings() {
    let training = Training { degrees: degrees(1, 1, 4), ..gpt2() };
    let trace = generate(&training, 16);
    let ends = |stage| volume(&trace, stage, "all-reduce", "ends");
    assert_eq!([0, 1, 2, 3].map(ends), [4 * 50_257 * 768, 0, 0, 4 * 50_257 * 768]);
    let members = |rank| trace.members(4, rank).map(|all| all.iter().collect::<Vec<u32>>());
    assert_eq!((members(1), members(13)), (Some(vec![1, 13]), Some(vec![1, 13])));
    assert_eq!((members(4), members(11)), (None, None));
    // Cut in two, the larger part; not tied, nothing.
    let cut = generate(&Training { degrees: degrees(2, 1, 2), ..gpt2() }, 16);
    assert_eq!(volume(&cut, 0, "all-reduce", "ends"), 4 * 25_129 * 768);
    assert_eq!(volume(&generate(&llama(), 64), 0, "all-reduce", "ends"), 0);
}

#[test]
fn tokens_go_to_their_experts_and_back() {
    let training = Training {
        degrees: degrees(2, 4, 1),
        global_batch: 16,
        overlap: false,
        ..Training::of("mixtral", MIXTRAL_8X7B)
    };
    // 8 data-parallel ranks with 2 micro-batches; 2 hold the same experts.
    let trace = generate(&training, 16);
    let calls = calls(&trace, 0);
    assert_eq!(calls[&("all-to-all", "expert", 33_554_432 * 2 / 2)], 32 * 4 * 2);
    let expert = 3 * 4096 * 14_336;
    let dense = (2 * 4096 * 4096 + 2 * 4096 * 1024) / 2 + 8 * 4096 + 2 * 4096;
    assert_eq!(calls[&("all-reduce", "expert-data", 4 * 32 * 2 * expert / 2)], 1);
    assert_eq!(calls[&("all-reduce", "data", 4 * (32 * dense + 32_000 * 4096 + 4096))], 1);
}

#[test]
fn tokens_get_to_their_experts_as_they_are_told() {
    let training = |given: &[(&str, &str)]| {
        let usual = [
            ("model", "mixtral-8x7b"),
            ("global_batch", "16"),
            ("tensor", "2"),
            ("expert", "4"),
            ("expert_mode", "normal"),
            ("expert_skew", "0.5"),
        ];
        Training::resolve(&[&usual[..], given].concat()).expect("a training").0
    };
    // On servers of four GPUs, two of a group of four are in each; 2048 tokens a rank take two experts each,
    // as 4096 bytes and 32 scales, and come back as 16-bit numbers; twice in each direction, for two micro-batches.
    let ground = Ground { gpus: 4, seed: 5 };
    let trace = training(&[]).generate_on(16, ground).expect("a trace");
    let calls = calls(&trace, 0);
    assert_eq!(calls[&("moe-dispatch", "expert", 2048 * 2 * (4096 + 32 * 4))], 32 * 2 * 2);
    assert_eq!(calls[&("moe-combine", "expert", 2048 * 2 * 2 * 4096)], 32 * 2 * 2);
    assert!(!calls.keys().any(|(name, ..)| *name == "all-to-all"));
    assert_eq!(trace.exchanges.len(), 8);
    assert!(trace.exchanges[0] != trace.exchanges[1]);
    assert_eq!(trace.exchanges[0].sequences(), 2 * 8);
    assert!(end(trace, FAST) > Time::ZERO);
    // Where tensor-parallel ranks fill a server, none of a group share one.
    let apart = training(&[]).generate_on(16, Ground { gpus: 2, seed: 5 }).expect("a trace");
    assert_eq!(apart.exchanges[0].sequences(), 4 * 8);
    let dense = [("expert_mode", "normal"), ("global_batch", "16")];
    let (dense, _) = Training::resolve(&dense).expect("a training");
    assert_eq!(
        dense.generate(16).expect_err("no experts").to_string(),
        "expert_mode: the model has no experts; give it some, or remove it"
    );
    let even = Training::resolve(&[("model", "mixtral-8x7b"), ("dispatch", "bf16")]);
    assert_eq!(even.expect_err("even").to_string(), "dispatch: does nothing here; remove it");
}

/// 16 ranks: two tensor-parallel, four that share a sequence, two pipelines with two micro-batches each.
fn shared(attention: Attention) -> Training {
    Training {
        degrees: Degrees { context: 4, ..degrees(2, 1, 1) },
        global_batch: 4,
        overlap: false,
        attention,
        ..Training::of("llama", LLAMA2_7B)
    }
}

#[test]
fn ranks_that_share_a_sequence_pass_keys_and_values_around() {
    // Of 4096 tokens a rank has 1024, with 4096 numbers of keys and as many of values, halved by tensor
    // parallelism: in 16 bits.
    const OWN: u64 = 1024 * 2 * 4096 / 2 * 2;
    let trace = generate(&shared(Attention::Ring), 16);
    let ring = calls(&trace, 0);
    // A layer and a micro-batch: forward three, backward three and four of gradients.
    assert_eq!(ring[&("send-recv", "context", OWN)], 32 * 2 * (3 + 3 + 4));
    // What is between layers is as much shorter, and so is the loss.
    assert_eq!(ring[&("all-reduce", "tensor", 2 * 1024 * 4096)], 2 * (32 * 4 + 2));
    assert_eq!(ring[&("all-reduce", "tensor", 4 * 1024)], 2 * 3);
    // Gradients of all that hold the same weights: eight ranks.
    assert_eq!(trace.group_size(1), Some(8));
    let members = trace.members(5, 9).expect("it has one");
    assert_eq!(
        (trace.groups[5].name.as_str(), members.iter().collect()),
        ("context", vec![9, 11, 13, 15])
    );
    let gathered = generate(&shared(Attention::AllGather), 16);
    let gathered = calls(&gathered, 0);
    assert_eq!(gathered[&("all-gather", "context", 4 * OWN)], 32 * 2 * 2);
    assert_eq!(gathered[&("reduce-scatter", "context", 4 * OWN)], 32 * 2);
    // Fewer heads of keys and values have less to pass on.
    let few = Training { model: Model { kv_heads: 8, ..LLAMA2_7B }, ..shared(Attention::Ring) };
    assert_eq!(calls(&generate(&few, 16), 0)[&("send-recv", "context", OWN / 4)], 640);
}

#[test]
fn what_goes_around_is_computed_with_meanwhile() {
    // Alone each of eight pipelines has two micro-batches, and shared each of two.
    let degrees = degrees(2, 1, 1);
    let alone = Training { degrees, global_batch: 16, ..shared(Attention::Ring) };
    let whole = busy(&generate(&alone, 16), 0).0 as f64;
    for attention in [Attention::Ring, Attention::AllGather] {
        // A quarter of the tokens each, and all keys: a quarter of all operations.
        let part = busy(&generate(&shared(attention), 16), 0);
        assert!((part.0 as f64 * 4.0 / whole - 1.0).abs() < 1e-6, "{part} {whole}");
        assert_eq!(end(generate(&shared(attention), 16), FREE), part);
    }
    // A network that is fast enough costs a ring next to nothing of what it costs an all-gather.
    let none = Training { gradients: Gradients::Bf16, ..shared(Attention::Ring) };
    let exposed = |training: &Training| {
        let trace = generate(training, 16);
        let busy = busy(&trace, 0);
        end(trace, FAST).0 - busy.0
    };
    let (ring, gathered) =
        (exposed(&none), exposed(&Training { attention: Attention::AllGather, ..none }));
    assert!(ring < gathered, "{ring} {gathered}");
}

#[test]
fn a_sequence_has_to_be_cut_evenly() {
    let training = |given: &[(&str, &str)]| Training::resolve(given).expect("a training").0;
    let odd = training(&[("model", "llama2-7b"), ("context", "3")]);
    assert_eq!(
        odd.generate(12).expect_err("odd").to_string(),
        "context: a sequence of 4096 cannot be cut among 3 ranks; use a divisor"
    );
    let many = training(&[("model", "llama2-7b"), ("context", "4"), ("tensor", "4")]);
    assert!(many.generate(24).expect_err("six").to_string().starts_with("ranks: 6 data-parallel"));
    let idle = Training::resolve(&[("attention", "ring")]);
    assert_eq!(idle.expect_err("idle").to_string(), "attention: does nothing here; remove it");
    let ring = [("model", "llama2-7b"), ("context", "4"), ("attention", "all-gather")];
    assert_eq!(training(&ring).attention, Attention::AllGather);
}

#[test]
fn first_layers_may_have_no_experts() {
    let given = [
        ("model", "deepseek-v3"),
        ("global_batch", "16"),
        ("layers", "5"),
        ("expert", "8"),
        ("expert_mode", "normal"),
        ("node_limit", "4"),
        ("overlap", "false"),
    ];
    let (training, _) = Training::resolve(&given).expect("a training");
    assert_eq!(training.model, Model { layers: 5, ..DEEPSEEK_V3 });
    let trace = training.generate_on(16, Ground { gpus: 2, seed: 1 }).expect("a trace");
    let calls = calls(&trace, 0);
    // Two layers of five, forward and backward; 4096 tokens take eight experts each.
    assert_eq!(calls[&("moe-dispatch", "expert", 4096 * 8 * (7168 + 56 * 4))], 2 * 2);
    assert_eq!(calls[&("moe-combine", "expert", 4096 * 8 * 2 * 7168)], 2 * 2);
    // A rank has 32 experts of each of these layers. All have the rest: attention with its vectors and their
    // normalisations, two more, and an MLP, or the router and a shared expert.
    let (h, heads) = (7168, 128);
    assert_eq!(calls[&("all-reduce", "expert-data", 4 * 2 * 32 * 3 * h * 2048)], 1);
    let queries = h * 1536 + 1536 + 1536 * heads * 192;
    let keys = h * (512 + 64) + 512 + 512 * heads * 256;
    let attention = queries + keys + heads * 128 * h + 2 * h;
    let (dense, sparse) = (3 * h * 18_432, 256 * h + 3 * h * 2048);
    let all = 2 * 129_280 * h + h + 5 * attention + 3 * dense + 2 * sparse;
    assert_eq!(calls[&("all-reduce", "data", 4 * all)], 1);
    let names = names(&trace, 0);
    assert!(names.contains(&"layer 2 MLP forward, micro-batch 0".to_owned()));
    assert!(!names.iter().any(|name| name.starts_with("layer 2 MLP forward dispatch")));
    assert!(names.contains(&"layer 3 MLP forward dispatch, micro-batch 0".to_owned()));
    // Two operations for each weight that a token meets, four for each key and number of a head.
    let met = 5 * (attention - 1536 - 512 - 2 * h) + 3 * dense + 2 * (256 * h + 9 * 3 * h * 2048);
    let operations = 3 * 4096 * (2 * (met + 129_280 * h) + 5 * 4 * 4096 * heads * 160);
    let seconds = operations as f64 / 156e12;
    assert!((busy(&trace, 0).as_secs_f64() / seconds - 1.0).abs() < 1e-9);
}

#[test]
fn nodes_have_readable_names() {
    let trace = generate(&gpt2(), 16);
    let all = names(&trace, 0);
    assert_eq!(all[3], "layer 3 forward, micro-batch 0");
    assert_eq!(all.last().map(String::as_str), Some("optimizer step"));
    let all = names(&generate(&llama(), 64), 1);
    assert_eq!(
        all[..3],
        [
            "receive activations, micro-batch 0",
            "layer 16 attention forward, micro-batch 0",
            "layer 16 attention forward all-reduce, micro-batch 0",
        ]
    );
    assert!(all.contains(&"gradients to layer 20 all-reduce, micro-batch 7".to_owned()));
}

/// (m + p - 1) (forward + backward), with communication that costs nothing.
#[test]
fn pipelines_have_the_bubble_of_the_formula() {
    for schedule in [Schedule::GPipe, Schedule::OneForwardOneBackward] {
        for (stages, micro_batches) in [(1, 3), (2, 1), (3, 8), (4, 2), (6, 12), (12, 5)] {
            let (forward, backward) = (Time::us(3), Time::us(7));
            let training = Training {
                global_batch: 2 * 4 * micro_batches,
                degrees: degrees(2, 1, stages),
                schedule,
                pace: Pace::Given {
                    forward,
                    backward,
                    head_forward: Time::ZERO,
                    head_backward: Time::ZERO,
                },
                update: Time::us(5),
                ..gpt2()
            };
            let layers = 12 / u64::from(stages);
            let turns = micro_batches + u64::from(stages) - 1;
            let expected = Time::us(turns * layers * 10 + 5);
            assert_eq!(end(generate(&training, 4 * stages), FREE), expected);
            let again = Training { recompute: Recompute::Full, ..training };
            let expected = Time::us(turns * layers * 13 + 5);
            assert_eq!(end(generate(&again, 4 * stages), FREE), expected);
        }
    }
}

#[test]
fn one_forward_one_backward_holds_few_micro_batches() {
    let training = Training { degrees: degrees(1, 1, 4), global_batch: 4 * 4 * 8, ..gpt2() };
    let order = |training: &Training, stage| {
        let all = names(&generate(training, 16), stage);
        let of_layer = |name: &&String| name.starts_with("layer 4 ");
        all.iter().filter(of_layer).map(|name| name[8..9].to_owned()).collect::<String>()
    };
    let all_at_once = Training { schedule: Schedule::GPipe, ..training.clone() };
    assert_eq!(order(&training, 1), "fffbfbfbfbfbfbbb");
    assert_eq!(order(&all_at_once, 1), "ffffffffbbbbbbbb");
}

#[test]
fn overlap_hides_communication() {
    for zero in [Zero::Nothing, Zero::Optimizer, Zero::Gradients, Zero::Parameters] {
        let overlapped = Training { zero, global_batch: 32, ..gpt2() };
        let waiting = Training { overlap: false, ..overlapped.clone() };
        let (overlapped, waiting) = (generate(&overlapped, 4), generate(&waiting, 4));
        let least = busy(&overlapped, 0);
        let (overlapped, waiting) = (end(overlapped, FAST), end(waiting, FAST));
        assert!(least < overlapped && overlapped < waiting, "{zero:?}: {overlapped}, {waiting}");
    }
}

/// ZeRO 3: while a layer is computed, the next one is gathered, and not the one after it.
#[test]
fn parameters_are_gathered_one_layer_ahead() {
    let waits = |overlap| {
        let training = Training { zero: Zero::Parameters, overlap, ..gpt2() };
        let trace = generate(&training, 16);
        let all = names(&trace, 0);
        let at = all.iter().position(|name| name.starts_with("layer 5 forward parameters"));
        let waits = trace.graphs[0].waits(at.expect("it is gathered") as u32).iter();
        waits.map(|node| all[*node as usize].clone()).collect::<Vec<String>>()
    };
    let (third, fourth) = ("layer 3 forward, micro-batch 0", "layer 4 forward, micro-batch 0");
    let gather = "layer 4 forward parameters all-gather, micro-batch 0";
    assert_eq!(
        (waits(true), waits(false)),
        (vec![third.into(), gather.into()], vec![gather.into(), fourth.into()])
    );
}

#[test]
fn trainings_are_read_from_options() {
    let (training, settled) = Training::resolve(&[]).expect("defaults");
    assert_eq!(training, Training { global_batch: 64, ..Training::of("gpt2-small", GPT2_SMALL) });
    let given: Vec<(&str, &str)> = settled.iter().map(|one| (one.key, one.text.as_str())).collect();
    assert_eq!(Training::resolve(&given).expect("as settled"), (training, settled.clone()));
    let given = [
        ("model", "llama2-7b"),
        ("layers", "16"),
        ("experts", "8"),
        ("tied", "true"),
        ("zero", "3"),
        ("overlap", "false"),
        ("schedule", "gpipe"),
        ("forward", "3us"),
        ("backward", "7us"),
        ("head_forward", "1us"),
        ("tensor", "8"),
    ];
    let experts = Some(Experts { count: 8, top_k: 2, ..Experts::PLAIN });
    let expected = Training {
        model: Model { layers: 16, experts, tied: true, ..LLAMA2_7B },
        global_batch: 64,
        zero: Zero::Parameters,
        overlap: false,
        schedule: Schedule::GPipe,
        pace: Pace::Given {
            forward: Time::us(3),
            backward: Time::us(7),
            head_forward: Time::us(1),
            head_backward: Time::ZERO,
        },
        degrees: degrees(8, 1, 1),
        ..Training::of("llama2-7b", LLAMA2_7B)
    };
    assert_eq!(Training::resolve(&given).expect("a training").0, expected);
    let given = [("model", "mixtral-8x7b"), ("top_k", "1")];
    let experts = Some(Experts { count: 8, top_k: 1, ..Experts::PLAIN });
    assert_eq!(
        Training::resolve(&given).expect("a training").0.model,
        Model { experts, ..MIXTRAL_8X7B }
    );
    for (given, expected) in [
        (&[("forward", "1us")][..], "backward: missing beside the other direction; give both"),
        (&[("top_k", "2")], "top_k: does nothing here; remove it"),
        (&[("zero", "4")], "zero: unknown value \"4\"; use one of 0, 1, 2, 3"),
        (
            &[("forward", "1us"), ("backward", "1us"), ("peak", "1e12")],
            "peak: does nothing here; remove it",
        ),
    ] {
        assert_eq!(Training::resolve(given).expect_err(expected).to_string(), expected);
    }
}

#[test]
fn stages_share_graphs_among_many_ranks() {
    let training = Training {
        degrees: degrees(8, 1, 8),
        global_batch: 8 * 16,
        ..Training::of("llama", LLAMA2_7B)
    };
    let trace = generate(&training, 512);
    assert_eq!((trace.graphs.len(), trace.block()), (8, 64));
    assert_eq!([0, 63, 64, 511].map(|rank| trace.graph_index(rank)), [0, 0, 1, 7]);
    assert!(check(&trace).is_clean());
    let summary = summarise(&trace);
    assert_eq!(
        (summary.sends, summary.sends),
        (summary.receives, (64 * 14 * 16, (64 * 14 * 16) << 25))
    );
    let data: u64 = summary
        .collectives
        .iter()
        .filter(|row| row.group == "data")
        .filter_map(|row| row.calls)
        .sum();
    // 64 instances, of four layers' buckets each, and of embedding and projection.
    assert_eq!(data, 64 * 4 + 8 + 8);
    let line = trace.for_ranks(256).unwrap_err().to_string();
    assert_eq!(line, "llama: the trace has 512 ranks, not 256; use as many");
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let refused = |training: Training, ranks: u32, expected: &str| {
        let line = training.generate(ranks).expect_err(expected).to_string();
        assert_eq!(line, expected);
    };
    let model = |change: &dyn Fn(&mut Model)| {
        let mut training = gpt2();
        change(&mut training.model);
        training
    };
    let arranged = |tensor, expert, pipeline| Training {
        degrees: degrees(tensor, expert, pipeline),
        ..gpt2()
    };
    refused(gpt2(), 0, "ranks: ranks and degrees of parallelism must be at least 1");
    refused(
        arranged(4, 1, 3),
        16,
        "ranks: 16 ranks cannot be arranged with 4 tensor-parallel ranks and 3 pipeline stages; \
         use a multiple of 12",
    );
    refused(arranged(8, 1, 1), 16, "tensor: heads = 12 cannot be cut among 8 ranks; use a divisor");
    refused(
        arranged(1, 1, 8),
        16,
        "pipeline: 12 layers cannot be cut into 8 stages; use a divisor",
    );
    refused(arranged(1, 2, 1), 16, "expert: the model has no experts; use 1, or give it some");
    refused(
        Training { degrees: degrees(1, 16, 1), ..Training::of("m", MIXTRAL_8X7B) },
        16,
        "expert: 8 experts cannot be cut among 16 ranks; use a divisor",
    );
    refused(
        Training {
            sequence_parallel: true,
            degrees: degrees(4, 1, 1),
            ..model(&|m| m.sequence = 1023)
        },
        16,
        "tensor: sequence = 1023 cannot be cut among 4 ranks; use a divisor",
    );
    for batch in [0, 65] {
        refused(
            Training { global_batch: batch, ..gpt2() },
            16,
            &format!(
                "global_batch: {batch} samples cannot be cut into micro-batches of 4 for 16 \
                 data-parallel ranks; use a multiple of 64"
            ),
        );
    }
    refused(
        Training { global_batch: 64 << 30, ..gpt2() },
        16,
        "global_batch: 1073741824 micro-batches are too many; use fewer samples or larger ones",
    );
    refused(
        Training { micro_batch: 0, ..gpt2() },
        16,
        "micro_batch: 0 is out of range; use 1 to 16777216",
    );
    refused(model(&|m| m.layers = 0), 16, "layers: 0 is out of range; use 1 to 16777216");
    refused(model(&|m| m.heads = 5), 16, "heads: 5 heads cannot share 768 numbers; use a divisor");
    refused(
        model(&|m| m.kv_heads = 5),
        16,
        "kv_heads: 5 cannot be shared by 12 heads; use a divisor",
    );
    refused(
        model(&|m| m.sequence = 2048),
        16,
        "positions: 1024 are too few for 2048 tokens; use 0, or 2048 or more",
    );
    refused(
        model(&|m| m.experts = Some(Experts { count: 2, top_k: 3, ..Experts::PLAIN })),
        16,
        "top_k: a token cannot take 3 of 2; use fewer",
    );
    refused(
        model(&|m| (m.layers, m.feed_forward, m.hidden) = (1 << 24, 1 << 20, 768 << 10)),
        16,
        "layers: more than 2^53 parameters; make the model smaller",
    );
    let pace =
        |peak, efficiency| Training { pace: Pace::Operations { peak, efficiency }, ..gpt2() };
    refused(pace(0.0, 0.5), 16, "peak: 0 operations a second are not possible; use 312e12 or so");
    refused(
        pace(312e12, 1.5),
        16,
        "efficiency: 1.5 is no share of the peak; use one above 0, up to 1",
    );
    refused(
        pace(312.0, 0.5),
        16,
        "peak: a step of a layer takes more than 1000s at 312 operations a second; use more, such \
         as 312e12, or smaller layers",
    );
    refused(
        Training { update: Time::MAX, ..gpt2() },
        16,
        "update: 18446744073709551615ps is too long; use up to 1000s",
    );
}
