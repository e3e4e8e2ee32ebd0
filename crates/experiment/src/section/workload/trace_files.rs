//! Traces on disk: which files belong together, and what their formats leave open.
//!
//! Formats, their options and their readers are those of `weft_workload`'s registry.

use super::fault::Fault;
use crate::digest::digest;
use crate::error::ExperimentError;
use crate::kind::Text;
use crate::reader::Reader;
use crate::section::options;
use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use weft_units::OptionInfo;
use weft_workload::WorkloadError;
use weft_workload::trace::{
    self, SideFile, TRACE_FORMATS, Trace, TraceFile, TraceFormatInfo, TraceFormats, TraceSource,
};

type Result<T> = std::result::Result<T, ExperimentError>;

/// A trace on disk, and how to read it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TraceFiles {
    path: PathBuf,
    /// Second files that were given, by the keys that name them.
    side_files: Vec<(&'static str, PathBuf)>,
    formats: TraceFormats,
    /// Stands for the content.
    pub(crate) digest: String,
}

/// Whether `text` names a trace: by its end, or by what is on disk where other files end alike.
pub(super) fn is_named(text: &str) -> bool {
    let is_messages = super::is_file(text);
    let bytes = LazyCell::new(|| fs::read(text).unwrap_or_default());
    let is_of = |info: &TraceFormatInfo| TraceFormats::recognises(info, &bytes);
    // No trace that can be read, but that is for the reader of traces to say.
    let is_foreign =
        || head_of(Path::new(text)).is_some_and(|head| trace::foreign(&head).is_some());
    let is_first = |end: &&str| Path::new(&format!("{text}.0{end}")).is_file();
    let is_trace = |info: &TraceFormatInfo| {
        info.stem(text).is_some() && (!is_messages && !info.alike || is_of(info))
            || info.per_rank && info.ends.iter().any(is_first)
    };
    TRACE_FORMATS.iter().any(is_trace) || !is_messages && !text.ends_with(".toml") && is_foreign()
}

/// What a file of messages is in truth, if it is a trace: the name of its format.
pub(super) fn format_of_messages(name: &str, text: &str) -> Option<&'static str> {
    let mut ends = TRACE_FORMATS.iter().filter(|info| info.stem(name).is_some());
    ends.find(|info| TraceFormats::recognises(info, text.as_bytes())).map(|info| info.name)
}

/// The formats of a trace called so: by its content, if it is there, else by its end, which several share. None of
/// what stands before `.0.et`.
pub(super) fn formats_of(path: &Path) -> Vec<&'static TraceFormatInfo> {
    let (head, name) = (head_of(path).unwrap_or_default(), path.to_string_lossy());
    let is_of = |info: &&TraceFormatInfo| TraceFormats::recognises(info, &head);
    let by_content: Vec<_> = TRACE_FORMATS.iter().filter(is_of).collect();
    match by_content.is_empty() {
        true => TRACE_FORMATS.iter().filter(|info| info.stem(&name).is_some()).collect(),
        false => by_content,
    }
}

/// Whether the value of a key of `[workload]` says where a trace lies.
pub(crate) fn is_path_key(key: &str) -> bool {
    let is_side_key = |info: &TraceFormatInfo| info.side_file.is_some_and(|side| side.key == key);
    key == "trace" || TRACE_FORMATS.iter().any(is_side_key)
}

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
    let meaning =
        "a trace: a file, or what stands before .0.et; weft list workloads has the formats";
    let name = r.get("trace", Text, None, meaning)?;
    let path = folder.join(&name);
    r.record("trace", path.to_string_lossy().into_owned());
    let (side_files, formats) = read_options(r, TRACE_FORMATS, folder)?;
    let mut files = TraceFiles { path, side_files, formats, digest: String::new() };
    if !r.is_rehearsal() {
        if let Some((key, found)) = files.side_file() {
            r.record(key, found.to_string_lossy().into_owned());
        }
        files.digest = files.hash().map_err(|Fault { key, what }| r.wrong(&key, what))?;
    }
    Ok(files)
}

