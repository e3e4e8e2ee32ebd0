//! The planner of one host.

use super::links::{Link, MANY, Return, Sent, Span};
use super::queue::{Offer, Queue, Rest};
use super::receiver::{Port, Quartile, Receiver};
use super::ways::{Known, Network, Way, ports, usual};
use super::{Order, Twill};
use crate::enforce::PathRoutes;
use crate::plan::{
    Carrier, Chunk, ChunkAnswer, FlowInfo, HostContext, LossSignal, Plan, Post, QueuePairId, Route,
    Starts, Subflow, Unsplit,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use weft_fabric::{Fabric, PathId, PathView};
use weft_units::{HostId, SwitchId, Time};

/// Bytes on the wire that a packet has beside its payload, at the least (RoCE v2 in UDP, IPv4 and Ethernet).
const HEADERS: u64 = 64;
/// Bytes of an acknowledgement.
const ACK: u64 = 64;
/// The window of a receiver is a new one after so many idle round trips.
const IDLE: u64 = 4;
/// The window of a receiver does not grow where so many round trips of a lone chunk are queued; at one, it doubles in a
/// round trip.
const LONG_QUEUE: f64 = 4.0;
/// Of so many chunks the one with the least queue speaks for the receiver.
const BUNCH: u32 = 4;
/// A path is made up for what it has missed by no more chunks than this.
const MOST_MISSED: u64 = 4;
/// A bandwidth-delay product is so many chunks at the least.
const LEAST_BDP: u64 = 2;
/// Parts of packets have so much payload at least, in bytes.
const LEAST_CHUNK: u64 = 512;
/// Before a receiver has answered for the first time, time-outs are so much longer.
const PATIENCE: u64 = 4;
/// While nothing at all comes back from a receiver, its chunks time out one by one, each after twice as many time-outs
/// as the one before, but no more often than so.
const MOST_DOUBLED: u32 = 2;
/// Of what is out, no more than this part is there for the second time, unless something shows that it is lost.
const MOST_AGAIN: u64 = 8;
/// And not for more than so many time-outs.
const LONG: u64 = 4;
/// A chunk is looked at so often in the time for which it has been out, or once a round trip if that is less often.
const LOOKS: u64 = 16;

/// The planner of one host.
#[derive(Clone, Debug)]
pub struct Weaver {
    config: Twill,
    host: HostId,
    starts: Starts,
    mtu: u64,
    /// For jobs that go their own way.
    others: Unsplit,
    /// Payload of a chunk.
    chunk: u64,
    bdp: u64,
    routes: PathRoutes,
    /// The queue pair to a receiver by each path and port, and its route, which stays.
    queue_pairs: FxHashMap<(HostId, PathId, u8), (QueuePairId, Route)>,
    network: Network,
    receivers: FxHashMap<HostId, Receiver>,
    queue: Queue,
    under_way: Vec<UnderWay>,
    /// Places in `under_way` that are free.
    free: Vec<u32>,
    /// Chunks that have left, those that went again counted anew.
    sent: u64,
    /// Payload that is out, and what of it has left more than once.
    out: u64,
    again: u64,
    /// Payload that the NIC is taken to have, at `backlog_at`.
    backlog: f64,
    backlog_at: Time,
    /// The queue that the chunks of this host meet.
    usual: Quartile,
    /// A switch has marked what has just come back.
    is_marked: bool,
    /// When something came back last that had crossed the network, and how many chunks have timed out since, and when.
    heard_at: Time,
    silent: (u32, Time),
    flush_at: Option<Time>,
}

/// A chunk that is out.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    dst: HostId,
    /// Of which message it is, as the caller has it.
    tag: u32,
    /// Which of the ways to its leaf.
    way: u32,
    port: u8,
    sent: Sent,
    /// What the NIC had then, itself included.
    backlog: f64,
    /// It has left more than once.
    again: bool,
    /// How often it has timed out.
    time_outs: u32,
    /// The first copy, if it has timed out and the next took another way.
    first: Option<First>,
}

/// How a chunk left that has timed out.
#[derive(Clone, Copy, Debug)]
struct First {
    route: Route,
    way: u32,
    port: u8,
    sent: Sent,
    backlog: f64,
}

impl Twill {
    /// How much more than the `usual` queue is late: where queues are long, they differ by more.
    fn lateness(&self, base: Span, usual: Span) -> Span {
        (base * f64::from(self.late) / 100.0).max(usual)
    }
}

