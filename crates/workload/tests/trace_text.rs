//! Text workloads: each policy by hand, who wrote the file, and everything refused.

use weft_trial::prelude::*;
use weft_units::Time;
use weft_workload::trace::{
    Degrees, Dialect, Gathered, Size, TextOptions, Trace, Work, check, is_comm_log,
    is_text_workload, read_comm_log, read_text, summarise,
};

fn read(text: &str) -> Trace {
    read_with(text, TextOptions::default())
}
fn read_with(text: &str, options: TextOptions) -> Trace {
    let trace = read_text("w.txt", text, &options).unwrap();
    assert!(check(&trace).is_clean(), "{:?}", check(&trace));
    trace
}
fn refusal(text: &str) -> String {
    let line = read_text("w.txt", text, &TextOptions::default()).unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}
/// One step a line: name, then in brackets the names of what it waits for.
fn steps(trace: &Trace) -> Vec<String> {
    let graph = &trace.graphs[0];
    let name = |at: u32| graph.nodes()[at as usize].name.to_string();
    (0..graph.nodes().len() as u32)
        .map(|at| {
            let waits: Vec<String> = graph.waits(at).iter().map(|wait| name(*wait)).collect();
            format!("{} [{}]", name(at), waits.join(", "))
        })
        .collect()
}
/// Two layers, with all communications and their sizes 1 to 6, times 11 to 16, updates 21, 22.
fn two(header: &str) -> String {
    format!(
        "{header}\n2\na -1 11 ALLGATHER 1 12 ALLREDUCE 2 13 REDUCESCATTER 3 21\n\
         b -1 14 ALLTOALL 4 15 ALLREDUCE 5 16 ALLREDUCE 6 22\n"
    )
}

#[test]
fn data_and_model() {
    let expected = [
        "a forward []",
        "a forward ALLGATHER [a forward]",
        "b forward [a forward ALLGATHER]",
        "b forward ALLTOALL [b forward]",
        "b input gradient [b forward ALLTOALL]",
        "b input gradient ALLREDUCE [b input gradient]",
        "b weight gradient [b input gradient]",
        "b weight gradient ALLREDUCE [b weight gradient]",
        "a input gradient [b input gradient ALLREDUCE, b weight gradient]",
        "a weight gradient [a input gradient]",
        "a weight gradient REDUCESCATTER [a weight gradient]",
    ];
    assert_eq!(steps(&read(&two("HYBRID_DATA_MODEL"))), expected);
    assert_eq!(steps(&read(&two("HYBRID_MODEL_DATA"))), expected);
    let model: Vec<&str> =
        expected.into_iter().filter(|step| !step.contains("weight gradient ")).collect();
    let model_only = steps(&read(&two("MODEL")));
    assert_eq!(model_only.len(), model.len() + 2, "{model_only:?}");
    assert!(!model_only.iter().any(|step| step.starts_with("b weight gradient A")));
}

#[test]
fn data_parallel() {
    assert_eq!(
        steps(&read(&two("DATA"))),
        [
            "a forward []",
            "b forward [a forward]",
            "b weight gradient [b forward]",
            "b weight gradient ALLREDUCE [b weight gradient]",
            "b input gradient [b weight gradient]",
            "a weight gradient [b input gradient]",
            "a weight gradient REDUCESCATTER [a weight gradient]",
        ]
    );
}

