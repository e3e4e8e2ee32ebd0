//! What the application sees. Each call puts an order into the engine's queue, or looks at what the
//! engine has left; and drives the engine for a while.

#![expect(unsafe_code, reason = "callers vouch for memory that is sent and received in place")]

use crate::engine::{self, Order, Shared};
use crate::handle::{MOST_NICS, Parts};
use crate::memory::Span;
use crate::request::{ChannelState, Status};
use crate::roce::{Flusher, LoopBack, Regions};
use crate::wire::Slot;
use crate::{
    CommError, EndpointConfig, Handle, Hint, MOST_BUFFERS, MOST_REQUESTS, Notes, Process,
    Statistics,
};
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// One NIC of one process.
#[derive(Debug)]
pub struct Endpoint {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// What the engine counted when it last said so.
    counted: Mutex<Statistics>,
}

/// Where peers connect to.
#[derive(Debug)]
pub struct Listener {
    shared: Arc<Shared>,
    number: u32,
    inbox: Arc<Inbox>,
}

/// A channel that a peer has opened, its number and state; or why one could not be opened.
pub(crate) type Arrival = Result<(u64, Arc<ChannelState>), CommError>;

/// Those that nobody has accepted.
pub(crate) type Inbox = Mutex<VecDeque<Arrival>>;

/// The sending half of a channel that is not there yet.
#[derive(Debug)]
pub struct Connecting {
    half: Option<Half>,
}

/// The sending half of a channel.
#[derive(Debug)]
pub struct SendChannel {
    half: Half,
}

/// The receiving half of a channel.
#[derive(Debug)]
pub struct RecvChannel {
    half: Half,
    /// By NIC, each made when it is first needed.
    flushers: Mutex<[Option<Arc<Flusher>>; MOST_NICS]>,
}

/// What both halves have.
#[derive(Debug)]
struct Half {
    shared: Arc<Shared>,
    channel: u64,
    state: Arc<ChannelState>,
    sends: bool,
}

/// Memory that the NIC may read and write. Of TCP there is nothing to it.
#[derive(Clone, Debug)]
pub struct Region {
    held: Option<Arc<Regions>>,
    process: Process,
}

/// Memory of a GPU.
#[derive(Clone, Copy, Debug)]
pub struct GpuMemory<'a> {
    /// Where it begins, by the GPU's count.
    pub start: usize,
    /// How many bytes.
    pub len: usize,
    /// The DMA-BUF that it is, from so many bytes on; else the kernel knows its address.
    pub dma_buf: Option<(BorrowedFd<'a>, u64)>,
}

impl Region {
    /// Whether it is memory of a GPU, which has what came only after a flush
    /// ([`RecvChannel::flush`]).
    pub fn is_gpu(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.is_gpu())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // The parent's device still uses it.
            std::mem::forget(self.held.take());
        }
    }
}

/// A send, receive or flush under way. Dropping it does not end it.
#[derive(Debug)]
pub struct Request(Under);

#[derive(Debug)]
enum Under {
    /// A message.
    Way { shared: Arc<Shared>, status: Arc<Status> },
    /// A flush: reads by their numbers.
    Flush(Vec<(Arc<Flusher>, u64)>),
}

/// One buffer of a receive.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<'a> {
    /// The address of its first byte.
    pub start: *mut u8,
    /// Its length, in bytes.
    pub len: usize,
    /// Sends with this tag go into it.
    pub tag: i32,
    /// The memory that it is a part of.
    pub region: Option<&'a Region>,
}

/// Bytes that came, by buffer of a receive; of a send one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// How many of `sizes` count.
    pub count: usize,
    /// The length of each, in bytes.
    pub sizes: [usize; MOST_BUFFERS],
}

impl Endpoint {
    /// Opens a NIC: a socket that listens, a thread that moves bytes.
    ///
    /// # Errors
    /// If the configuration makes no sense, no port is free or the back end is not there.
    pub fn open(config: EndpointConfig) -> Result<Endpoint, CommError> {
        Endpoint::open_merged(vec![config])
    }

