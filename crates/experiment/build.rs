//! Hashes all native sources into `WEFT_CODE_VERSION`, so that stored results are told apart
//! by the code that made them, whether or not it was committed.

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let root = manifest.join("../..").canonicalize()?;
    let mut files = vec![root.join("Cargo.lock")];
    for krate in fs::read_dir(root.join("crates"))? {
        let src = krate?.path().join("src");
        if src.is_dir() {
            println!("cargo:rerun-if-changed={}", src.display());
            collect(&src, &mut files)?;
        }
    }
    println!("cargo:rerun-if-changed={}", root.join("Cargo.lock").display());
    println!("cargo:rerun-if-changed=build.rs");
    let hash = hash(&root, files)?;
    println!("cargo:rustc-env=WEFT_CODE_VERSION={}+{hash}", env!("CARGO_PKG_VERSION"));
    Ok(())
}

/// Appends every Rust file under `folder`.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// 16 hex digits over names and contents, in the order of the names: the order in which a
/// folder lists its files differs between machines.
fn hash(root: &Path, files: Vec<PathBuf>) -> io::Result<String> {
    let mut named: Vec<(String, PathBuf)> = files
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
            (name.replace('\\', "/"), path)
        })
        .collect();
    named.sort();
    let mut hasher = Sha256::new();
    for (name, path) in named {
        // A missing lock file (a checkout that was never built) hashes as empty.
        let content = fs::read(path).unwrap_or_default();
        hasher.update(format!("{name}\n{}\n", content.len()));
        hasher.update(content);
    }
    let digest = hasher.finalize();
    Ok(digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}
