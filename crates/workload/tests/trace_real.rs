//! Every trace that other tools' users have, read; known counts of several of them.

use std::path::{Path, PathBuf};
use weft_units::Time;
use weft_workload::collective::Operation;
use weft_workload::trace::{
    ChakraOptions, ChakraReader, Findings, Size, Summary, TextOptions, Trace, TraceFormat, Work,
    check, is_comm_log, is_text_workload, read_comm_log, read_text, summarise,
};

/// The folder of real files, or `None`, with a line saying so.
fn root() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    match root.is_dir() {
        true => Some(root),
        false => {
            eprintln!("skipped: no traces in {}", root.display());
            None
        }
    }
}
// The crate reads no files; its tests may.
#[allow(clippy::disallowed_methods)]
fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}
fn text(path: &Path) -> String {
    String::from_utf8(bytes(path)).unwrap()
}
fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// All files below a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}
fn is_trace(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "et")
}

/// The trace of all ranks in a folder of `.et` files.
fn chakra(folder: &Path) -> Trace {
    let mut reader = ChakraReader::new(ChakraOptions::default());
    for path in files(folder).iter().filter(|path| is_trace(path)) {
        let (_, rank) = ChakraOptions::INFO.rank_of_file(name(path)).unwrap();
        reader.read_rank(rank, name(path), &bytes(path)).unwrap();
    }
    reader.finish().unwrap()
}
fn workload(path: &Path) -> Trace {
    read_text(name(path), &text(path), &TextOptions::default()).unwrap()
}
fn runs(trace: &Trace) -> Findings {
    let findings = check(trace);
    assert_eq!(findings.problems, Vec::<String>::new(), "{}", trace.name);
    assert_eq!((findings.stuck, findings.more), (0, 0), "{}", trace.name);
    findings
}
/// Collectives as (operation, size in the file, nodes).
fn collectives(trace: &Trace) -> Vec<(&'static str, Size, u64)> {
    let rows = summarise(trace).collectives;
    rows.iter().map(|row| (row.operation, row.size, row.nodes)).collect()
}
fn kind(summary: &Summary, kind: &str) -> u64 {
    summary.kinds.iter().find(|(name, _)| *name == kind).map_or(0, |(_, count)| *count)
}

#[test]
fn every_trace_loads_and_can_finish() {
    let Some(root) = root() else { return };
    let (mut traces, mut texts, mut logs) = (0, 0, 0);
    let mut folders: Vec<PathBuf> = Vec::new();
    for path in files(&root) {
        if is_trace(&path) {
            traces += 1;
            folders.push(path.parent().unwrap().into());
            continue;
        }
        let Ok(text) = String::from_utf8(bytes(&path)) else { continue };
        let trace = if is_text_workload(&text) {
            texts += 1;
            workload(&path)
        } else if is_comm_log(&text) {
            logs += 1;
            read_comm_log(name(&path), &text).unwrap()
        } else {
            continue;
        };
        runs(&trace);
        assert_eq!(summarise(&trace).unsupported, vec![], "{}", trace.name);
    }
    folders.dedup();
    for folder in &folders {
        let trace = chakra(folder);
        runs(&trace);
        assert_eq!(summarise(&trace).unsupported, vec![], "{}", trace.name);
    }
    assert_eq!((traces, folders.len(), texts, logs), (122, 14, 24, 3));
}

#[test]
fn one_megabyte_collectives() {
    let Some(root) = root() else { return };
    let bench = root.join("astra_sim/workload/microbenchmarks");
    const MIB: u64 = 1 << 20;
    for (folder, operation) in [
        ("all_reduce", "all-reduce"),
        ("all_gather", "all-gather"),
        ("reduce_scatter", "reduce-scatter"),
        ("all_to_all", "all-to-all"),
    ] {
        for ranks in [4u32, 8, 16] {
            let trace = chakra(&bench.join(folder).join(format!("{ranks}npus_1MB")));
            assert_eq!(trace.ranks, Some(ranks));
            let summary = summarise(&trace);
            let [row] = &summary.collectives[..] else { panic!("{summary:?}") };
            let whole = if operation == "all-gather" { MIB * u64::from(ranks) } else { MIB };
            assert_eq!((row.operation, row.bytes, row.calls), (operation, Some(whole), Some(1)));
            assert_eq!((row.nodes, row.ranks), (ranks.into(), Some(ranks)));
            assert_eq!((summary.nodes, summary.dependencies, summary.depth), (ranks.into(), 0, 1));
        }
    }
}

