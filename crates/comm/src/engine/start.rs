//! The sockets and the thread of an endpoint.

use super::planning::Planning;
use super::spread::Spread;
use super::{Engine, FIRST, LISTENER, Shared, WAKER, rdma};
use crate::handle::{Parts, SECRET};
use crate::queue::Queue;
use crate::slab::Slab;
use crate::statistics::Counts;
use crate::{CommError, EndpointConfig, tcp};
use mio::net::TcpListener;
use mio::{Interest, Poll, Waker};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::Instant;

/// Bytes that nobody foresees.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], CommError> {
    let mut out = [0; N];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut out));
    read.map_err(|error| CommError::System(format!("/dev/urandom: {error}")))?;
    Ok(out)
}

/// Opens the sockets of an endpoint and starts its thread.
pub(crate) fn start(config: EndpointConfig) -> Result<(Arc<Shared>, JoinHandle<()>), CommError> {
    let EndpointConfig { name, address, listen, dscp, .. } = &config;
    if *dscp > 63 {
        return Err(CommError::Invalid(format!("{name}: DSCP {dscp}; it is 0 to 63")));
    }
    let (spread, planning) = (Spread::new(&config)?, Planning::new(&config)?);
    let (nic, notice) = rdma::open(&config)?;
    let system =
        |what: String| move |error: io::Error| CommError::System(format!("{what}: {error}"));
    let place = format!("{name}: {address}, TCP ports {} to {}", listen.start(), listen.end());
    let mut listener = tcp::listen(*address, listen, *dscp).map_err(system(place))?;
    let open = system(format!("{name}: epoll"));
    let set_up = |listener: &mut TcpListener| {
        let poll = Poll::new()?;
        poll.registry().register(listener, LISTENER, Interest::READABLE)?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        Ok((poll, waker, listener.local_addr()?))
    };
    let (poll, waker, local) = set_up(&mut listener).map_err(open)?;
    let here = SocketAddrV4::new(*address, local.port());
    let host = config.plan.as_ref().map(|plan| plan.host.0);
    let parts =
        Parts { address: here, listener: 0, host, secret: [0; SECRET], roce: nic.is_some() };
    let shared = Arc::new(Shared {
        orders: Queue::default(),
        waker,
        dead: Arc::default(),
        numbers: AtomicU64::new(0),
        parts,
        life: u64::from_ne_bytes(random()?),
        memory: nic.as_ref().map(|nic| nic.memory().clone()),
        notice,
    });
    let now = Instant::now();
    let counts = Counts::new(config.name.clone(), here);
    let mut engine = Engine {
        shared: shared.clone(),
        spread,
        planning,
        poll,
        listener,
        listeners: FxHashMap::default(),
        sending: Slab::default(),
        receiving: Slab::default(),
        senders: FxHashMap::default(),
        receivers: FxHashMap::default(),
        closed: VecDeque::new(),
        connections: FxHashMap::default(),
        absent: FxHashMap::default(),
        strangers: VecDeque::new(),
        knocking: false,
        next_token: FIRST,
        ready: VecDeque::new(),
        to_match: Vec::new(),
        cuts: VecDeque::new(),
        to_tell: Vec::new(),
        now,
        next_look: now,
        counts,
        config,
        nic,
        queues_watched: 0,
    };
    engine.watch_queues();
    let builder = std::thread::Builder::new().name(format!("weft-{}", engine.config.name));
    let spawned = builder.spawn(move || engine.run());
    let thread = spawned.map_err(system("cannot start a thread".into()))?;
    Ok((shared, thread))
}
