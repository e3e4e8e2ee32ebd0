//! What the plugin links into other people's processes: few packages, and neither simulator, solver nor
//! the reader of experiments.

use std::collections::BTreeSet;
use std::process::Command;

/// Eight of them are what makes check sums fast (crc-fast).
const MOST: usize = 53;
const NEVER: [&str; 6] =
    ["weft-sim", "weft-experiment", "weft-capacity", "weft-plan", "weft-workload", "clarabel"];

#[test]
fn the_plugin_links_little() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let asked = ["tree", "--offline", "-p", "weft-nccl-plugin", "-e", "normal", "--prefix", "none"];
    let output = Command::new(cargo).args(asked).output().expect("cargo runs");
    let text = String::from_utf8(output.stdout).expect("names");
    let all: BTreeSet<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(all.contains("weft-comm"), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(all.len() <= MOST, "{} packages: {all:?}", all.len());
    assert!(NEVER.iter().all(|name| !all.contains(name)), "{all:?}");
}
