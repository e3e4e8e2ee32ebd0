//! Connection matrices: the real files, their meaning as a DAG, and everything refused.

use std::path::PathBuf;
use weft_units::{HostId, MessageId, Time};
use weft_workload::{Dependency, When, Workload, read_cm};

/// The text of a real file, or `None`, with a line saying so, where there are none.
fn real(name: &str) -> Option<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    if !root.is_dir() {
        eprintln!("skipped: no traces in {}", root.display());
        return None;
    }
    // The crate reads no files; its tests may.
    #[allow(clippy::disallowed_methods)]
    let text = std::fs::read_to_string(root.join("uec_htsim").join(name)).unwrap();
    Some(text)
}
fn read(text: &str) -> Workload {
    let workload = read_cm("x.cm", text).unwrap();
    workload.validate().unwrap();
    workload
}
fn refusal(text: &str) -> String {
    let line = read_cm("x.cm", text).unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}
/// Four hosts, and the connections and triggers given, with their true counts.
fn matrix(connections: &[&str], triggers: &[&str]) -> String {
    let mut text = format!("Nodes 4\nConnections {}\n", connections.len());
    text += &format!("Triggers {}\n", triggers.len());
    for line in connections.iter().chain(triggers) {
        text += &format!("{line}\n");
    }
    text
}
fn on(message: u32, when: When) -> Dependency {
    Dependency { on: MessageId(message), when }
}

#[test]
fn real_files_have_what_they_declare() {
    let files = [
        ("alltoall_serial_16n.cm", 16, 240, 224),
        ("incast_128.cm", 128, 127, 0),
        ("one.cm", 16, 1, 0),
        ("perm_32n_32c_2MB.cm", 32, 32, 0),
    ];
    for (name, hosts, messages, dependencies) in files {
        let Some(text) = real(name) else { return };
        let workload = read(&text);
        assert_eq!(workload.hosts(), hosts, "{name}");
        assert_eq!(workload.messages().len(), messages, "{name}");
        assert_eq!(workload.dependency_count(), dependencies, "{name}");
        assert_eq!(workload.total_bytes(), messages as u64 * 2_000_000, "{name}");
        assert!(workload.messages().iter().all(|message| message.start == Time::ZERO));
    }
}

#[test]
fn the_serial_all_to_all_is_one_chain_per_source() {
    let Some(text) = real("alltoall_serial_16n.cm") else { return };
    let workload = read(&text);
    let mut last_of = [None; 16];
    let mut receivers = [0u32; 16];
    for (id, message) in workload.messages().enumerate() {
        let src = message.src.0 as usize;
        let expected: Vec<_> =
            last_of[src].iter().map(|last: &MessageId| on(last.0, When::Sent)).collect();
        assert_eq!(workload.dependencies(id), expected, "{id:?}");
        last_of[src] = Some(id);
        receivers[src] |= 1 << message.dst.0;
    }
    for (src, receivers) in receivers.iter().enumerate() {
        assert_eq!(*receivers, 0xffff & !(1 << src));
    }
    assert_eq!(workload.dependents().unmet().iter().filter(|count| **count == 0).count(), 16);
}

#[test]
fn a_file_cut_at_any_line_is_refused() {
    let triggered = matrix(
        &["0->1 start 0 size 5 send_done_trigger 1", "1->2 trigger 1 size 5"],
        &["trigger id 1 oneshot"],
    );
    let mut texts = vec![triggered];
    texts.extend(["alltoall_serial_16n.cm", "incast_128.cm"].into_iter().filter_map(real));
    for text in texts {
        let whole = text.trim_end();
        for (cut, _) in whole.match_indices('\n') {
            let line = refusal(&whole[..cut]);
            assert!(line.contains("truncated"), "{line}");
            assert!(line.starts_with("x.cm:"), "{line}");
        }
        assert!(refusal("").contains("truncated"));
    }
}

#[test]
fn a_file_cut_anywhere_never_reads_as_fewer_connections() {
    let Some(text) = real("alltoall_serial_16n.cm") else { return };
    for cut in (0..text.trim_end().len() - 1).step_by(7) {
        refusal(&text[..cut]);
    }
}

#[test]
fn truncation_names_the_count_and_where_the_file_ends() {
    assert_eq!(
        refusal("Nodes 4\nConnections 3\n\n0->1 start 0 size 5\n"),
        "x.cm:2: 'Connections 3' but the file ends after 1 of them, on line 4: it is truncated; \
         fetch it again or correct the count"
    );
}

