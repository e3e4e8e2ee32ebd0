//! The RDMA device of an interface, as sysfs has it.

use std::fs;
use std::path::Path;

/// Where RDMA devices are.
pub(crate) const SYS: &str = "/sys/class/infiniband";

/// Device and port whose GIDs are of `interface`.
pub(crate) fn device_of(interface: &str, sys: &Path) -> Option<(String, u8)> {
    for device in names(sys) {
        let ports = sys.join(&device).join("ports");
        for port in names(&ports) {
            let folder = ports.join(&port).join("gid_attrs/ndevs");
            let is_of = |index: &String| {
                fs::read_to_string(folder.join(index)).is_ok_and(|name| name.trim() == interface)
            };
            if names(&folder).iter().any(is_of) {
                return Some((device, port.parse().ok()?));
            }
        }
    }
    None
}

/// The entries of a folder, sorted; none where it is not there.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sysfs;

    #[test]
    fn a_device_is_known_by_the_interface_of_its_gids() {
        let sys = sysfs(&[
            ("rdma/mlx5_0/ports/1/gid_attrs/ndevs/0", "eth0\n"),
            ("rdma/mlx5_1/ports/1/gid_attrs/ndevs/0", "eth1\n"),
            ("rdma/mlx5_1/ports/2/gid_attrs/ndevs/0", "eth2\n"),
            ("rdma/mlx5_1/ports/2/gid_attrs/ndevs/1", "eth2\n"),
        ]);
        let of = |name| device_of(name, &sys.join("rdma"));
        assert_eq!(of("eth0"), Some(("mlx5_0".to_owned(), 1)));
        assert_eq!(of("eth2"), Some(("mlx5_1".to_owned(), 2)));
        assert_eq!(of("eth3"), None);
        assert_eq!(device_of("eth0", Path::new("/nowhere")), None);
    }
}
