//! How much memory a run takes, told before it is taken, beside how much there is.
//!
//! What things take was measured: of a message 530 bytes at its peak, tables and their copies on the
//! way to disk included; of a link 750; of a run of a sweep that is listed 18 thousand. Estimates
//! are meant to be right within a factor of two, for what is large.

use crate::{ExperimentError, Origin};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use weft_units::about_bytes;

/// Of a message that is known before the run: its queue pairs and its rows of results included.
pub const MESSAGE: u64 = 600;
/// Of both directions of a link.
pub const LINK: u64 = 750;
/// Of a node that a rank has before it.
pub const NODE: u64 = 16;
/// Of a message that ranks have under way.
pub const UNDER_WAY: u64 = 700;
/// Of one value of a probe, on its way to disk.
pub const SAMPLE: u64 = 24;
/// Of a run of a sweep.
pub const RUN: u64 = 18_000;

/// Something that there will be many of.
#[derive(Clone, Debug)]
pub struct Need {
    /// The dotted key that makes them many.
    pub key: String,
    /// What there are.
    pub what: String,
    /// Memory that they take.
    pub bytes: u64,
}

impl Need {
    /// `count` times `what`, of `each` bytes.
    pub fn of(key: impl Into<String>, count: u64, what: &str, each: u64) -> Need {
        let (key, bytes) = (key.into(), count.saturating_mul(each));
        Need { key, what: format!("{count} {what}"), bytes }
    }

    /// What to warn of, if so much is near what there is.
    ///
    /// # Errors
    /// If it is more than there is.
    pub fn check(&self) -> Result<Option<String>, ExperimentError> {
        self.within(available())
    }

    fn within(&self, there: Option<u64>) -> Result<Option<String>, ExperimentError> {
        let Some(there) = there.filter(|there| self.bytes > there / 2) else { return Ok(None) };
        let Need { key, what, bytes } = self;
        let (takes, all) = (about_bytes(*bytes), about_bytes(there));
        if *bytes <= there {
            return Ok(Some(format!("{key}: {what} take about {takes} of the {all} of memory")));
        }
        let what = format!("{what} take about {takes}, but there are {all} of memory; use less");
        Err(ExperimentError::new(key.as_str(), Origin::Unknown, what))
    }
}

/// Memory that this process may have, in bytes: what the machine has, or what its control group or a
/// limit of its address space leaves of that. None where the system does not say.
pub fn available() -> Option<u64> {
    static FOUND: OnceLock<Option<u64>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // In a web page there are no files, but addresses end.
        let addresses = cfg!(target_pointer_width = "32").then_some(1 << u32::BITS);
        available_in(Path::new("/")).into_iter().chain(addresses).min()
    })
}

fn available_in(root: &Path) -> Option<u64> {
    let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let machine = text("proc/meminfo").lines().find_map(|line| {
        let kilobytes = line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?;
        kilobytes.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    let own = text("proc/self/limits").lines().find_map(|line| {
        line.strip_prefix("Max address space")?.split_whitespace().next()?.parse().ok()
    });
    let groups = text("proc/self/cgroup");
    let groups = groups.lines().flat_map(|line| limits_of(root, line));
    machine.into_iter().chain(own).chain(groups).min()
}

/// The limits of a control group and those above it, as `/proc/self/cgroup` names it: `0::/a/b` in
/// version 2, `7:memory:/a/b` in version 1. Inside a container the names may be those outside.
fn limits_of(root: &Path, line: &str) -> Vec<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(kinds), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (home, file) = match kinds {
        "" => ("sys/fs/cgroup", "memory.max"),
        kinds if kinds.split(',').any(|kind| kind == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let path = PathBuf::from(path.trim_start_matches('/'));
    let limits = path.ancestors().map(|group| root.join(home).join(group).join(file));
    limits.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_warned_of_and_what_is_beyond_refused() {
        let need = Need::of("workload.channels", 4_000_000, "messages", MESSAGE);
        assert_eq!(need.within(None), Ok(None));
        assert_eq!(need.within(Some(24 << 30)), Ok(None));
        let near = need.within(Some(4_000_000_000)).expect("it fits").expect("a warning");
        assert_eq!(
            near,
            "workload.channels: 4000000 messages take about 2.4GB of the 4GB of memory"
        );
        let beyond = need.within(Some(1_000_000_000)).expect_err("it does not fit");
        assert_eq!(
            beyond.to_string(),
            "workload.channels: 4000000 messages take about 2.4GB, but there are 1GB of memory; \
             use less"
        );
    }

    #[test]
    fn the_least_of_machine_group_and_limit_counts() {
        let root = std::env::temp_dir().join(format!("weft-memory-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("can be made");
            fs::write(path, text).expect("can be written");
        };
        assert_eq!(available_in(&root), None);
        write("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\n");
        assert_eq!(available_in(&root), Some(1_024_000));
        write("proc/self/limits", "Limit  Soft  Hard\nMax address space  unlimited unlimited\n");
        write("proc/self/cgroup", "7:cpu,cpuacct:/b\n4:memory:/b\n0::/a/c\n");
        write("sys/fs/cgroup/a/c/memory.max", "max\n");
        assert_eq!(available_in(&root), Some(1_024_000));
        write("sys/fs/cgroup/a/memory.max", "900000\n");
        assert_eq!(available_in(&root), Some(900_000));
        write("sys/fs/cgroup/memory/b/memory.limit_in_bytes", "800000\n");
        assert_eq!(available_in(&root), Some(800_000));
        write("proc/self/limits", "Limit  Soft  Hard\nMax address space  700000 unlimited bytes\n");
        assert_eq!(available_in(&root), Some(700_000));
        fs::remove_dir_all(&root).expect("can be removed");
    }
}
