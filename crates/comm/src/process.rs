//! Which process this is. A child that was forked has all that its parent had but its threads: what is
//! asked of them there nobody hears, and a lock that one of them held is never let go.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

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
                }
                #[expect(unsafe_code, reason = "std has nothing for it")]
                // SAFETY: `forked` only counts, which is allowed there. Without room for it, forks are
                // not noticed.
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
