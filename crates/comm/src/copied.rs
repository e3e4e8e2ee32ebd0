//! Copies of what an application takes for sent. While there are any, its process does not exit: a system that
//! closes a connection with answers that nobody has read resets it, and what was on its way is lost.

use crate::Process;
use crate::memory::Span;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// An exit waits so long at most.
const LONGEST: Duration = Duration::from_secs(2);
/// How many there are, of all endpoints.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The process that has them: a child that was forked has none, whatever the number says.
static HERE: OnceLock<Process> = OnceLock::new();

/// Memory of those that are gone, for longer ones to come: what is given back to the system comes back page by
/// page, each with a fault.
static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
/// So many are kept, of so many bytes at most.
const MOST_SPARE: usize = 32;
const LONG: usize = 4 << 10;

/// One of them.
#[derive(Debug)]
pub(crate) struct Copied(Vec<u8>);

impl Copied {
    pub(crate) fn of(body: &[u8]) -> Copied {
        HERE.get_or_init(|| {
            #[expect(unsafe_code, reason = "std has nothing for it")]
            // SAFETY: libraries with it stay until the end of the process. Without room for it nobody waits.
            unsafe {
                libc::atexit(wait);
            }
            Process::current()
        });
        COUNT.fetch_add(1, Ordering::Relaxed);
        // A child that was forked may find it locked for ever.
        let spare = SPARE.try_lock().ok().filter(|_| body.len() > LONG);
        let mut copy = spare.and_then(|mut spare| spare.pop()).unwrap_or_default();
        copy.extend_from_slice(body);
        Copied(copy)
    }

    /// The bytes, which stay where they are.
    pub(crate) fn span(&self) -> Span {
        Span::new(self.0.as_ptr().cast_mut(), self.0.len())
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Relaxed);
        if self.0.len() > LONG
            && let Ok(mut spare) = SPARE.try_lock()
            && spare.len() < MOST_SPARE
        {
            self.0.clear();
            spare.push(std::mem::take(&mut self.0));
        }
    }
}

/// Threads of endpoints go on meanwhile.
extern "C" fn wait() {
    let end = Instant::now() + LONGEST;
    while COUNT.load(Ordering::Relaxed) > 0
        && HERE.get().is_some_and(|process| process.is_current())
        && Instant::now() < end
    {
        std::thread::sleep(Duration::from_micros(100));
    }
}
