//! Channels between the ranks of a group, made when they are first used.
//!
//! Every rank has one listener. Whoever has something to send connects, and says first who it is
//! and for what stream; then the channel is known at both ends.

use crate::links::Links;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weft_comm::wire::MOST_PAYLOAD;
use weft_comm::{
    Buffer, Connecting, Endpoint, Handle, Listener, RecvChannel, Request, SendChannel, Sizes,
};

/// Says who connects: rank and stream, little-endian.
const GREETING: usize = 12;

/// Instead of a stream: who connects has given up, and this is all that it says.
const OVER: u64 = u64::MAX;
/// Instead of a stream: who connects wants to hear when this process is gone, and says nothing.
const WATCH: u64 = u64::MAX - 1;
/// How long it tries to say so. Peers that are alive hear it at once.
const LAST_WORDS: Duration = Duration::from_secs(1);
const NAP: Duration = Duration::from_millis(1);

/// What a peer that is watched never receives, too long to go before it does.
static WORD: [u8; MOST_PAYLOAD as usize + 1] = [0; MOST_PAYLOAD as usize + 1];

/// What is sent first. On the heap, where it stays.
type Greeting = Box<[u8; GREETING]>;

#[derive(Debug)]
enum Outgoing {
    Connecting(Connecting),
    /// With the greeting, as long as it is under way.
    Open(SendChannel, Option<(Request, Greeting)>),
}

/// Somebody who has connected and not said yet who it is.
#[derive(Debug)]
struct PendingConnection {
    // Dropped before the memory that it writes to.
    channel: RecvChannel,
    request: Option<Request>,
    greeting: Greeting,
}

/// The channels of one rank. Dropping it closes them.
#[derive(Debug)]
pub(crate) struct Mesh {
    outgoing: BTreeMap<(u32, u64), Outgoing>,
    incoming: BTreeMap<(u32, u64), RecvChannel>,
    pending_connections: Vec<PendingConnection>,
    /// Messages that nobody receives, and that fail with their channel.
    watching: BTreeMap<u32, Request>,
    listener: Listener,
    endpoint: Arc<Endpoint>,
    handles: Vec<Handle>,
    rank: u32,
}

impl Mesh {
    /// A mesh of the ranks whose listeners have these handles.
    pub(crate) fn new(
        endpoint: Arc<Endpoint>,
        listener: Listener,
        handles: Vec<Handle>,
        rank: u32,
    ) -> Mesh {
        Mesh {
            outgoing: BTreeMap::new(),
            incoming: BTreeMap::new(),
            pending_connections: Vec::new(),
            watching: BTreeMap::new(),
            listener,
            endpoint,
            handles,
            rank,
        }
    }

    /// Lets channels come into being. Returns a peer that has given up, if one has.
    ///
    /// # Errors
    /// If the endpoint has failed, with what it says.
    pub(crate) fn poll(&mut self) -> Result<Option<u32>, String> {
        while let Some(channel) = self.listener.try_accept().map_err(|e| e.to_string())? {
            let greeting = Box::new([0; GREETING]);
            self.pending_connections.push(PendingConnection { channel, request: None, greeting });
        }
        let mut at = 0;
        while at < self.pending_connections.len() {
            match self.pending_connections[at].heard() {
                // It is gone before it has said a word: nobody's loss.
                Err(()) => drop(self.pending_connections.swap_remove(at)),
                Ok(false) => at += 1,
                Ok(true) => {
                    let PendingConnection { channel, greeting, .. } =
                        self.pending_connections.swap_remove(at);
                    let (rank, stream) = greeting.split_at(4);
                    let rank = u32::from_le_bytes(rank.try_into().unwrap_or_default());
                    let stream = u64::from_le_bytes(stream.try_into().unwrap_or_default());
                    // Who holds the handle's secret is one of us. The first word counts.
                    if stream == OVER {
                        return Ok(Some(rank));
                    }
                    self.incoming.entry((rank, stream)).or_insert(channel);
                }
            }
        }
        Ok(None)
    }

    /// Closes all channels. Returns the peers that had one.
    pub(crate) fn close(&mut self) -> BTreeSet<u32> {
        let peers = self.outgoing.keys().chain(self.incoming.keys()).map(|(peer, _)| *peer);
        let peers = peers.collect();
        self.outgoing.clear();
        self.incoming.clear();
        self.pending_connections.clear();
        peers
    }

