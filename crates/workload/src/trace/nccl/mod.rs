//! What NCCL itself writes down: its log of calls, and the files of its profiler plugins.
//!
//! | module | what it holds |
//! |---|---|
//! | `calls` | calls by process and communicator, made a job |
//! | `log` | `NCCL_DEBUG=INFO` with `COLL` and `INIT` among `NCCL_DEBUG_SUBSYS` |
//! | `profiler` | the JSON of NCCL's example profiler, and of its inspector |
//!
//! None of them says what is computed between calls: that is `nccl_compute`. Calls of a process follow each other
//! where they are on one stream, or where streams are not told. Sends and receives of one group (one `opCount`)
//! go on together.
//!
//! A file may have the lines of one process, of some, or of all; where only one process is known and it has one
//! communicator, all ranks do what it does.

mod calls;
mod log;
mod profiler;

pub use log::NcclLog;
pub use profiler::NcclProfile;

use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

/// The option that says what is computed.
const COMPUTE: OptionInfo = OptionInfo {
    key: "nccl_compute",
    default: "0ns",
    kind: OptionKind::Time(Time::ZERO),
    meaning: "NCCL: how long every rank computes before each of its calls",
};

fn read_compute(options: &mut Options<'_>) -> Result<Time, OptionError> {
    options.time(COMPUTE.key)
}
