//! The devices of an endpoint: opened, their completions, new links.
//!
//! Each has a protection domain, queues and queue pairs of its own; memory is registered with all of them.

use super::LoopBack;
use super::greeting::Greeting;
use super::link::{Link, POSTS, RING, SAYS};
use super::memory::Memory;
use crate::{Backend, EndpointConfig};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Instant;
use weft_balance::enforce::label::label_of_port;
use weft_balance::scheme::platform::Platform;
use weft_verbs::{
    Address, Capacity, Completion, CompletionQueue, Device, Peer, QueuePair, Route, Timing, Verbs,
    VerbsError,
};

/// Links that share a queue of completions, which must hold all that they may have out.
const LINKS: usize = 64;
/// Most completions of one link.
const ENDS: u32 = POSTS + RING + SAYS;
/// How often a packet is sent again, within the time-out of a path.
const RETRIES: u8 = 7;
const HOPS: u8 = 64;
/// A header goes without registered memory.
const INLINE: u32 = 64;

/// The devices of an endpoint that has nothing but such NICs.
#[derive(Debug)]
pub(crate) struct Nics {
    /// By NIC of the endpoint; nothing where it is lost.
    all: Vec<Option<Nic>>,
    memory: Arc<Memory>,
}

impl Nics {
    /// Opens what the back ends of the configurations name; `None`: they name none. With an empty name, the
    /// device that has the address.
    ///
    /// # Errors
    /// If there is no library, or one of the devices or addresses is not there, or its link is down: of which NIC,
    /// and why.
    pub(crate) fn open(
        configs: &[EndpointConfig],
        seed: [u8; 4],
    ) -> Result<Option<Nics>, (usize, VerbsError)> {
        let mut found = Vec::new();
        for (at, config) in configs.iter().enumerate() {
            let Backend::Roce { device, port, gid_index, .. } = &config.backend else {
                return Ok(None);
            };
            let place = find(config, (device, *port, *gid_index)).map_err(|error| (at, error))?;
            found.push((config, place));
        }
        let memory = Arc::new(Memory::new(found.iter().map(|(_, place)| place.0.clone())));
        let seed = u32::from_ne_bytes(seed);
        let open = |(number, (config, place)): (usize, (&EndpointConfig, Place))| {
            let timing = Timing::within(config.path_time_out, RETRIES);
            let nic = Nic::new((number as u8, place), timing, memory.clone(), seed);
            nic.map(Some).map_err(|error| (number, error))
        };
        let all = found.into_iter().enumerate().map(open).collect::<Result<_, _>>()?;
        Ok(Some(Nics { all, memory }))
    }

    /// What they know of memory.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Each as a peer of itself.
    pub(crate) fn loop_backs(&self) -> Vec<LoopBack> {
        self.all().map(Nic::loop_back).collect()
    }

    /// Those that are not lost.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Nic> {
        self.all.iter().flatten()
    }

    /// That of a NIC, if it is not lost.
    pub(crate) fn get(&self, number: u8) -> Option<&Nic> {
        self.all.get(usize::from(number))?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u8) -> Option<&mut Nic> {
        self.all.get_mut(usize::from(number))?.as_mut()
    }

    /// One is of no more use. Whether others are left.
    pub(crate) fn lose(&mut self, number: u8) -> bool {
        self.memory.lose(number);
        self.all[usize::from(number)] = None;
        self.all().next().is_some()
    }

    /// Files that become readable when something ends, and that nobody has asked for yet.
    pub(crate) fn new_files(&mut self) -> impl Iterator<Item = i32> {
        self.all.iter_mut().flatten().flat_map(|nic| {
            let known = std::mem::replace(&mut nic.watched, nic.queues.len());
            nic.queues[known..].iter().map(|queue| queue.file())
        })
    }
}