#[test]
fn transformers_wait_for_input_gradients() {
    let text = two("HYBRID_TRANSFORMER model_parallel_NPU_group: 2");
    let trace = read(&text);
    assert_eq!(
        steps(&trace),
        [
            "a forward []",
            "a forward ALLGATHER [a forward]",
            "b forward [a forward ALLGATHER]",
            "b forward ALLTOALL [b forward]",
            "b input gradient [b forward ALLTOALL]",
            "b input gradient ALLREDUCE [b input gradient]",
            "b weight gradient [b input gradient ALLREDUCE]",
            "b weight gradient ALLREDUCE [b weight gradient]",
            "b update [b weight gradient ALLREDUCE]",
            "a input gradient [b weight gradient]",
            "a input gradient ALLREDUCE [a input gradient]",
            "a weight gradient [a input gradient ALLREDUCE]",
            "a weight gradient REDUCESCATTER [a weight gradient]",
            "a update [a weight gradient REDUCESCATTER]",
        ]
    );
    let Work::Compute(first) = &trace.graphs[0].nodes()[0].work else { panic!() };
    assert_eq!(first.time, Time::ns(11));
    let serial = read_with(&text, TextOptions { serial: true, ..TextOptions::default() });
    let steps = steps(&serial);
    for pair in steps.windows(2) {
        let before = pair[0].split(" [").next().unwrap();
        assert!(pair[1].ends_with(&format!("[{before}]")), "{pair:?}");
    }
}

#[test]
fn forward_again_from_the_checkpoint() {
    let rows = "x -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n".repeat(4);
    let header = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1";
    let text = format!("{header} checkpoints: 2 0 1 checkpoint_initiates: 1 3\n4\n{rows}");
    let names: Vec<String> =
        read(&text).graphs[0].nodes().iter().map(|node| node.name.to_string()).collect();
    let count = |name: &str| names.iter().filter(|one| *one == name).count();
    // Layers 1 and 2 again.
    assert_eq!((count("x forward"), count("x input gradient")), (4 + 2, 4));
    assert_eq!(names[4..7], ["x forward", "x forward", "x input gradient"]);
    let text = format!("{header} checkpoints: 1 2 checkpoint_initiates: 1 1\n4\n{rows}");
    let line = refusal(&text);
    assert!(line.starts_with("w.txt:1: checkpoint_initiates names layer 1, but"), "{line}");
    let text = format!("{header} checkpoints: 3 0 1\n4\n{rows}");
    assert!(refusal(&text).contains("announces 3 layers, but only 2 follow"));
}

#[test]
fn recommendation_models() {
    let rows = "e -1 1 ALLTOALL 9 1 ALLTOALL 9 1 NONE 0 1\n\
                m -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 5 1\n\
                t -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 5 1\n";
    let expected = [
        "e forward []",
        "e forward ALLTOALL [e forward]",
        "m forward [e forward]",
        "t forward [e forward ALLTOALL, m forward]",
        "t weight gradient [t forward]",
        "t weight gradient ALLREDUCE [t weight gradient]",
        "t input gradient [t weight gradient]",
        "e input gradient ALLTOALL [t input gradient]",
        "m weight gradient [t input gradient]",
        "m weight gradient ALLREDUCE [m weight gradient]",
        "m input gradient [m weight gradient]",
        "e weight gradient [e input gradient ALLTOALL, m input gradient]",
    ];
    for header in ["HYBRID_DLRM 1", "HYBRID_DLRM DLRM_LAST_BOTTOM_LAYER: 1"] {
        assert_eq!(steps(&read(&format!("{header}\n3\n{rows}"))), expected, "{header}");
    }
}

#[test]
fn inference_customized_and_micro() {
    let forward = steps(&read(&two("DISTRIBUTED_INFERENCE")));
    assert_eq!((forward.len(), &*forward[3]), (4, "b forward ALLTOALL [b forward]"));
    // A policy of its own for each layer decides whom it concerns.
    let text = "HYBRID_CUSTOMIZED\n2\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1 HYBRID_DATA_MODEL\n\
                b -1 1 ALLGATHER 4 1 NONE 0 1 NONE 0 1 MODEL\n";
    let degrees = Some(Degrees { tensor: 2, ..Degrees::NONE });
    let trace = read_with(text, TextOptions { degrees, ..TextOptions::default() });
    let rows = summarise(&trace.for_ranks(8).unwrap()).collectives;
    let groups: Vec<_> = rows.iter().map(|row| (&*row.group, row.ranks.unwrap())).collect();
    assert_eq!(groups, [("all", 8), ("data", 4)]);
    // ASTRA-sim issues all at once; a benchmark of AICB goes through its sizes.
    let micro = |name: &str| {
        let row = format!("{name} -1 1 NONE 0 1 NONE 0 1 ALLGATHER 8 1\n").repeat(2);
        read(&format!("MICRO\n2\n{row}"))
    };
    let size = |trace: &Trace| summarise(trace).collectives[0].size;
    let (ours, aicb) = (micro("conv"), micro("micro_test"));
    assert_eq!((ours.graphs[0].waits(1).len(), size(&ours)), (0, Size::Shard(8)));
    assert_eq!((aicb.graphs[0].waits(1), size(&aicb)), (&[0][..], Size::Whole(8)));
}

