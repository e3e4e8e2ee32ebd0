//! Chakra traces: bytes with known meaning, what writers do differently, and damaged files.

use crate::et::{Node, Value, file, frame};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;
use weft_trial::prelude::*;
use weft_units::Time;
use weft_workload::collective::Operation;
use weft_workload::trace::{
    Action, ChakraOptions, ChakraReader, Compute, Gathered, Membership, Memory, Size, Trace,
    TraceFormat, Work, summarise,
};

fn read_with(options: ChakraOptions, ranks: &[Vec<u8>]) -> Result<Trace, String> {
    let mut reader = ChakraReader::new(options);
    for (rank, bytes) in (0u32..).zip(ranks) {
        reader
            .read_rank(rank, &format!("x.{rank}.et"), bytes)
            .map_err(|error| error.to_string())?;
    }
    reader.finish().map_err(|error| error.to_string())
}
fn read(ranks: &[Vec<u8>]) -> Trace {
    read_with(ChakraOptions::default(), ranks).unwrap()
}
fn works(nodes: &[Node]) -> Vec<Work> {
    let trace = read(&[file(nodes)]);
    trace.graphs[0].nodes().iter().map(|node| node.work.clone()).collect()
}
fn refusal(bytes: &[u8]) -> String {
    let line = read_with(ChakraOptions::default(), &[bytes.to_vec()]).unwrap_err();
    assert!(!line.contains('\n'), "{line}");
    line
}

#[test]
fn bytes_by_hand() {
    // Metadata `version = "1"`; then id 2, name "c", type 4, data_deps [1] packed, duration 5;
    // then id 1, name "a", type 7, attributes comm_type (int64) 6 and comm_size (int64) 300.
    let mut bytes = vec![3, 0x0a, 1, b'1'];
    bytes.extend([12, 0x08, 2, 0x12, 1, b'c', 0x18, 4, 0x2a, 1, 1, 0x38, 5]);
    bytes.extend([7 + 2 + 13 + 2 + 14, 0x08, 1, 0x12, 1, b'a', 0x18, 7]);
    bytes.extend([0x52, 13, 0x0a, 9]);
    bytes.extend(b"comm_type");
    bytes.extend([0x48, 6]);
    bytes.extend([0x52, 14, 0x0a, 9]);
    bytes.extend(b"comm_size");
    bytes.extend([0x48, 0xac, 2]);
    let trace = read(&[bytes]);
    let graph = &trace.graphs[0];
    let [first, second] = graph.nodes() else { panic!("{graph:?}") };
    assert_eq!((first.id, &*first.name), (2, "c"));
    assert_eq!(first.work, Work::Compute(Compute { time: Time::us(5), ..Compute::default() }));
    // The parent comes later in the file.
    assert_eq!((graph.waits(0), graph.waits(1)), (&[1u32][..], &[][..]));
    let Work::Collective(collective) = &second.work else { panic!("{second:?}") };
    assert_eq!(collective.action, Action::Operation(Operation::AllToAll));
    assert_eq!((collective.size, collective.group), (Size::Whole(300), 0));
}

#[test]
fn every_kind_of_node() {
    let memory = |kind| Node { duration: 3, ..Node::new(kind, "m", kind, &[]) };
    let works = works(&[
        Node::new(0, "invalid", 0, &[]),
        Node::new(1, "metadata", 1, &[]),
        memory(2).with("tensor_size", Value::Uint64(64)),
        memory(3),
        Node::new(4, "flops", 4, &[])
            .with("num_ops", Value::Int64(9))
            .with("tensor_size", Value::Uint64(8))
            .with("is_cpu_op", Value::Int32(1)),
        Node::new(8, "disk", 8, &[]),
        Node::new(11, "new", 11, &[]),
    ]);
    let load = Memory { bytes: 64, time: Time::us(3), store: false };
    let compute = Compute { time: Time::ZERO, operations: 9, bytes: 8, on_host: true, stream: 0 };
    assert_eq!(works[..2], [Work::Nothing, Work::Nothing]);
    assert_eq!(works[2], Work::Memory(load));
    assert_eq!(works[3], Work::Memory(Memory { bytes: 0, store: true, ..load }));
    assert_eq!(works[4], Work::Compute(compute));
    assert!(works[5..].iter().all(|work| matches!(work, Work::Unsupported(_))));
}