    /// Opens several NICs as one: each message is cut over those that reach its receiver, by their line
    /// rates, and each share of it over the paths of its NIC, by the plan of that NIC. What dies with a
    /// NIC goes on over the others. All but addresses, ports, plans and rates is as the first says.
    ///
    /// # Errors
    /// As [`Endpoint::open`] and [`Endpoint::can_merge`].
    pub fn open_merged(configs: Vec<EndpointConfig>) -> Result<Endpoint, CommError> {
        let (shared, thread) = engine::start(configs)?;
        let endpoint = Endpoint { shared, thread: Some(thread), counted: Mutex::default() };
        endpoint.statistics();
        Ok(endpoint)
    }

    /// Whether several NICs can be one, before any of them is opened.
    ///
    /// # Errors
    /// If there are more than [`MOST_NICS`], one is there twice, or some have verbs and some do not.
    pub fn can_merge(configs: &[EndpointConfig]) -> Result<(), CommError> {
        engine::fit(configs)
    }

    /// Begins to listen for one peer, or several.
    ///
    /// # Errors
    /// If the endpoint has failed.
    pub fn listen(&self) -> Result<(Listener, Handle), CommError> {
        self.shared.check()?;
        let number = self.shared.numbers.fetch_add(1, Ordering::Relaxed) as u32;
        let secret = engine::random()?;
        let inbox = Arc::new(Inbox::default());
        let parts = Parts { listener: number, secret, ..self.shared.parts };
        let key = self.shared.key(&secret);
        self.shared.order(Order::Listen { number, key, inbox: inbox.clone() });
        Ok((Listener { shared: self.shared.clone(), number, inbox }, parts.encode()))
    }

    /// Begins to connect.
    ///
    /// # Errors
    /// If the handle is none of ours, or the endpoint has failed.
    pub fn connect(&self, handle: &Handle) -> Result<Connecting, CommError> {
        self.connect_as(handle, None)
    }

    /// The same with another DSCP than the endpoint's, both ways.
    ///
    /// # Errors
    /// As [`Endpoint::connect`]; if it is above 63.
    pub fn connect_as(&self, handle: &Handle, dscp: Option<u8>) -> Result<Connecting, CommError> {
        self.shared.check()?;
        if let Some(wrong) = dscp.filter(|dscp| *dscp > 63) {
            return Err(CommError::Invalid(format!("DSCP {wrong}; it is 0 to 63")));
        }
        let to = Parts::decode(handle)?;
        let channel = u64::from_ne_bytes(engine::random()?);
        let state = self.shared.new_channel_state();
        self.shared.order(Order::Connect { channel, to, dscp, state: state.clone() });
        let half = Half { shared: self.shared.clone(), channel, state, sends: true };
        Ok(Connecting { half: Some(half) })
    }

    /// Tells what traffic is to be expected.
    pub fn hint(&self, hint: Hint) {
        self.shared.order(Order::Hint(hint));
    }

    /// Makes memory known to the NIC: of several, to each, or to none if one refuses.
    ///
    /// # Safety
    /// The memory stays mapped until all of the region's clones are dropped.
    ///
    /// # Errors
    /// If the NIC refuses.
    pub unsafe fn register(&self, start: *mut u8, len: usize) -> Result<Region, CommError> {
        self.shared.check()?;
        let process = self.shared.process;
        let Some(memory) = self.shared.memory.as_ref().filter(|_| len > 0) else {
            return Ok(Region { held: None, process });
        };
        // SAFETY: as the caller says.
        let held = unsafe { memory.hold(Span::new(start, len)) };
        let held = held.map_err(|error| CommError::System(error.to_string()))?;
        Ok(Region { held: Some(held), process })
    }

    /// From now on requests of new channels keep notes ([`Request::notes`]), which takes a little time and
    /// memory.
    pub fn keep_notes(&self) {
        self.shared.notes.store(true, Ordering::Relaxed);
    }

    /// Why it does without RDMA although it was to have it: a line for the log.
    pub fn notice(&self) -> Option<&str> {
        self.shared.notice.as_deref()
    }

