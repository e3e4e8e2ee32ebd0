//! Where values come from.

use std::fmt;

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
    /// In the file that the experiment extends.
    Extended,
    /// In the sweep, on this line of the file if known.
    Sweep(Option<u32>),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Unknown => Ok(()),
            Origin::Line(line) => write!(f, " (line {line})"),
            Origin::Set => write!(f, " (command line)"),
            Origin::Extended => write!(f, " (in the file it extends)"),
            Origin::Sweep(None) => write!(f, " (sweep)"),
            Origin::Sweep(Some(line)) => write!(f, " (sweep, line {line})"),
        }
    }
}
