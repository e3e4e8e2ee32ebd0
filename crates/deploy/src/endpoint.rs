//! Variables, file and interfaces to the endpoints of a process.

use crate::interfaces::chosen;
use crate::source::Source;
use crate::variables::{Given, Wanted};
use crate::{DeployError, Deployment, Device, Interface, PathKeeper, rdma, scheme, source};
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use weft_balance::scheme::SchemeInfo;
use weft_comm::{Backend, EndpointConfig, PathPlan, SharedPorts};
use weft_config::cluster::{Cluster, Discovered, Host, Protocol, discovered};
use weft_config::paths_file::PathsFile;
use weft_units::HostId;

/// Connections to a peer where nobody says how many paths there are.
const CONNECTIONS: u32 = 4;
/// What NCCL takes an interface for whose speed is not known, in Mbps.
const SPEED: u32 = 10_000;
/// Planes, as `fabric.planes` has.
const MOST_PLANES: usize = 8;
/// Subflows of a message over TCP are multiples of this: a quarter of what one system call hands over.
const TCP_QUANTUM: u32 = 16 << 10;

/// The deployment that `given` asks for on a machine with these `interfaces`.
pub(crate) fn deployment(
    given: &Given,
    interfaces: &[Interface],
) -> Result<Deployment, DeployError> {
    let mut warnings: Vec<String> = given.key_is_open.clone().into_iter().collect();
    let (mut schemes, mut devices, mut paths) = (Vec::new(), Vec::new(), Vec::new());
    if given.configs.is_empty() {
        let (scheme, found) = unplanned(given, interfaces, &mut warnings)?;
        (schemes, devices) = (vec![scheme], found);
    }
    let (files, tables) = (given.configs.len(), given.paths.len());
    if files > MOST_PLANES {
        return Err(DeployError(format!(
            "WEFT_CONFIG: {files} files, one of each plane; name {MOST_PLANES} at most"
        )));
    }
    if files > 0 && tables > 0 && tables != files {
        return Err(DeployError(format!(
            "WEFT_PATHS: {tables} tables for {files} files of WEFT_CONFIG; name one for each plane"
        )));
    }
    for (path, plane) in given.configs.iter().zip(0..) {
        let source = source::read(path, given.seed.unwrap_or(1))?;
        let table = given.paths.get(plane as usize);
        let found = table.map(|path| Found::read(path, &source.cluster, &mut warnings));
        let found = found.transpose()?;
        let plane = Plane { number: plane, count: files as u32, first: devices.len() };
        let made = planned(given, &source, (plane, found.as_ref()), interfaces, &mut warnings)?;
        paths.extend(found.zip(given.paths_check).map(|(found, every)| {
            let sources = made.1.iter().map(|device| device.endpoint.address).collect();
            found.keeper(source.cluster, sources, every)
        }));
        devices.extend(made.1);
        if !schemes.contains(&made.0) {
            schemes.push(made.0);
        }
    }
    let (named, count) = (given.rdma_devices.len(), devices.len());
    if named > 1 && named != count {
        return Err(DeployError(format!(
            "WEFT_RDMA_DEVICE: {named} devices for {count} NICs; name one for all, or one of \
             each, in the order of the log"
        )));
    }
    warnings.dedup();
    Ok(Deployment {
        devices,
        scheme: schemes.join(", "),
        stats: given.stats.clone(),
        prometheus: given.prometheus.clone(),
        log: given.log,
        paths,
        warnings,
    })
}

/// One of so many planes.
#[derive(Clone, Copy)]
struct Plane {
    number: u32,
    count: u32,
    /// The NICs of planes before it.
    first: usize,
}

impl Plane {
    /// What a NIC there is called: names of planes may be the same.
    fn name(self, host: &str) -> String {
        match self.count {
            1 => host.to_owned(),
            _ => format!("plane-{}-{host}", self.number),
        }
    }
}