impl Weaver {
    pub(super) fn new(config: Twill, context: &HostContext) -> Weaver {
        let HostContext { host, mtu, starts, bdp, hashing, .. } = *context;
        let mtu = u64::from(mtu.max(1));
        Weaver {
            config,
            host,
            starts,
            mtu,
            others: Unsplit::new(context),
            chunk: config.chunk.unwrap_or(Twill::usual_chunk(bdp)).max(1).next_multiple_of(mtu),
            bdp,
            routes: PathRoutes::new(config.enforce, host, hashing),
            queue_pairs: FxHashMap::default(),
            network: Network::default(),
            receivers: FxHashMap::default(),
            queue: Queue::default(),
            under_way: Vec::new(),
            free: Vec::new(),
            sent: 0,
            out: 0,
            again: 0,
            backlog: 0.0,
            backlog_at: Time::ZERO,
            usual: Quartile::default(),
            is_marked: false,
            heard_at: Time::ZERO,
            silent: (0, Time::ZERO),
            flush_at: None,
        }
    }

    /// So many percent of a bandwidth-delay product.
    fn of_bdp(&self, percent: u32) -> f64 {
        self.bdp as f64 * f64::from(percent) / 100.0
    }
    /// Payload that may be out.
    fn most_out(&self) -> u64 {
        u64::from(self.config.most_out) * self.chunk
    }
    /// Whether as many chunks are out as may be. Where most are parts of packets, they are not what fills the network.
    fn is_out(&self) -> bool {
        let chunks = self.under_way.len() - self.free.len();
        chunks >= self.config.most_out as usize && self.out >= self.most_out() / 2
    }
    /// How long a byte of payload is on the wire.
    fn time_of_byte(&self, fabric: &Fabric) -> Span {
        let bytes = (self.mtu + HEADERS) as f64 / self.mtu as f64;
        8e12 * bytes / fabric.line_rate().as_bps() as f64
    }

    /// The window of `dst`, at first and at most: less where a host that is alone has less than its line rate.
    fn windows(&self, fabric: &Fabric, dst: HostId) -> [f64; 2] {
        let leaf = fabric.leaf_of(self.host);
        let above = fabric.share_above(SwitchId(leaf)) * fabric.hosts_of_leaf(leaf).len() as f64;
        let part = if leaf == fabric.leaf_of(dst) { 1.0 } else { above.min(1.0) };
        let part = part.max((LEAST_BDP * self.chunk) as f64 / self.bdp as f64);
        [self.config.window, self.config.most_window].map(|percent| self.of_bdp(percent) * part)
    }

    /// A receiver of which nothing is known.
    fn receiver(&mut self, fabric: &Fabric, dst: HostId) -> Receiver {
        let there = fabric.one_way(self.host, dst, self.chunk);
        let path = fabric.path_set(self.host, dst).get(0);
        let trace = fabric.trace(self.host, dst, path);
        let ends = [trace[0], trace[trace.len() - 1]];
        let ports = if ports(fabric) > 1 { ports(fabric) } else { 0 };
        // Who sends to many begins with each port as often, and who hears from many, too.
        let first = ((self.host.0 + dst.0) % u32::from(ports.max(1))) as u8;
        let windows = self.windows(fabric, dst);
        let number = self.network.queue();
        let port = |port: u8| Port {
            ends: ends.map(|link| self.network.link(port, link, fabric)),
            given: u64::from((port + ports - first) % ports),
        };
        Receiver {
            out: 0,
            window: windows[0],
            windows,
            base: there + fabric.one_way(dst, self.host, ACK),
            marked: 0.0,
            least: [Span::MAX; 2],
            in_bunch: 0,
            usual: Quartile::default(),
            number,
            queue: 0.0,
            deviation: 0.0,
            last: 0.0,
            heard_at: Time::ZERO,
            newest: 0,
            silent: (0, Time::ZERO),
            ports: (0..ports).map(port).collect(),
        }
    }

