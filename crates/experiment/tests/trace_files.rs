//! Files of traces: which belong together, what is wrong with them, and whether they can run.

use crate::common::mistake;
use crate::et::{Node, file};
use flate2::{Compression, write::GzEncoder};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use weft_experiment::trace_info;
use weft_workload::trace::TRACE_FORMATS;

/// A folder for a test, with a file for each name.
fn folder(name: &str, files: &[(&str, &[u8])]) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("weft-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).expect("a file");
    }
    folder
}

/// What would keep the trace from running.
fn problems(path: &Path) -> Vec<String> {
    let found =
        trace_info(path, &[], Path::new(""), None).unwrap_or_else(|error| panic!("{error}"));
    let (_, list) = found.split_once("\"problems\":[").expect("there is a list");
    let list = list.split_once("],\"more_problems\"").expect("it ends").0;
    list.split("\",\"").map(str::to_owned).filter(|line| !line.is_empty()).collect()
}

/// What a run says of the trace.
fn refused(path: &Path) -> String {
    let text = format!(
        "[fabric]\ntopology = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
         [workload]\ntrace = {path:?}\n[balance]\nscheme = \"ecmp\"\n"
    );
    mistake(&text, &[])
}

#[test]
fn what_a_run_refuses_cannot_run() {
    let two = |name: &str, node: Node| {
        let bytes = file(&[node]);
        folder(name, &[("t.0.et", &bytes), ("t.1.et", &bytes)]).join("t.0.et")
    };
    let gather = two("gather", Node::collective(0, &[], 3, 8, ""));
    let huge = two("huge", Node::collective(0, &[], 0, 1 << 62, ""));
    for (path, what) in [
        (&gather, "gather (comm_type 3) is not supported"),
        (&huge, "sends a message of more than 4398046511104 B, the most there can be; correct it"),
    ] {
        let found = problems(path);
        assert!(found.len() == 1 && found[0].contains(what), "{found:?}");
        assert!(!refused(path).is_empty());
    }
    let fine = two("fine", Node::collective(0, &[], 0, 1 << 33, ""));
    assert_eq!(problems(&fine), [""; 0]);
    for path in [gather, huge, fine] {
        fs::remove_dir_all(path.parent().expect("its folder")).expect("it is there");
    }
}

#[test]
fn packed_files_are_files() {
    let bytes = file(&[Node::collective(0, &[], 0, 8, "")]);
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&bytes).expect("bytes");
    let packed = packed.finish().expect("bytes");
    let here = folder("packed", &[("t.0.et.gz", &packed), ("t.1.et", &bytes), ("t.1.et.gz", b"")]);
    for name in ["t.0.et.gz", "t.1.et", "t"] {
        let found = trace_info(&here.join(name), &[], Path::new(""), None)
            .unwrap_or_else(|e| panic!("{e}"));
        assert!(found.contains("\"ranks\":2"), "{found}");
    }
    fs::remove_dir_all(here).expect("it is there");
}

#[test]
fn files_that_are_none_are_told_apart() {
    let files: [(&str, &[u8]); 4] =
        [("b.0.et", b""), ("a.0.et", b""), ("empty.txt", b"\n"), ("junk.txt", b"lorem ipsum")];
    let here = folder("none", &files);
    let of =
        |path: &Path| trace_info(path, &[], Path::new(""), None).expect_err("none").to_string();
    let shown = here.display();
    let line = format!("{shown} is a directory; name a trace in it, for example {shown}/a.0.et");
    assert_eq!(of(&here), line);
    assert_eq!(refused(&here), format!("fig.toml: workload.trace (line 7): {line}"));
    let empty = here.join("empty.txt");
    assert_eq!(of(&empty), format!("{} is empty; copy or write it again", empty.display()));
    let line = of(&here.join("junk.txt"));
    for info in TRACE_FORMATS {
        let shown = format!("{} ({})", info.name, info.ends.join(", "));
        assert!(line.contains("is no trace that is known; give one of: ") && line.contains(&shown));
    }
    fs::remove_dir_all(here).expect("it is there");
}