#[test]
fn every_collective() {
    let expected = [
        (0, Operation::AllReduce),
        (1, Operation::Reduce),
        (2, Operation::AllGather),
        (5, Operation::Broadcast),
        (6, Operation::AllToAll),
        (7, Operation::ReduceScatter),
        (8, Operation::ReduceScatter),
    ];
    for (kind, operation) in expected {
        let works = works(&[Node::collective(1, &[], kind, 100, "")]);
        let Work::Collective(one) = &works[0] else { panic!("{works:?}") };
        assert_eq!(one.action, Action::Operation(operation));
        let bytes = if operation == Operation::AllGather { 400 } else { 100 };
        assert_eq!(one.bytes(4), bytes);
    }
    let barrier = Node::new(1, "b", 7, &[]).with("comm_type", Value::Int64(9));
    assert!(
        matches!(&works(&[barrier])[0], Work::Collective(one) if one.action == Action::Barrier)
    );
    for kind in [3, 4, 10] {
        let works = works(&[Node::collective(1, &[], kind, 100, "")]);
        assert!(matches!(works[0], Work::Unsupported(_)), "{works:?}");
    }
}

#[test]
fn sizes_in_elements_and_whole_gathers() {
    let bytes = file(&[Node::collective(1, &[], 2, 100, "")]);
    let options = ChakraOptions { bytes_per_element: 2, ..ChakraOptions::default() };
    let size = |options| {
        let trace = read_with(options, std::slice::from_ref(&bytes)).unwrap();
        let Work::Collective(one) = &trace.graphs[0].nodes()[0].work else { panic!() };
        one.size
    };
    assert_eq!(size(options), Size::Shard(200));
    assert_eq!(size(ChakraOptions { gathered: Gathered::Whole, ..options }), Size::Whole(200));
    let huge = ChakraOptions { bytes_per_element: u64::MAX, ..options };
    let line = read_with(huge, &[bytes]).unwrap_err();
    assert!(line.starts_with("x.0.et: node 1 (\"collective\"): comm_size exceeds"), "{line}");
}

#[test]
fn writers_differ_in_types() {
    // All of these say the same.
    let sizes = [
        Value::Int32(4096),
        Value::Int64(4096),
        Value::Uint64(4096),
        Value::Sint64(4096),
        Value::Fixed64(4096),
        Value::Double(4096.0),
        Value::Text("4096".into()),
        Value::Int64List(vec![4096]),
    ];
    for size in sizes {
        let node = Node::new(1, "c", 7, &[])
            .with("comm_type", Value::Text("7".into()))
            .with("is_cpu_op", Value::Int32(0))
            .with("unknown", Value::Int64List(vec![1, 2]))
            .with("comm_size", size.clone());
        let works = works(&[node]);
        let Work::Collective(one) = &works[0] else { panic!("{size:?}: {works:?}") };
        assert_eq!(one.bytes(4), 4096, "{size:?}");
    }
    for size in [Value::Int64(-1), Value::Double(0.5), Value::Int64List(vec![1, 2])] {
        let node = Node::new(3, "c", 7, &[]).with("comm_size", size);
        let line = refusal(&file(&[node]));
        assert!(line.starts_with("x.0.et: node 3 (\"c\"): comm_size is not a whole"), "{line}");
    }
}

#[test]
fn the_host_side_of_a_communication_does_nothing() {
    let host = |flag: Value| Node::new(1, "c10d::allreduce_", 7, &[]).with("is_cpu_op", flag);
    assert_eq!(works(&[host(Value::Bool(true))]), [Work::Nothing]);
    assert_eq!(works(&[host(Value::Int32(1))]), [Work::Nothing]);
    // On the accelerator it should have a size.
    assert!(matches!(works(&[host(Value::Bool(false))])[0], Work::Unsupported(_)));
    let send = Node::new(1, "c10d::send", 5, &[]).with("is_cpu_op", Value::Bool(true));
    assert_eq!(works(&[send]), [Work::Nothing]);
}

