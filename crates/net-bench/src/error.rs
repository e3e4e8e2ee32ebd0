//! What can go wrong.

use weft_nccl_abi::NcclResult;

/// Why a benchmark ended early, in one line.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// What the user asked for cannot be.
    #[error("{0}")]
    Input(String),
    /// A function of the plugin failed; its log says why.
    #[error("{call} of the plugin returned {result:?}; NCCL's log says why")]
    Plugin {
        /// The name of the call.
        call: &'static str,
        /// What it returned.
        result: NcclResult,
    },
    /// Sockets failed, or another rank is gone.
    #[error("{0}")]
    Broken(String),
    /// It took too long.
    #[error("{0}")]
    Late(String),
    /// Somebody pressed Ctrl-C.
    #[error("interrupted")]
    Cancelled,
}

impl BenchError {
    pub(crate) fn input(text: impl Into<String>) -> BenchError {
        BenchError::Input(text.into())
    }

    pub(crate) fn broken(what: &str, error: &std::io::Error) -> BenchError {
        BenchError::Broken(format!("{what}: {error}"))
    }
}
