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
        if let Err(error) = self.file.write_all_at(events.as_bytes(), self.len) {
            // A part of it may be there. Where the end was there is room for it, on a full disk too.
            let ended = self.file.write_all_at(TAIL.as_bytes(), self.len);
            let _ = ended.and_then(|()| self.file.set_len(self.len + TAIL.len() as u64));
            return Err(error);
        }
        self.len += len;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As on a disk that is full: what does not fit is not there in part.
    #[test]
    #[expect(unsafe_code, reason = "std has no limit of files")]
    fn what_cannot_be_written_leaves_the_file_as_it_was() {
        const MOST: u64 = 1 << 20;
        let directory = std::env::temp_dir().join(format!("weft-full-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("it is made");
        let mut file = TraceFile::create(&directory, None).expect("it is made");
        file.write("{\"name\":\"first\"},\n".into()).expect("there is room");
        let whole = std::fs::read_to_string(&file.path).expect("it is there");
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a place for two numbers; the signal would end the process.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            assert_eq!(libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit), 0);
            let less = libc::rlimit { rlim_cur: MOST, ..limit };
            assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const less), 0);
        }
        let more = "{\"name\":\"more\"},\n".repeat(MOST as usize / 8);
        let outcome = file.write(more);
        // SAFETY: as above.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
        assert!(outcome.is_err());
        assert_eq!(std::fs::read_to_string(&file.path).expect("it is there"), whole);
        assert!(whole.ends_with("},\n{}]\n"), "{whole}");
        std::fs::remove_dir_all(&directory).expect("it goes");
    }
}
