//! From Rust to C: no panic gets through, and every error leaves one line in NCCL's log.

use crate::forked;
use crate::logger;
use std::panic::{AssertUnwindSafe, catch_unwind};
use weft_comm::CommError;
use weft_nccl_abi::NcclResult;

/// Why a function does not return success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A pointer that must not be null is; which.
    Null(&'static str),
    /// An argument that makes no sense.
    Argument(String),
    /// A call that is not its turn.
    Usage(String),
    /// The environment asks for what cannot be.
    Setup(String),
    /// A NIC that NCCL cannot place as the first of several; its name. NCCL goes on without.
    Unplaced(String),
    /// A child that was forked from the process that called `init`.
    Forked,
    /// Channels failed.
    Comm(CommError),
}

impl From<CommError> for Failure {
    fn from(error: CommError) -> Failure {
        Failure::Comm(error)
    }
}

impl Failure {
    fn result(&self) -> NcclResult {
        match self {
            Failure::Null(_) | Failure::Argument(_) => NcclResult::INVALID_ARGUMENT,
            Failure::Comm(CommError::Invalid(_)) => NcclResult::INVALID_ARGUMENT,
            Failure::Usage(_) | Failure::Unplaced(_) | Failure::Forked => NcclResult::INVALID_USAGE,
            Failure::Setup(_) | Failure::Comm(CommError::System(_)) => NcclResult::SYSTEM_ERROR,
            Failure::Comm(CommError::Remote(_)) => NcclResult::REMOTE_ERROR,
        }
    }

    /// Tells NCCL's log.
    pub(crate) fn say(&self, call: &'static str) {
        match self {
            Failure::Null(what) => logger::error(&format!("{call}: {what} is null")),
            Failure::Argument(text) | Failure::Usage(text) => {
                logger::error(&format!("{call}: {text}"));
            }
            Failure::Setup(text) => logger::error(text),
            Failure::Unplaced(name) => logger::info(&format!(
                "{call}: {name} has no PCI device, where NCCL would place what is merged: each NIC is used by itself"
            )),
            Failure::Forked => logger::forked(call),
            Failure::Comm(error) => logger::error(&format!("{call}: {error}")),
        }
    }
}

/// Runs what a C function does.
pub(crate) fn enter(call: &'static str, work: impl FnOnce() -> Result<(), Failure>) -> NcclResult {
    // Whatever a panic left half done is seen to be broken by the next call: locks are poisoned.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let here = forked::may_call().then_some(()).ok_or(Failure::Forked);
        here.and_then(|()| work()).map_err(|failure| {
            failure.say(call);
            failure.result()
        })
    }));
    match outcome {
        Ok(Ok(())) => NcclResult::SUCCESS,
        Ok(Err(result)) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
            // The line may panic no more than the work.
            let line = format!("{call}: a bug in Weft, please report it: {text}");
            let _ = catch_unwind(|| logger::error(&line));
            NcclResult::INTERNAL_ERROR
        }
    }
}