    /// What was counted so far; nothing in a child that was forked. It waits for the engine, which is
    /// not long; of one that has no time for an answer, or is gone, it is what was counted when it last
    /// answered: counters never fall.
    pub fn statistics(&self) -> Statistics {
        if !self.shared.process.is_current() {
            return Statistics::default();
        }
        let (to, from) = mpsc::sync_channel(1);
        self.shared.order(Order::Statistics(to));
        let now = from.recv_timeout(Duration::from_secs(1));
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(now) = now {
            *counted = now;
        }
        counted.clone()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.order(Order::Stop);
        let Some(thread) = self.thread.take() else { return };
        if !self.shared.process.is_current() {
            // A child that was forked has no such thread to wait for.
            std::mem::forget(thread);
        } else {
            // Its panic has been told on standard error.
            let _ = thread.join();
        }
    }
}

impl Listener {
    /// The next peer that has connected, if one has.
    ///
    /// # Errors
    /// If the endpoint has failed, or this host has no room for the connection of a peer.
    pub fn try_accept(&self) -> Result<Option<RecvChannel>, CommError> {
        if !self.shared.process.is_current() {
            return Err(CommError::forked());
        }
        self.shared.drive();
        let mut inbox = self.inbox.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(arrival) = inbox.pop_front() else {
            self.shared.check()?;
            return Ok(None);
        };
        let (channel, state) = arrival?;
        let half = Half { shared: self.shared.clone(), channel, state, sends: false };
        Ok(Some(RecvChannel { half, flushers: Mutex::default() }))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.order(Order::Unlisten(self.number));
    }
}

impl Connecting {
    /// The channel, as soon as it is there. After that and after an error it is over.
    ///
    /// # Errors
    /// If the peer refuses or does not answer for as long as [`EndpointConfig::give_up`].
    pub fn try_finish(&mut self) -> Result<Option<SendChannel>, CommError> {
        let over = || CommError::Invalid("this connecting is over".into());
        let half = self.half.as_ref().ok_or_else(over)?;
        if let Err(error) = half.check() {
            self.half = None;
            return Err(error);
        }
        if !half.state.is_open() {
            half.shared.drive();
        }
        if !half.state.is_open() {
            return Ok(None);
        }
        Ok(self.half.take().map(|half| SendChannel { half }))
    }
}

impl SendChannel {
    /// Sends `len` bytes from `start` on. `None`: too much is under way; ask again. It leaves when a request of the
    /// endpoint is asked about ([`Request::test`]), within 2 ms anyway.
    ///
    /// # Safety
    /// The memory stays readable and unchanged until the request is done or the channel is dropped,
    /// whichever is first: a failed channel may still look at it.
    ///
    /// # Errors
    /// If the channel has failed.
    pub unsafe fn isend(
        &self,
        start: *const u8,
        len: usize,
        tag: i32,
        region: Option<&Region>,
    ) -> Result<Option<Request>, CommError> {
        let _ = region;
        let Half { shared, channel, state, .. } = &self.half;
        self.half.check()?;
        if !state.begin(MOST_REQUESTS * MOST_BUFFERS) {
            return Ok(None);
        }
        let status = Status::new(state.clone());
        let body = if len == 0 { Span::EMPTY } else { Span::new(start.cast_mut(), len) };
        shared.order(Order::Send { channel: *channel, body, tag, status: status.clone() });
        Ok(Some(Request(Under::Way { shared: shared.clone(), status })))
    }

    /// Makes memory of a GPU known to the NIC, to be sent from.
    ///
    /// # Safety
    /// The memory stays where it is until all of the region's clones are dropped.
    ///
    /// # Errors
    /// If the channel goes over TCP, or the NIC refuses.
    pub unsafe fn register_gpu(&self, memory: GpuMemory<'_>) -> Result<Region, CommError> {
        // SAFETY: as the caller says.
        unsafe { self.half.register_gpu(memory) }
    }
}

impl RecvChannel {
    /// Makes memory of a GPU known to the NIC, to be received into.
    ///
    /// # Safety
    /// As [`SendChannel::register_gpu`].
    ///
    /// # Errors
    /// As there.
    pub unsafe fn register_gpu(&self, memory: GpuMemory<'_>) -> Result<Region, CommError> {
        // SAFETY: as the caller says.
        unsafe { self.half.register_gpu(memory) }
    }

