//! Traces on disk: which files belong together, and what their formats leave open.

use super::fault::Fault;
use crate::digest::digest;
use crate::error::ExperimentError;
use crate::kind::{Flag, Integer, Number, OneOf, Or, Span, Text};
use crate::reader::Reader;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use weft_workload::trace::{
    self, ChakraOptions, ChakraReader, Degrees, Dependencies, Gathered, Roofline, TextOptions,
    Trace,
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
    // No trace that can be read, but that is for the reader of traces to say.
    let is_foreign =
        || head_of(Path::new(text)).is_some_and(|head| trace::foreign(&head).is_some());
    let is_first = |end: &&str| Path::new(&format!("{text}.0{end}")).is_file();
    CHAKRA.iter().chain(&[".txt"]).any(|end| text.ends_with(end))
        || text.ends_with(".csv") && is_log()
        || CHAKRA.iter().any(is_first)
        || !NO_TRACES.iter().any(|end| text.ends_with(end)) && is_foreign()
}

/// Whose files end like this is known.
const NO_TRACES: [&str; 3] = [".toml", ".cm", ".csv"];

/// How a file begins.
fn head_of(path: &Path) -> Option<Vec<u8>> {
    const HEAD: u64 = 1 << 16;
    let mut head = Vec::new();
    let file = fs::File::open(path).ok().filter(|_| path.is_file())?;
    file.take(HEAD).read_to_end(&mut head).ok()?;
    Some(head)
}

/// Reads the keys of a trace; files are looked for in `folder`.
pub(super) fn read(r: &mut Reader<'_>, folder: &Path) -> Result<TraceFiles> {
    let meaning = "a Chakra trace (a file of it, or what stands before .0.et), or a text workload";
    let name = r.get("trace", Text, None, meaning)?;
    let path = folder.join(&name);
    r.record("trace", path.to_string_lossy().into_owned());
    let gathered = read_gathered(r)?;
    let (process_groups, chakra) = read_chakra(r, gathered, folder)?;
    let text = read_text(r, gathered)?;
    let mut files = TraceFiles { path, process_groups, chakra, text, digest: String::new() };
    if !r.is_rehearsal() {
        if let (None, Some(found)) = (&files.process_groups, files.groups_beside()) {
            r.record("process_groups", found.to_string_lossy().into_owned());
        }
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
        Some(path) => r.record("process_groups", path.to_string_lossy().into_owned()),
        None => r.omit("process_groups"),
    }
    let element = Integer { min: 1, max: 16 };
    let meaning = "Chakra: what 1 of comm_size and tensor_size is";
    let bytes = r.get("bytes_per_element", element, Some(1), meaning)?;
    let meaning = "Chakra: whether nodes start no sooner than the trace says";
    let start_times = r.get("start_times", Flag, Some(false), meaning)?;
    let meaning =
        "Chakra: what nodes wait for; data: not for control dependencies, as in its feeder";
    let dependencies = r.get("dependencies", OneOf(&["all", "data"]), Some(0), meaning)?;
    let chakra = ChakraOptions {
        bytes_per_element: u64::from(bytes),
        gathered: gathered.unwrap_or(Gathered::Shard),
        start_times,
        dependencies: [Dependencies::All, Dependencies::Data][dependencies],
        roofline: read_roofline(r)?,
    };
    Ok((process_groups, chakra))
}

/// What accelerators do in a second, for computations that a trace only counts.
fn read_roofline(r: &mut Reader<'_>) -> Result<Roofline> {
    let mut per_second = |key, unit: f64, meaning| {
        let number = Or(Number { min: 0.001, max: 1e6 }, "none");
        let given = r.get(key, number, Some(None), meaning)?;
        Ok(given.map(|number| (number * unit) as u64))
    };
    let meaning = "Chakra: 10^12 operations a second; computations take num_ops over it, or longer";
    let operations = per_second("peak_tflops", 1e12, meaning)?;
    let meaning = "Chakra: 10^9 bytes a second; computations take tensor_size over it, or longer";
    let bytes = per_second("memory_gb_s", 1e9, meaning)?;
    Ok(Roofline { operations, bytes })
}