/// Without a file: plain connections over the interfaces that there are.
fn unplanned(
    given: &Given,
    interfaces: &[Interface],
    warnings: &mut Vec<String>,
) -> Result<(String, Vec<Device>), DeployError> {
    if let Some(scheme) = given.scheme.as_deref().filter(|name| *name != scheme::UNPLANNED) {
        SchemeInfo::find(scheme)
            .map_err(|error| DeployError(format!("WEFT_SCHEME: {}", error.what)))?;
        return Err(DeployError(format!(
            "WEFT_SCHEME: {scheme} needs to know the fabric; set WEFT_CONFIG to a CLUSTER.toml, or \
             use {}",
            scheme::UNPLANNED
        )));
    }
    if !given.paths.is_empty() {
        return Err(DeployError(
            "WEFT_PATHS: paths of a cluster that is not known; set WEFT_CONFIG to its CLUSTER.toml"
                .into(),
        ));
    }
    let idle = [("WEFT_OPTIONS", given.options.is_empty()), ("WEFT_HOST", given.hosts.is_empty())];
    for (name, _) in idle.into_iter().filter(|(_, is_empty)| !is_empty) {
        warnings.push(format!("{name}: without WEFT_CONFIG there is nothing to choose; unset it"));
    }
    let mut devices = Vec::new();
    for one in chosen(interfaces, given.ifname.as_deref())? {
        let speed = one.speed_mbps.unwrap_or(SPEED);
        let backend = backend(given, (devices.len(), one), false, warnings)?;
        let endpoint = EndpointConfig {
            name: one.name.clone(),
            address: one.addresses[0],
            listen: 0..=0,
            dscp: 0,
            backend,
            plan: None,
            connections: given.connections.unwrap_or(CONNECTIONS),
            path_time_out: given.path_time_out,
            give_up: given.give_up,
            checksum: given.checksum,
            encrypt: given.encrypt,
            congestion: given.congestion.clone(),
            job_key: given.key.clone(),
            line_bps: u64::from(speed) * 1_000_000,
            plane: None,
        };
        devices.push(device(one, endpoint, speed, (None, None)));
    }
    Ok((scheme::UNPLANNED.to_owned(), devices))
}

/// With a file: a device for each NIC of the cluster that is in this machine.
fn planned(
    given: &Given,
    source: &Source,
    (plane, found): (Plane, Option<&Found>),
    interfaces: &[Interface],
    warnings: &mut Vec<String>,
) -> Result<(String, Vec<Device>), DeployError> {
    let Source { cluster, links, .. } = source;
    let fabric = Arc::new(links.fabric.clone());
    let addresses: Arc<[Ipv4Addr]> = cluster.hosts.iter().map(|host| host.address).collect();
    let by_path =
        source.cluster.path_addresses().map_err(|error| DeployError(error.to_string()))?;
    // Ports of a table lead along paths of their own.
    let by_path = by_path.filter(|_| found.is_none()).map(|by_path| by_path.hosts);
    let by_path: Arc<[Vec<Ipv4Addr>]> = by_path.unwrap_or_default().into();
    let seed = given.seed.or(source.plan.as_ref().map(|plan| plan.seed)).unwrap_or(1);
    let mut devices = Vec::new();
    let mut name = String::new();
    for (host, one) in mine(given, source, interfaces)? {
        let number = HostId(host.number);
        let uplinks = fabric.uplinks_of(number);
        // The links of hosts come first, by host.
        let line = cluster.links[host.number as usize].line_bps;
        let speed = ((line / 1_000_000) as u32).max(1);
        warnings.extend(slower(source, host, one, speed));
        let nic = (plane.first + devices.len(), one);
        let backend = backend(given, nic, cluster.protocol == Protocol::Udp, warnings)?;
        let is_tcp = backend == Backend::Tcp;
        let line_bps = u64::from(speed) * 1_000_000;
        let mut balance = scheme::read(given, source, uplinks, line_bps, found.is_some())?;
        let connections = given.connections.unwrap_or(uplinks.clamp(1, 64));
        let ports = found.map(|found| found.ports.clone());
        if let Some(found) = found {
            found.check(is_tcp, source)?;
            if !found.knows(number) && balance.scheme.enforce().is_some() {
                balance = scheme::without_paths(connections);
                warnings.push(format!(
                    "{}: no path from {} is in it; messages go to the connection with the fewest \
                     bytes outstanding ({}), of {connections} that switches hash",
                    found.file,
                    host.name,
                    balance.scheme.name()
                ));
            }
        }
        balance.scheme.fits(&fabric).map_err(|error| {
            let name = balance.scheme.name();
            DeployError(format!(
                "{}: {name} cannot run here: {error}; use another scheme",
                source.file
            ))
        })?;
        name = balance.scheme.name();
        let carries = if is_tcp { Protocol::Tcp } else { Protocol::Udp };
        if carries != cluster.protocol && name != scheme::UNPLANNED && found.is_none() {
            let [steered, carries] = [cluster.protocol, carries].map(Protocol::name);
            warnings.push(format!(
                "{}: cluster.protocol: {steered}, so switches hash the {carries} that carries the \
                 bytes here; write protocol = \"{carries}\" and configure switches again",
                source.file
            ));
        }
        if !by_path.is_empty() && !is_tcp {
            warnings.push(format!(
                "{}: cluster.path_addresses: queue pairs go to one address of a host, so their paths are not \
                 chosen; set WEFT_BACKEND=tcp, or leave it out and have switches follow source ports",
                source.file
            ));
        }
        let known = weft_config::known_at_start(&fabric, &links.failures, &balance.scheme);
        let paths = PathPlan {
            fabric: fabric.clone(),
            known: Arc::new(known),
            balance,
            seed,
            host: number,
            addresses: addresses.clone(),
            path_addresses: by_path.clone(),
            source_ports: cluster.first_port..=cluster.last_port,
            ports,
            quantum: if is_tcp { TCP_QUANTUM } else { cluster.mtu },
        };
        let endpoint = EndpointConfig {
            name: plane.name(&host.name),
            address: address(host, one),
            listen: match found {
                // Switches hash the destination port too: only for that one is anything known.
                Some(found) if is_tcp => found.table.port..=found.table.port,
                _ => listen(cluster, is_tcp),
            },
            dscp: cluster.dscp,
            backend,
            plan: Some(paths),
            connections,
            path_time_out: given.path_time_out,
            give_up: given.give_up,
            checksum: given.checksum,
            encrypt: given.encrypt,
            congestion: given.congestion.clone(),
            job_key: given.key.clone(),
            line_bps,
            plane: (plane.count > 1).then_some(plane.number as u8),
        };
        let place = (Some(host.rail), Some(plane.number));
        devices.push(device(one, endpoint, speed, place));
    }
    Ok((name, devices))
}

