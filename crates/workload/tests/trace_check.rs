//! Traces that can never finish: what is said about them.

use crate::et::{Node, Value, file};
use weft_trial::prelude::*;
use weft_workload::trace::{ChakraOptions, ChakraReader, Findings, Trace, check, summarise};

const GROUPS: &str = r#"{"1": [0, 1], "2": [1, 2], "9": [0, 5]}"#;

fn read(ranks: &[&[Node]]) -> Trace {
    let mut reader = ChakraReader::new(ChakraOptions::default());
    reader.read_groups("g.json", GROUPS).unwrap();
    for (rank, nodes) in (0u32..).zip(ranks) {
        reader.read_rank(rank, &format!("x.{rank}.et"), &file(nodes)).unwrap();
    }
    reader.finish().unwrap()
}
fn find(ranks: &[&[Node]]) -> Findings {
    let findings = check(&read(ranks));
    for line in &findings.problems {
        assert!(!line.contains('\n'), "{line}");
    }
    findings
}
fn one(ranks: &[&[Node]], stuck: u64) -> String {
    let findings = find(ranks);
    let [line] = &findings.problems[..] else { panic!("{findings:?}") };
    assert_eq!(findings.stuck, stuck, "{line}");
    line.clone()
}
fn compute(id: u64, data: &[u64]) -> Node {
    Node::new(id, "work", 4, data)
}
fn reduce(id: u64, data: &[u64]) -> Node {
    Node::collective(id, data, 0, 8, "")
}

#[test]
fn nothing_wrong() {
    let ring = |rank: i64| {
        vec![
            Node::send(1, &[], (rank + 1) % 3, 8),
            Node::receive(2, &[1], (rank + 2) % 3, 8),
            reduce(3, &[2]),
            compute(4, &[3]),
        ]
    };
    let findings = find(&[&ring(0), &ring(1), &ring(2)]);
    assert!(findings.is_clean() && findings.clone().into_result().is_ok());
    assert_eq!((findings.nodes, findings.stuck), (12, 0));
}

#[test]
fn what_is_not_understood() {
    let gather = |id| Node::collective(id, &[], 3, 8, "");
    let ranks = [vec![gather(0), Node::new(1, "disk", 8, &[])], vec![gather(0), gather(1)]];
    assert_eq!(
        find(&[&ranks[0], &ranks[1]]).problems,
        [
            "x.0.et: node 0 (\"collective\"): gather (comm_type 3) is not supported, nor in 2 other \
             nodes; remove it",
            "x.0.et: node 1 (\"disk\"): storage node (type 8) is not supported; remove it",
        ]
    );
}

#[test]
fn nothing_to_run() {
    let line = one(&[&[], &[]], 0);
    assert_eq!(line, "x.0.et: no rank has a node, so that nothing runs; copy or write it again");
    assert!(find(&[&[], &[compute(1, &[])]]).is_clean());
}

#[test]
fn collectives_of_a_lone_rank_are_remarked() {
    let alone = read(&[&[reduce(1, &[]), reduce(2, &[1]), Node::collective(3, &[], 0, 0, "")]]);
    let remark = &alone.remarks[0];
    assert_eq!(
        (&*remark.what, remark.count),
        ("every collective has one rank and moves nothing; are files of other ranks missing?", 2)
    );
    assert!(check(&alone).is_clean());
    // One that moves something is enough, and so is nothing to move.
    let some = [vec![reduce(1, &[]), Node::collective(2, &[], 0, 8, "9")], vec![reduce(1, &[])]];
    assert_eq!(read(&[&some[0], &some[1]]).remarks, []);
    assert_eq!(read(&[&[compute(1, &[])]]).remarks, []);
}

#[test]
fn a_dependency_that_is_not_there() {
    let line = one(&[&[compute(1, &[9]), compute(2, &[1])]], 2);
    assert_eq!(
        line,
        "x.0.et: node 1 (\"work\"): waits for node 9, which the file does not have; it is cut off \
         or incomplete: write it again, or remove the dependency"
    );
    let summary = summarise(&read(&[&[compute(1, &[9]), compute(2, &[1])]]));
    assert_eq!((summary.dependencies, summary.depth), (2, 0));
}

