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
pub(crate) mod topology_file;
pub(crate) mod transport;
pub(crate) mod workload;

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The content of a text file, or what is wrong with it.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let bytes = fs::read(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("there is no file {shown}; correct the path"),
        _ => format!("cannot read {shown}: {error}; correct the path"),
    })?;
    String::from_utf8(bytes).map_err(|_| format!("{shown} is not text; give another file"))
}