/// Reads what `formats` leave open: second files, and everything else.
pub(super) fn read_options(
    r: &mut Reader<'_>,
    formats: &[TraceFormatInfo],
    folder: &Path,
) -> Result<(Vec<(&'static str, PathBuf)>, TraceFormats)> {
    let mut known: Vec<&'static OptionInfo> = Vec::new();
    for option in formats.iter().flat_map(|info| info.options) {
        if !known.iter().any(|other| other.key == option.key) {
            known.push(option);
        }
    }
    let side_keys: BTreeSet<&'static str> =
        formats.iter().filter_map(|info| Some(info.side_file?.key)).collect();
    let (side_files, formats) = options::read(r, known, |given| {
        let (side, own): (Vec<_>, Vec<_>) =
            given.iter().copied().partition(|(key, _)| side_keys.contains(key));
        let (formats, resolved) = TraceFormats::resolve(&own)?;
        let path = |key: &'static str| {
            let (_, text) = side.iter().find(|(given, text)| *given == key && !text.is_empty())?;
            Some((key, folder.join(text)))
        };
        let paths: Vec<_> = side_keys.iter().filter_map(|key| path(key)).collect();
        Ok(((paths, formats), resolved))
    })?;
    for (key, path) in &side_files {
        r.record(key, path.to_string_lossy().into_owned());
    }
    Ok((side_files, formats))
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
        let (info, mut files) = self.opened()?;
        files.side_file = self.given_or_beside(info)?;
        files.side_files = self.side_files(info);
        let trace = self.formats.load(info, &mut files);
        trace.map_err(|error| Fault::at("trace", error.0))
    }

    /// The format, and its files in the order of ranks.
    fn opened(&self) -> std::result::Result<(&'static TraceFormatInfo, Opened), Fault> {
        let (info, only) = self.recognised()?;
        let rest = match (&only, info.alike) {
            (Some(_), _) => Vec::new(),
            (None, true) => alike(info, &self.path),
            (None, false) => self.ranks(info)?,
        };
        let (rest, side_file, side_files) = (rest.into_iter(), None, Vec::new());
        Ok((info, Opened { only, rest, side_file, side_files }))
    }

    /// The format; with the file, unless there may be one for each rank.
    fn recognised(
        &self,
    ) -> std::result::Result<(&'static TraceFormatInfo, Option<TraceFile>), Fault> {
        let name = self.name();
        let mut per_rank = TRACE_FORMATS.iter().filter(|info| info.per_rank);
        // Whatever it is called, content that is of another format counts.
        let head = head_of(&self.path).unwrap_or_default();
        let is_other = TRACE_FORMATS.iter().any(|info| TraceFormats::recognises(info, &head));
        if !is_other && let Some(info) = per_rank.clone().find(|info| info.stem(&name).is_some()) {
            return Ok((info, None));
        }
        if !self.path.is_file() {
            let info = per_rank.find(|info| self.ranks(info).is_ok());
            return info.map(|info| (info, None)).ok_or_else(|| self.missing());
        }
        let shown = self.path.display();
        let bytes = bytes_of("trace", &self.path)?;
        if let Some(what) = trace::foreign(&bytes) {
            return Err(Fault::at("trace", format!("{shown} {what}")));
        }
        match TRACE_FORMATS.iter().find(|info| TraceFormats::recognises(info, &bytes)) {
            Some(info) if info.alike => Ok((info, None)),
            Some(info) => Ok((info, Some(TraceFile { rank: 0, name, bytes }))),
            None if bytes.trim_ascii().is_empty() => {
                Err(Fault::at("trace", format!("{shown} is empty; copy or write it again")))
            }
            None => {
                let what = format!("{shown} is no trace that is known; give one of: {}", known());
                Err(Fault::at("trace", what))
            }
        }
    }

    /// The second file of this format: the one that was given, or else one beside the trace.
    fn given_or_beside(
        &self,
        info: &TraceFormatInfo,
    ) -> std::result::Result<Option<SideFile>, Fault> {
        let Some(side) = info.side_file.filter(|side| !side.per_rank) else { return Ok(None) };
        let place = self.beside(info, side.end);
        match self.given(side.key) {
            Some(given) => side_file_at(info, given).map(Some),
            None => {
                let is_taken = place.is_file();
                let missing = SideFile::Missing { place: place.display().to_string(), is_taken };
                Ok(Some(side_file_at(info, &place).unwrap_or(missing)))
            }
        }
    }

    /// The second files of a format that has one for each rank.
    fn side_files(&self, info: &TraceFormatInfo) -> Vec<(u32, PathBuf)> {
        let side = info.side_file.filter(|side| side.per_rank);
        let given = side.and_then(|side| self.given(side.key));
        given.map(|path| alike(info, path)).unwrap_or_default()
    }

    fn given(&self, key: &str) -> Option<&Path> {
        self.side_files.iter().find(|(given, _)| *given == key).map(|(_, path)| path.as_path())
    }

    /// Where the second file of a trace is looked for: of `NAME.0.et`, `NAME` and `end`.
    fn beside(&self, info: &TraceFormatInfo, end: &str) -> PathBuf {
        let name = self.name();
        let stem = info.rank_of_file(&name).map_or(&*name, |(prefix, _)| prefix);
        let stem = info.stem(stem).unwrap_or(stem);
        self.path.with_file_name(format!("{stem}{end}"))
    }

    /// The second file that is used, and the key that names it.
    pub(crate) fn side_file(&self) -> Option<(&'static str, PathBuf)> {
        let (info, _) = self.recognised().ok()?;
        let side = info.side_file?;
        let found = || {
            if side.per_rank {
                return None;
            }
            let place = self.beside(info, side.end);
            side_file_at(info, &place).is_ok().then_some(place)
        };
        let path = self.given(side.key).map(Path::to_owned).or_else(found)?;
        Some((side.key, path))
    }

    /// Whether the trace can run if nobody waits for control dependencies, as those do who read
    /// with Chakra's feeder.
    pub(crate) fn runs_on_data(&self) -> bool {
        let formats = self.recognised().ok().and_then(|(info, _)| self.formats.on_data(info));
        let on_data = formats.map(|formats| TraceFiles { formats, ..self.clone() }.load());
        on_data.is_some_and(|trace| trace.is_ok_and(|trace| trace::check(&trace).is_clean()))
    }

    /// The files of a trace that has one for each rank: `PREFIX.RANK.et`, or `.et.gz`.
    fn ranks(&self, info: &TraceFormatInfo) -> std::result::Result<Vec<(u32, PathBuf)>, Fault> {
        let name = self.name();
        let prefix = match info.rank_of_file(&name) {
            Some((prefix, _)) => prefix,
            None if self.path.is_file() => return Ok(vec![(0, self.path.clone())]),
            None => &*name,
        };
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut ranks: Vec<(u32, PathBuf)> = traces_in(info, folder.unwrap_or(Path::new(".")))
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
        let per_rank = || TRACE_FORMATS.iter().filter(|info| info.per_rank);
        if !self.path.is_dir() {
            let firsts: Vec<_> =
                per_rank().map(|info| format!("nor {shown}.0{}", info.ends[0])).collect();
            let what = format!("there is neither a file {shown} {}", firsts.join(" "));
            return Fault::at("trace", format!("{what}; correct the path"));
        }
        let traces = per_rank().flat_map(|info| traces_in(info, &self.path));
        let mend = match traces.map(|(.., path)| path).min() {
            Some(path) => format!("name a trace in it, for example {}", path.display()),
            None => "name a trace: a file, or what stands before .0.et".to_owned(),
        };
        Fault::at("trace", format!("{shown} is a directory; {mend}"))
    }

    fn hash(&self) -> std::result::Result<String, Fault> {
        let mut all = Vec::new();
        let (info, mut files) = self.opened()?;
        while let Some(file) = files.next_file().map_err(|error| Fault::at("trace", error.0))? {
            all.extend(format!("{} {}\n", file.rank, digest(&file.bytes)).into_bytes());
        }
        if let Some((key, path)) = self.side_file() {
            let mut paths = vec![path];
            paths.extend(self.side_files(info).into_iter().map(|(_, path)| path));
            for path in paths {
                all.extend(digest(&bytes_of(key, &path)?).into_bytes());
            }
        }
        Ok(digest(&all))
    }
}