#[test]
fn circles_within_a_rank() {
    let line = one(&[&[compute(1, &[3]), compute(2, &[1]), compute(3, &[2]), compute(4, &[3])]], 4);
    assert_eq!(
        line,
        "x.0.et: node 1 (\"work\"): can never start: it waits for node 3 (\"work\"), which waits \
         for node 2 (\"work\"), which waits for node 1 (\"work\"); remove one of these dependencies"
    );
    let line = one(&[&[compute(1, &[1])]], 1);
    assert!(line.contains("node 1 (\"work\"): can never start: it waits for node 1"), "{line}");
    // Two of them.
    let pairs = [compute(1, &[2]), compute(2, &[1]), compute(3, &[4]), compute(4, &[3])];
    assert_eq!(find(&[&pairs]).problems.len(), 2);
    // A long one.
    let long: Vec<Node> = (0..20).map(|id| compute(id, &[(id + 1) % 20])).collect();
    assert!(one(&[&long], 20).contains("... (20 in the circle)"));
}

#[test]
fn circles_across_ranks() {
    // Each rank waits for the message that the other sends only afterwards.
    let rank = |other: i64| [Node::receive(1, &[], other, 8), Node::send(2, &[1], other, 8)];
    let line = one(&[&rank(1), &rank(0)], 4);
    assert!(
        line.starts_with(
            "x.0.et: node 1 (\"receive\"): can never start: it waits for x.1.et: node 2 \
             (\"send\"), which waits for node 1 (\"receive\"), which waits for x.0.et: node 2"
        ),
        "{line}"
    );
    // Three ranks, each pair in a group, in an order that runs in a circle.
    let call = |id, data: &[u64], group: &str| Node::collective(id, data, 0, 8, group);
    let zero = [call(1, &[], "1"), Node::receive(2, &[1], 2, 8)];
    let one_ = [call(1, &[], "2"), call(2, &[1], "1")];
    let two = [Node::receive(1, &[], 1, 8), call(2, &[1], "2"), Node::send(3, &[], 0, 8)];
    let mut sender = one_.to_vec();
    sender.push(Node::send(3, &[2], 2, 8));
    let line = one(&[&zero, &sender, &two], 2 + 3 + 2);
    assert!(line.contains("let all ranks do them in the same order"), "{line}");
}

#[test]
fn a_collective_that_a_rank_leaves_out() {
    let line = one(&[&[reduce(1, &[]), reduce(2, &[1]), compute(3, &[2])], &[reduce(7, &[])]], 2);
    assert_eq!(
        line,
        "x.0.et: node 2 (\"collective\"): all-reduce of 8 B, collective 2 of group \"all\", waits \
         for rank 1, which has only 1 in x.1.et; the ranks of a group must take part in the same \
         ones"
    );
    let line = one(&[&[Node::collective(1, &[], 0, 8, "9")]], 1);
    assert!(line.contains("waits for rank 5, of which there is no trace; add its file"), "{line}");
    let line = one(&[&[Node::collective(1, &[], 0, 8, "2")]], 1);
    assert!(line.contains("all-reduce in group \"2\", in which rank 0 is not"), "{line}");
    // Told once for a group, not for each of its collectives.
    let many: Vec<Node> = (1..30).map(|id| reduce(id, &[])).collect();
    let line = one(&[&many, &[], &[]], 29);
    assert!(
        line.contains("waits for rank 1, which has only 0 in x.1.et, and neither do 1 other"),
        "{line}"
    );
}

#[test]
fn collectives_that_differ() {
    let gather = Node::collective(5, &[], 2, 8, "");
    let line = one(&[&[reduce(1, &[])], &[gather]], 0);
    assert_eq!(
        line,
        "x.0.et: node 1 (\"collective\"): collective 1 of group \"all\" is all-reduce of 8 B, but \
         x.1.et: node 5 (\"collective\") has all-gather of 16 B there; the ranks of a group must \
         take part in the same ones in the same order"
    );
    let larger = Node::collective(1, &[], 0, 9, "");
    assert!(one(&[&[reduce(1, &[])], &[larger]], 0).contains("has all-reduce of 9 B there"));
    // Another order: two findings.
    let (reduce, gather) = (|id| reduce(id, &[]), |id| Node::collective(id, &[], 2, 8, ""));
    assert_eq!(find(&[&[reduce(1), gather(2)], &[gather(1), reduce(2)]]).problems.len(), 2);
}

