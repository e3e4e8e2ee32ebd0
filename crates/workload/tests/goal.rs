//! GOAL: both forms, by hand and of other tools; what is written is read as the same job.

use std::collections::BTreeMap;
use std::path::PathBuf;
use weft_trial::prelude::*;
use weft_units::Time;
use weft_workload::collective::{Algorithm, Operation};
use weft_workload::job::{Algorithms, Job};
use weft_workload::trace::{
    Collective, Compute, Degrees, Export, Group, Membership, Node, Peer, RankGraph, SideFile, Size,
    Trace, TraceFile, TraceFormats, TraceSource, Transfer, Work, check,
};
use weft_workload::{WorkloadError, read_cm};

struct One(Option<TraceFile>);

impl TraceSource for One {
    fn next_file(&mut self) -> Result<Option<TraceFile>, WorkloadError> {
        Ok(self.0.take())
    }
    fn side_file(&mut self) -> Result<Option<SideFile>, WorkloadError> {
        Ok(None)
    }
}

fn read(name: &str, bytes: &[u8], given: &[(&str, &str)]) -> Result<Trace, WorkloadError> {
    let (formats, _) = TraceFormats::resolve(given).unwrap();
    let info = weft_workload::trace::TRACE_FORMATS;
    let info = info.iter().find(|info| info.name == "GOAL schedule").unwrap();
    let file = TraceFile { rank: 0, name: name.into(), bytes: bytes.to_vec() };
    formats.load(info, &mut One(Some(file)))
}
fn text(text: &str) -> Result<Trace, WorkloadError> {
    read("a.goal", text.as_bytes(), &[])
}
fn refused(goal: &str) -> String {
    text(goal).unwrap_err().0
}

/// The folder of real files, or `None`, with a line saying so.
#[allow(clippy::disallowed_methods)]
fn real(name: &str) -> Option<Vec<u8>> {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces/goal").join(name);
    let bytes = std::fs::read(&path).ok();
    if bytes.is_none() {
        eprintln!("skipped: no {}", path.display());
    }
    bytes
}

/// Nodes with what they wait for, without their names and numbers.
fn content(graph: &RankGraph) -> Vec<(Work, Vec<u32>)> {
    let nodes = (0u32..).zip(graph.nodes());
    nodes.map(|(index, node)| (node.work.clone(), graph.waits(index).to_vec())).collect()
}
fn works(trace: &Trace, rank: u32) -> Vec<String> {
    let one = |(work, waits): (Work, Vec<u32>)| {
        let what = match work {
            Work::Compute(one) => format!("calc {} on {}", one.time.0, one.stream),
            Work::Send(one) => format!("send {} to {:?} tag {}", one.bytes, one.peer, one.tag),
            Work::Receive(one) => format!("recv {} of {:?} tag {}", one.bytes, one.peer, one.tag),
            other => other.kind().to_owned(),
        };
        format!("{what} after {waits:?}")
    };
    content(trace.graph(rank)).into_iter().map(one).collect()
}

#[test]
fn statements_become_nodes() {
    let trace = text(
        "/* two\nranks */ num_ranks 2 // two\n\nrank 0 {\na: calc 1000 cpu 1\nb: send 100000b to 1 tag 7 \
         cpu 0 nic 0\nb requires a\n  c : calc 5\nc requires b }\n",
    );
    // The brace stands on a line of its own.
    assert!(trace.is_err());
    let trace = text(
        "/* two\nranks */ num_ranks 2 // two\n\nrank 0 {\na: calc 1000 cpu 1\nb: send 100000b to 1 tag 7 \
         cpu 0 nic 0\nb requires a\n  c : calc 5\nc requires b\n}\nrank 1{\nrecv 100000b from 0 tag 7\n}\n\
         what follows is not read",
    )
    .unwrap();
    let expected = [
        "calc 1000000 on 1 after []",
        "send 100000 to Rank(1) tag 7 after [0]",
        "calc 5000 on 0 after [1]",
    ];
    assert_eq!(works(&trace, 0), expected);
    assert_eq!(works(&trace, 1), ["recv 100000 of Rank(0) tag 7 after []"]);
    assert_eq!(trace.graph(0).label(1), "node 6 (\"b\")");
    assert!(check(&trace).is_clean());
}