    /// Hands chunks to the NIC, as long as it has little and receivers may get more.
    fn pump(&mut self, now: Time, fabric: &Fabric, out: &mut Vec<Subflow>) {
        let time_of_byte = self.time_of_byte(fabric);
        let most = self.of_bdp(self.config.backlog);
        let gone = self.backlog_at.until(now).0 as f64 / time_of_byte;
        // No more than is out can be there: the NIC is never taken for slower than it is.
        self.backlog = (self.backlog - gone).clamp(0.0, self.out as f64);
        self.backlog_at = now;
        let mut queue = std::mem::take(&mut self.queue);
        let has_stopped = queue.offer(|rest, waiting| {
            if self.backlog >= most || self.is_out() {
                return Offer::Stop;
            }
            let post = rest.post;
            if !self.may_send(now, rest, fabric) {
                return Offer::Refused;
            }
            if rest.parts == 0 {
                rest.chunk = self.chunk_of(&post, waiting, fabric);
            }
            let bytes = rest.chunk.min(rest.left);
            let delay = match rest.parts {
                0 => self.starts.delay(post.message, 0),
                _ => Time::ZERO,
            };
            let (route, chunk) = self.send(now, &post, bytes, fabric);
            let Post { message, dst, tag, .. } = post;
            let carrier = Carrier::Chunk(chunk);
            out.push(Subflow { message, dst, bytes, part: rest.parts, route, delay, tag, carrier });
            rest.left -= bytes;
            rest.parts += 1;
            Offer::Taken
        });
        self.queue = queue;
        let wait = Time(((self.backlog - most).max(0.0) * time_of_byte) as u64 + 1);
        let pending = self.flush_at.filter(|at| *at > now);
        // Else it goes on when something comes back.
        let is_full = has_stopped && self.backlog >= most;
        self.flush_at = (is_full && !self.queue.is_empty()).then(|| pending.unwrap_or(now + wait));
    }

    /// The payload of the chunks of a message that begins now, one of so many that are `waiting`. Many messages load paths
    /// alike by themselves; few are cut so that each path has as many parts, of whole packets or, where each path has
    /// one, of less: parts of packets take less time at each switch.
    fn chunk_of(&mut self, post: &Post, waiting: usize, fabric: &Fabric) -> u64 {
        let Post { bytes, dst, .. } = *post;
        let Known { ways, .. } = self.network.ways(fabric, self.host, dst, self.config.rotate);
        let ways = ways.ways.len();
        let reached = || self.receivers.values().filter(|receiver| receiver.out > 0).count();
        if waiting > ways || waiting + reached() > ways {
            return self.chunk;
        }
        let ways = ways as u64;
        let parts = bytes.div_ceil(self.chunk).max(1).next_multiple_of(ways);
        let part = bytes.div_ceil(parts);
        let part =
            if parts == ways { part.max(LEAST_CHUNK) } else { part.next_multiple_of(self.mtu) };
        part.min(self.chunk)
    }

    /// Whether a chunk of a message may leave for its receiver.
    fn may_send(&mut self, now: Time, rest: &Rest, fabric: &Fabric) -> bool {
        let dst = rest.post.dst;
        if !self.receivers.contains_key(&dst) {
            let receiver = self.receiver(fabric, dst);
            self.receivers.insert(dst, receiver);
        }
        let left = self.most_out().saturating_sub(self.out);
        let receiver = self.receivers.get_mut(&dst).expect("it is there");
        if rest.parts == 0 && receiver.out == 0 && receiver.heard_at + receiver.base * IDLE < now {
            receiver.window = receiver.windows[0];
            (receiver.least, receiver.in_bunch) = ([Span::MAX; 2], 0);
        }
        // The more is out, the less may be out to each: a few that are slow leave something to others (dynamic thresholds,
        // Choudhury and Hahne 1998).
        let most = receiver.window.min(left as f64);
        receiver.out == 0 || !rest.defers && (receiver.out as f64) < most
    }

