//! What a scheme decides when a host posts messages: how to split them and how each part
//! finds its way.
//!
//! One [`crate::Planner`] per host, made of the scheme's own [`Plan`]. The subflows of a message add up
//! to it exactly, and under one seed a subflow starts out with the same delay under every
//! scheme. Random positions in the NIC's list of queue pairs are the NIC's work.

use crate::enforce::Hashing;
use std::sync::Arc;
use weft_fabric::{Fabric, PathId, PathView};
use weft_units::{Draw, HostId, MessageId, Time, id, random};

/// A message that a host hands to its NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Post {
    /// Which: the source of its random numbers.
    pub message: MessageId,
    /// The receiving host.
    pub dst: HostId,
    /// Payload, in bytes.
    pub bytes: u64,
    /// Of which job it is; zero where there are none.
    pub job: u32,
    /// From which rank to which, numbered through all jobs; zeros where there are none.
    pub ranks: (u32, u32),
    /// The caller's own number for it, which all its subflows carry back.
    pub tag: u32,
}

/// How a packet finds its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Switches hash the flow's addresses and this entropy value (a UDP source port).
    Hashed(u16),
    /// Switches follow the path id.
    Pinned(PathId),
}

impl Route {
    /// The entropy value, or the number of the path id.
    pub fn number(self) -> u16 {
        match self {
            Route::Hashed(entropy) => entropy,
            Route::Pinned(path) => path.0,
        }
    }
}

id!(
    /// A queue pair that carries one subflow after the other, by the number that the planner of its
    /// host gave it: dense, from zero.
    pub struct QueuePairId
);

/// What carries a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A queue pair of its own.
    Own,
    /// One of those that stand to the receiver, for a chunk that its planner watches over.
    Chunk(Chunk),
    /// A persistent one. It has room for one subflow; [`Plan::next`] says when it has room again.
    Persistent {
        /// The queue pair.
        queue_pair: QueuePairId,
        /// It sends at no more than line rate over this. Never zero.
        share: u32,
        /// How many queue pairs carry subflows of a message side by side, the parts of its rate where
        /// a message has one. Never zero.
        beside: u32,
    },
}

impl Carrier {
    /// The queue pair, if it is persistent.
    pub fn persistent(self) -> Option<QueuePairId> {
        match self {
            Carrier::Own | Carrier::Chunk(_) => None,
            Carrier::Persistent { queue_pair, .. } => Some(queue_pair),
        }
    }
    /// The chunk, if it is one.
    pub fn chunk(self) -> Option<Chunk> {
        match self {
            Carrier::Chunk(chunk) => Some(chunk),
            Carrier::Own | Carrier::Persistent { .. } => None,
        }
    }
    /// How many times line rate is what it may send at.
    pub fn share(self) -> u32 {
        match self {
            Carrier::Own | Carrier::Chunk(_) => 1,
            Carrier::Persistent { share, .. } => share,
        }
    }
}

/// A chunk of a message that its planner watches over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The planner's own number for it, which [`FlowInfo`] carries back. Free again once it is sent.
    pub number: u32,
    /// The queue pair: one for each receiver, path and port. It may carry several chunks at a time.
    pub queue_pair: QueuePairId,
    /// By which port of the NIC it leaves; `None`: the NIC has one, or chooses.
    pub port: Option<u8>,
    /// After so long without an answer [`Plan::patience`] is asked. The transport's time-out, if that is sooner.
    pub time_out: Time,
}

/// One part of a message, as a queue pair carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subflow {
    /// The message that it is a part of.
    pub message: MessageId,
    /// The receiving host.
    pub dst: HostId,
    /// Payload of this part. The parts of a message add up to its size.
    pub bytes: u64,
    /// Which part of its message: 0, 1, ...
    pub part: u32,
    /// How its packets start out; a steering scheme may change it packet by packet.
    pub route: Route,
    /// Leave this much later than now.
    pub delay: Time,
    /// As the [`Post`] has it.
    pub tag: u32,
    /// Which queue pair.
    pub carrier: Carrier,
}

/// A flow under way: a subflow, or a part of it where accounting cuts subflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowInfo {
    /// The receiving host.
    pub dst: HostId,
    /// The way that its planner gave it last; of a chunk that is answered, the way of the copy that was, where that is
    /// known.
    pub route: Route,
    /// All its payload.
    pub bytes: u64,
    /// The persistent queue pair that it is on, if it is on one.
    pub queue_pair: Option<QueuePairId>,
    /// The number of the chunk that it is, if it is one ([`Carrier::Chunk`]).
    pub chunk: Option<u32>,
}