/// One computation at a time on a CPU, in the order of the file; CPUs go on side by side.
#[test]
fn cpus_go_on_side_by_side() {
    let lasts = |cpus: [u32; 3]| {
        let calcs: String = cpus.iter().map(|cpu| format!("calc 1000 cpu {cpu}\n")).collect();
        let trace = text(&format!("num_ranks 2\nrank 0 {{\n{calcs}}}\nrank 1 {{\n}}\n")).unwrap();
        let job = Job::new(trace, Algorithms::usual()).unwrap();
        assert_eq!(job.computing(), end(&job).0);
        end(&job).0
    };
    assert_eq!(lasts([0, 0, 0]), Time::ps(3_000_000));
    assert_eq!(lasts([0, 1, 0]), Time::ps(2_000_000));
    assert_eq!(lasts([0, 1, 2]), Time::ps(1_000_000));
}

/// What waits for a small send waits for what the send waits for; `eager` says what is small.
#[test]
fn small_sends_are_over_when_they_are_posted() {
    let goal = "num_ranks 2\nrank 0 {\na: calc 9\nb: send 100b to 1\nb requires a\nc: calc 5\nc requires b\n}\n\
                rank 1 {\nr: recv 100b from 0\n}\n";
    let eager = [
        "calc 9000 on 0 after []",
        "nothing after [0]",
        "send 100 to Rank(1) tag 0 after [1]",
        "calc 5000 on 0 after [1]",
    ];
    assert_eq!(works(&text(goal).unwrap(), 0), eager);
    let late = [
        "calc 9000 on 0 after []",
        "send 100 to Rank(1) tag 0 after [0]",
        "calc 5000 on 0 after [1]",
    ];
    let trace = read("a.goal", goal.as_bytes(), &[("eager", "99B")]).unwrap();
    assert_eq!(works(&trace, 0), late);
    let busy = [
        "calc 9000 on 0 after []",
        "calc 3000 on 0 after [0]",
        "send 100 to Rank(1) tag 0 after [1]",
        "calc 5000 on 0 after [1]",
    ];
    let trace = read("a.goal", goal.as_bytes(), &[("overhead", "3ns")]).unwrap();
    assert_eq!(works(&trace, 0), busy);
    assert_eq!(
        works(&trace, 1),
        ["recv 100 of Rank(0) tag 0 after []", "calc 3000 on 0 after [0]"]
    );
}

#[test]
fn irequires_waits_for_what_the_other_waits_for() {
    let goal = "num_ranks 2\nrank 0 {\na: calc 9\nb: send 100000b to 1\nb requires a\nc: calc 5\nc irequires b\n}\n\
                rank 1 {\nr: recv 100000b from 0\n}\n";
    let expected = [
        "calc 9000 on 0 after []",
        "nothing after [0]",
        "send 100000 to Rank(1) tag 0 after [1]",
        "calc 5000 on 0 after [1]",
    ];
    assert_eq!(works(&text(goal).unwrap(), 0), expected);
}

#[test]
fn receives_from_anybody_get_what_no_other_receive_names() {
    let goal = "num_ranks 3\nrank 0 {\nx: recv 5b from -1 tag -1\ny: recv 6b from 2 tag 4\nz: recv 5b from -1 tag 9\n}\n\
                rank 1 {\ns: send 5b to 0 tag 8\n}\nrank 2 {\ns: send 6b to 0 tag 4\nt: send 5b to 0 tag 9\n}\n";
    let trace = text(goal).unwrap();
    let expected = [
        "recv 5 of Rank(1) tag 8 after []",
        "recv 6 of Rank(2) tag 4 after []",
        "recv 5 of Rank(2) tag 9 after []",
    ];
    assert_eq!(works(&trace, 0), expected);
    assert_eq!(trace.remarks[0].count, 2);
    assert!(check(&trace).is_clean());
    let lonely = refused("num_ranks 2\nrank 0 {\nx: recv 5b from -1\n}\nrank 1 {\n}\n");
    assert!(lonely.starts_with("a.goal: rank 0, line or record 3: waits for"), "{lonely}");
}

