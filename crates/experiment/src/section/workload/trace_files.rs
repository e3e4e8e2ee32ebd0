//! Traces on disk: which files belong together, and what their formats leave open.

use super::fault::Fault;
use crate::error::ExperimentError;
use crate::experiment::digest;
use crate::kind::{Flag, OneOf, Or, Span, Text, Whole};
use crate::reader::Reader;
use std::fs;
use std::path::{Path, PathBuf};
use weft_workload::trace::{
    self, ChakraOptions, ChakraReader, Degrees, Gathered, TextOptions, Trace,
};

type Result<T> = std::result::Result<T, ExperimentError>;

/// A trace on disk, and how to read it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TraceFiles {
    path: PathBuf,
    process_groups: Option<PathBuf>,
    chakra: ChakraOptions,
    text: TextOptions,
    /// Stands for the content.
    pub(crate) digest: String,
}

/// How files of Chakra traces end.
const CHAKRA: [&str; 2] = [".et", ".et.gz"];

/// Whether `text` names a trace: by its end, or by what is on disk where other files end alike.
pub(super) fn is_named(text: &str) -> bool {
    let is_log = || fs::read_to_string(text).is_ok_and(|text| trace::is_comm_log(&text));
    let is_first = |end: &&str| Path::new(&format!("{text}.0{end}")).is_file();
    CHAKRA.iter().chain(&[".txt"]).any(|end| text.ends_with(end))
        || text.ends_with(".csv") && is_log()
        || CHAKRA.iter().any(is_first)
}

/// Reads the keys of a trace; files are looked for in `folder`.
pub(super) fn read(r: &mut Reader<'_>, folder: &Path) -> Result<TraceFiles> {
    let meaning = "a Chakra trace (a file of it, or what stands before .0.et), or a text workload";
    let name = r.get("trace", Text, None, meaning)?;
    let path = folder.join(&name);
    r.settle("trace", path.to_string_lossy().into_owned());
    let gathered = read_gathered(r)?;
    let (process_groups, chakra) = read_chakra(r, gathered, folder)?;
    let text = read_text(r, gathered)?;
    let mut files = TraceFiles { path, process_groups, chakra, text, digest: String::new() };
    if !r.is_rehearsal() {
        files.digest = files.hash().map_err(|Fault { key, what }| r.wrong(&key, what))?;
    }
    Ok(files)
}

/// What Chakra traces and text workloads leave open.
pub(super) fn read_gathered(r: &mut Reader<'_>) -> Result<Option<Gathered>> {
    let counts = ["format", "shard", "whole"];
    let meaning = "what an all-gather's size counts; format: as its kind of file has it";
    let gathered = r.get("gathered", OneOf(&counts), Some(0), meaning)?;
    Ok([None, Some(Gathered::Shard), Some(Gathered::Whole)][gathered])
}

/// What Chakra traces leave open: the file of their groups, and how to read them.
pub(super) fn read_chakra(
    r: &mut Reader<'_>,
    gathered: Option<Gathered>,
    folder: &Path,
) -> Result<(Option<PathBuf>, ChakraOptions)> {
    let none = Some(String::new());
    let groups = r.get("process_groups", Text, none, "Chakra: a JSON file of process groups")?;
    let process_groups = (!groups.is_empty()).then(|| folder.join(&groups));
    match &process_groups {
        Some(path) => r.settle("process_groups", path.to_string_lossy().into_owned()),
        None => r.omit("process_groups"),
    }
    let element = Whole { min: 1, max: 16 };
    let bytes = r.get("bytes_per_element", element, Some(1), "Chakra: what 1 of comm_size is")?;
    let meaning = "Chakra: whether nodes start no sooner than the trace says";
    let start_times = r.get("start_times", Flag, Some(false), meaning)?;
    let gathered = gathered.unwrap_or(Gathered::Shard);
    let bytes_per_element = u64::from(bytes);
    Ok((process_groups, ChakraOptions { bytes_per_element, gathered, start_times }))
}

/// What text workloads leave open.
pub(super) fn read_text(r: &mut Reader<'_>, gathered: Option<Gathered>) -> Result<TextOptions> {
    let unit = Or(Span::SOME, "format");
    let unit = r.get("time_unit", unit, Some(None), "text: what 1 in a column of times is")?;
    let passes = Whole { min: 1, max: 1_000 };
    let passes = r.get("passes", passes, Some(1), "text: how often the job runs through")?;
    let meaning = "text: whether each step waits for the one before it";
    let serial = r.get("serial", Flag, Some(false), meaning)?;
    let degrees = read_degrees(r)?;
    Ok(TextOptions { dialect: None, unit, gathered, degrees, passes, serial })
}

fn read_degrees(r: &mut Reader<'_>) -> Result<Option<Degrees>> {
    let mut degree = |key, meaning| {
        let degree = Or(Whole { min: 1, max: 65_536 }, "header");
        r.get(key, degree, Some(None), meaning)
    };
    let tensor = degree("tensor", "text: ranks that share tensors")?;
    let expert = degree("expert", "text: ranks that share experts")?;
    let pipeline = degree("pipeline", "text: pipeline stages")?;
    let one = |degree: Option<u32>| degree.unwrap_or(1);
    let given = [tensor, expert, pipeline].iter().any(Option::is_some);
    Ok(given.then(|| Degrees { tensor: one(tensor), expert: one(expert), pipeline: one(pipeline) }))
}

