//! The interfaces of this machine, and which of them are meant.

use crate::DeployError;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its IPv4 addresses.
    pub addresses: Vec<Ipv4Addr>,
    /// Whether it is up and has a carrier.
    pub is_up: bool,
    /// Whether what it sends comes back.
    pub is_loopback: bool,
    /// Its MAC; zeros where it has none.
    pub mac: [u8; 6],
    /// Its speed in Mbps, if the driver says so.
    pub speed_mbps: Option<u32>,
    /// Its PCI device under `/sys/devices`, if it has one.
    pub pci_path: Option<String>,
}

impl Interface {
    /// A number of its own: from its MAC, else from its address.
    pub(crate) fn guid(&self) -> u64 {
        let mac = self.mac.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        match mac {
            0 => self.addresses.first().map_or(0, |address| u64::from(u32::from(*address))),
            mac => mac,
        }
    }
}

/// All of them, in the namespace of this process, in the order of the kernel.
pub(crate) fn of_this_machine() -> Result<Vec<Interface>, DeployError> {
    let rows = getifaddrs().map_err(|error| {
        DeployError(format!("interfaces: the kernel does not list them: {error}; look at ip addr"))
    })?;
    let mut found = by_name(rows);
    for one in &mut found {
        look_up(one, Path::new("/sys/class/net"));
    }
    Ok(found)
}

/// The interfaces whose addresses these are.
fn by_name(rows: impl Iterator<Item = InterfaceAddress>) -> Vec<Interface> {
    let mut found: Vec<Interface> = Vec::new();
    for row in rows {
        // An address may have a label of its own, as `eth0:1`, which is given for the name.
        let name = row.interface_name.split(':').next().unwrap_or_default();
        let at = found.iter().position(|one| one.name == name).unwrap_or_else(|| {
            found.push(Interface { name: name.to_owned(), ..Interface::default() });
            found.len() - 1
        });
        let one = &mut found[at];
        one.is_up = row.flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING);
        one.is_loopback = row.flags.contains(InterfaceFlags::IFF_LOOPBACK);
        let Some(address) = row.address else { continue };
        if let Some(address) = address.as_sockaddr_in() {
            one.addresses.push(address.ip());
        } else if let Some(mac) = address.as_link_addr().and_then(|link| link.addr()) {
            one.mac = mac;
        }
    }
    found
}

/// Adds what sysfs says, if it is about this interface: a process that has moved into another
/// network namespace may still see the interfaces of the old one there.
fn look_up(one: &mut Interface, sys: &Path) {
    let folder = sys.join(&one.name);
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let mac = one.mac.map(|byte| format!("{byte:02x}")).join(":");
    if read("address").trim() != mac {
        return;
    }
    // -1 where the driver does not know.
    one.speed_mbps = read("speed").trim().parse().ok().filter(|speed| *speed > 0);
    let device = fs::canonicalize(folder.join("device")).ok();
    one.pci_path = device.and_then(|path| pci_device(&path.to_string_lossy()).map(str::to_owned));
}