/// What text workloads leave open.
pub(super) fn read_text(r: &mut Reader<'_>, gathered: Option<Gathered>) -> Result<TextOptions> {
    let unit = Or(Span::SOME, "format");
    let unit = r.get("time_unit", unit, Some(None), "text: what 1 in a column of times is")?;
    let passes = Integer { min: 1, max: 1_000 };
    let passes = r.get("passes", passes, Some(1), "text: how often the job runs through")?;
    let meaning = "text: whether each step waits for the one before it";
    let serial = r.get("serial", Flag, Some(false), meaning)?;
    let degrees = read_degrees(r)?;
    Ok(TextOptions { dialect: None, unit, gathered, degrees, passes, serial })
}

fn read_degrees(r: &mut Reader<'_>) -> Result<Option<Degrees>> {
    let mut degree = |key, meaning| {
        let degree = Or(Integer { min: 1, max: 65_536 }, "header");
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
        let beside = self.beside();
        match (&self.process_groups, self.groups_beside()) {
            (Some(given), _) => read_groups(&mut reader, given)?,
            (None, Some(found)) => read_groups(&mut reader, &found)?,
            (None, None) if beside.is_file() => {
                reader.lacks_groups(format!("{} is no process-group file", beside.display()));
            }
            (None, None) => {
                let shown = beside.display();
                reader.lacks_groups(format!("there is no {shown} beside the trace"));
            }
        }
        for (rank, path) in self.ranks()? {
            let bytes = bytes_of("trace", &path)?;
            reader.read_rank(rank, &path.display().to_string(), &bytes).map_err(fault)?;
        }
        reader.finish().map_err(fault)
    }

    /// The process-group file beside the trace, if there is one: of `NAME.0.et`, `NAME.json`.
    fn groups_beside(&self) -> Option<PathBuf> {
        let path = self.beside();
        let mut reader = ChakraReader::new(self.chakra);
        (path.is_file() && read_groups(&mut reader, &path).is_ok()).then_some(path)
    }

    /// Where the process-group file of a Chakra trace is looked for.
    fn beside(&self) -> PathBuf {
        let name = self.name();
        let stem = trace::rank_of_file(&name).map_or(&*name, |(prefix, _)| prefix);
        let stem = CHAKRA.iter().find_map(|end| stem.strip_suffix(end)).unwrap_or(stem);
        self.path.with_file_name(format!("{stem}.json"))
    }

    /// The process-group file that is used.
    pub(crate) fn groups(&self) -> Option<PathBuf> {
        match self.text() {
            Ok(None) => self.process_groups.clone().or_else(|| self.groups_beside()),
            _ => None,
        }
    }

    /// Whether the trace can run if nobody waits for control dependencies, as those do who read
    /// with Chakra's feeder.
    pub(crate) fn runs_on_data(&self) -> bool {
        let chakra = ChakraOptions { dependencies: Dependencies::Data, ..self.chakra };
        let waits_for_all = self.chakra.dependencies == Dependencies::All;
        let on_data = || TraceFiles { chakra, ..self.clone() }.load();
        waits_for_all
            && self.text().is_ok_and(|text| text.is_none())
            && on_data().is_ok_and(|trace| trace::check(&trace).is_clean())
    }

    /// The text, unless it is a trace of Chakra's.
    fn text(&self) -> std::result::Result<Option<String>, Fault> {
        let name = self.name();
        if CHAKRA.iter().any(|end| name.ends_with(end)) || !self.path.is_file() {
            return Ok(None);
        }
        let shown = self.path.display();
        let bytes = bytes_of("trace", &self.path)?;
        if let Some(what) = trace::foreign(&bytes) {
            return Err(Fault::at("trace", format!("{shown} {what}")));
        }
        match String::from_utf8(bytes) {
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
        if let Some(path) = self.groups() {
            all.extend(digest(&bytes_of("process_groups", &path)?).into_bytes());
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

fn read_groups(reader: &mut ChakraReader, path: &Path) -> std::result::Result<(), Fault> {
    let wrong = |what: String| Fault::at("process_groups", what);
    let text = String::from_utf8(bytes_of("process_groups", path)?).map_err(|_| {
        let shown = path.display();
        wrong(format!("{shown} is not text; give the JSON file of process groups"))
    })?;
    let read = reader.read_groups(&path.display().to_string(), &text);
    read.map_err(|error| wrong(error.0))
}

fn bytes_of(key: &'static str, path: &Path) -> std::result::Result<Vec<u8>, Fault> {
    fs::read(path).map_err(|error| {
        Fault::at(key, format!("cannot read {}: {error}; correct the path", path.display()))
    })
}