#[test]
fn messages_that_one_side_knows_of() {
    let line = one(&[&[Node::send(1, &[], 1, 8)], &[]], 0);
    assert_eq!(
        line,
        "x.0.et: node 1 (\"send\"): sends message 1 with tag 0 to rank 1, but x.1.et has no \
         receive for it; add the receive or remove the send"
    );
    let line = one(&[&[Node::receive(1, &[], 1, 8), compute(2, &[1])], &[]], 2);
    assert_eq!(
        line,
        "x.0.et: node 1 (\"receive\"): waits for message 1 with tag 0 from rank 1, but x.1.et \
         never sends it; add the send or remove the receive"
    );
    let line = one(&[&[Node::receive(1, &[], 6, 8)]], 1);
    assert!(line.contains("but rank 6, of which there is no trace, never sends it"), "{line}");
    // A tag apart, and a byte apart.
    let tagged = Node::receive(1, &[], 0, 8).with("comm_tag", Value::Int32(4));
    assert_eq!(find(&[&[Node::send(1, &[], 1, 8)], &[tagged]]).problems.len(), 2);
    let line = one(&[&[Node::send(1, &[], 1, 8)], &[Node::receive(1, &[], 0, 9)]], 0);
    assert!(line.contains("sends 8 B, but x.1.et: node 1 (\"receive\") waits for 9 B"), "{line}");
}

#[test]
fn only_the_first_few_are_told() {
    let sends: Vec<Node> = (1..=30).map(|id| Node::send(id, &[], 1, 8)).collect();
    let findings = find(&[&sends, &[]]);
    assert_eq!((findings.problems.len(), findings.more), (8, 22));
    let line = findings.into_result().unwrap_err().to_string();
    assert!(line.ends_with("(and 29 more)"), "{line}");
}

#[test]
fn collectives_without_bytes_join_nobody() {
    // Rank 0 waits for a message before, rank 1 sends it after.
    let empty = |id, data: &[u64]| Node::collective(id, data, 0, 0, "");
    let zero = [Node::receive(1, &[], 1, 8), empty(2, &[1])];
    let one = [empty(1, &[]), Node::send(2, &[1], 0, 8)];
    assert!(find(&[&zero, &one]).is_clean());
    let full = |id, data: &[u64]| Node::collective(id, data, 0, 1, "");
    let zero = [Node::receive(1, &[], 1, 8), full(2, &[1])];
    let one = [full(1, &[]), Node::send(2, &[1], 0, 8)];
    assert_eq!(find(&[&zero, &one]).stuck, 4);
}

/// Jobs of a few ranks whose nodes wait for earlier ones only, with collectives of all and
/// messages along a ring: they finish. With a node left out, they do not.
fn job() -> impl Strategy<Value = Vec<Vec<Node>>> {
    let step = (0u8..3, prop::collection::vec(any::<prop::sample::Index>(), 0..3));
    (2usize..5, prop::collection::vec(step, 1..12)).prop_map(|(ranks, steps)| {
        (0..ranks)
            .map(|rank| {
                let mut nodes: Vec<Node> = Vec::new();
                for (kind, waits) in &steps {
                    let ids: Vec<u64> = nodes.iter().map(|node| node.id).collect();
                    let data: Vec<u64> = match ids.is_empty() {
                        true => vec![],
                        false => waits.iter().map(|wait| *wait.get(&ids)).collect(),
                    };
                    let id = nodes.len() as u64 + 1;
                    match kind {
                        0 => nodes.push(compute(id, &data)),
                        1 => nodes.push(reduce(id, &data)),
                        _ => {
                            let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
                            nodes.push(Node::send(id, &data, next as i64, 8));
                            nodes.push(Node::receive(id + 1, &data, before as i64, 8));
                        }
                    }
                }
                nodes
            })
            .collect()
    })
}

trials! {
    fn sound_jobs_finish_and_broken_ones_are_told(
        job in job(),
        at in any::<prop::sample::Index>(),
    ) {
        let slices: Vec<&[Node]> = job.iter().map(|nodes| &nodes[..]).collect();
        let findings = find(&slices);
        prop_assert!(findings.is_clean(), "{:?}", findings);
        prop_assert_eq!(findings.stuck, 0);
        let mut broken = job.clone();
        let at = at.index(broken[0].len());
        let lost = broken[0].remove(at);
        let waited_for = broken[0].iter().any(|node| node.data.contains(&lost.id));
        let slices: Vec<&[Node]> = broken.iter().map(|nodes| &nodes[..]).collect();
        let findings = find(&slices);
        prop_assert_eq!(findings.is_clean(), lost.kind == 4 && !waited_for, "{:?}", findings);
    }
}