#[test]
fn who_meets_whom_with_experts() {
    let header = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 3 \
                  all_gpus: 24 pp_comm 77";
    let row = "a -1 1 ALLTOALL_EP 8 1 REDUCESCATTER 8 1 ALLGATHER_DP_EP 8 1\n\
               b -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1\n";
    let trace = read(&format!("{header}\n2\n{row}"));
    assert_eq!(trace.ranks, Some(24));
    // Rank 13 of 24: tensor 1, data 2 of 4, stage 1 of 3.
    let of = |name: &str| {
        let group = trace.groups.iter().position(|group| group.name == name).unwrap() as u32;
        trace.members(group, 13).unwrap().iter().collect::<Vec<u32>>()
    };
    assert_eq!(of("tensor"), [12, 13]);
    assert_eq!(of("data"), [9, 11, 13, 15]);
    assert_eq!(of("expert"), [13, 15]);
    assert_eq!(of("expert-data"), [9, 13]);
    assert_eq!(trace.remarks[0].what, "a pipeline of 3 stages, which send 77 B: not in the rows");
    let line = trace.clone().for_ranks(32).unwrap_err().to_string();
    assert!(line.starts_with("w.txt: 32 ranks cannot be arranged"), "{line}");
    assert!(trace.for_ranks(18).unwrap_err().to_string().contains("use a multiple of 12 ranks"));
}

/// ASTRA-sim's first dimension is the one named last.
#[test]
fn who_is_next_to_whom() {
    // Rank 5 of 8.
    let of = |header: &str| {
        let degrees = Some(Degrees { tensor: 2, ..Degrees::NONE });
        let options = TextOptions { degrees, ..TextOptions::default() };
        let trace = read_with(&two(header), options).for_ranks(8).unwrap();
        let nodes = trace.graph(5).nodes();
        let members = |name: &str| {
            let node = nodes.iter().find(|node| node.name.starts_with(name)).unwrap();
            let Work::Collective(one) = &node.work else { panic!("{name}") };
            trace.members(one.group, 5).unwrap().iter().collect::<Vec<u32>>()
        };
        ["b forward ALL", "b input gradient ALL", "b weight gradient ALL"].map(members)
    };
    assert_eq!(of("HYBRID_DATA_MODEL"), [vec![4, 5], vec![4, 5], vec![1, 3, 5, 7]]);
    assert_eq!(of("HYBRID_MODEL_DATA"), [vec![1, 5], vec![1, 5], vec![4, 5, 6, 7]]);
}