    /// Sends a chunk of `bytes`: by which route, and as which.
    fn send(&mut self, now: Time, post: &Post, bytes: u64, fabric: &Fabric) -> (Route, Chunk) {
        let Post { dst, tag, .. } = *post;
        self.out += bytes;
        self.backlog += bytes as f64;
        let receiver = self.receivers.get_mut(&dst).expect("it is known");
        receiver.out += bytes;
        let (base, has_answered) = (receiver.base, receiver.has_answered());
        let way = self.choose(now, dst, None, fabric);
        let backlog = self.backlog;
        let sent = self.next(now, bytes);
        let (queue_pair, route, port) = self.take(dst, way, &sent, backlog, fabric);
        let (again, time_outs, first) = (false, 0, None);
        let chunk = UnderWay { dst, tag, way, port, sent, backlog, again, time_outs, first };
        let number = self.free.pop().unwrap_or(self.under_way.len() as u32);
        match self.under_way.get_mut(number as usize) {
            Some(place) => *place = chunk,
            None => self.under_way.push(chunk),
        }
        // By then it is known whether it is the last, and perhaps how long answers take.
        let [_, (mut time_out, _), _] = self.time_outs(&chunk, fabric);
        if time_out < Time::MAX && !has_answered {
            let own = Time((backlog * self.time_of_byte(fabric)) as u64);
            time_out = time_out.min(own + base * 2);
        }
        let port = (ports(fabric) > 1).then_some(port);
        (route, Chunk { number, queue_pair, port, time_out })
    }

    /// A chunk of `bytes` leaves now.
    fn next(&mut self, since: Time, bytes: u64) -> Sent {
        self.sent += 1;
        Sent { number: self.sent, since, bytes }
    }

    /// The way to `dst` whose turn it is, of those of which nothing bad is known but `not`; else of those that are late, the
    /// one that is least. One that is known to be dead only if all others are.
    fn choose(&mut self, now: Time, dst: HostId, not: Option<u32>, fabric: &Fabric) -> u32 {
        let chunk = self.chunk;
        let watches = self.config.late > 0;
        let goes_again = not.is_some();
        let receiver = self.receivers.get_mut(&dst).expect("it is known");
        let some_are_dead = self.network.knows();
        let Known { ways, links, queues } =
            self.network.ways(fabric, self.host, dst, self.config.rotate);
        let others = || ways.ways.iter().enumerate().filter(|(at, _)| not != Some(*at as u32));
        let turn = |way: &Way| {
            let port = receiver.ports.get(usize::from(way.port));
            (port.map_or(0, |port| port.given), way.given)
        };
        let trouble = |(at, way): (usize, &Way), least: Span| {
            let (mut barred, mut late) = (0, Time::ZERO);
            for link in ways.links(at).iter().chain(receiver.ends(way.port)) {
                let link = &links[*link as usize];
                // The sum: all ways by a port of a NIC share its link.
                barred += if goes_again { link.doubt(now) } else { link.barred(now) };
                if watches {
                    let overdue = link.overdue(now, queues, least);
                    late = late.max(link.lateness(now, chunk, overdue));
                }
            }
            (barred, late)
        };
        let is_dead = |at: usize| {
            let all = || ways.links(at).iter().chain(receiver.ends(ways.ways[at].port));
            some_are_dead && all().any(|link| links[*link as usize].is_dead)
        };
        let next = others().min_by_key(|(at, way)| (is_dead(*at), turn(way)));
        // The next one in turn is in no trouble as a rule, and others need no look.
        let next = match next.filter(|next| trouble(*next, 0.0) != (0, Time::ZERO)) {
            None => next,
            Some(_) => {
                let least = ways.waits(links, now);
                others()
                    .min_by_key(|other| (is_dead(other.0), trouble(*other, least), turn(other.1)))
            }
        };
        let stays = not.map(|not| not as usize).filter(|not| !is_dead(*not));
        let at = match next {
            Some((at, _)) if is_dead(at) => stays.unwrap_or(at),
            next => next.map_or(0, |(at, _)| at),
        };
        let most = ways.ways.iter().map(|way| way.given).max().unwrap_or(0);
        let way = &mut ways.ways[at];
        give(&mut way.given, most, chunk);
        let most = receiver.ports.iter().map(|port| port.given).max().unwrap_or(0);
        if let Some(port) = receiver.ports.get_mut(usize::from(way.port)) {
            give(&mut port.given, most, chunk);
        }
        at as u32
    }

