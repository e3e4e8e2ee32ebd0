//! Every format of traces in the registry keeps what the registry promises, whichever there are.

use std::collections::{BTreeMap, BTreeSet};
use weft_workload::WorkloadError;
use weft_workload::trace::{
    FOREIGN, SideFile, TRACE_FORMATS, Trace, TraceFile, TraceFormatInfo, TraceFormats, TraceSource,
    check, foreign,
};

/// The files of a trace in memory.
struct InMemory(Vec<TraceFile>);

impl TraceSource for InMemory {
    fn next_file(&mut self) -> Result<Option<TraceFile>, WorkloadError> {
        Ok((!self.0.is_empty()).then(|| self.0.remove(0)))
    }
    fn side_file(&mut self) -> Result<Option<SideFile>, WorkloadError> {
        Ok(None)
    }
}

fn load(info: &TraceFormatInfo, bytes: &[u8]) -> Result<Trace, WorkloadError> {
    let (formats, _) = TraceFormats::resolve(&[]).unwrap();
    let name = format!("the-file.0{}", info.ends[0]);
    formats.load(info, &mut InMemory(vec![TraceFile { rank: 0, name, bytes: bytes.to_vec() }]))
}

#[test]
fn names_and_ends_are_of_one_format() {
    let mut names = BTreeSet::new();
    let mut ends = BTreeSet::new();
    for info in TRACE_FORMATS {
        assert!(names.insert(info.name), "{}: twice", info.name);
        assert!(!info.summary.is_empty() && !info.source.is_empty(), "{}", info.name);
        assert!(!info.ends.is_empty(), "{}", info.name);
        for end in info.ends {
            assert!(end.starts_with('.'), "{}: {end}", info.name);
            // Content tells formats of the same end apart.
            assert!(ends.insert(end) || info.alike, "{}: {end}", info.name);
            let name = format!("a.b.17{end}");
            assert_eq!(info.stem(&name), Some("a.b.17"));
            assert_eq!(info.rank_of_file(&name), Some(("a.b", 17)));
            assert_eq!(info.rank_of_file(&format!("a.017{end}")), None);
        }
        if let Some(side) = info.side_file {
            assert!(info.options.iter().any(|option| option.key == side.key), "{}", info.name);
        }
    }
}

/// All formats share `[workload]`.
#[test]
fn equal_keys_are_equal_options() {
    let mut known = BTreeMap::new();
    for (info, option) in
        TRACE_FORMATS.iter().flat_map(|info| info.options.iter().map(move |one| (info, one)))
    {
        assert_eq!(*known.entry(option.key).or_insert(option), option, "{}", info.name);
        assert!(!option.meaning.is_empty(), "{}", option.key);
    }
}

#[test]
fn options_read_back_as_they_were_written() {
    let (formats, resolved) = TraceFormats::resolve(&[]).unwrap();
    let side_keys: Vec<_> =
        TRACE_FORMATS.iter().filter_map(|info| Some(info.side_file?.key)).collect();
    for option in TRACE_FORMATS.iter().flat_map(|info| info.options) {
        let is_asked = resolved.iter().any(|one| one.key == option.key);
        assert_ne!(is_asked, side_keys.contains(&option.key), "{}", option.key);
    }
    let given: Vec<_> = resolved.iter().map(|one| (one.key, one.text.as_str())).collect();
    assert_eq!(TraceFormats::resolve(&given).unwrap(), (formats, resolved.clone()));
    let error = TraceFormats::resolve(&[("no-such-key", "1")]).unwrap_err().to_string();
    assert_eq!(error, "no-such-key: is no option of a trace; remove it");
}

#[test]
fn examples_are_of_their_own_format_and_run() {
    for info in TRACE_FORMATS {
        let of: Vec<_> = TRACE_FORMATS
            .iter()
            .filter(|other| TraceFormats::recognises(other, info.example))
            .map(|other| other.name)
            .collect();
        let expected: &[&str] = if info.per_rank { &[] } else { &[info.name] };
        assert_eq!(of, expected, "{}", info.name);
        assert_eq!(foreign(info.example), None, "{}", info.name);
        let trace =
            load(info, info.example).unwrap_or_else(|error| panic!("{}: {error}", info.name));
        assert!(trace.graphs.iter().any(|graph| !graph.nodes().is_empty()), "{}", info.name);
        assert!(check(&trace).is_clean(), "{}: {:?}", info.name, check(&trace).problems);
    }
}

/// No file makes a reader panic, and errors are one line that names the file.
#[test]
fn damaged_examples_are_refused_in_a_line() {
    for info in TRACE_FORMATS {
        let mut refused = 0;
        for at in 0..info.example.len() {
            let mut changed = info.example.to_vec();
            changed[at] = changed[at].wrapping_add(131);
            for bytes in [&info.example[..at], &changed] {
                let Err(WorkloadError(line)) = load(info, bytes) else { continue };
                refused += 1;
                assert!(line.contains("the-file") && !line.contains('\n'), "{}: {line}", info.name);
            }
        }
        assert!(refused > 0, "{}: takes everything", info.name);
    }
}

#[test]
fn kinds_that_are_refused_say_what_they_are_and_the_mend() {
    for kind in FOREIGN {
        assert!(kind.what.starts_with("is ") && kind.what.contains("; "), "{}", kind.what);
    }
}

#[test]
fn the_guide_to_traces_has_every_format() {
    const GUIDE: &str = include_str!("../../../docs/traces.md");
    for info in TRACE_FORMATS {
        for end in info.ends {
            assert!(GUIDE.contains(&format!("{end}`")), "docs/traces.md lacks `{end}`");
        }
        for option in info.options {
            assert!(GUIDE.contains(&format!("`{}`", option.key)), "lacks {}", option.key);
        }
    }
}