#[test]
fn errors_name_the_line_and_the_mend() {
    let cases = [
        ("num_ranks 2\nrank 0 {\n", "a.goal:2: the file ends within the block of rank 0"),
        ("num_ranks 2\nrank 0 {\n}\n", "a.goal:3: the file ends before the block of rank 1 of 2"),
        ("num_ranks 2\nrank 1 {\n}\n", "a.goal:2: \"rank 1 {\" is not the block of rank 0"),
        ("num_ranks 1\nrank 0 {\n}\nrank 1 {\n}\n", "a.goal:4: \"rank 1 {\" is one rank more"),
        ("num_ranks 0\n", "a.goal:1: there are no ranks"),
        ("num_ranks x\n", "a.goal:1: num_ranks is \"x\""),
        ("num_ranks 2\nrank 0 {\nsnd 5b to 1\n", "a.goal:3: \"snd 5b to 1\" is no statement"),
        ("num_ranks 2\nrank 0 {\nsend 5b to 2\n", "a.goal:3: there is no rank 2"),
        ("num_ranks 2\nrank 0 {\nsend 5b to 0\n", "a.goal:3: rank 0 sends to itself"),
        ("num_ranks 2\nrank 0 {\nsend 5 to 1\n", "a.goal:3: \"5\" is no size"),
        (
            "num_ranks 2\nrank 0 {\nsend 5b to 1 nic 0 cpu 1\n",
            "a.goal:3: \"cpu\" is not expected here",
        ),
        ("num_ranks 2\nrank 0 {\ncalc 5 nic 1\n", "a.goal:3: \"nic\" is not expected here"),
        (
            "num_ranks 2\nrank 0 {\ncalc 99999999999999999\n",
            "a.goal:3: computes longer than 213 days",
        ),
        (
            "num_ranks 2\nrank 0 {\na: calc 5\na: calc 6\n",
            "a.goal:4: the label \"a\" is already used",
        ),
        (
            "num_ranks 2\nrank 0 {\na: calc 5\na requires b\n",
            "a.goal:4: no statement above has the label \"b\"",
        ),
        ("num_ranks 2\nrank 0 {\n9: calc 5\n", "a.goal:3: \"9\" is no label"),
        ("num_ranks 2\nrank 0 {\nsend 5b to 1 tag -1\n", "a.goal:3: a send needs a tag"),
        ("num_ranks 2\nrank 0 {\ncalc 5 cpu 256\n", "a.goal:3: cpu is \"256\""),
    ];
    for (goal, expected) in cases {
        let line = refused(goal);
        assert!(
            line.starts_with(expected) && line.contains("; ") && !line.contains('\n'),
            "{line}"
        );
    }
    let unmet = text("num_ranks 2\nrank 0 {\nsend 5b to 1\n}\nrank 1 {\n}\n").unwrap();
    let problem = &check(&unmet).problems[0];
    assert!(problem.starts_with("a.goal: rank 0: node 3: sends message 1"), "{problem}");
}