/// A table of discovered paths, as paths of the cluster.
struct Found {
    file: String,
    table: PathsFile,
    ports: SharedPorts,
}

impl Found {
    /// One that `WEFT_PATHS` names.
    fn read(
        path: &Path,
        cluster: &Cluster,
        warnings: &mut Vec<String>,
    ) -> Result<Found, DeployError> {
        let file = path.display().to_string();
        let table = source::read_paths(path)?;
        let Discovered { ports, strangers, .. } = discovered(cluster, &table);
        if let Some(stranger) = strangers.first() {
            warnings.push(format!(
                "{file}: {stranger} and {} more addresses answered that are no uplink_next_hop of \
                 the cluster, so their paths have no name; mend [cluster] uplink_next_hop",
                strangers.len() - 1
            ));
        }
        Ok(Found { file, table, ports: SharedPorts::new(ports) })
    }

    /// Refuses a table of other traffic: its ports take other paths.
    fn check(&self, is_tcp: bool, source: &Source) -> Result<(), DeployError> {
        let carries = if is_tcp { Protocol::Tcp } else { Protocol::Udp };
        let (protocol, port) = (self.table.protocol, self.table.port);
        if carries == protocol && (is_tcp || port == source.cluster.port) {
            return Ok(());
        }
        Err(DeployError(format!(
            "{}: protocol: the table is of {} to port {}, but {} carries the bytes here; run weft \
             discover --protocol {} again",
            self.file,
            protocol.name(),
            port,
            carries.name(),
            carries.name()
        )))
    }

    fn knows(&self, host: HostId) -> bool {
        self.ports.get().ends().any(|(src, _)| src == host)
    }

    /// What keeps it true for these addresses of this machine.
    fn keeper(self, cluster: Cluster, sources: Vec<Ipv4Addr>, every: Duration) -> PathKeeper {
        let (table, ports, dscp) = (self.table, self.ports, cluster.dscp);
        PathKeeper { table, cluster: Arc::new(cluster), sources, ports, dscp, every }
    }
}

/// The ports that switches know the traffic by; any where they do not steer it.
fn listen(cluster: &Cluster, is_tcp: bool) -> RangeInclusive<u16> {
    match is_tcp && cluster.protocol == Protocol::Tcp {
        true => cluster.port..=cluster.port + (cluster.ports - 1),
        false => 0..=0,
    }
}

