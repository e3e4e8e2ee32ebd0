//! Children that are forked have copies of all, and may call nothing.

use std::sync::atomic::{AtomicU32, Ordering};
use weft_comm::Process;

/// How many cores there are, and the process that has them. A child that is forked has copies of all.
static CORES: AtomicU32 = AtomicU32::new(0);
static OWNER: AtomicU32 = AtomicU32::new(0);

/// This process has a core, one more.
pub(crate) fn has_core() {
    OWNER.store(Process::current().forks(), Ordering::Relaxed);
    CORES.fetch_add(1, Ordering::Relaxed);
}

/// One of them has gone.
pub(crate) fn core_is_gone() {
    CORES.fetch_sub(1, Ordering::Relaxed);
}

/// Whether this process may call: it is no child of one that has a core. Takes no lock.
pub(crate) fn may_call() -> bool {
    CORES.load(Ordering::Relaxed) == 0
        || OWNER.load(Ordering::Relaxed) == Process::current().forks()
}
