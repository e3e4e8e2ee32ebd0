//! What can go wrong.

/// Why verbs do not work. Each is one line.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum VerbsError {
    /// The library is not there, or too old.
    #[error("{library} cannot be used: {why}")]
    Library {
        /// Its file name.
        library: &'static str,
        /// What the loader said.
        why: String,
    },
    /// There is no such device, port or address.
    #[error("{0}")]
    Device(String),
    /// A call failed.
    #[error("{call}: {why}")]
    Call {
        /// The function and what it was about.
        call: String,
        /// What the system said.
        why: String,
    },
}

impl VerbsError {
    /// A call that returned null or -1 and left its reason in `errno`.
    pub(crate) fn last(call: impl Into<String>) -> VerbsError {
        VerbsError::of(call, &std::io::Error::last_os_error())
    }

    /// The same of a call that pins memory.
    pub(crate) fn last_pinning(call: &str) -> VerbsError {
        let why = std::io::Error::last_os_error();
        let short = why.raw_os_error() == Some(libc::ENOMEM);
        VerbsError::of(format!("{call}{}", if short { " (see ulimit -l)" } else { "" }), &why)
    }

    /// A call that failed for this reason.
    pub(crate) fn of(call: impl Into<String>, why: &std::io::Error) -> VerbsError {
        VerbsError::Call { call: call.into(), why: why.to_string() }
    }

    /// A call that returned its reason: 0 is success; -1 stands for `errno`.
    pub(crate) fn check(code: i32, call: impl Fn() -> String) -> Result<(), VerbsError> {
        match code {
            0 => Ok(()),
            ..0 => Err(VerbsError::last(call())),
            _ => Err(VerbsError::of(call(), &std::io::Error::from_raw_os_error(code))),
        }
    }
}
