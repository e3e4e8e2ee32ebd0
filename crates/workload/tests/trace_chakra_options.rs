//! What a reader of Chakra traces can be told: rates of accelerators, elements, dependencies.

use crate::et::{Node, Value, file, frame};
use weft_units::Time;
use weft_workload::trace::{
    ChakraOptions, ChakraReader, Dependencies, Memory, Roofline, Trace, Work, check, foreign,
};

fn read_with(options: ChakraOptions, bytes: &[u8]) -> Trace {
    let mut reader = ChakraReader::new(options);
    reader.read_rank(0, "x.0.et", bytes).unwrap();
    reader.finish().unwrap()
}

fn remarks(trace: &Trace, about: &str) -> u64 {
    trace.remarks.iter().filter(|remark| remark.what.contains(about)).map(|one| one.count).sum()
}

fn roofline(tflops: u64, gb_s: u64) -> Roofline {
    let some = |rate: u64| (rate > 0).then_some(rate);
    Roofline { operations: some(tflops * 1_000_000_000_000), bytes: some(gb_s * 1_000_000_000) }
}

#[test]
fn the_roofline_is_that_of_astra_sim() {
    // elapsed = ops / min(bandwidth * ops / bytes, peak), in its own order of operations.
    let astra_sim = |ops: f64, bytes: f64, peak: f64, bandwidth: f64| {
        ops / f64::min(bandwidth * (ops / bytes), peak) * 1e9
    };
    for (ops, bytes) in [(1 << 40, 1 << 20), (1 << 30, 1 << 30), (3, 7), (900_000_000, 1_600_000)] {
        for (peak, bandwidth) in [(900, 1600), (67, 3350), (1, 1)] {
            let time = roofline(peak, bandwidth).time(ops, bytes).unwrap();
            let (peak, bandwidth) = (peak as f64 * 1e12, bandwidth as f64 * 1e9);
            let theirs = astra_sim(ops as f64, bytes as f64, peak, bandwidth);
            let ours = time.0 as f64 / 1000.0;
            assert!(
                (ours - theirs).abs() <= 0.001 + theirs * 1e-12,
                "{ours} ns, {theirs} ns there"
            );
        }
    }
    assert_eq!(roofline(1, 1).time(0, 0), None);
    assert_eq!(roofline(0, 1).time(5, 0), None);
    assert_eq!(roofline(1, 1).time(u64::MAX, 0), Some(Time::ps(u64::MAX)));
}

#[test]
fn computations_take_what_rates_say() {
    let counted = |id, duration, host: bool| {
        Node { duration, ..Node::new(id, "c", 4, &[]) }
            .with("num_ops", Value::Uint64(2_000_000))
            .with("tensor_size", Value::Uint64(1_000))
            .with("is_cpu_op", Value::Bool(host))
    };
    let nodes = [
        counted(1, 0, false),
        counted(2, 9, false),
        counted(3, 9, true),
        Node { duration: 4, ..Node::new(4, "c", 4, &[]) },
    ];
    let bytes = file(&nodes);
    let times = |options| {
        let trace = read_with(options, &bytes);
        let nodes = trace.graphs[0].nodes();
        let time = |work: &Work| match work {
            Work::Compute(one) => one.time,
            other => panic!("{other:?}"),
        };
        (
            nodes.iter().map(|node| time(&node.work)).collect::<Vec<_>>(),
            remarks(&trace, "peak_tflops"),
        )
    };
    let usual = ChakraOptions::default();
    let us = |all: [u64; 4]| all.map(Time::us).to_vec();
    assert_eq!(times(usual), (us([0, 9, 9, 4]), 1));
    // 2 10^6 operations at 10^12 a second; 1000 B at 10^9 B/s take half as long.
    let modelled = ChakraOptions { roofline: roofline(1, 1), ..usual };
    assert_eq!(times(modelled), (us([2, 2, 9, 4]), 0));
    // As elements of 4 B the memory takes longer.
    let elements = ChakraOptions { bytes_per_element: 4, ..modelled };
    assert_eq!(times(elements), (us([4, 4, 9, 4]), 0));
}

/// A file whose metadata name a schema.
fn of_schema(schema: &str, nodes: &[Node]) -> Vec<u8> {
    let mut metadata = Vec::new();
    crate::et::bytes(
        2,
        &crate::et::attribute("schema", &Value::Text(schema.into())),
        &mut metadata,
    );
    let mut out = Vec::new();
    frame(&metadata, &mut out);
    nodes.iter().for_each(|node| frame(&node.encode(), &mut out));
    out
}