#[test]
fn options_override_the_file() {
    let text = two("HYBRID_DATA_MODEL");
    let options = TextOptions {
        dialect: Some(Dialect::Aicb),
        unit: Some(Time::ms(1)),
        gathered: Some(Gathered::Shard),
        degrees: Some(Degrees { tensor: 4, ..Degrees::NONE }),
        passes: 2,
        serial: false,
    };
    let trace = read_with(&text, options).for_ranks(8).unwrap();
    let summary = summarise(&trace);
    assert_eq!(summary.compute, Time::ms(2 * (11 + 12 + 13 + 14 + 15 + 16 + 21 + 22)));
    let gather = summary.collectives.iter().find(|row| row.operation == "all-gather").unwrap();
    assert_eq!((gather.bytes, gather.nodes, gather.calls), (Some(4), 2, Some(4)));
    // The second pass waits for the updates of the first.
    let steps = steps(&trace);
    let again = steps.iter().rposition(|step| step.starts_with("b forward [")).unwrap();
    assert_eq!(steps[again], "b forward [b update, a forward ALLGATHER]");
    let none = TextOptions { passes: 0, ..TextOptions::default() };
    assert!(read_text("w.txt", &text, &none).unwrap_err().to_string().contains("0 passes"));
}

#[test]
fn rows_without_traffic() {
    let row = "a -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n";
    let collectives = |header: &str| {
        let nodes = summarise(&read(&format!("{header}\n1\n{row}"))).collectives;
        nodes.iter().map(|row| row.nodes).sum::<u64>()
    };
    // As Chakra's converter writes them: the first layer has no input gradient.
    assert_eq!(collectives("HYBRID_DATA_MODEL"), 2);
    assert_eq!(collectives("HYBRID_TRANSFORMER"), 0);
}

#[test]
fn counts_that_do_not_match_are_remarked() {
    let text = two("DATA").replace("\n2\n", "\n5\n");
    assert_eq!(read(&text).remarks[0].what, "layers missing: 5 are declared, 2 are there");
    let text = two("DATA").replace("\n2\n", "\n1\n");
    let trace = read(&text);
    assert_eq!(trace.remarks[0].what, "layers left out: 1 are declared, 2 are there");
    assert_eq!(steps(&trace).len(), 3);
}

