//! The one line that a user reads when an experiment is wrong.

use crate::origin::Origin;
use crate::value::Table;
use std::fmt;

/// A mistake in an experiment: `<source>: <key> (<where>): <what is wrong>; <mend>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentError {
    source: Option<String>,
    key: String,
    origin: Origin,
    what: String,
    missing: bool,
    /// Other keys that may have caused it.
    causes: &'static [&'static str],
}

impl ExperimentError {
    /// A plan does not hold at `key` what Weft writes there: `what`.
    pub(crate) fn not_as_written(key: &str, what: &str) -> Self {
        let what = format!("not as weft plan writes it ({what}); make the plan again");
        ExperimentError::new(key, Origin::Unknown, what)
    }
    /// `what` is wrong at `key` (dotted; empty for the file as a whole). `what` ends with the
    /// mend, after a semicolon.
    pub fn new(key: impl Into<String>, origin: Origin, what: impl Into<String>) -> Self {
        let what = what.into();
        let (key, causes) = (key.into(), &[][..]);
        ExperimentError { source: None, key, origin, what, missing: false, causes }
    }
    /// A key that has to be there and is not.
    pub fn missing(key: String, what: String) -> Self {
        ExperimentError { missing: true, ..ExperimentError::new(key, Origin::Unknown, what) }
    }
    /// Whether this is about a key that is not there: it may be there under a wrong name.
    pub fn is_missing(&self) -> bool {
        self.missing
    }
    /// Says which other keys (dotted) may have caused it: where the experiment does not give the key
    /// itself, the first of these that it does give is blamed, those of a `--set` before others.
    pub fn caused_by(self, causes: &'static [&'static str]) -> Self {
        ExperimentError { causes, ..self }
    }
    /// Names the file (or other source), unless one is named already.
    pub fn in_source(mut self, source: &str) -> Self {
        self.source.get_or_insert_with(|| source.to_owned());
        self
    }
    /// Says where the key was written, if that is not known and `table` knows.
    pub fn located_in(mut self, table: &Table) -> Self {
        if table.origin_of(&self.key) == Origin::Unknown {
            let origin = |cause: &&&str| table.origin_of(cause);
            let changed = self.causes.iter().find(|cause| origin(cause) == Origin::Set);
            let given = || self.causes.iter().find(|cause| origin(cause) != Origin::Unknown);
            if let Some(cause) = changed.or_else(given) {
                self.key = (*cause).to_owned();
            }
        }
        if self.origin == Origin::Unknown {
            self.origin = table.origin_of(&self.key);
        }
        self
    }
    /// What is wrong, with the mend.
    pub fn what(&self) -> &str {
        &self.what
    }
    /// The dotted key.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ExperimentError { source, key, origin, what, .. } = self;
        let names = [source.as_deref().unwrap_or_default(), key.as_str()];
        let names: Vec<_> = names.into_iter().filter(|name| !name.is_empty()).collect();
        let place = format!("{}{origin}", names.join(": "));
        let line = if place.is_empty() { what.clone() } else { format!("{place}: {what}") };
        // A message from elsewhere may have several lines; a user gets one.
        f.write_str(&line.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl std::error::Error for ExperimentError {}