#[test]
fn both_done_triggers_and_start_times_are_honoured() {
    let workload = read(
        &matrix(
            &[
                "0->1 id 1 start 1500 size 5 send_done_trigger 7 recv_done_trigger 8",
                "1->2   id 2 trigger 7\tsize 6  ",
                "2->3 size 7 trigger 8 prio 2000000 recv_done_trigger 9",
                "3->0 size 8 trigger 9",
                "3->1 size 9 trigger 9",
            ],
            &["trigger id 7 multishot", "trigger oneshot id 8", "trigger id 9 oneshot"],
        )
        .replace(" prio 2000000", ""),
    );
    let first = workload.messages()[MessageId(0)];
    assert_eq!((first.src, first.dst, first.bytes), (HostId(0), HostId(1), 5));
    assert_eq!(first.start, Time::ps(1500));
    assert_eq!(workload.dependencies(MessageId(1)), [on(0, When::Sent)]);
    assert_eq!(workload.dependencies(MessageId(2)), [on(0, When::Received)]);
    for both in [3, 4] {
        assert_eq!(workload.dependencies(MessageId(both)), [on(2, When::Received)]);
    }
}

#[test]
fn a_barrier_waits_for_all_of_its_activators() {
    let workload = read(&matrix(
        &[
            "0->1 start 0 size 5 send_done_trigger 3",
            "1->2 start 0 size 5 recv_done_trigger 3",
            "2->0 trigger 3 size 5",
        ],
        &["trigger id 3 barrier count 2"],
    ));
    assert_eq!(workload.dependencies(MessageId(2)), [on(0, When::Sent), on(1, When::Received)]);
}

#[test]
fn comments_blank_lines_line_ends_and_zero_decimals_are_fine() {
    let text = "\u{feff}# made by hand\r\n\r\nNodes 4\r\nConnections 1\r\nFailures 0\r\n\
                # one flow\r\n0->1 start 0.000000 size 5\r\n\r\n";
    assert_eq!(read(text).messages().len(), 1);
}

#[test]
fn malformed_lines_are_refused_with_their_number_and_the_mend() {
    let cases = [
        ("0->1 size 5", "nothing starts it; add 'start <picoseconds>'"),
        ("0->1 start 0 trigger 1 size 5", "both 'start' and 'trigger'"),
        ("0->1 start 0", "no 'size'"),
        ("0->1 start 0 size 0", "endless flow"),
        ("0->1 start 0 size", "no number after 'size': the line is truncated"),
        ("0->1 start 0 size 5KB", "size \"5KB\" is not a whole number"),
        ("0->1 start 0 size 99999999999999999999", "is not a whole number"),
        ("0->1 start 1.5 size 5", "multiply by 1000000 if it means microseconds"),
        ("0->1 start -1 size 5", "start \"-1\" is not a whole number"),
        ("0->1 start 0 size 5 size 6", "'size' twice"),
        ("0->1 id 0 start 0 size 5", "'id 0' is not allowed"),
        ("0->1 start 0 size 5 colour 3", "unknown word \"colour\""),
        ("0->1 id 1 msg 2 start 0 size 5", "'msg' (several messages"),
        ("0->4 start 0 size 5", "host 4 does not exist; hosts are 0 to 3"),
        ("2->2 start 0 size 5", "sends to itself"),
        ("x->2 start 0 size 5", "source host \"x\""),
        ("0-> start 0 size 5", "receiver \"\""),
        ("connection 0 1", "unknown word \"connection\""),
        ("failure switch_type TOR", "failures are no part of a workload"),
        ("Nodes 5", "move it to the top"),
    ];
    for (line, what) in cases {
        let error = refusal(&matrix(&["0->1 start 0 size 5", line], &[]));
        assert!(error.starts_with("x.cm:5: "), "{error}");
        assert!(error.contains(what), "{error}");
        assert!(!error.contains("itself") || !error.contains("Nodes"), "no mend: {error}");
    }
}