#[test]
fn sends_and_receives() {
    let tag = |node: Node, tag| node.with("comm_tag", Value::Int32(tag));
    let nodes = [
        Node::send(1, &[], 1, 10),
        tag(Node::send(2, &[], 1, 20), 7),
        Node::send(3, &[], 1, 30),
        // Ids, not the order in the file, number the messages.
        Node::receive(5, &[], 1, 5),
        Node::receive(4, &[], 1, 6),
    ];
    let works = works(&nodes);
    let transfer = |work: &Work| match work {
        Work::Send(one) | Work::Receive(one) => (one.peer.of(0), one.bytes, one.tag, one.turn),
        other => panic!("{other:?}"),
    };
    let all: Vec<_> = works.iter().map(transfer).collect();
    assert_eq!(all, [(1, 10, 0, 0), (1, 20, 7, 0), (1, 30, 0, 1), (1, 5, 0, 1), (1, 6, 0, 0)]);
    let stranger = Node::send(1, &[], 1, 10).with("comm_src", Value::Int32(3));
    let line = refusal(&file(&[stranger]));
    assert!(line.contains("comm_src is 3, but this is the trace of rank 0"), "{line}");
}

#[test]
fn process_groups_from_a_file() {
    let bytes = |group: &str| file(&[Node::collective(1, &[], 0, 8, group)]);
    let mut reader = ChakraReader::new(ChakraOptions::default());
    reader.read_groups("g.json", r#"{"1": [0, 2], "2": [1]}"#).unwrap();
    for (rank, group) in [(0, "1"), (1, "2"), (2, "1")] {
        reader.read_rank(rank, "x.et", &bytes(group)).unwrap();
    }
    let trace = reader.finish().unwrap();
    assert_eq!(trace.groups.len(), 3);
    let group = |rank: u32| match &trace.graph(rank).nodes()[0].work {
        Work::Collective(one) => one.group,
        other => panic!("{other:?}"),
    };
    assert_eq!(group(0), group(2));
    let members = trace.members(group(0), 2).unwrap();
    assert_eq!((members.iter().collect::<Vec<_>>(), members.place(2)), (vec![0, 2], Some(1)));
    assert!(trace.members(group(0), 1).is_none());
    // No name and "0" are all ranks.
    for name in ["", "0"] {
        let trace = read(&[bytes(name), bytes(name)]);
        assert_eq!(trace.members(0, 1).unwrap().len(), 2);
        assert_eq!(trace.groups.len(), 1);
    }
    let line = refusal(&bytes("7"));
    assert!(line.contains("process group \"7\" is not known (no process-group file was"), "{line}");
    assert!(line.contains("--process-groups"), "{line}");
}

#[test]
fn process_groups_from_pytorch() {
    let inputs = [
        r#"['[{"pg_name": "0", "ranks": [], "group_size": 4}, {"pg_name": "3", "ranks": [0, 1]}]']"#,
        r#"["[{\"pg_name\": 3, \"ranks\": [0, 1]}]"]"#,
        r#"['[{"pg_name": "3", "ranks": {"0": 0, "1": 1}}]']"#,
    ];
    for inputs in inputs {
        // The metadata may come after its use.
        let nodes = [
            Node::collective(2, &[1], 0, 8, "3"),
            Node { inputs: inputs.into(), ..Node::new(1, "## process_group:init ##", 1, &[]) },
        ];
        let trace = read(&[file(&nodes)]);
        let members = Membership::Listed(vec![0, 1]);
        assert_eq!((trace.groups.len(), &trace.groups[1].members), (2, &members), "{inputs}");
        assert_eq!(trace.groups[1].name, "3");
    }
    for inputs in ["['pg_name [{]']", "['[{\"pg_name\": \"3\"}]']", "pg_name"] {
        let broken = Node { inputs: inputs.into(), ..Node::new(1, "init", 1, &[]) };
        let remarks = read(&[file(&[broken])]).remarks;
        assert!(remarks[0].what.starts_with("process-group metadata"), "{remarks:?}");
    }
}

#[test]
fn group_files_that_are_none() {
    for (text, expected) in [
        ("{", "not a process-group file"),
        ("[]", "not a process-group file (no object)"),
        (r#"{"1": 5}"#, "group \"1\": not a list of ranks"),
        (r#"{"1": [-1]}"#, "group \"1\": not a list of ranks"),
        (r#"{"1": []}"#, "group \"1\": has no ranks"),
        (r#"{"1": [4, 4]}"#, "group \"1\": names rank 4 twice"),
    ] {
        let mut reader = ChakraReader::new(ChakraOptions::default());
        let line = reader.read_groups("g.json", text).unwrap_err().to_string();
        assert!(line.starts_with("g.json: ") && line.contains(expected), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
}

#[test]
fn some_dimensions_only_is_remarked() {
    let dims = |dims: &[bool]| {
        let node = Node::collective(1, &[], 0, 8, "");
        let bytes = file(&[node.with("involved_dim", Value::BoolList(dims.to_vec()))]);
        read(&[bytes.clone(), bytes])
    };
    assert_eq!(dims(&[true, true]).remarks.len(), 0);
    assert_eq!(dims(&[true, false]).remarks[0].count, 2);
}

#[test]
fn start_times_are_counted_from_the_first() {
    let rank = |start| file(&[Node { start, ..Node::new(1, "a", 4, &[]) }]);
    let ranks = [rank(1_000_005), rank(1_000_002)];
    let starts = |options| {
        let trace = read_with(options, &ranks).unwrap();
        [0, 1].map(|rank| trace.graph(rank).nodes()[0].start)
    };
    assert_eq!(starts(ChakraOptions::default()), [Time::ZERO; 2]);
    let options = ChakraOptions { start_times: true, ..ChakraOptions::default() };
    assert_eq!(starts(options), [Time::us(3), Time::ZERO]);
}

#[test]
fn control_and_data_dependencies_count_once() {
    let both = Node { ctrl: vec![1, 2, 1], ..Node::new(3, "c", 4, &[2, 1]) };
    let nodes = [Node::new(1, "a", 4, &[]), Node::new(2, "b", 4, &[]), both];
    let trace = read(&[file(&nodes)]);
    assert_eq!(trace.graphs[0].waits(2), [0, 1]);
    assert_eq!(trace.graphs[0].dependency_count(), 2);
}

#[test]
fn files_that_begin_without_metadata_or_with_an_empty_one() {
    let mut bare = Vec::new();
    frame(&Node::new(0, "a", 4, &[]).encode(), &mut bare);
    assert_eq!(read(&[bare.clone()]).graphs[0].nodes().len(), 1);
    let empty = [&[0][..], &bare].concat();
    assert_eq!(read(&[empty]).graphs[0].nodes().len(), 1);
}

#[test]
fn gzipped_files() {
    let bytes = file(&[Node::collective(1, &[], 0, 8, ""), Node::new(2, "b", 4, &[1])]);
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&bytes).unwrap();
    let packed = packed.finish().unwrap();
    assert_eq!(summarise(&read(std::slice::from_ref(&packed))).nodes, 2);
    let line = refusal(&packed[..packed.len() - 5]);
    assert!(line.contains("the gzip file is cut off or damaged"), "{line}");
    for end in 2..packed.len() {
        refusal(&packed[..end]);
    }
}

#[test]
fn files_that_are_none() {
    let node = Node::new(1, "a", 4, &[]);
    let twice = refusal(&file(&[node.clone(), node]));
    assert!(twice.contains("node 1 (\"a\"): another node has this id"), "{twice}");
    assert!(refusal(b"").contains("the file is empty"));
    assert!(refusal(br#"{"nodes": []}"#).contains("a trace in JSON"));
    assert!(refusal(b"HYBRID_DATA_MODEL\n37\n").contains("byte 0: a message of 72 bytes"));
    // Attributes in field 11, each with the number of its type in field 2.
    let mut attribute = Vec::new();
    crate::et::bytes(1, b"comm_size", &mut attribute);
    crate::et::number(2, 3, &mut attribute);
    crate::et::number(7, 4096, &mut attribute);
    let mut node = Node::new(1, "a", 7, &[]).encode();
    crate::et::bytes(5, b"['inputs']", &mut node);
    crate::et::bytes(11, &attribute, &mut node);
    let mut old = vec![0];
    frame(&node, &mut old);
    assert!(refusal(&old).contains("a node of Chakra's first schema (2023)"));
    // A group of protobuf 2, and field 0.
    assert!(refusal(&[0, 2, 0x0b, 1]).contains("byte 2 (message 1): no field is written this way"));
    assert!(refusal(&[0, 2, 0x00, 1]).contains("no field has this number"));
    assert!(refusal(&[0xff; 12]).contains("no message has this length"));
}

#[test]
fn truncation_tells_where() {
    let nodes = [Node::new(1, "a", 4, &[]), Node::new(2, "b", 4, &[1])];
    let bytes = file(&nodes);
    // Metadata 8 bytes, the first node 8; the second begins with its length at 16.
    let line = refusal(&bytes[..20]);
    assert!(line.starts_with("x.0.et: byte 16: a message of 10 bytes begins here, "), "{line}");
    assert!(line.ends_with("the last whole node is 1 (\"a\")"), "{line}");
    assert!(
        line.contains("of which the file has only 3 (the metadata and 1 node were read before)"),
        "{line}"
    );
    // What a system leaves that failed before all of it was on the disk.
    let line = refusal(&[&bytes[..16], &[0; 9]].concat());
    assert!(line.starts_with("x.0.et: byte 16: a message of 0 bytes begins here "), "{line}");
}

#[test]
fn ranks_and_file_names() {
    let rank_of_file = |name| ChakraOptions::INFO.rank_of_file(name);
    assert_eq!(rank_of_file("all_gather.13.et"), Some(("all_gather", 13)));
    assert_eq!(rank_of_file("a/b.c.0.et.gz"), Some(("a/b.c", 0)));
    assert_eq!(
        (rank_of_file("13.et"), rank_of_file("a.x.et"), rank_of_file("a.1")),
        (None, None, None)
    );
    let bytes = file(&[]);
    let mut reader = ChakraReader::new(ChakraOptions::default());
    reader.read_rank(0, "a.0.et", &bytes).unwrap();
    let line = reader.read_rank(0, "b.0.et", &bytes).unwrap_err().to_string();
    assert_eq!(line, "b.0.et: rank 0 is already in a.0.et; give one file a rank");
    reader.read_rank(2, "a.2.et", &bytes).unwrap();
    let line = reader.finish().unwrap_err().to_string();
    assert!(line.contains("rank 2 but none of rank 1"), "{line}");
    assert!(ChakraReader::new(ChakraOptions::default()).finish().is_err());
    let trace = read(&[bytes.clone(), bytes]);
    assert!(trace.clone().for_ranks(2).is_ok());
    assert!(trace.for_ranks(4).unwrap_err().to_string().contains("has 2 ranks, not 4"));
}

fn value() -> impl Strategy<Value = Value> {
    let small = 0i64..1 << 40;
    prop_oneof![
        any::<i32>().prop_map(|number| Value::Int32(number.into())),
        small.clone().prop_map(Value::Int64),
        any::<u64>().prop_map(Value::Uint64),
        any::<bool>().prop_map(Value::Bool),
        "[a-z0-9]{0,5}".prop_map(Value::Text),
        any::<f64>().prop_map(Value::Double),
        any::<i64>().prop_map(Value::Sint64),
        any::<u64>().prop_map(Value::Fixed64),
        prop::collection::vec(any::<i64>(), 0..3).prop_map(Value::Int64List),
        prop::collection::vec(any::<bool>(), 0..3).prop_map(Value::BoolList),
    ]
}
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("comm_size".to_string()),
        Just("comm_type".to_string()),
        Just("pg_name".to_string()),
        Just("is_cpu_op".to_string()),
        Just("involved_dim".to_string()),
        "[a-z_]{0,8}",
    ]
}

/// Nodes that every reader understands, in any order.
fn nodes() -> impl Strategy<Value = Vec<Node>> {
    let node = (any::<u64>(), "[a-zA-Z0-9_]{0,12}", 2u64..8, 0i64..1 << 40, 0u64..1 << 30);
    let node = (node, prop::collection::vec(any::<prop::sample::Index>(), 0..4), any::<bool>());
    prop::collection::btree_map(any::<u64>(), node, 1..20).prop_map(|by_id| {
        let ids: Vec<u64> = by_id.keys().copied().collect();
        let mut nodes: Vec<(u64, Node)> = by_id
            .into_iter()
            .map(|(id, ((place, name, kind, size, duration), waits, control))| {
                let waits: Vec<u64> = waits.iter().map(|wait| *wait.get(&ids)).collect();
                let (ctrl, data) = if control { (waits, vec![]) } else { (vec![], waits) };
                let node = Node { id, name, kind, ctrl, data, duration, ..Node::default() }
                    .with("comm_size", Value::Int64(size))
                    .with("comm_type", Value::Int64(7))
                    .with("comm_src", Value::Int32(0))
                    .with("comm_dst", Value::Int32(0));
                (place, node)
            })
            .collect();
        nodes.sort_by_key(|(place, _)| *place);
        nodes.into_iter().map(|(_, node)| node).collect()
    })
}

trials! {
    fn what_is_written_is_read(nodes in nodes()) {
        let trace = read(&[file(&nodes)]);
        let graph = &trace.graphs[0];
        prop_assert_eq!(graph.nodes().len(), nodes.len());
        for (at, (read, written)) in (0u32..).zip(graph.nodes().iter().zip(&nodes)) {
            prop_assert_eq!((read.id, &*read.name), (written.id, &*written.name));
            let mut waits: Vec<u64> = written.ctrl.iter().chain(&written.data).copied().collect();
            let mut found: Vec<u64> = graph
                .waits(at)
                .iter()
                .map(|wait| graph.nodes()[*wait as usize].id)
                .collect();
            waits.sort_unstable();
            waits.dedup();
            found.sort_unstable();
            prop_assert_eq!(waits, found);
            let Value::Int64(size) = written.attributes[0].1 else { unreachable!() };
            match (&read.work, written.kind) {
                (Work::Memory(one), 2 | 3) => prop_assert_eq!(one.store, written.kind == 3),
                (Work::Compute(one), 4) => prop_assert_eq!(one.time, Time::us(written.duration)),
                (Work::Send(one), 5) | (Work::Receive(one), 6) => {
                    prop_assert_eq!(one.bytes, size as u64);
                }
                (Work::Collective(one), 7) => prop_assert_eq!(one.size, Size::Whole(size as u64)),
                (work, kind) => prop_assert!(false, "{:?} for type {}", work, kind),
            }
        }
    }

    fn a_file_cut_anywhere_is_refused_or_shorter(nodes in nodes()) {
        let bytes = file(&nodes);
        for end in 0..bytes.len() {
            match read_with(ChakraOptions::default(), &[bytes[..end].to_vec()]) {
                // Cut between two messages: only what waits for the rest can tell.
                Ok(trace) => prop_assert!(trace.graphs[0].nodes().len() < nodes.len()),
                Err(line) => {
                    prop_assert!(line.starts_with("x.0.et: ") && !line.contains('\n'));
                }
            }
        }
    }

    fn no_bytes_make_it_panic(
        nodes in nodes(),
        extra in prop::collection::vec((key(), value()), 0..6),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        noise in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut nodes = nodes;
        for (at, (key, value)) in extra.into_iter().enumerate() {
            let at = at % nodes.len();
            nodes[at].attributes.push((key, value));
        }
        let mut bytes = file(&nodes);
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        for bytes in [bytes, noise.clone(), [&[0], &noise[..]].concat()] {
            if let Ok(trace) = read_with(ChakraOptions::default(), &[bytes]) {
                summarise(&trace);
                weft_workload::trace::check(&trace);
            }
        }
    }
}
