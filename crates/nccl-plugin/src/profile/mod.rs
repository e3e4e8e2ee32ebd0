//! What NCCL and Weft do, in a file of each process (`WEFT_PROFILE`): JSON as Chrome's traces have it, which
//! Perfetto shows and `weft trace` reads.
//!
//! | module | what it does |
//! |---|---|
//! | `recorder` | events as they come, under numbers that NCCL has for handles |
//! | `line` | an event as a line of JSON |
//! | `file` | the file, which can be read at any time |
//! | `message` | messages and their pieces, joined with the steps of NCCL's proxy |
//! | [`tables`] | NCCL's profiler interface, versions 3 to 5 |
//!
//! Events wait in memory for the thread that writes them, and the file has a largest size: what there is no room
//! for is left out and counted. Without the variable NCCL is told that no event is wanted.

mod file;
mod line;
pub(crate) mod message;
mod recorder;
pub mod tables;

use crate::boundary::Failure;
use crate::watch;
pub(crate) use recorder::Recorder;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

/// The number of this process; asking the system takes longer than writing it. Children record nothing.
static PROCESS: LazyLock<u32> = LazyLock::new(std::process::id);
static RECORDER: OnceLock<Recorder> = OnceLock::new();

/// Begins to record, if the environment asks for it and nobody has begun.
///
/// # Errors
/// If nothing can be written there.
pub(crate) fn start() -> Result<Option<&'static Recorder>, Failure> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _held = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if RECORDER.get().is_none()
        && let Some(directory) = weft_deploy::profile_directory()
    {
        let recorder = RECORDER.get_or_init(|| Recorder::new(directory.clone()));
        recorder.begin()?;
        watch::before_exit(|| recording().into_iter().for_each(|recorder| recorder.end(None)));
    }
    Ok(recording())
}

/// The recorder, if this process has one, and is no child of the process that has.
pub(crate) fn recording() -> Option<&'static Recorder> {
    RECORDER.get().filter(|recorder| recorder.is_here())
}