/// A port of a device.
#[derive(Debug)]
pub(crate) struct Nic {
    /// Which one of the endpoint.
    number: u8,
    device: Arc<Device>,
    port: u8,
    address: Address,
    mtu: u16,
    timing: Timing,
    memory: Arc<Memory>,
    queues: Vec<Arc<CompletionQueue>>,
    /// Somebody watches so many of them.
    watched: usize,
    first_packet: u32,
}

/// A device, a port of it, the address there, and the most payload of a packet.
type Place = (Arc<Device>, u8, Address, u16);

impl Nic {
    fn new(
        (number, (device, port, address, mtu)): (u8, Place),
        timing: Timing,
        memory: Arc<Memory>,
        first_packet: u32,
    ) -> Result<Nic, VerbsError> {
        let (queues, watched) = (Vec::new(), 0);
        let mut nic = Nic {
            number,
            device,
            port,
            address,
            mtu,
            timing,
            memory,
            queues,
            watched,
            first_packet,
        };
        nic.add_queue()?;
        Ok(nic)
    }

    /// Which one of the endpoint it is.
    pub(crate) fn number(&self) -> u8 {
        self.number
    }

    /// Itself as a peer.
    fn loop_back(&self) -> LoopBack {
        let Nic { device, port, address, mtu, timing, .. } = self;
        let (device, port, address) = (device.clone(), *port, *address);
        LoopBack { device, port, address, mtu: *mtu, timing: *timing }
    }

    /// The sending end of a link, whose packets will leave from `source_port`, or from any where it is
    /// zero. [`Nic::connect`] it when the answer is there. What ends will bear `tag`.
    ///
    /// # Errors
    /// If the system refuses, or the port is down.
    pub(crate) fn link(
        &mut self,
        tag: u32,
        source_port: u16,
        now: Instant,
    ) -> Result<Link, VerbsError> {
        // Both may change while it is open.
        self.mtu = check_port(&self.device, self.port)?;
        self.address = self.device.address_again(self.port, self.address)?;
        // Queue pairs hold their queue.
        let has_room = |queue: &&Arc<CompletionQueue>| Arc::strong_count(queue) <= LINKS;
        let queue = match self.queues.iter().find(has_room) {
            Some(queue) => queue.clone(),
            None => self.add_queue()?,
        };
        let capacity = Capacity { sends: POSTS, receives: RING, inline: INLINE };
        let pair = QueuePair::new(&queue, self.port, capacity)?;
        // Packets of an earlier connection between the same queue pairs should look foreign.
        self.first_packet = self.first_packet.wrapping_mul(0x9E37_79B1).wrapping_add(1);
        let own = Greeting {
            gid: self.address.gid,
            number: pair.number(),
            first_packet: self.first_packet >> 8,
            mtu: self.mtu,
            source_port,
            nic: self.number,
        };
        Link::new(pair, tag, own, (&self.device, self.memory.clone()), now)
    }