/// The part of a path that ends with a PCI address, as `0000:00:03.0`: what comes behind it, as
/// `virtio2`, is no device of the PCI tree.
fn pci_device(path: &str) -> Option<&str> {
    let is_pci = |part: &str| {
        let hex = |text: &str, len| {
            text.len() == len && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let mut parts = part.split([':', '.']);
        let mut next = |len| parts.next().is_some_and(|text| hex(text, len));
        part.len() == 12 && next(4) && next(2) && next(2) && next(1)
    };
    let mut end = path.len();
    loop {
        let start = path[..end].rfind('/')? + 1;
        if is_pci(&path[start..end]) {
            return Some(&path[..end]);
        }
        end = start - 1;
    }
}

/// How names begin that virtual machines, containers and pods give to their own networks.
const VIRTUAL: &str = "docker podman virbr lxc lxd incusbr cni flannel cali vxlan.calico wireguard.cali tunl cilium \
                       weave ovn-k8s antrea kube- nodelocaldns";

/// Those to use where no cluster says which: up, with an address, and as `ifname` asks, in the way of
/// `NCCL_SOCKET_IFNAME`. Without it virtual ones and then loopback are for when there are no others.
pub(crate) fn chosen<'a>(
    all: &'a [Interface],
    ifname: Option<&str>,
) -> Result<Vec<&'a Interface>, DeployError> {
    let usable = || all.iter().filter(|one| one.is_up && !one.addresses.is_empty());
    let Some(text) = ifname else {
        let is_virtual =
            |one: &Interface| VIRTUAL.split(' ').any(|name| one.name.starts_with(name));
        let kinds: [&dyn Fn(&Interface) -> bool; 3] =
            [&|one| !one.is_loopback && !is_virtual(one), &|one| !one.is_loopback, &|one| {
                one.is_loopback
            }];
        let found = kinds.iter().map(|kind| usable().filter(|one| kind(one)).collect::<Vec<_>>());
        return found.into_iter().find(|some| !some.is_empty()).ok_or_else(|| {
            DeployError("interfaces: none is up and has an IPv4 address; look at ip addr".into())
        });
    };
    let (text, is_except) = text.strip_prefix('^').map_or((text, false), |rest| (rest, true));
    let (text, is_exact) = text.strip_prefix('=').map_or((text, false), |rest| (rest, true));
    let names: Vec<&str> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let fits = |name: &&str, one: &Interface| match is_exact {
        true => one.name == **name,
        false => one.name.starts_with(*name),
    };
    let mut found: Vec<&Interface> = if is_except {
        usable().filter(|one| !names.iter().any(|name| fits(name, one))).collect()
    } else {
        // In the order of the names.
        names.iter().flat_map(|name| usable().filter(move |one| fits(name, one))).collect()
    };
    let mut seen: Vec<&str> = Vec::new();
    found.retain(|one| {
        !seen.contains(&one.name.as_str()) && {
            seen.push(&one.name);
            true
        }
    });
    if found.is_empty() {
        let known: Vec<&str> = usable().map(|one| one.name.as_str()).collect();
        let known = match known.is_empty() {
            true => "none is; look at ip addr".to_owned(),
            false => format!("there are {}", known.join(", ")),
        };
        let text = ifname.unwrap_or_default();
        return Err(DeployError(format!(
            "WEFT_IFNAME: {text:?}: no interface that is up and has an IPv4 address; {known}"
        )));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sysfs;
    use std::net::SocketAddrV4;

    #[test]
    fn the_pci_device_is_the_last_one_of_the_path() {
        let bridge = "/sys/devices/pci0000:00/0000:00:01.0/0000:3b:00.1";
        assert_eq!(pci_device(&format!("{bridge}/virtio2")), Some(bridge));
        assert_eq!(pci_device(bridge), Some(bridge));
        assert_eq!(pci_device("/sys/devices/virtual/net/lo"), None);
        assert_eq!(pci_device("/sys/devices/pci0000:00/usb1"), None);
    }

    #[test]
    fn sysfs_of_another_name_space_is_not_believed() {
        let sys =
            sysfs(&[("net/eth0/address", "02:00:00:00:00:09\n"), ("net/eth0/speed", "400000\n")]);
        let mac = [2, 0, 0, 0, 0, 9];
        let mut ours = Interface { name: "eth0".into(), mac, ..Interface::default() };
        look_up(&mut ours, &sys.join("net"));
        assert_eq!(ours.speed_mbps, Some(400_000));
        let mut other = Interface { name: "eth0".into(), ..Interface::default() };
        look_up(&mut other, &sys.join("net"));
        assert_eq!(other.speed_mbps, None);
    }

    /// `ip addr add 10.0.0.3/24 dev eth0 label eth0:1` makes no second NIC.
    #[test]
    fn labels_of_addresses_are_no_interfaces() {
        let row = |name: &str, last: u8| InterfaceAddress {
            interface_name: name.to_owned(),
            flags: InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING,
            address: Some(SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), 0).into()),
            netmask: None,
            broadcast: None,
            destination: None,
        };
        let rows = [row("eth0", 2), row("eth1", 4), row("eth0:1", 3), row("eth2:vip", 5)];
        let found = by_name(rows.into_iter());
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["eth0", "eth1", "eth2"]);
        let both = [2, 3].map(|last| Ipv4Addr::new(10, 0, 0, last));
        assert_eq!((&found[0].addresses[..], found[0].is_up), (&both[..], true));
    }

    #[test]
    fn guids_are_macs_or_addresses() {
        let mut one = Interface { mac: [0, 0, 0, 0, 1, 2], ..Interface::default() };
        assert_eq!(one.guid(), 0x102);
        one.mac = [0; 6];
        one.addresses = vec![Ipv4Addr::new(127, 0, 0, 1)];
        assert_eq!(one.guid(), 0x7f00_0001);
    }
}