impl From<&Subflow> for FlowInfo {
    fn from(subflow: &Subflow) -> FlowInfo {
        let Subflow { dst, route, bytes, carrier, .. } = *subflow;
        let chunk = carrier.chunk().map(|chunk| chunk.number);
        FlowInfo { dst, route, bytes, queue_pair: carrier.persistent(), chunk }
    }
}

/// A flow under way, and how much of it is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveFlow {
    /// The flow.
    pub flow: FlowInfo,
    /// Payload that its receiver is not known to have.
    pub left: u64,
}

/// What the last acknowledgement of a chunk says beside that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkAnswer {
    /// The receiver asks that others go first: one of its ranks waits for a message that comes, and cannot use this one
    /// before.
    pub defers: bool,
    /// A switch has marked a packet: congestion experienced.
    pub marked: bool,
}

/// Why a flow asks for a new route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossSignal {
    /// The receiver saw a gap.
    Nack,
    /// Nothing came back for a retransmission time-out.
    TimeOut,
}

/// The part of a scheme at the NIC of one host. Posts go in, subflows come out, some at once and
/// some when the deadline has come. [`Unsplit`] is the plainest.
pub trait Plan {
    /// Takes a message; appends to `out` what can leave at once.
    fn post(&mut self, now: Time, post: Post, fabric: &Fabric, out: &mut Vec<Subflow>);

    /// When [`Plan::flush`] is due, if messages are waiting. It changes only in `post`, `flush`,
    /// `sent` and `on_loss`.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// Ends the batch: appends to `out` the subflows of every waiting message, in the order in
    /// which the messages were posted. Nothing if none waits.
    fn flush(&mut self, now: Time, fabric: &Fabric, out: &mut Vec<Subflow>) {
        let _ = (now, fabric, out);
    }

    /// A persistent queue pair has put the last packet of its subflow on the wire and has room: the
    /// next subflow for it. After `None` it waits until some other call has a subflow for it.
    fn next(&mut self, now: Time, queue_pair: QueuePairId, fabric: &Fabric) -> Option<Subflow> {
        let _ = (now, queue_pair, fabric);
        None
    }

    /// By which port of the NIC the chunk of that number leaves, if the planner chooses it. Asked after
    /// [`Plan::on_loss`] has given it another route.
    fn port(&self, chunk: u32) -> Option<u8> {
        let _ = chunk;
        None
    }

    /// The time-out of `flow`, a chunk, has passed. How much longer it may be out; `None`: it is lost.
    fn patience(&mut self, now: Time, flow: &FlowInfo, fabric: &Fabric) -> Option<Time> {
        let _ = (now, flow, fabric);
        None
    }

    /// `flow` is in trouble. Its new route; `None`: the old one.
    fn on_loss(
        &mut self,
        now: Time,
        flow: &FlowInfo,
        signal: LossSignal,
        fabric: &Fabric,
    ) -> Option<Route> {
        let _ = (now, flow, signal, fabric);
        None
    }

    /// A connection to `dst` has been made by `path` after the one before was lost: both ways lead somewhere, and what
    /// timed out there may have been answered by a path that is dead.
    fn works(&mut self, now: Time, dst: HostId, path: PathId, fabric: &Fabric) {
        let _ = (now, dst, path, fabric);
    }

    /// What is known of paths from now on. Before the first call nothing is known to be amiss. Schemes that
    /// are not told of all ([`crate::scheme::SchemeInfo::informed`]) hear before they begin which links are dead, and
    /// later on which of these are back.
    fn learn(&mut self, now: Time, view: &Arc<PathView>, fabric: &Fabric) {
        let _ = (now, view, fabric);
    }

    /// Whether flows under way are to be spread anew: [`Plan::rebalance`] is due, now. It changes
    /// only in `learn`, `on_loss` and `rebalance`.
    fn wants_rebalance(&self) -> bool {
        false
    }

    /// `flows` are all that this host has under way, in an order that does not depend on other
    /// hosts. Appends to `out` those that shall take another route, by their index, with the route.
    fn rebalance(
        &mut self,
        now: Time,
        flows: &[ActiveFlow],
        fabric: &Fabric,
        out: &mut Vec<(usize, Route)>,
    ) {
        let _ = (now, flows, fabric, out);
    }

    /// What came with the answer to `flow`, a chunk, where that may say anything: told before [`Plan::sent`].
    fn hear(&mut self, flow: &FlowInfo, answer: ChunkAnswer) {
        let _ = (flow, answer);
    }

    /// The last acknowledgement of `flow` is in. Appends to `out` what can leave now that was held back
    /// for that.
    fn sent(&mut self, now: Time, flow: &FlowInfo, fabric: &Fabric, out: &mut Vec<Subflow>) {
        let _ = (now, flow, fabric, out);
    }
}

