//! A scheme's name is written in the file of the scheme and nowhere else in the code.

#![expect(clippy::disallowed_methods, reason = "a test reads files")]

use std::fs;
use std::path::{Path, PathBuf};
use weft_balance::scheme::{SCHEMES, SchemeInfo};

/// Names that something else has as well: a key of `[transport]`, a congestion control.
const SHARED: [&str; 2] = ["subflows", "mp-rdma"];

/// Rust sources of all crates.
fn sources() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates").to_owned();
    let all = fs::read_dir(crates).expect("the crates");
    files_below(all.map(|one| one.expect("a crate").path().join("src")).collect(), "rs")
}

fn files_below(mut folders: Vec<PathBuf>, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("a file").path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|found| found == extension) => {
                    files.push(path)
                }
                false => {}
            }
        }
    }
    files
}

#[test]
fn no_other_file_names_a_scheme() {
    let files = sources();
    assert!(files.len() > 200, "only {} files were found", files.len());
    let home = Path::new("balance/src/scheme");
    let mut wrong = Vec::new();
    for file in
        files.iter().filter(|file| !file.to_string_lossy().contains(&*home.to_string_lossy()))
    {
        let text = fs::read_to_string(file).expect("UTF-8");
        // What tests inside a file name is theirs.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            let line = line.split("//").next().unwrap_or_default();
            // Random draws have the name of what draws.
            let line = if line.contains("Draw::new(") { "" } else { line };
            let named =
                |name: &str| line.contains(&format!("\"{name}\"")) && !SHARED.contains(&name);
            for info in SCHEMES.iter().filter(|info| named(info.name)) {
                wrong.push(format!("{}:{}: {}", file.display(), number + 1, info.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Python files that may list schemes: the colours of figures, and what commands take by default.
const PYTHON: [&str; 2] = ["report/figures/palette.py", "weft/catalogue.py"];

/// A file may name one, as a baseline or its own subject; several are a list, which is the registry's.
#[test]
fn python_lists_no_schemes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/weft");
    let files = files_below(vec![root], "py");
    assert!(files.len() > 80, "only {} files were found", files.len());
    for file in files.iter().filter(|file| !PYTHON.iter().any(|name| file.ends_with(name))) {
        let text = fs::read_to_string(file).expect("UTF-8");
        let named = |info: &&SchemeInfo| text.contains(&format!("\"{}\"", info.name));
        let named: Vec<_> = SCHEMES.iter().filter(named).map(|info| info.name).collect();
        assert!(named.len() < 2, "{}: {named:?}", file.display());
    }
}
