//! Every thread begins on a core of its own. Left to themselves some systems start a thread on the core of its parent, and
//! take some hundredths of a second to move it: as long as a short run lasts.

#[cfg(target_os = "linux")]
pub(super) use linux::Cores;
#[cfg(not(target_os = "linux"))]
pub(super) use others::Cores;

#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_types, reason = "no outcome depends on the clock")]
mod linux {
    use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
    use nix::unistd::Pid;
    use std::time::{Duration, Instant};

    /// For so long a thread stays where it began: then systems have seen what it does.
    const LONG_ENOUGH: Duration = Duration::from_millis(10);
    const THIS_THREAD: Pid = Pid::from_raw(0);

    /// The cores of a run.
    pub(in super::super) struct Cores {
        allowed: CpuSet,
        /// Of each thread; the first one starts the others. Empty: the system decides.
        turns: Vec<usize>,
    }

    impl Cores {
        /// Of so many threads, if this thread, which starts the others, may use as many.
        pub(in super::super) fn for_threads(threads: usize) -> Cores {
            if threads == 1 {
                return Cores { allowed: CpuSet::new(), turns: Vec::new() };
            }
            let allowed = sched_getaffinity(THIS_THREAD).unwrap_or_default();
            let is_allowed = |core: &usize| allowed.is_set(*core) == Ok(true);
            let mut turns: Vec<usize> = (0..CpuSet::count()).filter(is_allowed).collect();
            let own =
                sched_getcpu().ok().and_then(|own| turns.iter().position(|core| *core == own));
            turns.rotate_left(own.unwrap_or(0));
            if threads > turns.len() {
                turns.clear();
            }
            Cores { allowed, turns }
        }

        /// Keeps this thread, which is number `thread` of several, on its core for a while.
        pub(in super::super) fn hold(&self, thread: usize) -> Hold<'_> {
            let mut core = CpuSet::new();
            let own = self.turns.get(thread).is_some_and(|own| core.set(*own).is_ok());
            let is_held = own && sched_setaffinity(THIS_THREAD, &core).is_ok();
            Hold { cores: self, since: is_held.then(Instant::now) }
        }
    }

    /// A thread that is kept where it is.
    pub(in super::super) struct Hold<'c> {
        cores: &'c Cores,
        /// [`None`]: it is not, or not any more.
        since: Option<Instant>,
    }

    impl Hold<'_> {
        /// Lets the thread go, if it is time.
        #[inline]
        pub(in super::super) fn check(&mut self) {
            if self.since.is_some_and(|since| since.elapsed() > LONG_ENOUGH) {
                self.end();
            }
        }
        fn end(&mut self) {
            if self.since.take().is_some() {
                // If that fails the thread stays where it is, which only takes time.
                let _ = sched_setaffinity(THIS_THREAD, &self.cores.allowed);
            }
        }
    }

    impl Drop for Hold<'_> {
        fn drop(&mut self) {
            self.end();
        }
    }
}

/// Systems that are left to themselves.
#[cfg(not(target_os = "linux"))]
mod others {
    pub(in super::super) struct Cores;
    pub(in super::super) struct Hold;

    impl Cores {
        pub(in super::super) fn for_threads(_: usize) -> Cores {
            Cores
        }
        pub(in super::super) fn hold(&self, _: usize) -> Hold {
            Hold
        }
    }

    impl Hold {
        pub(in super::super) fn check(&mut self) {}
    }
}
