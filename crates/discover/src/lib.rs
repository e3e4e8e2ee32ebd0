//! Path discovery: which source port takes which path through switches that hash, found out by a host
//! with probes of few hops (Paris traceroute, Augustin et al. 2006 and 2007).
//!
//! A probe has a chosen source port and a time to live of 1, 2, ...; the switch where that ends answers
//! by an ICMP message that names one of its addresses. All that a switch hashes is as in the traffic
//! itself, so what the probe meets is what a queue pair from that port meets.
//!
//! | module | what it does |
//! |---|---|
//! | [`Survey`] | what to probe next for all targets of a host, what an answer or its absence means |
//! | `search` | the same for one target: how long its paths are, where they part, when enough is known |
//! | `pace` | how fast, at every distance: switches answer few probes a second, and say nothing of the rest |
//! | [`trace`] | what is known of a port, and the paths that follow |
//! | [`statistics`] | how sure it is that all paths were seen, and how even they are |
//! | [`linear`] | what linear hashes give away: all ports from some |
//! | `model` | and all targets from one |
//! | [`simulated`] | switches to try it on |
//!
//! No clock, no socket: who drives a [`Survey`] sends what [`Survey::poll`] gives and tells it of answers,
//! be that over sockets or against simulated switches.

pub mod linear;
mod model;
mod pace;
mod search;
pub mod simulated;
pub mod statistics;
mod survey;
pub mod trace;

pub use survey::{Count, Known, Step, Survey, TargetState};
pub use trace::{Path, Seen, Trace};

use std::net::Ipv4Addr;
use weft_units::Time;

/// One probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Probe {
    /// The number of the target, in the order in which a survey was given them.
    pub target: u32,
    /// The source port.
    pub port: u16,
    /// The time to live: how many switches it passes before the one that answers, and one.
    pub ttl: u8,
}

/// Who answered a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A switch, from this address.
    Hop(Ipv4Addr),
    /// The target itself: the probe has passed all switches.
    End,
    /// A switch that has no way to the target.
    NoWay,
}

/// What somebody needs of the paths to a target: so many ports that meet all of these switches. Of no
/// switches: ports whose path is known, whichever it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The addresses from which the switches answer.
    pub through: Vec<Ipv4Addr>,
    /// How many ports.
    pub ports: u32,
}

/// How a survey is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// How likely it may be that a path remains unseen, for each target.
    pub unseen: f64,
    /// Source ports that every path should have.
    pub ports_per_path: u32,
    /// How many paths there should be, if that is known: goes on until they are seen, as long as chance
    /// could explain that they are not.
    pub expected: u32,
    /// The most ports that are probed for a target.
    pub most_ports: u32,
    /// Paths have no more switches than this.
    pub most_hops: u8,
    /// The shortest time from one probe to the next.
    pub interval: Time,
    /// A probe that is not answered for so long is lost.
    pub time_out: Time,
    /// A switch that does not answer so many probes of a port has not seen it, or does not answer at all.
    pub tries: u8,
    /// Ports of a path that are asked again where a table is there already.
    pub sentinels: u32,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            unseen: 0.05,
            ports_per_path: 4,
            expected: 0,
            most_ports: 1_024,
            most_hops: 8,
            interval: Time::ms(10),
            time_out: Time::ms(400),
            tries: 3,
            sentinels: 4,
        }
    }
}
