//! The sections of an experiment, one file each: their keys, defaults and meanings.

pub(crate) mod balance;
pub(crate) mod fabric;
pub(crate) mod failures;
pub(crate) mod options;
pub(crate) mod probe;
pub(crate) mod run;
pub(crate) mod sending;
pub(crate) mod server;
pub(crate) mod switch;
pub(crate) mod transport;
pub(crate) mod workload;
