//! Which process this is. A child that was forked has all that its parent had but its threads: what is
//! asked of them there nobody hears, and a lock that one of them held is never let go. It has all sockets
//! as well, which would stay open when its parent dies: it closes them as it begins.

use std::os::fd::RawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How many forks lie between this process and the one that asked first.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// A process, as long as it lives. A child that was forked has a number of its own, others may have the
/// same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// This one. Cheap, and takes no lock.
    pub fn current() -> Process {
        static WATCH: Once = Once::new();
        if !WATCH.is_completed() {
            WATCH.call_once(|| {
                extern "C" fn forked() {
                    FORKS.fetch_add(1, Ordering::Relaxed);
                    close_all();
                }
                #[expect(unsafe_code, reason = "std has nothing for it")]
                // SAFETY: `forked` counts and closes, which is allowed there. Without room for it, forks
                // are not noticed.
                unsafe {
                    libc::pthread_atfork(None, None, Some(forked));
                }
            });
        }
        Process(FORKS.load(Ordering::Relaxed))
    }

    /// How many forks lie between it and the first process that asked.
    pub fn forks(self) -> u32 {
        self.0
    }

    /// Whether this is still that process, and no child of it.
    pub fn is_current(self) -> bool {
        Process(FORKS.load(Ordering::Relaxed)) == self
    }
}

/// Sockets of engines, a bit each; what is beyond the last one is not known.
static SOCKETS: [AtomicU64; 1_024] = [const { AtomicU64::new(0) }; 1_024];

fn place(socket: RawFd) -> Option<(&'static AtomicU64, u64)> {
    let at = usize::try_from(socket).ok()?;
    Some((SOCKETS.get(at / 64)?, 1 << (at % 64)))
}

/// An engine has this socket: no child shall keep it open.
pub(crate) fn keep_from_children(socket: RawFd) {
    if let Some((word, bit)) = place(socket) {
        word.fetch_or(bit, Ordering::Relaxed);
    }
}

/// It is about to be closed.
pub(crate) fn forget(socket: RawFd) {
    if let Some((word, bit)) = place(socket) {
        word.fetch_and(!bit, Ordering::Relaxed);
    }
}

/// Closes all of them, in a child. Its engines are memory that nobody looks at, and close nothing.
fn close_all() {
    for (at, word) in (0..).zip(&SOCKETS) {
        let mut bits = word.swap(0, Ordering::Relaxed);
        while bits != 0 {
            #[expect(unsafe_code, reason = "descriptors of memory that nobody owns any more")]
            // SAFETY: they are the child's copies, and no thread there has what owns them.
            unsafe {
                libc::close(at * 64 + bits.trailing_zeros() as RawFd);
            }
            bits &= bits - 1;
        }
    }
}
