//! The loop around the state machines: one thread, sockets that never block, the clock.
//!
//! | module | what it does |
//! |---|---|
//! | [`control`] | the line to whoever started this host: ready, go, progress, done, stop |
//! | [`sockets`] | a UDP socket for every source port |
//! | [`udp`] | a host that sends datagrams |
//! | [`tcp`] | a host that opens a connection for every subflow |
//! | [`streams`] | the two ends of such a connection |

pub mod control;
pub mod sockets;
pub mod streams;
pub mod tcp;
pub mod udp;

use crate::ports::Ports;
use crate::report::{Received, Sent};
use crate::script::Task;
use crate::sender::SenderConfig;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use weft_units::{HostId, Time};

/// What one host is to do.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Its sender: who, which fabric, which scheme.
    pub sender: SenderConfig,
    /// The addresses of all hosts, by number.
    pub addresses: Vec<Ipv4Addr>,
    /// The same by the uplink that leads there, where switches route each over its uplink; empty: a
    /// host has one address.
    pub path_addresses: Vec<Vec<Ipv4Addr>>,
    /// The UDP port that all hosts listen on.
    pub port: u16,
    /// DSCP of all that leaves: what leaves match when they steer by source port.
    pub dscp: u8,
    /// A Unix socket that takes this host's reports and says when to begin and to end.
    pub control: PathBuf,
    /// What to send.
    pub tasks: Vec<Task>,
    /// Bytes that will come.
    pub expected: u64,
    /// Give up after this.
    pub limit: Duration,
}

impl HostConfig {
    /// Where a packet for `host` goes that leaves from `port`.
    fn address(&self, ports: Ports, host: HostId, port: u16) -> SocketAddrV4 {
        let by_path = self.path_addresses.get(host.0 as usize).zip(ports.uplink(port));
        let found = by_path.and_then(|(of, uplink)| of.get(uplink as usize));
        let address = found.unwrap_or(&self.addresses[host.0 as usize]);
        SocketAddrV4::new(*address, self.port)
    }

    /// Where it listens: at all its addresses, if it has several.
    fn listen(&self) -> Ipv4Addr {
        match self.path_addresses.is_empty() {
            true => self.addresses[self.sender.host.0 as usize],
            false => Ipv4Addr::UNSPECIFIED,
        }
    }
}

/// What became of it.
#[derive(Clone, Debug)]
pub struct HostReport {
    /// The host that reports.
    pub host: HostId,
    /// Whether all was sent and has come.
    pub complete: bool,
    /// Messages not sent, and bytes that did not come.
    pub remaining: (usize, u64),
    /// When this host had sent and received all that it was to.
    pub done: Option<Time>,
    /// When the last thing came in from another host.
    pub heard: Time,
    /// Payload that was not what the sender had meant.
    pub wrong: u64,
    /// Datagrams that the system did not take.
    pub refused: u64,
    /// The sending half.
    pub sent: Sent,
    /// The receiving half.
    pub received: Received,
}

/// Time since the start of a run.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Starts so many nanoseconds after 1970, which it waits for if that is still to come: hosts
    /// of one machine begin together.
    pub fn from(start: u64) -> Clock {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start = Duration::from_nanos(start);
        std::thread::sleep(start.saturating_sub(since));
        let late = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = Instant::now();
        Clock(now.checked_sub(late.saturating_sub(start)).unwrap_or(now))
    }
    /// How late it is.
    pub fn now(self) -> Time {
        Time(self.0.elapsed().as_nanos() as u64 * 1_000)
    }
}
