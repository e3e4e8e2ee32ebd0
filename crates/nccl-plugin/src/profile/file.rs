//! The file of a process: an array of events that is complete after each write, so that it can be read while
//! the job runs, and after it was killed.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Ends the array: events end in a comma.
const TAIL: &str = "{}]\n";
/// Files of one name that a directory may have.
const MOST_OF_A_NAME: u32 = 1_000;

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct TraceFile {
    file: File,
    pub(crate) path: PathBuf,
    /// Bytes of events.
    pub(crate) len: u64,
}

impl TraceFile {
    /// A new one. `rank` is that of this process, where it is known: names differ in numbers only, so that
    /// whoever is given one file finds the others of a job.
    ///
    /// # Errors
    /// If nothing can be written there.
    pub(crate) fn create(directory: &Path, rank: Option<i32>) -> Result<TraceFile> {
        let process = std::process::id();
        for number in 0..MOST_OF_A_NAME {
            // Processes of containers have the same numbers.
            let name = match rank {
                Some(rank) => format!("weft-{rank}-{process}-{number}.json"),
                None => format!("weft-{process}-{number}.json"),
            };
            let path = directory.join(name);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    let mut made = TraceFile { file, path, len: 0 };
                    made.write("[\n".into())?;
                    return Ok(made);
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::other(format!("{MOST_OF_A_NAME} files have the name of this process")))
    }

    /// Adds events.
    ///
    /// # Errors
    /// If they cannot be written; what was there before can still be read.
    pub(crate) fn write(&mut self, mut events: String) -> Result<()> {
        let len = events.len() as u64;
        events.push_str(TAIL);
        self.file.write_all_at(events.as_bytes(), self.len)?;
        self.len += len;
        Ok(())
    }
}
