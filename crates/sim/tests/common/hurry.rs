//! Work that must not hang.

use std::sync::mpsc;
use std::time::Duration;

/// Does `work` on a thread of its own and waits for `seconds` at most. `Err`: it panicked.
///
/// # Panics
/// If it takes longer.
#[expect(clippy::disallowed_methods, reason = "a test that hangs would never tell")]
pub fn within<T: Send + 'static>(
    seconds: u64,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ()> {
    let (done, wait) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        // Dropped without a word if the work panics.
        let _ = done.send(work());
    });
    let result = wait.recv_timeout(Duration::from_secs(seconds));
    assert_ne!(result.as_ref().err(), Some(&mpsc::RecvTimeoutError::Timeout), "it hangs");
    let _ = worker.join();
    result.map_err(|_| ())
}

/// Does nothing for a while.
#[expect(clippy::disallowed_methods, reason = "so that something else is under way")]
pub fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}