    /// A chunk takes a way to `dst` while the NIC has `backlog`: on which queue pair, by which route and port?
    fn take(
        &mut self,
        dst: HostId,
        way: u32,
        sent: &Sent,
        backlog: f64,
        fabric: &Fabric,
    ) -> (QueuePairId, Route, u8) {
        let before = backlog * self.time_of_byte(fabric);
        let receiver = &self.receivers[&dst];
        let base = receiver.base.0 as f64;
        let Known { ways, links, .. } =
            self.network.ways(fabric, self.host, dst, self.config.rotate);
        let due = sent.since + Time((before + base) as u64);
        let (late, queues) = (self.config.lateness(base, 0.0), [ways.queue, receiver.number]);
        let taken = ways.ways[way as usize];
        for link in ways.links(way as usize).iter().chain(receiver.ends(taken.port)) {
            links[*link as usize].put(sent, due, late, queues);
        }
        let next = QueuePairId(self.queue_pairs.len() as u32);
        let known = self.queue_pairs.entry((dst, taken.path, taken.port));
        let (queue_pair, route) =
            *known.or_insert_with(|| (next, self.routes.route(fabric, dst, taken.path)));
        (queue_pair, route, taken.port)
    }

    /// How long `chunk` may be out, as far as is known now, and how much of that is beyond what it should be; the same
    /// if it is the last, so that nothing waits to leave that would show that it is lost, nor for the NIC: it goes
    /// again after a round trip more, as a tail loss probe does (RFC 8985, section 7), and after twice as many each
    /// time (RFC 9002, section 6.2); and the same again where it is known how long answers take.
    fn time_outs(&mut self, chunk: &UnderWay, fabric: &Fabric) -> [(Time, Time); 3] {
        if self.config.time_out == 0 {
            return [(Time::MAX, Time::MAX); 3];
        }
        let receiver = &self.receivers[&chunk.dst];
        let base = receiver.base.0 as f64;
        let Known { ways, links, queues } =
            self.network.ways(fabric, self.host, chunk.dst, self.config.rotate);
        let usual = usual(queues, [ways.queue, receiver.number]).max(self.usual.value());
        let seen = receiver.queue.max(receiver.last);
        let queue = usual.max(seen);
        let on_way = ways.links(chunk.way as usize).iter();
        let slowest = on_way.map(|link| links[*link as usize].last_excess()).fold(0.0, Span::max);
        let own = chunk.backlog * self.time_of_byte(fabric);
        let times = f64::from(1 << chunk.time_outs.min(MOST_DOUBLED));
        let most = base * f64::from(self.config.time_out) / 100.0;
        let last = match receiver.has_answered() {
            true => most.min(own + base * times),
            false => most,
        };
        let margin = 4.0 * receiver.deviation;
        let known = match chunk {
            // What left later is back (RACK, RFC 8985, section 6.2).
            _ if receiver.newest > chunk.sent.number => (queue, last),
            // Whoever goes again meets what is there now.
            UnderWay { again: true, .. } if receiver.has_answered() => {
                (seen, own + (base + receiver.queue) * times)
            }
            _ => (queue, last + margin),
        };
        [(queue, most + margin), (queue, last + margin), known].map(|(queue, beyond)| {
            let of_path = slowest - (queue - usual).max(0.0);
            (Time((base + queue + beyond.max(2.0 * of_path)) as u64), Time(beyond as u64))
        })
    }

    /// A chunk is back: what that says of its receiver, and of the links that it took.
    fn learn_from(&mut self, now: Time, chunk: &UnderWay, undone: bool, fabric: &Fabric) {
        let own = chunk.backlog * self.time_of_byte(fabric);
        let receiver = self.receivers.get_mut(&chunk.dst).expect("it is known");
        let base = receiver.base.0 as f64;
        let queue = (chunk.sent.since.until(now).0 as f64 - own - base).max(0.0);
        receiver.estimate(queue);
        let Known { ways, links, queues } =
            self.network.ways(fabric, self.host, chunk.dst, self.config.rotate);
        let on_way = ways.links(chunk.way as usize);
        if !on_way.is_empty() {
            (self.heard_at, self.silent.0) = (now, 0);
        }
        if chunk.again {
            for link in on_way.iter().chain(receiver.ends(chunk.port)) {
                links[*link as usize].take_again(now, &chunk.sent);
            }
            return;
        }
        receiver.least[0] = receiver.least[0].min(queue);
        receiver.in_bunch += 1;
        let least = receiver.least[0].min(receiver.least[1]);
        let share = ((LONG_QUEUE - least / base) / (LONG_QUEUE - 1.0)).clamp(0.0, 1.0);
        if receiver.in_bunch == BUNCH {
            receiver.least = [Span::MAX, receiver.least[0]];
            receiver.in_bunch = 0;
        }
        queues[ways.queue as usize] = ways.learn(chunk.way as usize, queue);
        receiver.usual.learn(queue);
        queues[receiver.number as usize] = receiver.usual.value();
        let usual = usual(queues, [ways.queue, receiver.number]);
        receiver.resize(chunk.sent.bytes, share, self.is_marked, self.chunk);
        let back = Return {
            now,
            sent: chunk.sent,
            took: base + queue,
            excess: queue - usual,
            late: self.config.lateness(base, usual),
            chunk: self.chunk as f64,
            undone,
        };
        let on_way = ways.links(chunk.way as usize);
        if !on_way.is_empty() {
            self.usual.learn(queue);
        }
        for (place, link) in on_way.iter().enumerate() {
            // Links before the last one lead elsewhere, too.
            let is_last = place + 1 == on_way.len();
            links[*link as usize].judge(&back, if is_last { 1 } else { MANY });
        }
        for link in receiver.ends(chunk.port) {
            links[*link as usize].judge(&back, MANY);
        }
    }

