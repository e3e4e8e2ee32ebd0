//! What an endpoint is told when it is opened.

use crate::SharedPorts;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use weft_balance::known::Known;
use weft_balance::scheme::BalanceConfig;
use weft_fabric::Fabric;
use weft_units::HostId;

/// How one NIC sends.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The name of the device in messages and statistics, as `eth0`.
    pub name: String,
    /// Its address: sockets are bound to it.
    pub address: Ipv4Addr,
    /// Ports to listen at: the first free one is taken. Zero to zero: any.
    pub listen: RangeInclusive<u16>,
    /// DSCP of all packets.
    pub dscp: u8,
    /// What carries the bytes.
    pub backend: Backend,
    /// Paths, if they are chosen; else connections from ports that the kernel picks.
    pub plan: Option<PathPlan>,
    /// Connections to a peer where the scheme leaves it open, as `ecmp` and no plan do.
    pub connections: u32,
    /// A path on which nothing comes back for so long is taken for dead.
    pub path_time_out: Duration,
    /// A peer that cannot be reached over any path for so long is taken for dead.
    pub give_up: Duration,
    /// Which payload carries a check sum beyond TCP's.
    pub checksum: Checksum,
    /// Whether what goes over TCP is encrypted (AES-256-GCM): all processes of a job alike.
    pub encrypt: bool,
    /// The congestion control of TCP connections (`TCP_CONGESTION`). `None`: `reno` within a host, where it never
    /// has anything to do and others hold packets back (BBR); to others the system's own.
    pub congestion: Option<Arc<str>>,
    /// A secret of all processes of the job, at least 16 bytes: with it the handle of a listener alone lets
    /// nobody join. Empty: there is none, and handles must not be overheard.
    pub job_key: Arc<[u8]>,
    /// Line rate in bits per second, for schemes with shares of it, and for NICs that are used as one;
    /// zero: not known.
    pub line_bps: u64,
    /// Its plane, where there are several: it reaches only NICs of the same one. `None`: it reaches all.
    pub plane: Option<u8>,
}

impl EndpointConfig {
    /// How long a connection on which nothing comes back is waited for while others to the same peer bring
    /// something, after so many `failures` in a row: from an eighth of the path's time-out to all of it.
    pub(crate) fn patience(&self, failures: u32) -> Duration {
        self.path_time_out / 8 * (1 << failures.min(3))
    }
}

/// Which payload carries a CRC32C. What is encrypted has better, and carries none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// None.
    None,
    /// What leaves this host.
    BetweenHosts,
    /// All.
    All,
}

/// What carries the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Over TCP sockets.
    Tcp,
    /// RDMA verbs.
    Roce {
        /// The device, as `mlx5_0` or `rxe0`.
        device: String,
        /// Its port, from one.
        port: u8,
        /// Which of its GIDs; `None`: the RoCEv2 one of the address.
        gid_index: Option<u8>,
        /// Whether TCP will do where verbs do not work.
        or_tcp: bool,
    },
}

/// Who chooses paths, and what makes packets take them.
#[derive(Clone, Debug)]
pub struct PathPlan {
    /// The fabric.
    pub fabric: Arc<Fabric>,
    /// What is known of its failures.
    pub known: Arc<Known>,
    /// The scheme and its options.
    pub balance: BalanceConfig,
    /// All its randomness follows from it.
    pub seed: u64,
    /// Which host of the fabric this NIC is.
    pub host: HostId,
    /// Addresses of all hosts of the fabric, by number.
    pub addresses: Arc<[Ipv4Addr]>,
    /// Addresses of all hosts by number and by the uplink of a leaf that leads there, where switches
    /// route each over its uplink; empty: a host has one.
    pub path_addresses: Arc<[Vec<Ipv4Addr>]>,
    /// The range of source ports that leaves cut into segments.
    pub source_ports: RangeInclusive<u16>,
    /// Source ports that were found to lead along paths, instead of segments.
    pub ports: Option<SharedPorts>,
    /// Subflows of a message are whole multiples of this, but for the last; in bytes.
    pub quantum: u32,
}

/// What the application says about traffic to come (NCCL's `setNetAttr`, v11 and later). Zero: not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// Least and most peers that are sent to at a time.
    pub peers: (u32, u32),
    /// Least and most messages to each of them at a time.
    pub flows_per_peer: (u32, u32),
}
