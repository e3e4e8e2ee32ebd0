//! What is wrong with a job, before it is known where in the experiment that stands.

use weft_workload::WorkloadError;

/// What is wrong, and with which key of the job's section.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    /// Empty for the job as a whole.
    pub(super) key: String,
    /// What, with the mend.
    pub(crate) what: String,
}

impl Fault {
    /// `what` is wrong at `key`.
    pub(crate) fn at(key: &str, what: impl Into<String>) -> Fault {
        Fault { key: key.to_owned(), what: what.into() }
    }
    /// An error of a generator or an algorithm, which begins with its key.
    pub(super) fn keyed(error: WorkloadError) -> Fault {
        match error.0.split_once(": ") {
            Some((key, what)) => Fault::at(key, what),
            None => Fault::whole(error),
        }
    }
    /// An error about the job as a whole.
    pub(super) fn whole(error: WorkloadError) -> Fault {
        Fault::at("", error.0)
    }
    /// An error about a node: what its algorithm cannot do is a matter of that key.
    pub(super) fn of_node(error: WorkloadError) -> Fault {
        match error.0.split_once(": algorithm: ") {
            Some((node, what)) => Fault::at("algorithm", format!("{what} ({node})")),
            None => Fault::whole(error),
        }
    }
}