    /// Calls `each` with every link of the way that `chunk` takes.
    fn each_link(&mut self, chunk: &UnderWay, fabric: &Fabric, mut each: impl FnMut(&mut Link)) {
        let ends = self.receivers[&chunk.dst].ends(chunk.port);
        let Known { ways, links, .. } =
            self.network.ways(fabric, self.host, chunk.dst, self.config.rotate);
        for link in ways.links(chunk.way as usize).iter().chain(ends) {
            each(&mut links[*link as usize]);
        }
    }
}

/// A chunk takes something of which the others have had `most`: that is made up for what it has missed, but for some.
fn give(given: &mut u64, most: u64, chunk: u64) {
    *given = (*given).max(most.saturating_sub(MOST_MISSED * chunk)) + chunk;
}

impl Plan for Weaver {
    fn post(&mut self, now: Time, post: Post, fabric: &Fabric, out: &mut Vec<Subflow>) {
        if self.config.jobs.is_some_and(|jobs| post.job >= jobs) {
            return self.others.post(now, post, fabric, out);
        }
        let alone = Time((post.bytes as f64 * self.time_of_byte(fabric)) as u64);
        match self.config.order {
            Order::Deadline => self.queue.push(now, now + alone, post),
            Order::Oldest => self.queue.push(now, now, post),
            Order::Turn => self.queue.push(Time::ZERO, Time::ZERO, post),
        }
        self.pump(now, fabric, out);
    }
    fn deadline(&self) -> Option<Time> {
        self.flush_at
    }
    fn flush(&mut self, now: Time, fabric: &Fabric, out: &mut Vec<Subflow>) {
        self.pump(now, fabric, out);
    }

    fn hear(&mut self, flow: &FlowInfo, answer: ChunkAnswer) {
        let Some(number) = flow.chunk else { return };
        let chunk = self.under_way[number as usize];
        if self.config.defer {
            self.queue.defer(chunk.tag, answer.defers);
        }
        self.is_marked = self.config.marks && answer.marked;
    }

    fn sent(&mut self, now: Time, flow: &FlowInfo, fabric: &Fabric, out: &mut Vec<Subflow>) {
        let Some(number) = flow.chunk else { return };
        let chunk = self.under_way[number as usize];
        self.free.push(number);
        self.out -= chunk.sent.bytes;
        self.again -= if chunk.again { chunk.sent.bytes } else { 0 };
        let receiver = self.receivers.get_mut(&chunk.dst).expect("it is known");
        receiver.out -= chunk.sent.bytes;
        (receiver.heard_at, receiver.silent.0) = (now, 0);
        receiver.newest = receiver.newest.max(chunk.sent.number);
        match chunk.first.filter(|first| first.route == flow.route) {
            None => self.learn_from(now, &chunk, false, fabric),
            // The time-out was wrong (Eifel, RFC 3522).
            Some(First { way, port, sent, backlog, .. }) => {
                self.each_link(&chunk, fabric, |link| link.take(&chunk.sent));
                let first = UnderWay { way, port, sent, backlog, again: false, ..chunk };
                self.learn_from(now, &first, true, fabric);
            }
        }
        self.pump(now, fabric, out);
    }

    fn works(&mut self, now: Time, dst: HostId, path: PathId, fabric: &Fabric) {
        let Known { ways, links, .. } =
            self.network.ways(fabric, self.host, dst, self.config.rotate);
        for at in (0..ways.ways.len()).filter(|at| ways.ways[*at].path == path) {
            ways.links(at).iter().for_each(|link| links[*link as usize].works(now));
        }
    }