/// What a planner is made from, beside its scheme.
#[derive(Clone, Copy, Debug)]
pub struct HostContext {
    /// The host whose planner it is.
    pub host: HostId,
    /// All randomness follows from it.
    pub seed: u64,
    /// Payload of a full packet, in bytes.
    pub mtu: u32,
    /// When subflows start.
    pub starts: Starts,
    /// Bytes that a flow may have sent before feedback can be expected: a bandwidth-delay product.
    pub bdp: u64,
    /// What switches make of addresses and ports, if hosts know.
    pub hashing: Option<Hashing>,
}

/// Every message leaves at once and whole, hashed under an entropy of its own: the planner of
/// all schemes that do nothing at the NIC.
#[derive(Clone, Debug)]
pub struct Unsplit {
    entropy: Draw,
    starts: Starts,
}

impl Unsplit {
    /// For one host.
    pub fn new(context: &HostContext) -> Unsplit {
        Unsplit { entropy: Draw::new(context.seed, "entropy"), starts: context.starts }
    }
    /// The entropy of `message`.
    #[inline]
    pub fn entropy(&self, message: MessageId) -> u16 {
        (self.entropy.at(u64::from(message.0), 0) >> 48) as u16
    }
}

impl Plan for Unsplit {
    fn post(&mut self, _: Time, post: Post, _: &Fabric, out: &mut Vec<Subflow>) {
        let Post { message, dst, bytes, tag, .. } = post;
        let (route, delay) = (Route::Hashed(self.entropy(message)), self.starts.delay(message, 0));
        let carrier = Carrier::Own;
        out.push(Subflow { message, dst, bytes, part: 0, route, delay, tag, carrier });
    }
}

/// The random start of every flow: a function of message and part, so that all schemes see
/// the same starts under one seed.
#[derive(Clone, Copy, Debug)]
pub struct Starts {
    draw: Draw,
    /// Every delay is below this; zero for none at all.
    jitter: Time,
}

impl Starts {
    /// Delays below `jitter`; none if it is zero.
    pub fn new(jitter: Time, seed: u64) -> Starts {
        Starts { draw: Draw::new(seed, "start-jitter"), jitter }
    }

    /// How much later than now `part` of `message` leaves.
    pub fn delay(self, message: MessageId, part: u32) -> Time {
        let bits = self.draw.at(u64::from(message.0), u64::from(part));
        Time(random::below(bits, self.jitter.0))
    }
}

impl<P: Plan> Plan for Box<P> {
    fn hear(&mut self, flow: &FlowInfo, answer: ChunkAnswer) {
        P::hear(self, flow, answer);
    }
    fn port(&self, chunk: u32) -> Option<u8> {
        P::port(self, chunk)
    }
    fn patience(&mut self, now: Time, flow: &FlowInfo, fabric: &Fabric) -> Option<Time> {
        P::patience(self, now, flow, fabric)
    }
    fn post(&mut self, now: Time, post: Post, fabric: &Fabric, out: &mut Vec<Subflow>) {
        P::post(self, now, post, fabric, out);
    }
    fn deadline(&self) -> Option<Time> {
        P::deadline(self)
    }
    fn flush(&mut self, now: Time, fabric: &Fabric, out: &mut Vec<Subflow>) {
        P::flush(self, now, fabric, out);
    }
    fn next(&mut self, now: Time, queue_pair: QueuePairId, fabric: &Fabric) -> Option<Subflow> {
        P::next(self, now, queue_pair, fabric)
    }
    fn on_loss(
        &mut self,
        now: Time,
        flow: &FlowInfo,
        signal: LossSignal,
        fabric: &Fabric,
    ) -> Option<Route> {
        P::on_loss(self, now, flow, signal, fabric)
    }
    fn works(&mut self, now: Time, dst: HostId, path: PathId, fabric: &Fabric) {
        P::works(self, now, dst, path, fabric);
    }
    fn learn(&mut self, now: Time, view: &Arc<PathView>, fabric: &Fabric) {
        P::learn(self, now, view, fabric);
    }
    fn wants_rebalance(&self) -> bool {
        P::wants_rebalance(self)
    }
    fn rebalance(
        &mut self,
        now: Time,
        flows: &[ActiveFlow],
        fabric: &Fabric,
        out: &mut Vec<(usize, Route)>,
    ) {
        P::rebalance(self, now, flows, fabric, out);
    }
    fn sent(&mut self, now: Time, flow: &FlowInfo, fabric: &Fabric, out: &mut Vec<Subflow>) {
        P::sent(self, now, flow, fabric, out);
    }
}
