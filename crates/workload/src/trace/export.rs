//! Formats that jobs are written in: one line of [`EXPORTS`] each.
//!
//! What a format cannot say is refused, or left out with a remark; nothing is lost in silence.

use super::{Remark, Trace};
use crate::WorkloadError;

/// A format that jobs are written in.
#[derive(Clone, Copy, Debug)]
pub struct Export {
    /// What `--to` calls it.
    pub name: &'static str,
    /// How names of its files end.
    pub end: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Whether it has collectives; if not, jobs come [unfolded](crate::job::Job::unfolded).
    pub collectives: bool,
    /// Writes a trace whose number of ranks is settled.
    write: fn(&Trace) -> Result<Written, WorkloadError>,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Ends of names, each with the content of the file.
    pub files: Vec<(String, Vec<u8>)>,
    /// What was left out or written otherwise.
    pub remarks: Vec<Remark>,
}

// The registry: one entry a format. Of those with the same end the first is meant.
/// All formats that jobs are written in.
pub const EXPORTS: &[Export] = &[
    Export {
        name: "goal",
        end: ".goal",
        summary: "GOAL as text, for LogGOPSim's txt2bin",
        collectives: false,
        write: super::goal::write_text,
    },
    Export {
        name: "goal-binary",
        end: ".bin",
        summary: "GOAL in binary, for LogGOPSim, ATLAHS and htsim",
        collectives: false,
        write: super::goal::write_binary,
    },
    Export {
        name: "cm",
        end: ".cm",
        summary: "a connection matrix with triggers, for htsim",
        collectives: false,
        write: crate::cm::write_cm,
    },
    Export {
        name: "chakra",
        end: ".et",
        summary: "Chakra, a file a rank, and NAME.json with the process groups",
        collectives: true,
        write: super::chakra::write_chakra,
    },
];

impl Export {
    /// The format of this name.
    pub fn named(name: &str) -> Option<&'static Export> {
        EXPORTS.iter().find(|export| export.name == name)
    }
    /// Writes `trace`, unfolded if need be.
    ///
    /// # Errors
    /// What the format cannot say.
    pub fn write(&self, trace: &Trace) -> Result<Written, WorkloadError> {
        (self.write)(trace)
    }
}

impl Written {
    /// Notes what was left out or written otherwise, unless it never was.
    pub(crate) fn remark(&mut self, count: u64, what: &str) {
        if count > 0 {
            self.remarks.push(Remark { what: what.into(), count });
        }
    }
}
