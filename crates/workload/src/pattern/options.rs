//! Options of patterns as text, read with the errors that the catalogue can give.

use super::PatternInfo;
use crate::WorkloadError;
use crate::error::quoted;

/// One option of a pattern, as the catalogue shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    /// Its key in the experiment file.
    pub key: &'static str,
    /// What holds without it, in words where it depends on the fabric.
    pub default: &'static str,
    /// What it means, with its values or unit.
    pub meaning: &'static str,
}

/// Options that were given, all of them known to the pattern.
pub(super) struct Options<'a> {
    given: &'a [(&'a str, &'a str)],
}

impl<'a> Options<'a> {
    /// # Errors
    /// If a key is unknown to the pattern or stands twice.
    pub(super) fn new(
        info: &PatternInfo,
        given: &'a [(&'a str, &'a str)],
    ) -> Result<Options<'a>, WorkloadError> {
        for (at, (key, _)) in given.iter().enumerate() {
            if !info.options.iter().any(|option| option.key == *key) {
                let known: Vec<_> = info.options.iter().map(|option| option.key).collect();
                return Err(WorkloadError(format!(
                    "{key}: unknown option of pattern {:?}; it has {}",
                    info.name,
                    known.join(", ")
                )));
            }
            if given[..at].iter().any(|(earlier, _)| earlier == key) {
                return Err(WorkloadError(format!("{key}: given twice; remove one")));
            }
        }
        Ok(Options { given })
    }
    /// The text of an option, if it was given.
    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.given.iter().find(|(given, _)| *given == key).map(|(_, value)| value.trim())
    }
    /// A whole number, if it was given.
    pub(super) fn number(&self, key: &str) -> Result<Option<u32>, WorkloadError> {
        let parse = |text: &str| {
            text.parse().map_err(|_| {
                let shown = quoted(text);
                WorkloadError(format!("{key}: {shown} is not a whole number; write one such as 4"))
            })
        };
        self.text(key).map(parse).transpose()
    }
    /// `true` or `false`, if it was given.
    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, WorkloadError> {
        match self.text(key) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => Err(unknown(key, other, &["true", "false"])),
        }
    }
}

/// The error for a value that is none of `known`.
pub(super) fn unknown(key: &str, value: &str, known: &[&str]) -> WorkloadError {
    WorkloadError(format!(
        "{key}: unknown value {}; use one of {}",
        quoted(value),
        known.join(", ")
    ))
}
