//! The sockets and the thread of an endpoint.

use super::even_split::EvenSplit;
use super::members::Members;
use super::progress::Progress;
use super::room::Spare;
use super::{Engine, FIRST, Shared, WAKER, rdma};
use crate::queue::Queue;
use crate::roce::Nics;
use crate::slab::Slab;
use crate::statistics::Counts;
use crate::threads::AtomicBool;
use crate::{Checksum, CommError, EndpointConfig, Process, process};
use mio::{Poll, Waker};
use rustc_hash::FxHashMap;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::Instant;

/// Bytes that nobody foresees.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], CommError> {
    let mut out = [0_u8; N];
    #[expect(unsafe_code, reason = "a file of the same would need a descriptor")]
    // SAFETY: `out` has so many bytes.
    let count = unsafe { libc::getrandom(out.as_mut_ptr().cast(), N, 0) };
    // Up to 256 bytes come at once.
    if usize::try_from(count) == Ok(N) {
        return Ok(out);
    }
    Err(CommError::system("random numbers", &io::Error::last_os_error()))
}

/// Opens the sockets of an endpoint and starts its thread.
pub(crate) fn start(
    configs: Vec<EndpointConfig>,
) -> Result<(Arc<Shared>, JoinHandle<()>), CommError> {
    let (mut members, config) = Members::open(&configs)?;
    let name = &config.name;
    let spread = EvenSplit::new(&config)?;
    let (nics, notice) = rdma::open(&configs)?;
    let system = |what: String| move |error: io::Error| CommError::system(&what, &error);
    let mut set_up = || {
        let poll = Poll::new()?;
        members.watch(poll.registry())?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        Ok((poll, waker))
    };
    let (poll, waker) = set_up().map_err(system(format!("{name}: epoll")))?;
    let parts = members.parts(nics.is_some());
    let shared = Arc::new(Shared {
        orders: Queue::default(),
        waker,
        progress: Progress::default(),
        dead: Arc::default(),
        numbers: AtomicU64::new(0),
        parts,
        process: Process::current(),
        life: u64::from_ne_bytes(random()?),
        job: config.job_key.clone(),
        memory: nics.as_ref().map(|nics| nics.memory().clone()),
        checks_all: config.checksum == Checksum::All,
        loop_backs: nics.as_ref().map_or(Vec::new(), Nics::loop_backs),
        notice,
        notes: AtomicBool::new(false),
    });
    for listener in members.listeners() {
        process::keep_from_children(listener.as_raw_fd());
    }
    let now = Instant::now();
    let counts = Counts::new(config.name.clone(), parts.address);
    let mut engine = Engine {
        shared: shared.clone(),
        spread,
        members,
        poll,
        listeners: FxHashMap::default(),
        sending: Slab::default(),
        receiving: Slab::default(),
        senders: FxHashMap::default(),
        receivers: FxHashMap::default(),
        closed: VecDeque::new(),
        connections: FxHashMap::default(),
        absent: FxHashMap::default(),
        pending_connections: VecDeque::new(),
        spare: Spare::default(),
        knocking: false,
        next_token: FIRST,
        ready: VecDeque::new(),
        to_match: Vec::new(),
        cuts: VecDeque::new(),
        to_tell: Vec::new(),
        silent: Vec::new(),
        announced: BinaryHeap::new(),
        held: BinaryHeap::new(),
        soon: VecDeque::new(),
        now,
        next_look: now,
        looked: now,
        counts,
        config,
        nics,
        made_links: 0,
    };
    engine.watch_queues();
    engine.keep_spare();
    let builder = std::thread::Builder::new().name(format!("weft-{}", engine.config.name));
    let file = shared.progress.begin(engine);
    let engine = shared.clone();
    let spawned = builder.spawn(move || engine.stand_by(file));
    let thread = spawned.map_err(system("cannot start a thread".into()))?;
    Ok((shared, thread))
}
