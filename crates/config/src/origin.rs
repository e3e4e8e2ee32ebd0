//! Where values come from.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Where a value was written, for messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Not known (JSON, Python).
    #[default]
    Unknown,
    /// On this line of the file.
    Line(u32),
    /// In a `--set`.
    Set,
    /// In a file that the experiment extends: its name as the experiment has it, and the line if known.
    Extended(&'static str, Option<u32>),
    /// In the sweep, on this line of the file if known.
    Sweep(Option<u32>),
}

impl Origin {
    /// The same place, seen from an experiment that extends the file `name`.
    #[must_use]
    pub fn extended(self, name: &str) -> Origin {
        // Names live as long as the process, each once: a place is copied with every value.
        static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let line = match self {
            Origin::Extended(..) => return self,
            Origin::Line(line) => Some(line),
            _ => None,
        };
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = names.get(name).copied();
        let name = known.unwrap_or_else(|| Box::leak(name.into()));
        names.insert(name);
        Origin::Extended(name, line)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Unknown => Ok(()),
            Origin::Line(line) => write!(f, " (line {line})"),
            Origin::Set => write!(f, " (command line)"),
            Origin::Extended(file, None) => write!(f, " (in {file})"),
            Origin::Extended(file, Some(line)) => write!(f, " ({file}, line {line})"),
            Origin::Sweep(None) => write!(f, " (sweep)"),
            Origin::Sweep(Some(line)) => write!(f, " (sweep, line {line})"),
        }
    }
}