/// Both forms of the same schedule, as `txt2bin` made one of the other; this writer makes the same bytes.
#[test]
fn both_forms_of_a_real_file_agree() {
    let (Some(goal), Some(bin)) = (real("perm64.goal"), real("perm64.bin")) else { return };
    let name = "perm64";
    let (from_text, from_bin) = (read(name, &goal, &[]).unwrap(), read(name, &bin, &[]).unwrap());
    assert_eq!(from_text.graphs.iter().map(|graph| graph.nodes().len()).sum::<usize>(), 128);
    assert_eq!((from_text.ranks, from_bin.ranks), (Some(64), Some(64)));
    for rank in 0..64 {
        assert_eq!(content(from_text.graph(rank)), content(from_bin.graph(rank)), "{rank}");
    }
    let trace = read(name, &goal, &[("eager", "0B")]).unwrap();
    let written = Export::named("goal-binary").unwrap().write(&trace).unwrap();
    // Not printed, since it is long.
    assert!(written.files[0].1 == bin);
}

#[test]
fn real_files_can_run() {
    for name in
        ["perm64.goal", "incast128.bin", "binary_tree_32.goal", "chained_1.goal", "chained_1.bin"]
    {
        let Some(bytes) = real(name) else { return };
        assert!(check(&read(name, &bytes, &[]).unwrap()).is_clean(), "{name}");
    }
}

/// A step of a random schedule: sender, distance to the receiver, bytes, computation in ns, cpu, and whether
/// send and receive wait for what their ranks did before.
type Step = (u32, u32, u64, u64, u32, (bool, bool));

/// The job of these steps, among 6 ranks.
fn job_of(steps: &[Step]) -> Trace {
    let mut graphs: Vec<RankGraph> = (0..6).map(|rank| RankGraph::new(&rank.to_string())).collect();
    let add = |graph: &mut RankGraph, work: Work, waits: bool| {
        let id = graph.nodes().len() as u64;
        let before: Vec<u32> = (0..id as u32).rev().take(if waits { 2 } else { 0 }).collect();
        graph.push(Node { id, name: "".into(), work, start: Time::ZERO }, &before);
    };
    for (src, ahead, bytes, nanos, stream, (sent, received)) in steps {
        let dst = (src + ahead) % 6;
        let one = |peer| Transfer { peer: Peer::Rank(peer), bytes: *bytes, tag: 3, turn: 0 };
        if *nanos > 0 {
            let time = Time::ps(nanos * 1_000);
            let compute = Compute { time, stream: *stream, ..Compute::default() };
            add(&mut graphs[*src as usize], Work::Compute(compute), *sent);
        }
        add(&mut graphs[*src as usize], Work::Send(one(dst)), *sent || *nanos > 0);
        add(&mut graphs[dst as usize], Work::Receive(one(*src)), *received);
    }
    graphs.iter_mut().for_each(RankGraph::number_turns);
    Trace {
        name: "random".into(),
        ranks: Some(6),
        graphs,
        shared: false,
        groups: vec![Group { name: "all".into(), members: Membership::World }],
        degrees: Degrees::NONE,
        exchanges: Vec::new(),
        carried: Vec::new(),
        remarks: Vec::new(),
    }
}

trials! {
    #![cases(64)]

    /// Any schedule, written in any form and read again, is the same to the last dependency, and takes as long.
    fn schedules_survive_both_forms(
        steps in prop::collection::vec(
            (0u32..6, 1u32..6, 1u64..1 << 30, 0u64..9_000, 0u32..4, any::<(bool, bool)>()), 1..40,
        ),
    ) {
        let trace = job_of(&steps);
        prop_assert!(check(&trace).is_clean());
        for format in ["goal", "goal-binary"] {
            let written = Export::named(format).unwrap().write(&trace).unwrap();
            let again = read("b", &written.files[0].1, &[("eager", "0B")]).unwrap();
            for rank in 0..6 {
                prop_assert_eq!(content(trace.graph(rank)), content(again.graph(rank)));
            }
            let job = |trace: Trace| Job::new(trace, Algorithms::usual()).unwrap();
            prop_assert_eq!(end(&job(trace.clone())), end(&job(again)));
        }
    }

    /// As a connection matrix it is refused in a line, or has all messages.
    fn matrices_have_all_messages(
        steps in prop::collection::vec(
            (0u32..6, 1u32..6, 1u64..1 << 30, Just(0), 0u32..4, any::<(bool, bool)>()), 1..12,
        ),
    ) {
        let trace = job_of(&steps);
        match Export::named("cm").unwrap().write(&trace) {
            Err(WorkloadError(line)) => prop_assert!(!line.contains('\n') && line.contains("; ")),
            Ok(written) => {
                let text = String::from_utf8(written.files[0].1.clone()).unwrap();
                let workload = read_cm("a.cm", &text).unwrap();
                let bytes: u64 = steps.iter().map(|step| step.2).sum();
                prop_assert_eq!(workload.messages().len(), steps.len());
                prop_assert_eq!(workload.total_bytes(), bytes);
            }
        }
    }
}

