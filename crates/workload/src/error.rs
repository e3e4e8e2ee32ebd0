//! The error of this crate, and how its one line is put together.

use std::fmt;
use weft_units::OptionError;

/// Why a workload cannot be built or read. One line: what, where, and the mend.
///
/// Errors of readers start with `file:line:`; errors of generators with the key of the
/// offending option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadError(pub String);

impl WorkloadError {
    /// Something wrong on a line (counted from 1) of a file.
    pub(crate) fn at(file: &str, line: u64, what: impl fmt::Display) -> WorkloadError {
        WorkloadError(format!("{file}:{line}: {what}"))
    }
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
impl std::error::Error for WorkloadError {}

impl From<OptionError> for WorkloadError {
    fn from(error: OptionError) -> WorkloadError {
        WorkloadError(error.to_string())
    }
}