#[test]
fn triggers_that_a_dag_cannot_say_are_refused() {
    let fire = "0->1 start 0 size 5 send_done_trigger 1";
    let wait = "1->2 trigger 1 size 5";
    let cases: [(&[&str], &str, &str); 14] = [
        (&[fire, fire, wait], "trigger id 1 oneshot", "write 'trigger id 1 barrier count 2'"),
        (&[fire, wait, wait], "trigger id 1 multishot", "1 activations for 2 connections"),
        (&[fire, fire, wait], "trigger id 1 multishot", "2 activations for 1 connections"),
        (&[fire, fire, wait], "trigger id 1 barrier count 1", "opens at 1 of 2 activations"),
        (&[fire, wait], "trigger id 1 barrier count 2", "only 1 can come"),
        (&[fire, wait], "trigger id 1 barrier", "needs 'count"),
        (&[fire, wait], "trigger id 1 oneshot count 3", "only a barrier has a 'count'"),
        (&[fire, wait], "trigger id 1 oneshot barrier count 1", "more than one kind"),
        (&[fire, wait], "trigger id 1", "no kind"),
        (&[fire, wait], "trigger oneshot", "without id"),
        (&[fire, wait], "trigger id 1 onesh", "unknown word \"onesh\""),
        (&[fire], "trigger id 1 oneshot", "trigger 1 starts nothing"),
        (
            &[wait],
            "trigger id 1 oneshot",
            "nothing activates trigger 1, so the connection on line 4",
        ),
        (&[], "trigger id 1 oneshot", "there are no connections"),
    ];
    for (connections, trigger, what) in cases {
        let error = refusal(&matrix(connections, &[trigger]));
        let place = format!("x.cm:{}: ", connections.len() + 4);
        assert!(error.starts_with(&place), "{error}");
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn lines_that_contradict_each_other_are_refused() {
    let flow = "0->1 start 0 size 5";
    let fire = "0->1 start 0 size 5 send_done_trigger 1";
    let wait = "1->2 trigger 1 size 5";
    let cases = [
        (
            matrix(&["0->1 id 1 start 0 size 5", "0->2 id 1 start 0 size 5"], &[]),
            5,
            "used on line 4",
        ),
        (matrix(&[flow, "1->2 start 0 size 5 prio 3"], &[]), 5, "priority differs"),
        (matrix(&[fire, wait], &[]), 4, "trigger 1 is not declared"),
        (matrix(&[wait], &[]), 4, "trigger 1 is not declared"),
        (matrix(&[fire, wait], &["trigger id 1 oneshot"; 2]), 7, "already declared on line 6"),
        (
            "Nodes 4\nConnections 1\n0->1 start 0 size 5\n1->2 start 0 size 5".into(),
            4,
            "one connection more",
        ),
        (
            "Nodes 4\nConnections 1\n0->1 start 0 size 5\ntrigger id 1 oneshot".into(),
            4,
            "without 'Triggers'",
        ),
        ("Connections 1\n0->1 start 0 size 5".into(), 2, "before 'Nodes'"),
        ("Nodes 4\n0->1 start 0 size 5".into(), 2, "without 'Connections'"),
        ("Nodes 4\nNodes 5".into(), 2, "already given on line 1"),
        ("Nodes 4 5".into(), 1, "unknown word \"5\""),
        ("Nodes 0\nConnections 1\n0->1 start 0 size 5".into(), 3, "there are no hosts"),
        ("Nodes 4\nConnections 0".into(), 2, "there are no connections"),
        ("Nodes 4\nFailures 2".into(), 2, "failures are no part"),
        (matrix(&[&format!("0->1 start 0 size {}", u64::MAX), flow], &[]), 5, "exceed 2^64"),
    ];
    for (text, line, what) in cases {
        let error = refusal(&text);
        assert!(error.starts_with(&format!("x.cm:{line}: ")), "{error}");
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn connections_that_wait_in_a_circle_are_refused_by_line() {
    let error = refusal(&matrix(
        &["0->1 trigger 2 size 5 send_done_trigger 1", "1->2 trigger 1 size 5 recv_done_trigger 2"],
        &["trigger id 1 oneshot", "trigger id 2 oneshot"],
    ));
    assert_eq!(
        error,
        "x.cm:4: this connection can never start, since line 4 waits for line 5, line 5 for \
         line 4; remove one of these dependencies"
    );
}

#[test]
fn bytes_that_are_no_matrix_give_one_short_line() {
    let garbage = "\u{1}\u{2}".repeat(10_000);
    assert!(refusal(&garbage).len() < 400);
}