/// The NICs of the cluster that are in this machine, in the order of the cluster.
fn mine<'a>(
    given: &Given,
    source: &'a Source,
    interfaces: &'a [Interface],
) -> Result<Vec<(&'a Host, &'a Interface)>, DeployError> {
    let hosts = &source.cluster.hosts;
    let with = |host: &Host| interfaces.iter().find(|one| one.addresses.contains(&host.address));
    if given.hosts.is_empty() {
        let found: Vec<_> = hosts.iter().filter_map(|host| Some((host, with(host)?))).collect();
        if found.is_empty() {
            let own = interfaces.iter().filter(|one| !one.is_loopback);
            let own: Vec<_> = own.flat_map(|one| &one.addresses).map(Ipv4Addr::to_string).collect();
            let theirs = hosts.first().zip(hosts.last());
            let theirs =
                theirs.map(|(first, last)| format!("{} to {}", first.address, last.address));
            return Err(DeployError(format!(
                "{}: none of its hosts ({}) has an address of this machine ({}); set WEFT_HOST, or \
                 mend cluster.host_address",
                source.file,
                theirs.unwrap_or_default(),
                own.join(", ")
            )));
        }
        return Ok(found);
    }
    let mut found = Vec::new();
    for text in &given.hosts {
        let is_it = |host: &&Host| host.name == *text || host.number.to_string() == *text;
        let host = hosts.iter().find(is_it).ok_or_else(|| {
            let some: Vec<_> = hosts.iter().take(3).map(|host| host.name.as_str()).collect();
            DeployError(format!(
                "WEFT_HOST: {text:?} is no host of {}; use a name as {}, or a number below {}",
                source.file,
                some.join(", "),
                hosts.len()
            ))
        })?;
        let named = || interfaces.iter().find(|one| one.name == host.interface && one.is_up);
        let one = with(host).or_else(named).filter(|one| !one.addresses.is_empty());
        let one = one.ok_or_else(|| {
            DeployError(format!(
                "WEFT_HOST: {text}: no interface of this machine has its address {}, nor is one called \
                 {}; mend cluster.host_address or host_interface",
                host.address, host.interface
            ))
        })?;
        found.push((host, one));
    }
    found.sort_by_key(|(host, _)| host.number);
    if let Some(pair) = found.windows(2).find(|pair| pair[0].0.number == pair[1].0.number) {
        return Err(DeployError(format!(
            "WEFT_HOST: {} is there twice; name it once",
            pair[0].0.name
        )));
    }
    Ok(found)
}

/// The host's, unless this machine has it under another.
fn address(host: &Host, one: &Interface) -> Ipv4Addr {
    if one.addresses.contains(&host.address) { host.address } else { one.addresses[0] }
}

/// What carries the bytes of an interface, which is that of the NIC with a number; under `auto` verbs only where
/// `steered`: where switches steer them, or nothing says that they do not.
fn backend(
    given: &Given,
    (number, one): (usize, &Interface),
    steered: bool,
    warnings: &mut Vec<String>,
) -> Result<Backend, DeployError> {
    let named = given.rdma_devices.get(number).or(given.rdma_devices.last());
    let found = || match named {
        Some(named) => Some(named.clone()),
        None => rdma::device_of(&one.name, Path::new(rdma::SYS)),
    };
    let roce = |(device, port), or_tcp| Backend::Roce {
        device,
        port,
        gid_index: given.gid_index,
        or_tcp: given.allow_tcp.unwrap_or(or_tcp),
    };
    match given.backend {
        Wanted::Roce if given.encrypt => Err(DeployError(
            "WEFT_ENCRYPT: RDMA writes are not encrypted; use WEFT_BACKEND=tcp".into(),
        )),
        Wanted::Tcp => Ok(Backend::Tcp),
        Wanted::Auto if given.encrypt => Ok(Backend::Tcp),
        Wanted::Auto if !steered => Ok(Backend::Tcp),
        Wanted::Auto => Ok(found().map_or(Backend::Tcp, |device| roce(device, true))),
        Wanted::Roce => match found() {
            Some(device) => Ok(roce(device, false)),
            None if given.allow_tcp == Some(true) => {
                warnings.push(format!(
                    "WEFT_BACKEND: roce, but {} has no RDMA device, so TCP is used; set \
                     WEFT_RDMA_DEVICE if it has one",
                    one.name
                ));
                Ok(Backend::Tcp)
            }
            None => Err(DeployError(format!(
                "WEFT_BACKEND: roce, but {} has no RDMA device; set WEFT_RDMA_DEVICE, or \
                 WEFT_ALLOW_TCP=1",
                one.name
            ))),
        },
    }
}

/// What to say of a NIC whose link is slower than the file says. Interfaces without a device say anything.
fn slower(source: &Source, host: &Host, one: &Interface, speed: u32) -> Option<String> {
    let found = one.speed_mbps.filter(|found| *found < speed && one.pci_path.is_some())?;
    Some(format!(
        "{}: fabric.link: {} has {speed} Mbps, but {} runs at {found}: look at the cable, or mend link",
        source.file, host.name, one.name
    ))
}

fn device(
    one: &Interface,
    endpoint: EndpointConfig,
    speed_mbps: u32,
    (rail, plane): (Option<u32>, Option<u32>),
) -> Device {
    Device {
        name: endpoint.name.clone(),
        rail,
        plane,
        interface: one.name.clone(),
        guid: one.guid(),
        pci_path: one.pci_path.clone(),
        endpoint,
        speed_mbps,
    }
}