#[test]
fn what_is_not_known_is_kept_as_unsupported() {
    let text = "DATA\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCEALLTOALL 8 1\n";
    let trace = read_text("w.txt", text, &TextOptions::default()).unwrap();
    let unsupported = summarise(&trace).unsupported;
    assert_eq!(
        (&*unsupported[0].what, unsupported[0].count),
        (r#"communication "ALLREDUCEALLTOALL""#, 1)
    );
}

#[test]
fn files_that_are_none() {
    for (text, expected) in [
        ("", "w.txt:1: the file is empty"),
        ("FOO\n1\n", "w.txt:1: unknown policy \"FOO\"; known are DATA, MODEL, "),
        ("DATA\n", "w.txt:1: the file ends here"),
        ("DATA\nx\n", "w.txt:2: the number of layers must be a whole number, not \"x\""),
        ("DATA\n1\n", "w.txt:2: no layer follows"),
        ("DATA\n1\na -1 1 NONE 0 1 NO", "w.txt:3: the row ends before its input-gradient bytes"),
        ("DATA\n1\na -1 x NONE 0 1 NONE 0 1 NONE 0 1", "w.txt:3: forward time must be a whole"),
        ("DATA\n1\na -1 1 NONE -4 1 NONE 0 1 NONE 0 1", "w.txt:3: forward bytes must be"),
        ("DATA\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1 2", "w.txt:3: \"2\" follows the last of 12"),
        (
            "HYBRID_CUSTOMIZED\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1",
            "w.txt:3: the row ends before its policy of the layer (12 of 13 columns)",
        ),
        (
            "HYBRID_CUSTOMIZED\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1 Q",
            "w.txt:3: unknown policy \"Q\"",
        ),
        (
            "HYBRID_TRANSFORMER model_parallel_NPU_group:\n1\n",
            "w.txt:1: model_parallel_NPU_group: a number must follow",
        ),
        (
            "DATA\n1\na -1 99999999999999999 NONE 0 1 NONE 0 1 NONE 0 1",
            "w.txt:3: a time of 99999999999999999 is longer than 213 days",
        ),
    ] {
        let line = refusal(text);
        assert!(line.starts_with(expected), "{line}\nexpected {expected}");
    }
    assert!(is_text_workload("MICRO\n1\n") && !is_text_workload("288 32 512\n"));
}

#[test]
fn a_list_of_communications_by_hand() {
    let text = "[rank0 ~ rank15]\n\
        comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time\n\
        CommType.broadcast,CommGroup.tp_group,2,16,init,None,0,,None\n\
        CommType.computation,CommGroup.tp_group,2,\"((2, 3), (3, 4))\",fwd,None,None,,1500\n\
        CommType.all_gather,CommGroup.dp_group,4,64,step,None,None,,None\n\
        CommType.isend,CommGroup.pp_group,2,8,fwd,None,None,send_next,None\n\
        CommType.epoch_end,None,None,0,,None,None,,None\n";
    assert!(is_comm_log(text) && !is_text_workload(text));
    let trace = read_comm_log("l.csv", text).unwrap();
    assert_eq!(trace.ranks, Some(16));
    assert_eq!(trace.degrees, Degrees { tensor: 2, pipeline: 2, ..Degrees::NONE });
    let graph = &trace.graphs[0];
    let kinds: Vec<_> = graph.nodes().iter().map(|node| node.work.kind()).collect();
    assert_eq!(kinds, ["collective", "compute", "collective", "unsupported", "nothing"]);
    assert_eq!((&*graph.nodes()[2].name, graph.waits(2)), ("step all_gather", &[1][..]));
    let summary = summarise(&trace);
    assert_eq!((summary.compute, summary.depth), (Time::ns(1500), 5));
    let gather = &summary.collectives[0];
    assert_eq!((gather.operation, gather.bytes, gather.calls), ("all-gather", Some(64), Some(4)));
}

#[test]
fn lists_without_groups_or_their_sizes() {
    let text = "[rank0 ~ rank7]\n\
        comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time\n\
        CommType.all_reduce,None,None,64,init,None,None,,None\n\
        CommType.barrier,None,None,None,init,None,None,,None\n\
        CommType.computation,None,None,((2, 3), (3, 4)),fwd,None,None,,1500\n\
        CommType.computation,None,None,0,fwd,None,None,,None\n\
        CommType.all_reduce,CommGroup.tp_group,None,32,fwd,None,None,,None\n\
        CommType.all_reduce,CommGroup.tp_group,2,32,fwd,None,None,,None\n\
        CommType.all_reduce,CommGroup.dp_group,None,16,step,None,None,,None\n";
    let trace = read_comm_log("l.csv", text).unwrap();
    assert_eq!(trace.degrees, Degrees { tensor: 2, ..Degrees::NONE });
    assert!(check(&trace).is_clean());
    let summary = summarise(&trace);
    let sizes: Vec<_> = summary.collectives.iter().map(|row| (row.bytes, row.ranks)).collect();
    assert_eq!(
        sizes,
        [(Some(32), Some(2)), (Some(64), Some(8)), (Some(16), Some(4)), (Some(0), Some(8))]
    );
    assert_eq!(summary.compute, Time::ns(1500));
    let [remark] = &summary.remarks[..] else { panic!("{:?}", summary.remarks) };
    assert_eq!((remark.what.contains("no _elapsed_time"), remark.count), (true, 1));
    // The first specification has no column for sizes.
    let first = "comm_type,comm_group,msg_size\nCommType.all_reduce,CommGroup.dp_group,4096\n";
    let trace = read_comm_log("l.csv", first).unwrap();
    assert_eq!(trace.ranks, None);
    assert_eq!(trace.for_ranks(8).unwrap().members(1, 5).unwrap().len(), 8);
}

#[test]
fn lists_of_communications_that_are_none() {
    let head = "comm_type,comm_group,comm_group_size,msg_size\n";
    for (text, expected) in [
        ("[x]\n".to_string(), "l.csv:1: not the ranks of a list"),
        ("comm_type,comm_group\n".into(), "l.csv:1: there is no column \"msg_size\""),
        (head.into(), "l.csv:1: no communication follows"),
        (format!("{head}all_reduce,tp_group"), "l.csv:2: the row ends before msg_size"),
        (format!("{head}all_reduce,tp_group,2,x"), "l.csv:2: msg_size must be a whole number"),
        (format!("{head}all_reduce,tp_group,0,8"), "l.csv:2: comm_group_size: a group cannot"),
        (
            format!("{head}all_reduce,None,None,8\nall_reduce,tp_group,None,8"),
            "l.csv:3: no row says how many ranks the tensor group has; give it as comm_group_size",
        ),
        ("[ pp_stage0: [rank0, rank1] ]\n".into(), "l.csv:1: the list of one pipeline stage"),
        (
            format!("[rank0 ~ rank7]\n{head}barrier,tp_group,2,8\nbarrier,tp_group,4,8"),
            "l.csv:4: the tensor group has 4 ranks here but 2 on line 3",
        ),
        (
            format!("[rank0 ~ rank7]\n{head}barrier,tp_group,3,8\n"),
            "l.csv: 8 ranks cannot be arranged with 3 tensor-parallel ranks",
        ),
    ] {
        let line = read_comm_log("l.csv", &text).unwrap_err().to_string();
        assert!(line.starts_with(expected) && !line.contains('\n'), "{line}\nexpected {expected}");
    }
}

trials! {
    fn no_text_makes_it_panic(
        header in prop::sample::select(vec![
            "DATA", "MODEL", "HYBRID_DLRM 3", "MICRO", "HYBRID_CUSTOMIZED",
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 checkpoints: 1 0",
        ]),
        end in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        noise in "[ \\-0-9A-Z_:\n]{0,12}",
        passes in 0u32..3,
    ) {
        let mut text = two(header);
        text.insert_str(place.index(text.len()), &noise);
        text.truncate(end.index(text.len() + 1));
        let options = TextOptions { passes, ..TextOptions::default() };
        if let Ok(trace) = read_text("w.txt", &text, &options) {
            prop_assert_eq!(check(&trace).is_clean(), summarise(&trace).unsupported.is_empty());
        }
    }

    fn no_list_makes_it_panic(
        noise in "[\\[a-z_,.0-9\"\n]{0,40}",
        end in any::<prop::sample::Index>(),
    ) {
        let head = "comm_type,comm_group,comm_group_size,msg_size";
        let mut text = format!("[rank0 ~ rank7]\n{head}\nreduce,all,8,9\n{noise}");
        text.truncate(end.index(text.len() + 1));
        if let Ok(trace) = read_comm_log("l.csv", &text) {
            summarise(&trace);
            check(&trace);
        }
    }

    /// Instances of every group partition the ranks, and know their members' places.
    fn groups_partition_the_ranks(
        tensor in 1u32..5, expert in 1u32..4, more in 1u32..4, pipeline in 1u32..4,
    ) {
        let ranks = tensor * expert * more * pipeline;
        let header = "HYBRID_TRANSFORMER_FWD_IN_BCKWD";
        let row = "a -1 1 ALLTOALL_EP 8 1 ALLREDUCE 8 1 ALLGATHER_DP_EP 8 1\n\
                   b -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1\n";
        let degrees = Some(Degrees { tensor, expert, pipeline, ..Degrees::NONE });
        let options = TextOptions { degrees, ..TextOptions::default() };
        let trace = read_text("w.txt", &format!("{header}\n2\n{row}"), &options).unwrap();
        let trace = trace.for_ranks(ranks).unwrap();
        for group in 0..trace.groups.len() as u32 {
            for rank in 0..ranks {
                let members = trace.members(group, rank).unwrap();
                prop_assert_eq!(Some(members.len()), trace.group_size(group));
                prop_assert_eq!(members.rank(members.place(rank).unwrap()), rank);
                for other in members.iter() {
                    prop_assert_eq!(trace.members(group, other), Some(members));
                }
            }
        }
    }
}
