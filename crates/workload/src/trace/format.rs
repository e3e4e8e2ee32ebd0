//! What a format of traces says of itself, and what its reader is given.
//!
//! Whoever opens files hands them to the reader as a [`TraceSource`], one at a time, so that a trace
//! of thousands of files need not be in memory.

use super::{Gathered, Trace};
use crate::WorkloadError;
use std::fmt::Debug;
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

/// A format of traces: a struct of its options.
pub trait TraceFormat: Clone + Debug + PartialEq {
    /// Its line of the catalogue.
    const INFO: TraceFormatInfo;

    /// What it is told. Every option is asked for.
    ///
    /// # Errors
    /// If an option is not what it may be.
    fn read(options: &mut Options<'_>) -> Result<Self, OptionError>;
    /// Whether a file with these bytes is of this format. Not asked where
    /// [`TraceFormatInfo::per_rank`] is set: names of files tell these.
    fn recognises(bytes: &[u8]) -> bool;
    /// The trace in these files.
    ///
    /// # Errors
    /// The first thing that is not understood, as one line with the file, the place and the mend.
    fn load(&self, files: &mut dyn TraceSource) -> Result<Trace, WorkloadError>;
    /// Whether a second file ([`SideFileInfo`]) is what it should be; `name` is what errors call it.
    ///
    /// # Errors
    /// If it is not.
    fn check_side_file(name: &str, text: &str) -> Result<(), WorkloadError> {
        let _ = (name, text);
        Ok(())
    }
    /// The same, read as with `dependencies = "data"`: for a trace that waits for ever. `None`: it has no
    /// such option, or is read so already.
    fn on_data(&self) -> Option<Self> {
        None
    }
}

/// A format of traces, as lists and errors show it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceFormatInfo {
    /// What a file of it is called: `Chakra trace`.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// How names of its files end, the usual one first: `.et`.
    pub ends: &'static [&'static str],
    /// Whether each rank has a file, `PREFIX.RANK.END`; else there is one file for all.
    pub per_rank: bool,
    /// Whether each rank has a file, in one directory, with names that differ in numbers only; content tells the
    /// format then.
    pub alike: bool,
    /// A second file that belongs to the trace.
    pub side_file: Option<SideFileInfo>,
    /// What the format leaves open. All formats share `[workload]`: options of the same key have to be
    /// equal.
    pub options: &'static [OptionInfo],
    /// The content of a small file that can be read, for tests.
    pub example: &'static [u8],
}

/// A second file that belongs to a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideFileInfo {
    /// The option that names it, one of [`TraceFormatInfo::options`]; [`TraceFormat::read`] does not
    /// ask for this one.
    pub key: &'static str,
    /// What it is: `JSON file of process groups`.
    pub what: &'static str,
    /// How its name ends if it is found by itself beside the trace: of `NAME.0.et`, `NAME` and this.
    pub end: &'static str,
    /// Whether each rank has one, in one directory, with names that differ in numbers only; none is found by
    /// itself then.
    pub per_rank: bool,
}

impl TraceFormatInfo {
    /// `name` without the end that files of this format have; `None`: it does not end so.
    pub fn stem<'n>(&self, name: &'n str) -> Option<&'n str> {
        // Of two ends that fit, the longer one.
        self.ends.iter().filter_map(|end| name.strip_suffix(end)).min_by_key(|stem| stem.len())
    }
    /// What a file called `PREFIX.RANK.END` begins with, and the rank that it is about.
    pub fn rank_of_file<'n>(&self, name: &'n str) -> Option<(&'n str, u32)> {
        let (prefix, number) = self.stem(name)?.rsplit_once('.')?;
        // Another spelling of a number is another file.
        let rank: u32 = number.parse().ok().filter(|rank: &u32| rank.to_string() == number)?;
        Some((prefix, rank))
    }
}

/// A file of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    /// Whose it is; 0 where there is one file for all.
    pub rank: u32,
    /// What errors call it.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A second file, given or found beside the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideFile {
    /// It is there, and [`TraceFormat::check_side_file`] has nothing against it.
    Is {
        /// What errors call it.
        name: String,
        /// Its content.
        text: String,
    },
    /// None was given, and there is none beside the trace.
    Missing {
        /// Where it was looked for.
        place: String,
        /// Whether another file is there, which is none.
        is_taken: bool,
    },
}

/// The files of one trace, handed out by whoever may open files.
pub trait TraceSource {
    /// The next file, in the order of ranks; `None`: that was all.
    ///
    /// # Errors
    /// If it cannot be read.
    fn next_file(&mut self) -> Result<Option<TraceFile>, WorkloadError>;
    /// The second file; `None` if the format has none.
    ///
    /// # Errors
    /// If it cannot be read.
    fn side_file(&mut self) -> Result<Option<SideFile>, WorkloadError>;
    /// The second files, where each rank has one; none if none was given.
    ///
    /// # Errors
    /// If one cannot be read.
    fn side_files(&mut self) -> Result<Vec<TraceFile>, WorkloadError> {
        Ok(Vec::new())
    }
    /// What errors call the only file, and its text.
    ///
    /// # Errors
    /// If it cannot be read, or is not text.
    fn text(&mut self) -> Result<(String, String), WorkloadError> {
        let no_file = || WorkloadError("no traces; give a file".into());
        let TraceFile { name, bytes, .. } = self.next_file()?.ok_or_else(no_file)?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok((name, text)),
            Err(_) => Err(WorkloadError(format!("{name}: is not text; copy or write it again"))),
        }
    }
}

/// The option that says what an all-gather's size counts.
pub(super) const GATHERED: OptionInfo = OptionInfo {
    key: "gathered",
    default: "format",
    kind: OptionKind::Word(&["format", "shard", "whole"]),
    meaning: "what an all-gather's size counts: shard, whole, or format, as its kind of file has it",
};

/// What an all-gather's size counts; `None`: as its format has it.
pub(super) fn read_gathered(options: &mut Options<'_>) -> Result<Option<Gathered>, OptionError> {
    let words =
        [("format", None), ("shard", Some(Gathered::Shard)), ("whole", Some(Gathered::Whole))];
    options.choice(GATHERED.key, &words)
}