#[test]
fn the_custom_ring_of_eight() {
    let Some(root) = root() else { return };
    let folder = "astra_sim/system/custom_collectives/custom_ring_allreduce_8npus_1MB";
    let trace = chakra(&root.join(folder));
    let findings = runs(&trace);
    // Fourteen sends and receipts a rank, and a reduction after seven of the receipts.
    assert_eq!(findings.nodes, 8 * (14 + 14 + 7));
    let summary = summarise(&trace);
    assert_eq!(summary.sends, (8 * 14, 8 * 14 * 131_072));
    assert_eq!(summary.receives, summary.sends);
    assert_eq!(kind(&summary, "compute"), 8 * 7);
    assert_eq!(summary.compute, Time::us(7 * 7));
    // One line of work.
    assert_eq!((summary.depth, summary.dependencies), (35, 8 * 34));
    for (rank, graph) in (0u32..).zip(&trace.graphs) {
        for node in graph.nodes() {
            match &node.work {
                Work::Send(one) => assert_eq!(one.peer.of(rank), (rank + 1) % 8),
                Work::Receive(one) => assert_eq!(one.peer.of(rank), (rank + 7) % 8),
                _ => {}
            }
        }
    }
}

#[test]
fn gpt_2_and_its_conversion_are_the_same_job() {
    let Some(root) = root() else { return };
    let written = workload(&root.join("ethereal/Gpt_117M.txt")).for_ranks(2).unwrap();
    let converted = chakra(&root.join("ethereal_converted"));
    assert_eq!(converted.ranks, Some(2));
    let expected = |ranks: u64| {
        vec![
            ("reduce-scatter", Size::Whole(576_454_656), ranks),
            ("all-reduce", Size::Whole(6_291_456), 50 * ranks),
            ("all-reduce", Size::Whole(288_227_328), ranks),
            ("all-reduce", Size::Whole(77_194_752), ranks),
            ("all-gather", Size::Shard(1_125_888), ranks),
            ("all-reduce", Size::Whole(16_384), 3 * ranks),
            ("all-reduce", Size::Whole(4), 4 * ranks),
        ]
    };
    let moving = |trace: &Trace| {
        let mut rows = collectives(trace);
        rows.retain(|(_, size, _)| !size.is_zero());
        rows.sort_by_key(|(operation, size, _)| (*operation, *size));
        rows
    };
    let sorted = |mut rows: Vec<(&'static str, Size, u64)>| {
        rows.sort_by_key(|(operation, size, _)| (*operation, *size));
        rows
    };
    assert_eq!(moving(&written), sorted(expected(1)));
    assert_eq!(moving(&converted), sorted(expected(2)));
    let nodes = |trace: &Trace| kind(&summarise(trace), "collective");
    assert_eq!((nodes(&written), nodes(&converted)), (110, 220));
    // Node by node: the same kind, bytes, time and dependencies.
    let (text, binary) = (&written.graphs[0], &converted.graphs[1]);
    assert_eq!((text.nodes().len(), binary.nodes().len()), (221, 221));
    for (at, (ours, theirs)) in (0u32..).zip(text.nodes().iter().zip(binary.nodes())) {
        assert_eq!(text.waits(at), binary.waits(at), "{at}");
        match (&ours.work, &theirs.work) {
            (Work::Collective(ours), Work::Collective(theirs)) if ours.size.is_zero() => {
                assert!(theirs.size.is_zero(), "{at}");
            }
            (ours, theirs) => assert_eq!(ours, theirs, "{at}"),
        }
    }
    let summary = summarise(&written);
    assert_eq!((summary.compute, summary.depth), (Time::us(111), summarise(&converted).depth));
}

#[test]
fn gpt_2_serves_any_number_of_ranks() {
    let Some(root) = root() else { return };
    let trace = workload(&root.join("ethereal/Gpt_117M.txt"));
    assert_eq!(trace.ranks, None);
    for ranks in [256u32, 512] {
        let trace = trace.clone().for_ranks(ranks).unwrap();
        let gathers: Vec<u64> = trace.graphs[0]
            .nodes()
            .iter()
            .filter_map(|node| match &node.work {
                Work::Collective(one)
                    if one.action
                        == weft_workload::trace::Action::Operation(Operation::AllGather) =>
                {
                    Some(one.bytes(trace.members(one.group, 7).unwrap().len()))
                }
                _ => None,
            })
            .collect();
        assert_eq!(gathers, [u64::from(ranks) * 1_125_888, 0]);
    }
}