#[test]
fn sizes_that_look_like_elements_are_remarked() {
    const ABOUT: &str = "--bytes-per-element";
    let usual = ChakraOptions::default();
    let said = ChakraOptions { bytes_per_element: 2, ..usual };
    let nodes = [Node::collective(1, &[], 0, 64, "")];
    let graph = of_schema("symbolic_tensor_network", &nodes);
    assert_eq!(remarks(&read_with(usual, &graph), ABOUT), 1);
    assert_eq!(remarks(&read_with(said, &graph), ABOUT), 0);
    assert_eq!(remarks(&read_with(usual, &of_schema("1.0.2-chakra.0.0.4", &nodes)), ABOUT), 0);
    // Two tensors of 24 and 40 elements of 4 bytes.
    let inputs = "[[[5, 6, 0, 24, 4, 'cuda:0'], [7, 8, 0, 40, 4, 'cuda:0']], 'x', 3]";
    for (size, expected) in [(64, 1), (256, 0), (8, 0)] {
        let node = Node { inputs: inputs.into(), ..Node::collective(1, &[], 0, size, "") };
        assert_eq!(remarks(&read_with(usual, &file(&[node])), ABOUT), expected, "{size}");
    }
}

#[test]
fn control_dependencies_can_be_ignored() {
    // The second waits for the first by data, the first for the second and for nobody by control.
    let mut first = Node::new(1, "a", 4, &[]);
    first.ctrl = vec![2, 99];
    let bytes = file(&[first, Node::new(2, "b", 4, &[1])]);
    let all = read_with(ChakraOptions::default(), &bytes);
    let findings = check(&all);
    assert_eq!((findings.stuck, findings.is_clean()), (2, false));
    let data = ChakraOptions { dependencies: Dependencies::Data, ..ChakraOptions::default() };
    let data = read_with(data, &bytes);
    assert!(check(&data).is_clean());
    assert_eq!((data.graphs[0].waits(0), data.graphs[0].waits(1)), (&[][..], &[0][..]));
}

#[test]
fn reordered_data_stays_at_its_rank() {
    let named = |id, kind| {
        Node { duration: 3, ..Node::new(id, "DATA_REORDER_1", kind, &[]) }
            .with("tensor_size", Value::Uint64(1000))
    };
    let typed = Node { duration: 3, ..Node::new(4, "x", 7, &[]) }
        .with("comm_type", Value::Text("DATA_REORDER".into()))
        .with("comm_size", Value::Int64(1000));
    let bytes = file(&[named(1, 0), named(2, 7), named(3, 11), typed]);
    for (options, time) in [
        (ChakraOptions::default(), Time::us(3)),
        (ChakraOptions { roofline: roofline(0, 1), ..ChakraOptions::default() }, Time::us(1)),
    ] {
        let trace = read_with(options, &bytes);
        assert!(check(&trace).is_clean());
        for node in trace.graphs[0].nodes() {
            assert_eq!(node.work, Work::Memory(Memory { bytes: 1000, time, store: false }));
        }
    }
    // What has the number of a collective is one, whatever it is called.
    let mut gather = Node::collective(1, &[], 2, 8, "");
    gather.name = "gather, then DATA_REORDER".into();
    let trace = read_with(ChakraOptions::default(), &file(&[gather]));
    assert!(matches!(trace.graphs[0].nodes()[0].work, Work::Collective(_)));
}

#[test]
fn what_is_no_trace_is_named() {
    for (text, expected) in [
        ("Nodes 2\nConnections 1\n0->1 id 1 start 0 size 1\n", "a connection matrix"),
        ("Nodes 4\nTiers 2\nTier 0\n", "a topology"),
        ("{\"preferred-dataset-splits\": 4}", "a system file of ASTRA-sim"),
        ("<algo name=\"a\" nchannels=\"1\">", "a schedule for MSCCL"),
    ] {
        let found = foreign(text.as_bytes()).unwrap_or_else(|| panic!("{text:?}"));
        assert!(found.contains(expected) && found.contains("; "), "{found}");
    }
    for text in ["", "num_ranks", "num_ranks x", "MICRO\n1\n", "{}", "/*", "Nodes 4"] {
        assert_eq!(foreign(text.as_bytes()), None, "{text:?}");
    }
    let trace = file(&[Node::collective(1, &[], 0, 8, "")]);
    assert_eq!(foreign(&trace), None);
}