    fn learn(&mut self, _: Time, view: &Arc<PathView>, fabric: &Fabric) {
        self.network.learn(view, fabric);
    }

    fn port(&self, chunk: u32) -> Option<u8> {
        Some(self.under_way[chunk as usize].port)
    }

    fn patience(&mut self, now: Time, flow: &FlowInfo, fabric: &Fabric) -> Option<Time> {
        if self.config.time_out == 0 {
            return None;
        }
        let chunk = self.under_way[flow.chunk? as usize];
        let [usual, last, known] = self.time_outs(&chunk, fabric);
        // If time-outs are wrong, little goes again in vain.
        let is_little = self.again * MOST_AGAIN < self.out.max(self.bdp);
        let (time_out, beyond) = match self.queue.is_empty() {
            true if is_little => known,
            true => last,
            false => usual,
        };
        // No probe while what left before it by its links still comes back: its turn comes, too (RFC 6298, rule 5.3).
        let mut progress = Time::MAX;
        self.each_link(&chunk, fabric, |link| progress = progress.min(link.progress(&chunk.sent)));
        let progress = if progress == Time::MAX { Time::ZERO } else { progress };
        let mut at = (chunk.sent.since + time_out).max(progress + beyond);
        at = at.min(chunk.sent.since + usual.0);
        let receiver = self.receivers.get_mut(&chunk.dst).expect("it is known");
        let base = receiver.base;
        if at <= now && receiver.heard_at <= chunk.sent.since {
            // Many may be waiting for the same receiver, or for all: it is not the path.
            let all = self.heard_at <= chunk.sent.since;
            let patience = if receiver.has_answered() { 1 } else { PATIENCE };
            let silent = if all { &mut self.silent } else { &mut receiver.silent };
            let (times, last) = *silent;
            at = chunk.sent.since.max(last) + time_out * (patience << times.min(MOST_DOUBLED));
            if at <= now {
                *silent = (times + 1, now);
            }
        }
        // What is left of a failure does not wait for good.
        let is_proved = chunk.again || receiver.newest > chunk.sent.number;
        if !is_proved && !is_little {
            at = at.max(chunk.sent.since + time_out * LONG);
        }
        // Looks again soon: what has come back by then says more. Where nothing does, there may be many, and for long.
        let soon = base.max(Time(chunk.sent.since.until(now).0 / LOOKS));
        (at > now).then(|| now.until(at).min(soon))
    }

    fn on_loss(
        &mut self,
        now: Time,
        flow: &FlowInfo,
        signal: LossSignal,
        fabric: &Fabric,
    ) -> Option<Route> {
        let number = flow.chunk? as usize;
        let chunk = self.under_way[number];
        let size = self.chunk as f64;
        let is_time_out = signal == LossSignal::TimeOut;
        let receiver = &self.receivers[&chunk.dst];
        let base = receiver.base.0 as f64;
        let of_receiver = receiver.number;
        let Known { ways, queues, .. } =
            self.network.ways(fabric, self.host, chunk.dst, self.config.rotate);
        let is_bad = !is_time_out && usual(queues, [ways.queue, of_receiver]) < base;
        self.each_link(&chunk, fabric, |link| match is_time_out || is_bad {
            true => link.lose(now, &chunk.sent, size, is_bad),
            false => link.take(&chunk.sent),
        });
        let way = match is_time_out {
            true => self.choose(now, chunk.dst, Some(chunk.way), fabric),
            // What came after it came by the same path.
            false => chunk.way,
        };
        let sent = self.next(now, chunk.sent.bytes);
        self.again += if chunk.again { 0 } else { sent.bytes };
        let (_, route, port) = self.take(chunk.dst, way, &sent, 0.0, fabric);
        let UnderWay { way: old, port: old_port, sent: old_sent, backlog, .. } = chunk;
        let first = First { route: flow.route, way: old, port: old_port, sent: old_sent, backlog };
        let first = if chunk.again { chunk.first } else { Some(first) };
        let first = first.filter(|first| first.route != route);
        let time_outs = chunk.time_outs + u32::from(is_time_out);
        self.under_way[number] =
            UnderWay { way, port, sent, backlog: 0.0, again: true, time_outs, first, ..chunk };
        Some(route)
    }
}