    /// The receiving end of a link, connected to the one that `peer` tells of.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn answer(
        &mut self,
        tag: u32,
        peer: &Greeting,
        dscp: u8,
        now: Instant,
    ) -> Result<Link, VerbsError> {
        let mut link = self.link(tag, peer.source_port, now)?;
        self.connect(&mut link, peer, dscp)?;
        Ok(link)
    }

    /// Connects a link to the end that `peer` tells of; its packets bear `dscp`.
    ///
    /// # Errors
    /// If the system refuses: there is no way to the address, or the port stands for no flow label.
    pub(crate) fn connect(
        &self,
        link: &mut Link,
        peer: &Greeting,
        dscp: u8,
    ) -> Result<(), VerbsError> {
        link.peer_nic = peer.nic;
        let own = &link.own;
        let route = Route {
            address: self.address.index,
            flow_label: flow_label(own.source_port)?,
            traffic_class: dscp << 2,
            hop_limit: HOPS,
        };
        let Greeting { gid, number, first_packet, .. } = *peer;
        let peer_end = Peer { gid, number, first_packet };
        let mtu = u32::from(own.mtu.min(peer.mtu));
        link.pair().connect(peer_end, own.first_packet, route, mtu, self.timing)?;
        if own.source_port > 0 && self.device.moves_queue_pairs() {
            // Some kernels make no port of the label; where this does not work either, the label has to do.
            let _ = link.pair().set_source_port(own.source_port);
        }
        Ok(())
    }

    /// Hands what has ended to `end`: the tag of its link, itself, and who knows its words. Of links that
    /// are gone something may still come.
    ///
    /// # Errors
    /// If the device is broken.
    pub(crate) fn poll(
        &self,
        mut end: impl FnMut(u32, &Completion, &CompletionQueue),
    ) -> Result<(), VerbsError> {
        let mut found = Vec::new();
        for queue in &self.queues {
            while queue.poll(&mut found)? > 0 {
                found.drain(..).for_each(|one| end((one.id >> 32) as u32, &one, queue));
            }
        }
        Ok(())
    }

    /// Asks for an event when something ends. What ended before the call must be looked for once more.
    ///
    /// # Errors
    /// If the device is broken.
    pub(crate) fn arm(&self) -> Result<(), VerbsError> {
        self.queues.iter().try_for_each(|queue| {
            queue.take_events();
            queue.arm()
        })
    }

    fn add_queue(&mut self) -> Result<Arc<CompletionQueue>, VerbsError> {
        let queue = Arc::new(CompletionQueue::new(&self.device, LINKS as u32 * ENDS)?);
        self.queues.push(queue.clone());
        Ok(queue)
    }
}

/// The device, port and address that `backend` of the configuration names, and the most payload of a packet
/// there, if queue pairs do what the configuration asks for.
pub(super) fn find(
    config: &EndpointConfig,
    (device, port, gid_index): (&str, u8, Option<u8>),
) -> Result<Place, VerbsError> {
    if let Some(plan) = &config.plan {
        let scheme = &plan.balance.scheme;
        if let Some(what) = scheme.info().needs_beyond(Platform::Verbs) {
            let (name, others) = (scheme.name(), Platform::Verbs.schemes());
            return Err(VerbsError::Device(format!(
                "queue pairs cannot do what {name} needs ({what}); use one of {others}"
            )));
        }
        // As `label_of_port` has it.
        flow_label(*plan.source_ports.start())?;
    }
    let verbs = Verbs::load()?;
    let (device, port, address) = match device {
        "" => Device::find(&verbs, config.address)?,
        name => {
            let device = Device::open(&verbs, name)?;
            let address = address(&device, port, gid_index, config.address)?;
            (device, port, address)
        }
    };
    let mtu = check_port(&device, port)?;
    Ok((device, port, address, mtu))
}

/// The most payload of a packet of a port that is up.
fn check_port(device: &Device, port: u8) -> Result<u16, VerbsError> {
    let state = device.port(port)?;
    if !state.active {
        let what = format!("port {port} of {} is down", device.name());
        return Err(VerbsError::Device(what));
    }
    Ok(state.mtu as u16)
}

/// What makes packets leave from a port; of zero, any.
fn flow_label(port: u16) -> Result<u32, VerbsError> {
    let label = if port == 0 { Some(0) } else { label_of_port(port) };
    label.ok_or_else(|| {
        VerbsError::Device(format!(
            "source port {port}: RoCE sends from 49152 to 65535; give the cluster such ports"
        ))
    })
}

fn address(
    device: &Device,
    port: u8,
    index: Option<u8>,
    address: Ipv4Addr,
) -> Result<Address, VerbsError> {
    let Some(index) = index else { return device.address(port, address) };
    device.address_at(port, index).ok_or_else(|| {
        VerbsError::Device(format!(
            "GID {index} of port {port} of {} is none of RoCEv2; leave WEFT_GID_INDEX out",
            device.name()
        ))
    })
}