impl TraceFiles {
    /// What tables call it.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// The trace at `path`, read with what its format says.
    pub(crate) fn at(path: &Path, process_groups: Option<&Path>) -> TraceFiles {
        TraceFiles {
            path: path.to_owned(),
            process_groups: process_groups.map(Path::to_owned),
            chakra: ChakraOptions::default(),
            text: TextOptions::default(),
            digest: String::new(),
        }
    }

    /// The trace.
    ///
    /// # Errors
    /// If a file cannot be read or understood.
    pub(crate) fn load(&self) -> std::result::Result<Trace, Fault> {
        let fault = |error: weft_workload::WorkloadError| Fault::at("trace", error.0);
        if let Some(text) = self.text()? {
            let name = self.name();
            return match trace::is_comm_log(&text) {
                true => trace::read_comm_log(&name, &text).map_err(fault),
                false => trace::read_text(&name, &text, &self.text).map_err(fault),
            };
        }
        let mut reader = ChakraReader::new(self.chakra);
        if let Some(path) = &self.process_groups {
            let wrong = |what: String| Fault::at("process_groups", what);
            let text = String::from_utf8(bytes_of("process_groups", path)?).map_err(|_| {
                let shown = path.display();
                wrong(format!("{shown} is not text; give the JSON file of process groups"))
            })?;
            let read = reader.read_groups(&path.display().to_string(), &text);
            read.map_err(|error| wrong(error.0))?;
        }
        for (rank, path) in self.ranks()? {
            let bytes = bytes_of("trace", &path)?;
            reader.read_rank(rank, &path.display().to_string(), &bytes).map_err(fault)?;
        }
        reader.finish().map_err(fault)
    }

    /// The text, unless it is a trace of Chakra's.
    fn text(&self) -> std::result::Result<Option<String>, Fault> {
        let name = self.name();
        if CHAKRA.iter().any(|end| name.ends_with(end)) || !self.path.is_file() {
            return Ok(None);
        }
        let shown = self.path.display();
        match String::from_utf8(bytes_of("trace", &self.path)?) {
            Ok(text) if trace::is_comm_log(&text) || trace::is_text_workload(&text) => {
                Ok(Some(text))
            }
            Ok(text) if text.trim().is_empty() => {
                Err(Fault::at("trace", format!("{shown} is empty; copy or write it again")))
            }
            _ => {
                let what = format!(
                    "{shown} is no trace that is known; give a Chakra trace (.et, .et.gz), a text \
                     workload or a list of communications (.csv)"
                );
                Err(Fault::at("trace", what))
            }
        }
    }

    /// The files of a Chakra trace, one for each rank: `PREFIX.RANK.et`, or `.et.gz`.
    fn ranks(&self) -> std::result::Result<Vec<(u32, PathBuf)>, Fault> {
        let name = self.name();
        let prefix = match trace::rank_of_file(&name) {
            Some((prefix, _)) => prefix,
            None if self.path.is_file() => return Ok(vec![(0, self.path.clone())]),
            None => &*name,
        };
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut ranks: Vec<(u32, PathBuf)> = traces_in(folder.unwrap_or(Path::new(".")))
            .into_iter()
            .filter(|(own, ..)| own == prefix)
            .map(|(_, rank, path)| (rank, path))
            .collect();
        // Of a file that is there unpacked and packed, the first.
        ranks.sort_unstable();
        ranks.dedup_by_key(|(rank, _)| *rank);
        if ranks.is_empty() { Err(self.missing()) } else { Ok(ranks) }
    }

    /// There is nothing of that name.
    fn missing(&self) -> Fault {
        let shown = self.path.display();
        if !self.path.is_dir() {
            let what = format!("there is neither a file {shown} nor {shown}.0.et");
            return Fault::at("trace", format!("{what}; correct the path"));
        }
        let first = traces_in(&self.path).into_iter().map(|(.., path)| path).min();
        let mend = match first {
            Some(path) => format!("name a trace in it, for example {}", path.display()),
            None => "name a trace: a file, or what stands before .0.et".to_owned(),
        };
        Fault::at("trace", format!("{shown} is a directory; {mend}"))
    }

    fn hash(&self) -> std::result::Result<String, Fault> {
        let mut all = Vec::new();
        let traces = match self.text()? {
            Some(_) => vec![(0, self.path.clone())],
            None => self.ranks()?,
        };
        for (rank, path) in traces {
            all.extend(format!("{rank} {}\n", digest(&bytes_of("trace", &path)?)).into_bytes());
        }
        if let Some(path) = &self.process_groups {
            all.extend(digest(&bytes_of("process_groups", path)?).into_bytes());
        }
        Ok(digest(&all))
    }
}

/// The files of Chakra traces in a folder: prefix, rank, path.
fn traces_in(folder: &Path) -> Vec<(String, u32, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let traces = entries.filter_map(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let (prefix, rank) = trace::rank_of_file(&name)?;
        Some((prefix.to_owned(), rank, entry.path()))
    });
    traces.collect()
}

fn bytes_of(key: &'static str, path: &Path) -> std::result::Result<Vec<u8>, Fault> {
    fs::read(path).map_err(|error| {
        Fault::at(key, format!("cannot read {}: {error}; correct the path", path.display()))
    })
}