    /// Begins to see to it that all that has come is in the memory of the GPU of which `at` is an address.
    /// `None`: too much is under way; ask again.
    ///
    /// # Errors
    /// If the channel has failed, or the NIC refuses.
    pub fn flush(&self, region: &Region, at: usize) -> Result<Option<Request>, CommError> {
        self.half.check()?;
        let Half { shared, state, .. } = &self.half;
        let Some(memory) = region.held.as_ref().filter(|_| !shared.loop_backs.is_empty()) else {
            return Err(CommError::Invalid("a flush of what no RDMA device writes".into()));
        };
        let mut flushers = self.flushers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // One whose port is dead could not read, and has not written either.
        let came = if shared.loop_backs.len() == 1 { 1 } else { state.take_came() };
        let mut reads = Vec::new();
        for (nic, (loop_back, flusher)) in shared.loop_backs.iter().zip(&mut *flushers).enumerate()
        {
            if came & 1 << nic == 0 {
                // What was flushed for others may be what this is for.
                if let Some(flusher) = flusher {
                    reads.push((flusher.clone(), flusher.last()?));
                }
                continue;
            }
            let Some(key) = memory.remote_key(nic) else {
                // That device was lost before, and has written to other memory.
                state.came_by(nic as u8);
                continue;
            };
            let flusher = ready(flusher, loop_back)?;
            let Some(number) = flusher.post(at, key)? else {
                (nic..MOST_NICS).filter(|nic| came & 1 << nic > 0).for_each(|nic| {
                    state.came_by(nic as u8);
                });
                return Ok(None);
            };
            reads.push((flusher, number));
        }
        Ok(Some(Request(Under::Flush(reads))))
    }

    /// Receives into 1 to [`MOST_BUFFERS`] buffers. `None`: too much is under way; ask again. They are announced as
    /// [`SendChannel::isend`] sends.
    ///
    /// # Safety
    /// The memory stays writable, and nobody else's, until the request is done or the channel is
    /// dropped, whichever is first.
    ///
    /// # Errors
    /// If the channel has failed, or there are too many buffers.
    pub unsafe fn irecv(&self, buffers: &[Buffer<'_>]) -> Result<Option<Request>, CommError> {
        let Half { shared, channel, state, .. } = &self.half;
        if buffers.is_empty() || buffers.len() > MOST_BUFFERS {
            let count = buffers.len();
            return Err(CommError::Invalid(format!(
                "a receive of {count} buffers; it takes 1 to {MOST_BUFFERS}"
            )));
        }
        self.half.check()?;
        if !state.begin(MOST_REQUESTS) {
            return Ok(None);
        }
        let status = Status::new(state.clone());
        let place = |buffer: &Buffer<'_>| {
            let span = match buffer.len {
                0 => Span::EMPTY,
                len => Span::new(buffer.start, len),
            };
            let (tag, size) = (buffer.tag, buffer.len as u64);
            (span, Slot { tag, size, ..Slot::default() })
        };
        let buffers = buffers.iter().map(place).collect();
        shared.order(Order::Receive { channel: *channel, buffers, status: status.clone() });
        Ok(Some(Request(Under::Way { shared: shared.clone(), status })))
    }
}

/// The flusher of a NIC, made if need be.
fn ready(
    place: &mut Option<Arc<Flusher>>,
    loop_back: &LoopBack,
) -> Result<Arc<Flusher>, CommError> {
    if let Some(made) = place {
        return Ok(made.clone());
    }
    let made = loop_back.flusher().map_err(|error| CommError::System(error.to_string()))?;
    Ok(place.insert(Arc::new(made)).clone())
}