/// The files of a trace, opened one after the other.
struct Opened {
    /// The only file, where there is none for each rank.
    only: Option<TraceFile>,
    rest: std::vec::IntoIter<(u32, PathBuf)>,
    side_file: Option<SideFile>,
    side_files: Vec<(u32, PathBuf)>,
}

impl TraceSource for Opened {
    fn next_file(&mut self) -> std::result::Result<Option<TraceFile>, WorkloadError> {
        if let Some(only) = self.only.take() {
            return Ok(Some(only));
        }
        self.rest.next().map(|(rank, path)| read_file("trace", rank, &path)).transpose()
    }
    fn side_files(&mut self) -> std::result::Result<Vec<TraceFile>, WorkloadError> {
        let all = std::mem::take(&mut self.side_files).into_iter();
        all.map(|(rank, path)| read_file("execution_trace", rank, &path)).collect()
    }
    fn side_file(&mut self) -> std::result::Result<Option<SideFile>, WorkloadError> {
        Ok(self.side_file.take())
    }
}

/// The file of a rank.
fn read_file(
    key: &'static str,
    rank: u32,
    path: &Path,
) -> std::result::Result<TraceFile, WorkloadError> {
    let bytes = bytes_of(key, path).map_err(|fault| WorkloadError(fault.what))?;
    Ok(TraceFile { rank, name: path.display().to_string(), bytes })
}

