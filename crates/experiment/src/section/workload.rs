//! `[workload]`: a pattern of the workload crate's registry, or a file.
//!
//! The options of patterns stay with the patterns: this reads whatever the registry lists.

use super::options;
use crate::error::{ExperimentError, Origin};
use crate::experiment::digest;
use crate::kind::{OneOf, Size, Span, Text};
use crate::reader::Reader;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use weft_fabric::Fabric;
use weft_units::Time;
use weft_workload::{PATTERNS, Pattern, Scope, Workload};

type Result<T> = std::result::Result<T, ExperimentError>;

/// Where the messages come from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WorkloadSource {
    /// A generator.
    Pattern {
        /// Which, with its options.
        pattern: Pattern,
        /// Payload of a message.
        bytes: u64,
        /// When messages are posted.
        start: Time,
    },
    /// A connection matrix (`.cm`) or a table of flows (`.csv`).
    File {
        /// Where it is.
        path: PathBuf,
        /// Stands for its content.
        digest: String,
    },
}

/// Whether `text` names a workload file rather than a pattern.
pub(crate) fn is_file(text: &str) -> bool {
    [".cm", ".csv"].iter().any(|end| text.ends_with(end))
}

/// The names of all patterns.
pub(crate) fn names() -> Vec<&'static str> {
    PATTERNS.iter().map(|info| info.name).collect()
}

/// The keys of `[workload]` under the pattern `name`.
pub(crate) fn keys(name: &str) -> Vec<String> {
    let own = PATTERNS.iter().filter(|info| info.name == name).flat_map(|info| info.options);
    let own = own.map(|option| option.key.to_owned());
    own.chain(["size", "start"].map(str::to_owned)).collect()
}

/// Reads `[workload]`; files are looked for in `folder`.
pub(crate) fn read(r: &mut Reader<'_>, folder: &Path) -> Result<WorkloadSource> {
    if r.has("file") && !r.is_rehearsal() {
        return read_file(r, folder);
    }
    if r.is_rehearsal() {
        r.get("file", Text, None, "a file with the messages")?;
    }
    let names = names();
    let taken = r.get("pattern", OneOf(&names), None, "which traffic; or give a file instead")?;
    let info = &PATTERNS[taken];
    for other in PATTERNS.iter().filter(|other| other.name != info.name) {
        let keys = other.options.iter().map(|option| option.key.to_owned());
        r.others("pattern", info.name, other.name, keys);
    }
    let bytes = r.get("size", Size::SOME, None, "payload of every message")?;
    let start = r.get("start", Span::ANY, Some(Time::ZERO), "when every message is posted")?;
    let pattern = options::read(r, info.options, |given| Pattern::settle(info.name, given))?;
    Ok(WorkloadSource::Pattern { pattern, bytes, start })
}

fn read_file(r: &mut Reader<'_>, folder: &Path) -> Result<WorkloadSource> {
    let name = r.get("file", Text, None, "a connection matrix (.cm) or a table of flows (.csv)")?;
    if r.has("pattern") {
        return Err(r.wrong("pattern", "stands beside file; remove one of them"));
    }
    if !is_file(&name) {
        let what = format!("{name:?} ends neither in .cm nor in .csv; rename it to what it is");
        return Err(r.wrong("file", what));
    }
    let path = folder.join(&name);
    let text = read_text(&path).map_err(|what| r.wrong("file", what))?;
    r.settle("file", path.to_string_lossy().into_owned());
    Ok(WorkloadSource::File { path, digest: digest(text.as_bytes()) })
}

/// The content of a workload file, or what is wrong with it.
fn read_text(path: &Path) -> std::result::Result<String, String> {
    let shown = path.display();
    let bytes = fs::read(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("there is no file {shown}; correct the path"),
        _ => format!("cannot read {shown}: {error}; correct the path"),
    })?;
    String::from_utf8(bytes).map_err(|_| format!("{shown} is not text; give another file"))
}

impl WorkloadSource {
    /// What tables call it.
    pub(crate) fn name(&self) -> String {
        match self {
            WorkloadSource::Pattern { pattern, .. } => pattern.info().name.to_owned(),
            WorkloadSource::File { path, .. } => {
                path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
            }
        }
    }

    /// The schedule that a collective follows; `file` for files.
    pub(crate) fn algorithm(&self) -> &'static str {
        match self {
            WorkloadSource::Pattern { pattern: Pattern::AllToAll(_), .. } => "direct",
            WorkloadSource::Pattern { pattern, .. } => pattern.info().name,
            WorkloadSource::File { .. } => "file",
        }
    }

    /// The messages under `seed` on `fabric`.
    pub(crate) fn build(&self, fabric: &Fabric, seed: u64) -> Result<Workload> {
        let hosts = fabric.hosts();
        match self {
            WorkloadSource::Pattern { pattern, bytes, start } => {
                let hosts_per_leaf = fabric.clos().hosts_per_leaf;
                let scope = Scope { hosts, hosts_per_leaf, bytes: *bytes, start: *start, seed };
                pattern.generate(&scope).map_err(|error| match error.0.split_once(": ") {
                    Some((key, what)) => wrong(&format!("workload.{key}"), what),
                    None => wrong("workload", &error.0),
                })
            }
            WorkloadSource::File { path, .. } => {
                let text = read_text(path).map_err(|what| wrong("workload.file", &what))?;
                let name = self.name();
                let read = match path.extension().is_some_and(|extension| extension == "cm") {
                    true => weft_workload::read_cm(&name, &text),
                    false => weft_workload::read_csv(&name, &text),
                };
                let read = read.and_then(|workload| workload.on_fabric_of(hosts));
                read.map_err(|error| wrong("workload.file", &error.0))
            }
        }
    }
}

fn wrong(key: &str, what: &str) -> ExperimentError {
    ExperimentError::new(key, Origin::Unknown, what)
}
