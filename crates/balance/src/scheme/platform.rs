//! Where schemes run: what follows from a scheme's [`SchemeInfo`] about hosts and switches that are not
//! simulated. Whoever must know whether a scheme runs somewhere asks here.

use super::{SCHEMES, SchemeInfo};

/// Something that runs schemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// The packet simulator: every scheme.
    Simulator,
    /// The planner of whole jobs: schemes that decide as messages are posted.
    Planner,
    /// Hosts on UDP sockets in network namespaces, whose leaves are Linux.
    TestBed,
    /// Channels over TCP connections, a route each.
    Sockets,
    /// Channels over RoCE queue pairs, a route each.
    Verbs,
}

/// What leaves make of the UDP or TCP source port of a packet from a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourcePorts {
    /// They hash it, with all else of the five-tuple.
    Hashed,
    /// They map segments of the port range to uplinks ([`crate::enforce::Segments`]).
    Segments,
}

impl Platform {
    /// All, by name.
    pub const ALL: [(&'static str, Platform); 5] = [
        ("simulator", Platform::Simulator),
        ("planner", Platform::Planner),
        ("test bed", Platform::TestBed),
        ("sockets", Platform::Sockets),
        ("verbs", Platform::Verbs),
    ];

    /// The schemes that run there, as they are written (`subflows-N`), with commas between.
    pub fn schemes(self) -> String {
        let here = SCHEMES.iter().filter(|info| info.needs_beyond(self).is_none());
        here.map(SchemeInfo::spelling).collect::<Vec<_>>().join(", ")
    }
}

impl SchemeInfo {
    /// What it needs, in a few words, that hosts and switches of `platform` do not do. `None`: it runs
    /// there.
    pub fn needs_beyond(&self, platform: Platform) -> Option<&'static str> {
        // Switches on sale hash, and can be configured to map source ports.
        let acts_in_switch = self.in_switch && !self.port_policy;
        let several_paths = self.multipath.then_some("packets of a flow on several paths");
        let watched = self.watches.then_some("time-outs that the scheme sets");
        let in_switches = (acts_in_switch || self.weighted).then_some(self.switches);
        match platform {
            Platform::Simulator => None,
            // A weighted hash can be planned: the planner knows the weights.
            Platform::Planner => several_paths
                .or(watched)
                .or_else(|| (acts_in_switch && !self.weighted).then_some(self.switches)),
            Platform::TestBed => self.shares.then_some("senders with a rate").or(in_switches),
            Platform::Sockets => several_paths.or(in_switches),
            // What a device has begun to write at the receiver cannot be called back.
            Platform::Verbs => several_paths.or(watched).or(in_switches),
        }
    }
    /// What leaves have to make of source ports where it runs on real hosts, unless an option of it
    /// says that they hash.
    pub fn source_ports(&self) -> SourcePorts {
        match self.path_ids || self.port_policy {
            true => SourcePorts::Segments,
            false => SourcePorts::Hashed,
        }
    }
}