/// The files beside `path` whose names differ from its own in numbers only, with the ranks that they are
/// of: the number that counts them from 0, or else the first that tells them apart. A file alone is of the
/// rank that `PREFIX.RANK.END` says, or of the first.
fn alike(info: &TraceFormatInfo, path: &Path) -> Vec<(u32, PathBuf)> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (shape, _) = numbers_in(&name);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let mut all: Vec<(Vec<u64>, PathBuf)> = entries
        .filter_map(|entry| {
            let (own, numbers) = numbers_in(&entry.file_name().to_string_lossy());
            (own == shape).then(|| (numbers, path.with_file_name(entry.file_name())))
        })
        .collect();
    all.sort_unstable();
    if all.len() < 2 {
        let rank = info.rank_of_file(&name).map_or(0, |(_, rank)| rank);
        return vec![(rank, path.to_owned())];
    }
    let sorted = |column: usize| {
        let mut values: Vec<u64> = all.iter().map(|(numbers, _)| numbers[column]).collect();
        values.sort_unstable();
        values
    };
    let columns = 0..all[0].0.len();
    let counts = |column: &usize| sorted(*column).into_iter().eq(0..all.len() as u64);
    let differs = |column: &usize| sorted(*column).windows(2).all(|pair| pair[0] < pair[1]);
    let column = columns.clone().find(counts).or_else(|| columns.clone().find(differs));
    let rank = |place: usize, numbers: &[u64]| {
        let number = column.map_or(place as u64, |column| numbers[column]);
        u32::try_from(number).unwrap_or(u32::MAX)
    };
    let mut ranks: Vec<(u32, PathBuf)> = (0..)
        .zip(all.iter())
        .map(|(place, (numbers, path))| (rank(place, numbers), path.clone()))
        .collect();
    ranks.sort_unstable();
    ranks
}

/// A name with its numbers taken out, and these; a number that is too long is as large as can be.
fn numbers_in(name: &str) -> (String, Vec<u64>) {
    let (mut shape, mut numbers) = (String::new(), Vec::new());
    let mut rest = name;
    while let Some(from) = rest.find(|one: char| one.is_ascii_digit()) {
        let digits = rest[from..].find(|one: char| !one.is_ascii_digit());
        let to = digits.map_or(rest.len(), |length| from + length);
        shape.push_str(&rest[..from]);
        shape.push('#');
        numbers.push(rest[from..to].parse().unwrap_or(u64::MAX));
        rest = &rest[to..];
    }
    shape.push_str(rest);
    (shape, numbers)
}

/// All formats and how their files end.
fn known() -> String {
    let one = |info: &TraceFormatInfo| format!("{} ({})", info.name, info.ends.join(", "));
    TRACE_FORMATS.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The files of traces with one for each rank in a folder: prefix, rank, path.
fn traces_in(info: &TraceFormatInfo, folder: &Path) -> Vec<(String, u32, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let traces = entries.filter_map(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let (prefix, rank) = info.rank_of_file(&name)?;
        Some((prefix.to_owned(), rank, entry.path()))
    });
    traces.collect()
}

/// The second file of a trace of this format, if it is what it should be.
fn side_file_at(info: &TraceFormatInfo, path: &Path) -> std::result::Result<SideFile, Fault> {
    let side = info.side_file.expect("the format has one");
    let name = path.display().to_string();
    let text = String::from_utf8(bytes_of(side.key, path)?)
        .map_err(|_| Fault::at(side.key, format!("{name} is not text; give the {}", side.what)))?;
    let checked = TraceFormats::check_side_file(info, &name, &text);
    checked.map_err(|error| Fault::at(side.key, error.0))?;
    Ok(SideFile::Is { name, text })
}

fn bytes_of(key: &'static str, path: &Path) -> std::result::Result<Vec<u8>, Fault> {
    fs::read(path).map_err(|error| {
        Fault::at(key, format!("cannot read {}: {error}; correct the path", path.display()))
    })
}
