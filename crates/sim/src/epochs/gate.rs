//! Where the threads of a run wait for each other between two epochs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

pub(super) const UNHARMED: &str = "no thread panicked";

/// Where threads wait for each other: they look for a short time, let others use the core for
/// some more, and then sleep.
pub(super) struct Gate {
    pub(super) threads: usize,
    arrived: AtomicUsize,
    passed: AtomicUsize,
    /// A thread has panicked, and will not come.
    broken: AtomicBool,
    /// How many sleep, or are about to.
    sleepers: Mutex<usize>,
    wake: Condvar,
}

impl Gate {
    /// After so many looks, others may use the core in between.
    const LOOKS: u32 = 2000;
    /// After so many, sleep.
    const YIELDS: u32 = 6000;

    pub(super) fn new(threads: usize) -> Gate {
        Gate {
            threads,
            arrived: AtomicUsize::new(0),
            passed: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            sleepers: Mutex::new(0),
            wake: Condvar::new(),
        }
    }

    /// Waits for all threads. The last one does `alone` before any goes on. Returns false if one
    /// will never come.
    pub(super) fn pass(&self, alone: impl FnOnce()) -> bool {
        let passed = self.passed.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            alone();
            self.arrived.store(0, Ordering::Relaxed);
            self.passed.store(passed.wrapping_add(1), Ordering::Release);
            self.wake_sleepers();
            return true;
        }
        let waits = || self.passed.load(Ordering::Acquire) == passed && !self.is_broken();
        let mut looks = 0;
        while waits() {
            looks += 1;
            if looks < Gate::LOOKS {
                std::hint::spin_loop();
            } else if looks < Gate::YIELDS {
                std::thread::yield_now();
            } else {
                self.sleep_while(waits);
            }
        }
        !self.is_broken()
    }

    #[cold]
    fn sleep_while(&self, waits: impl Fn() -> bool) {
        let mut sleepers = lock(&self.sleepers);
        while waits() {
            *sleepers += 1;
            sleepers = self.wake.wait(sleepers).expect(UNHARMED);
        }
    }

    fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Under the lock, so that nobody falls asleep between a last look and now.
    fn wake_sleepers(&self) {
        let mut sleepers = lock(&self.sleepers);
        if std::mem::take(&mut *sleepers) > 0 {
            self.wake.notify_all();
        }
    }
}

/// Breaks the gate if its thread panics, so that the others do not wait for ever.
pub(super) struct Alarm<'g>(pub(super) &'g Gate);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Release);
            self.0.wake_sleepers();
        }
    }
}

/// The lock of what no two threads want at once.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect(UNHARMED)
}
