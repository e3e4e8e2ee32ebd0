//! Statistics in a directory, where node_exporter's textfile collector and `weft top` find them: of each
//! process of a host `weft-N.prom` and `weft-N.json`, with N from 0. A process has the lock of its number
//! until it ends, however it ends; whoever comes removes what such as were killed have left.
//!
//! Numbers are small and come back, so that they may be labels of Prometheus. Locks of files hold across
//! containers, where numbers of processes mean nothing.

#![expect(unsafe_code, reason = "std has locks of files from 1.89 on only")]

use crate::boundary::Failure;
use crate::watch::write;
use std::fs::{File, OpenOptions};
use std::io::{Error, Result};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Processes of a host that may be seen.
pub(crate) const SLOTS: usize = 64;
/// node_exporter runs as somebody else.
const READABLE: u32 = 0o644;

/// The files of this process; they go with this.
pub(crate) struct Slot {
    /// Which of the processes here it is.
    pub(crate) number: usize,
    directory: PathBuf,
    _lock: File,
}

impl Slot {
    /// Takes the first number that nobody has.
    ///
    /// # Errors
    /// If no file can be written there, or all numbers are taken.
    pub(crate) fn take(directory: &Path) -> std::result::Result<Slot, Failure> {
        let mut taken: Option<Slot> = None;
        let mut last = Error::other(format!("{SLOTS} processes write there"));
        for number in 0..SLOTS {
            let before = directory.join(lock_name(number)).exists();
            if taken.is_some() && !before {
                continue;
            }
            match Slot::lock(directory, number) {
                // What is dropped removes what was left there.
                Ok(Some(slot)) if taken.is_none() => match slot.fill("", "[]\n") {
                    Ok(()) => taken = Some(slot),
                    // A file of another user, as a rule.
                    Err(error) => last = error,
                },
                Ok(_) => {}
                Err(error) => last = error,
            }
        }
        taken.ok_or_else(|| broken(directory, &last))
    }

    fn lock(directory: &Path, number: usize) -> Result<Option<Slot>> {
        let path = directory.join(lock_name(number));
        // One that is there may be another user's, which is good enough to lock. Where it is no file at all,
        // nobody waits for it.
        let mut known = OpenOptions::new();
        known.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let lock = known.open(&path).or_else(|_| {
            let mut new = OpenOptions::new();
            new.write(true).create_new(true).mode(READABLE).open(&path)
        })?;
        // SAFETY: the descriptor is open.
        let held = unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0;
        Ok(held.then(|| Slot { number, directory: directory.to_owned(), _lock: lock }))
    }

    /// Writes text for Prometheus, and JSON.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(&self, metrics: &str, json: &str) -> std::result::Result<(), Failure> {
        self.fill(metrics, json).map_err(|error| broken(&self.directory, &error))
    }

    fn fill(&self, metrics: &str, json: &str) -> Result<()> {
        write(&self.file("prom"), metrics, Some(READABLE))?;
        write(&self.file("json"), json, Some(READABLE))
    }

    fn file(&self, ending: &str) -> PathBuf {
        self.directory.join(format!("weft-{}.{ending}", self.number))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        for ending in ["prom", "json"] {
            // Whoever comes next tries again.
            let _ = std::fs::remove_file(self.file(ending));
        }
    }
}

fn lock_name(number: usize) -> String {
    format!(".weft-{number}.lock")
}

fn broken(directory: &Path, error: &Error) -> Failure {
    Failure::Setup(format!("WEFT_PROMETHEUS: {}: {error}", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Others may write into the directory: what they leave there leads nowhere, and holds up nobody.
    #[test]
    fn links_and_pipes_of_others_do_no_harm() {
        let directory = std::env::temp_dir().join(format!("weft-links-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("it is made");
        let precious = directory.join("precious");
        std::fs::write(&precious, "as it was").expect("it is written");
        for ending in ["prom", "json"] {
            let link = directory.join(format!("weft-0.{ending}.{}", std::process::id()));
            std::os::unix::fs::symlink(&precious, link).expect("it is made");
        }
        let pipe = directory.join(lock_name(0)).into_os_string().into_encoded_bytes();
        let pipe = std::ffi::CString::new(pipe).expect("no zeros");
        // SAFETY: text that ends in zero.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        let slot = Slot::take(&directory).map_err(|_| "no slot").expect("there is room");
        slot.write("metrics", "json").map_err(|_| "not written").expect("there is room");
        assert_eq!(std::fs::read_to_string(&precious).expect("it is there"), "as it was");
        drop(slot);
        std::fs::remove_dir_all(&directory).expect("it goes");
    }

    #[test]
    fn numbers_are_taken_and_come_back() {
        let directory = std::env::temp_dir().join(format!("weft-slots-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("it is made");
        // What a process that was killed has left.
        let left = directory.join("weft-2.prom");
        std::fs::write(directory.join(lock_name(2)), "").expect("it is written");
        std::fs::write(&left, "old").expect("it is written");
        let take = || Slot::take(&directory).map_err(|_| "no slot").expect("there is room");
        let (one, two) = (take(), take());
        assert_eq!((one.number, two.number), (0, 1));
        assert!(!left.exists());
        two.write("metrics", "json").map_err(|_| "not written").expect("there is room");
        let text = std::fs::read_to_string(directory.join("weft-1.prom")).expect("it is there");
        assert_eq!(text, "metrics");
        drop(one);
        assert!(!directory.join("weft-0.prom").exists() && directory.join("weft-1.json").exists());
        assert_eq!(take().number, 0);
        drop(two);
        std::fs::remove_dir_all(&directory).expect("it goes");
        assert!(Slot::take(&directory).is_err(), "there is no such directory");
    }
}