    /// Looks whether a peer is there, though there may be no message between the two: of a channel
    /// that nothing is under way on nobody hears that it is broken, and of none at all neither.
    ///
    /// # Errors
    /// If it is gone, with what its channel says.
    pub(crate) fn watch(&mut self, peer: u32) -> Result<(), String> {
        let text = |error: weft_comm::CommError| error.to_string();
        if let Some(request) = self.watching.get(&peer) {
            return request.test().map(drop).map_err(text);
        }
        let Some(channel) = self.opened(peer, WATCH)? else { return Ok(()) };
        #[expect(unsafe_code, reason = "the word is a constant")]
        // SAFETY: a constant is always there.
        let request = unsafe { channel.isend(WORD.as_ptr(), WORD.len(), 0, None) };
        self.watching.extend(request.map_err(text)?.map(|request| (peer, request)));
        Ok(())
    }

    /// Tells `peers` that this rank has given up: some of them may have nothing under way with it
    /// that would fail, and wait for others that wait for it.
    pub(crate) fn give_up(&mut self, mut peers: BTreeSet<u32>) {
        let end = Instant::now() + LAST_WORDS;
        loop {
            peers.retain(|peer| match self.opened(*peer, OVER) {
                Ok(_) => {
                    !matches!(self.outgoing.get(&(*peer, OVER)), Some(Outgoing::Open(_, None)))
                }
                // It is gone itself.
                Err(_) => false,
            });
            if peers.is_empty() || Instant::now() > end {
                return;
            }
            std::thread::sleep(NAP);
        }
    }

    fn opened(&mut self, to: u32, stream: u64) -> Result<Option<&SendChannel>, String> {
        let text = |error: weft_comm::CommError| error.to_string();
        let key = (to, stream);
        if !self.outgoing.contains_key(&key) {
            let connecting = self.endpoint.connect(&self.handles[to as usize]).map_err(text)?;
            self.outgoing.insert(key, Outgoing::Connecting(connecting));
        }
        if let Some(Outgoing::Connecting(connecting)) = self.outgoing.get_mut(&key) {
            let Some(channel) = connecting.try_finish().map_err(text)? else { return Ok(None) };
            self.outgoing.insert(key, Outgoing::Open(channel, None));
            let mut greeting = Box::new([0; GREETING]);
            greeting[..4].copy_from_slice(&self.rank.to_le_bytes());
            greeting[4..].copy_from_slice(&stream.to_le_bytes());
            let Some(Outgoing::Open(channel, kept)) = self.outgoing.get_mut(&key) else {
                return Ok(None);
            };
            #[expect(unsafe_code, reason = "the greeting is kept until it is sent")]
            // SAFETY: kept on the heap until the request is done or the channel dropped.
            let request = unsafe { channel.isend(greeting.as_ptr(), GREETING, 0, None) };
            // A channel takes more than one request, or it would be of no use.
            *kept = request.map_err(text)?.map(|request| (request, greeting));
        }
        match self.outgoing.get_mut(&key) {
            Some(Outgoing::Open(channel, greeting)) => {
                if let Some((request, _)) = greeting
                    && request.test().map_err(text)?.is_some()
                {
                    *greeting = None;
                }
                Ok(Some(channel))
            }
            _ => Ok(None),
        }
    }
}

impl PendingConnection {
    fn heard(&mut self) -> Result<bool, ()> {
        if self.request.is_none() {
            let start = self.greeting.as_mut_ptr();
            let buffer = Buffer { start, len: GREETING, tag: 0, region: None };
            #[expect(unsafe_code, reason = "the greeting is kept until it has come")]
            // SAFETY: on the heap, and dropped after the channel.
            let request = unsafe { self.channel.irecv(&[buffer]) };
            self.request = request.map_err(|_| ())?;
        }
        let Some(request) = &self.request else { return Ok(false) };
        Ok(request.test().map_err(|_| ())?.is_some())
    }
}

#[expect(unsafe_code, reason = "the trait's are")]
impl Links for Mesh {
    type Request = Request;

    unsafe fn send(
        &mut self,
        to: u32,
        stream: u64,
        start: *const u8,
        len: usize,
    ) -> Result<Option<Request>, String> {
        let Some(channel) = self.opened(to, stream)? else { return Ok(None) };
        // SAFETY: passed on.
        unsafe { channel.isend(start, len, 0, None) }.map_err(|error| error.to_string())
    }
    unsafe fn receive(
        &mut self,
        from: u32,
        stream: u64,
        start: *mut u8,
        len: usize,
    ) -> Result<Option<Request>, String> {
        let Some(channel) = self.incoming.get(&(from, stream)) else { return Ok(None) };
        let buffer = Buffer { start, len, tag: 0, region: None };
        // SAFETY: passed on.
        unsafe { channel.irecv(&[buffer]) }.map_err(|error| error.to_string())
    }
    fn test(&mut self, request: &Request) -> Result<Option<usize>, String> {
        let sizes = request.test().map_err(|error| error.to_string())?;
        Ok(sizes.map(|Sizes { sizes, .. }| sizes[0]))
    }
}