impl Half {
    /// # Safety
    /// As [`SendChannel::register_gpu`].
    unsafe fn register_gpu(&self, memory: GpuMemory<'_>) -> Result<Region, CommError> {
        self.check()?;
        let known = self.shared.memory.as_ref().filter(|_| self.state.is_rdma());
        let Some(known) = known else {
            return Err(CommError::Invalid(
                "memory of a GPU goes by RDMA alone, and this channel goes over TCP: see what the logs \
                 of both hosts say about their RDMA devices, or set NCCL_NET_GDR_LEVEL=LOC"
                    .into(),
            ));
        };
        if self.shared.checks_all {
            return Err(CommError::Invalid(
                "the processor cannot check payload in memory of a GPU: unset WEFT_CHECKSUM=all"
                    .into(),
            ));
        }
        let GpuMemory { start, len, dma_buf } = memory;
        let span = Span::new(std::ptr::without_provenance_mut(start), len);
        // SAFETY: as the caller says.
        let held = unsafe { known.hold_gpu(span, dma_buf) };
        let held = held.map_err(|error| CommError::System(error.to_string()))?;
        Ok(Region { held: Some(held), process: self.shared.process })
    }

    fn check(&self) -> Result<(), CommError> {
        match self.state.error() {
            Some(error) if self.state.is_here() => Err(error.clone()),
            _ => self.shared.check(),
        }
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        if !self.state.is_here() {
            return;
        }
        let (to, from) = mpsc::sync_channel(1);
        // The engine may be at work in memory that the caller is about to free.
        let wait = self.state.under_way.load(Ordering::Acquire) > 0;
        let (channel, done) = (self.channel, wait.then_some(to));
        let sends = self.sends;
        self.shared.order(Order::Close { channel, sends, done });
        if wait {
            // An error means that the engine is gone, which is as good.
            let _ = from.recv();
        }
    }
}

impl Request {
    /// The sizes, if it is done; else it moves bytes for a while. From any thread, as often as one likes.
    ///
    /// # Errors
    /// If the channel has failed.
    pub fn test(&self) -> Result<Option<Sizes>, CommError> {
        match &self.0 {
            Under::Way { shared, status } => match status.test()? {
                None => {
                    shared.drive();
                    status.test()
                }
                done => Ok(done),
            },
            Under::Flush(reads) => {
                for (flusher, number) in reads {
                    if !flusher.is_done(*number)? {
                        return Ok(None);
                    }
                }
                Ok(Some(Sizes::default()))
            }
        }
    }

    /// Takes what happened to it so far; nothing where no notes are kept.
    pub fn notes(&self) -> Notes {
        let mut taken = Notes::default();
        if let Under::Way { status, .. } = &self.0 {
            status.note(|notes| taken = std::mem::take(notes));
        }
        taken
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Backend, Checksum};
    use std::net::Ipv4Addr;

    /// Where the engine does not answer counters stay: who adds them up would take a fall for a new process.
    #[test]
    fn counters_of_an_engine_that_is_gone_do_not_fall() {
        let config = EndpointConfig {
            name: "nic".into(),
            address: Ipv4Addr::LOCALHOST,
            listen: 0..=0,
            dscp: 0,
            backend: Backend::Tcp,
            plan: None,
            connections: 1,
            path_time_out: Duration::from_secs(1),
            give_up: Duration::from_secs(4),
            checksum: Checksum::None,
            encrypt: false,
            congestion: None,
            job_key: Arc::default(),
            line_bps: 0,
            plane: None,
        };
        let endpoint = Endpoint::open(config).expect("it opens");
        let (listener, handle) = endpoint.listen().expect("it listens");
        let mut connecting = endpoint.connect(&handle).expect("it begins");
        let (mut sending, mut receiving) = (None, None);
        while sending.is_none() || receiving.is_none() {
            if sending.is_none() {
                sending = connecting.try_finish().expect("no error");
            }
            receiving = receiving.or(listener.try_accept().expect("no error"));
        }
        let before = endpoint.statistics();
        assert_eq!((before.name.as_str(), before.paths.len()), ("nic", 1));
        drop((sending, receiving, listener));
        endpoint.shared.order(Order::Stop);
        while !endpoint.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let after = endpoint.statistics();
        assert_eq!((after.name, after.paths.len()), (before.name, before.paths.len()));
    }
}
