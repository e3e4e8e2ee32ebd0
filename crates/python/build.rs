//! Says from which commit the core was built (`WEFT_COMMIT`), for `weft --version`: no result depends on it.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=../");
    println!("cargo:rerun-if-env-changed=WEFT_COMMIT");
    // Who builds from an archive of the sources knows the commit, and git does not.
    let told = std::env::var("WEFT_COMMIT").ok();
    println!("cargo:rustc-env=WEFT_COMMIT={}", told.or_else(from_git).unwrap_or_default());
    println!("cargo:rustc-env=WEFT_TARGET={}", std::env::var("TARGET").expect("set by cargo"));
}

/// The commit's first digits, with `.dirty` behind them if files under version control differ from it.
fn from_git() -> Option<String> {
    let words = ["describe", "--always", "--exclude=*", "--abbrev=10", "--dirty=.dirty"];
    let done = Command::new("git").args(words).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned())
}
