//! Messages that change over to another GPU of a server, so that on the network they stay in one rail.
//!
//! A rail is what the NICs of one place in their servers are on. From GPU i of a server to GPU j of another, with
//! different NICs, a message goes over the scale-up link to GPU j of its own server, and from there by the rail
//! of the receiver (PXN, "PCI x NVLink", of NCCL; DeepSeek's multi-plane fabric, arXiv 2505.09343); or by the rail of the
//! sender to GPU i of the other server, and there over the scale-up link. Where rails never meet there is no other way
//! (Wang et al., arXiv 2307.12169).

use weft_units::HostId;

/// In which server messages change over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayAt {
    /// In that of the sender: the network is crossed in the rail of the receiver.
    Source,
    /// In that of the receiver: the network is crossed in the rail of the sender.
    Destination,
}

/// How messages between rails change over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pxn {
    /// In which server.
    pub at: RelayAt,
    /// A relay passes a message on in pieces of so many bytes: the first one is on its way before the last has come.
    pub chunk: u64,
}

/// GPUs that pass on what others of their server send or receive. GPUs are numbered server by server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relays {
    /// In which server, and in which pieces.
    pub pxn: Pxn,
    /// GPUs of a server.
    pub per_server: u32,
    /// GPUs that share a NIC.
    pub per_nic: u32,
    /// The NIC of every GPU, of all servers.
    pub nics: Vec<HostId>,
    /// The GPU of every rank.
    pub gpus: Vec<u32>,
}

impl Relays {
    /// The GPU that passes on what rank `src` sends to rank `dst` of another server; `None`: their NICs are in one
    /// rail.
    pub fn between(&self, src: u32, dst: u32) -> Option<u32> {
        let [from, to] = [src, dst].map(|rank| self.gpus[rank as usize]);
        let [place, other] = [from, to].map(|gpu| gpu % self.per_server);
        if place / self.per_nic == other / self.per_nic {
            return None;
        }
        Some(match self.pxn.at {
            RelayAt::Source => from - place + other,
            RelayAt::Destination => to - other + place,
        })
    }

    /// The same if it is in the server of the sender.
    pub fn at_source(&self, src: u32, dst: u32) -> Option<u32> {
        self.between(src, dst).filter(|_| self.pxn.at == RelayAt::Source)
    }

    /// The same if it is in the server of the receiver.
    pub fn at_destination(&self, src: u32, dst: u32) -> Option<u32> {
        self.between(src, dst).filter(|_| self.pxn.at == RelayAt::Destination)
    }

    /// The hosts between which a message from rank `src` to rank `dst` of another server crosses the network, where
    /// `hosts` are the NICs of ranks.
    pub fn ends(relays: Option<&Relays>, hosts: &[HostId], src: u32, dst: u32) -> (HostId, HostId) {
        let [from, to] = [src, dst].map(|rank| hosts[rank as usize]);
        let Some(relays) = relays else { return (from, to) };
        match (relays.between(src, dst), relays.pxn.at) {
            (None, _) => (from, to),
            (Some(gpu), RelayAt::Source) => (relays.nics[gpu as usize], to),
            (Some(gpu), RelayAt::Destination) => (from, relays.nics[gpu as usize]),
        }
    }
}
