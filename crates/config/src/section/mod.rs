//! The sections that files of several kinds have, one file each: their keys, defaults and meanings.

pub mod balance;
pub mod fabric;
pub mod failures;
pub mod options;
pub mod server;
pub mod switch;
pub mod topology;
pub mod topology_file;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use weft_fabric::{Clos, Fabric, Link, Shape};
use weft_units::{Rate, Time};

/// The content of a text file, or what is wrong with it.
pub fn read_text(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let bytes = fs::read(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("there is no file {shown}; correct the path"),
        _ => format!("cannot read {shown}: {error}; correct the path"),
    })?;
    String::from_utf8(bytes).map_err(|_| format!("{shown} is not text; give another file"))
}

/// Two hosts: what sections are read for, where only their keys are wanted.
///
/// # Panics
/// Never.
pub fn smallest_fabric() -> Fabric {
    let link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };
    Shape::Clos(Clos::leaf_spine(2, 1, 1, link)).build().expect("counts are right")
}

/// Where the file `source` lies; the working folder for what is no file.
pub fn folder_of(source: &str) -> PathBuf {
    Path::new(source).parent().map(Path::to_owned).unwrap_or_default()
}