fn collective(operation: Operation, ranks: u32) -> Trace {
    let one = Collective {
        action: weft_workload::trace::Action::Operation(operation),
        size: Size::Whole(40_000),
        group: 0,
        root: 0,
        turn: 0,
    };
    Trace::of_collective(one, 2, Degrees::NONE, ranks).unwrap()
}

/// What ranks send to whom, and how often.
fn traffic(job: &Job) -> BTreeMap<(u32, u32, u64), u64> {
    let mut all = BTreeMap::new();
    let _ = job.traffic(|one| {
        *all.entry((one.src, one.dst, one.bytes)).or_default() += one.times;
        std::ops::ControlFlow::Continue(())
    });
    all
}

/// A job that is written out, written down and read again sends the same in the same steps.
#[test]
fn what_is_written_is_read_as_the_same_job() {
    for (operation, name, ranks) in [
        (Operation::AllReduce, "ring", 5),
        (Operation::AllReduce, "double-binary-tree", 7),
        (Operation::AllReduce, "recursive-doubling", 8),
        (Operation::AllGather, "ring", 4),
        (Operation::AllToAll, "direct", 6),
        (Operation::Broadcast, "ring", 5),
    ] {
        let Ok(algorithm) = Algorithm::read(name, &[]) else { panic!("{name}") };
        let algorithms = Algorithms::usual().with(operation, algorithm);
        let job = Job::new(collective(operation, ranks), algorithms).unwrap().in_chunks(3);
        let trace = job.unfolded().unwrap();
        assert!(check(&trace).is_clean(), "{name}: {:?}", check(&trace).problems);
        for format in ["goal", "goal-binary"] {
            let written = Export::named(format).unwrap().write(&trace).unwrap();
            let again = read("b", &written.files[0].1, &[("eager", "0B")]).unwrap();
            let again = Job::new(again, Algorithms::usual()).unwrap();
            assert_eq!(traffic(&again), traffic(&job), "{name} {format}");
            assert_eq!(levels(&again), levels(&job), "{name} {format}");
            assert_eq!(end(&again), end(&job), "{name} {format}");
        }
    }
}

/// When it is over on a network where messages are not in each other's way.
fn end(job: &Job) -> (Time, u64, u64) {
    let ideal = crate::ideal::Ideal { latency: Time::ps(1_000_000), ps_per_byte: 20 };
    let outcome = crate::ideal::run(job, ideal);
    (outcome.end, outcome.messages, outcome.bytes)
}

fn levels(job: &Job) -> Vec<Vec<(u32, u32, u64)>> {
    let mut all = Vec::new();
    job.levels(|level| {
        let mut level: Vec<_> = level.iter().map(|one| (one.src, one.dst, one.bytes)).collect();
        level.sort_unstable();
        all.push(level);
    });
    all
}

#[test]
fn peers_are_ranks() {
    let trace =
        text("num_ranks 2\nrank 0 {\nsend 5b to 1\n}\nrank 1 {\nrecv 5b from 0\n}\n").unwrap();
    let Work::Send(one) = &trace.graph(0).nodes()[0].work else { panic!("a send") };
    assert_eq!((one.peer, trace.graph(0).nodes()[0].start), (Peer::Rank(1), Time::ZERO));
}