#[test]
fn the_older_text_workloads() {
    let Some(root) = root() else { return };
    let folder = root.join("ethereal");
    let counts = |file: &str| {
        let trace = workload(&folder.join(file));
        let summary = summarise(&trace);
        let moving = summary.collectives.iter().filter(|row| !row.size.is_zero());
        let moving = moving.map(|row| row.nodes).sum::<u64>();
        (kind(&summary, "compute"), moving, summary.compute)
    };
    // 54 layers: forward, weight gradient, and input gradient of all but the first.
    let (compute, moving, _) = counts("Resnet50_DataParallel.txt");
    assert_eq!((compute, moving), (3 * 54 - 1, 54));
    // Forward exchange, seven weight gradients, backward exchange.
    let (compute, moving, _) = counts("DLRM_HybridParallel.txt");
    assert_eq!((compute, moving), (3 * 8 - 1, 9));
    // Six all-gathers; input gradients of all but the first; no weight gradients.
    let (compute, moving, time) = counts("MLP_ModelParallel.txt");
    assert_eq!((compute, moving), (18, 6 + 5));
    let forward = 32291 + 7488 + 7488 + 14144 + 7488 + 9984;
    let weights = 12864 + 3648 + 3456 + 10368 + 3648 + 3456;
    assert_eq!(time, Time::us(2 * forward + weights));
    let (compute, moving, _) = counts("MLP_HybridParallel_Data_Model.txt");
    assert_eq!((compute, moving), (18, 6 + 5 + 6));
    assert_eq!(counts("microAllReduce.txt"), (0, 1, Time::ZERO));
}

#[test]
fn transformers_with_checkpoints() {
    let Some(root) = root() else { return };
    let trace = workload(&root.join("ethereal/Transformer_HybridParallel_Fwd_In_Bckwd.txt"));
    let trace = trace.for_ranks(64).unwrap();
    let summary = summarise(&trace);
    // Layers 11 to 18 and 2 to 9 are computed twice. Updates follow the weight gradients that
    // are exchanged: 14 of them.
    assert_eq!(kind(&summary, "compute"), 3 * 21 + 8 + 8 + 14);
    let row = summary.collectives.iter().find(|row| row.group == "tensor").unwrap();
    assert_eq!((row.ranks, row.operation), (Some(4), "all-reduce"));
    assert!(summary.collectives.iter().any(|row| row.group == "data" && row.ranks == Some(16)));
}

#[test]
fn an_aicb_model_with_experts() {
    let Some(root) = root() else { return };
    let trace = workload(&root.join("simai/workload_analytical.txt"));
    assert_eq!(trace.ranks, Some(9216));
    assert!(trace.remarks[0].what.contains("12 stages"), "{:?}", trace.remarks);
    let summary = summarise(&trace);
    let group = |name: &str| {
        let mut rows = summary.collectives.iter().filter(|row| row.group == name);
        rows.next().unwrap().ranks.unwrap()
    };
    assert_eq!((group("tensor"), group("data")), (2, 9216 / 2 / 12));
    assert_eq!((group("expert"), group("expert-data")), (16, 384 / 16));
    // 768 rows each way exchange between experts, in 9216 / 16 groups.
    let experts = summary.collectives.iter().filter(|row| row.group == "expert");
    let (nodes, calls) = experts.fold((0, 0), |(nodes, calls), row| {
        assert_eq!((row.operation, row.bytes), ("all-to-all", Some(100_663_296)));
        (nodes + row.nodes, calls + row.calls.unwrap())
    });
    assert_eq!((nodes, calls), (768, 768 * 576));
}

#[test]
fn aicb_lists_of_communications() {
    let Some(root) = root() else { return };
    let read = |file: &str| {
        let path = root.join("aicb_simai/physical_csv").join(file);
        summarise(&read_comm_log(name(&path), &text(&path)).unwrap())
    };
    let nodes = |summary: &Summary, operation: &str, group: &str, ranks: u32| {
        let rows = summary.collectives.iter().filter(|row| {
            (row.operation, &*row.group, row.ranks) == (operation, group, Some(ranks))
        });
        rows.map(|row| row.nodes).sum::<u64>()
    };
    let gpt = read("G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1.csv");
    assert_eq!(gpt.ranks, Some(128));
    assert_eq!(nodes(&gpt, "all-reduce", "tensor", 8), 167);
    assert_eq!(nodes(&gpt, "all-reduce", "data", 16), 5);
    assert_eq!(nodes(&gpt, "broadcast", "tensor", 8), 3);
    assert_eq!((gpt.nodes, gpt.depth), (181, 181));
    let zero = read("L7B-D1-C01_Llama7B_zero2_mbs1.csv");
    assert_eq!(nodes(&zero, "broadcast", "data", 128), 291);
    assert_eq!(nodes(&zero, "barrier", "all", 128), 1);
}

/// Columns may be aligned otherwise; the header has other ranks.
#[test]
fn the_experiment_on_gpt_175b_has_the_published_rows() {
    let Some(root) = root() else { return };
    let folder = root.join("aicb_simai/model_workload");
    let published = text(&folder.join("G175B-M1-C03_GPT175B_megatron_tp8_pp1_mbs1_A100.txt"));
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ours = text(&ours.join("../../experiments/training/common/gpt-175b.txt"));
    let rows = |text: &str| -> Vec<Vec<String>> {
        let rows = text.lines().skip(2).map(|row| row.split_whitespace().map(Into::into).collect());
        rows.filter(|row: &Vec<String>| !row.is_empty()).collect()
    };
    assert_eq!(rows(&ours).len(), 33);
    assert_eq!(rows(&ours), rows(&published));
}
