//! Receiving halves: frames in, "clear to send" and acknowledgements out.

use super::connection::{Broken, Connection, Held, Role, Told};
use super::room::is_fault;
use super::{Engine, rdma, read};
use crate::api::Inbox;
use crate::half::receiver::RecvHalf;
use crate::half::sender::TooLarge;
use crate::memory::Span;
use crate::request::{ChannelState, Status};
use crate::stream::inflow::Sink;
use crate::wire::{ChannelKey, Header, Home, Kind, Reason, Slot, WireError};
use crate::{CommError, Sizes, tcp};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a receiver may have to say and not be rid of.
const MOST_TO_SAY: usize = 64 << 10;
/// An acknowledgement is held back, for the next announcement or acknowledgement to take it along, while other
/// receives are under way, or where the sender has a copy: for so many bytes, and for so long. Each that goes
/// alone costs a system call here, one at the sender, and in between a packet.
const HELD: u64 = 256 << 10;
const LONGEST_HELD: Duration = Duration::from_micros(100);
const LONGEST_COPIED: Duration = Duration::from_millis(1);
/// While the sender has so many buffers that nothing has filled, further ones are announced as many at a time; while it
/// has any, those that follow each other so soon go together.
const ENOUGH: u64 = 4;
const SOON: Duration = Duration::from_micros(10);
/// Where the sender does not wait for them, announcements go with acknowledgements, or as many at a time.
const MANY: u64 = 64;
/// Channels that are remembered when they are closed, so that late lanes do not open them again.
const MOST_CLOSED: usize = 4_096;

/// A listener.
pub(super) struct Listening {
    pub(super) key: ChannelKey,
    pub(super) inbox: Arc<Inbox>,
}

/// A receiving half.
pub(super) struct Receiving {
    pub(super) from: Ipv4Addr,
    /// The endpoint of the sender.
    pub(super) home: Home,
    pub(super) key: ChannelKey,
    pub(super) state: Arc<ChannelState>,
    pub(super) half: RecvHalf<Arc<Status>>,
    /// Connections, by lane.
    pub(super) lanes: BTreeMap<u16, usize>,
    /// The lane that was heard of last.
    pub(super) control: u16,
    /// Whether data comes by RDMA.
    pub(super) roce: bool,
    /// Since when its device has refused queue pairs, and why.
    pub(super) refuses: Option<(Instant, String)>,
    /// It waits to be told.
    pub(super) listed: bool,
    /// When what waits is announced.
    pub(super) announces: Option<Instant>,
    /// Somebody may wait for an acknowledgement that is held back.
    pub(super) awaited: bool,
    /// When the peer was last known to live, or was first waited for.
    pub(super) alive: Instant,
    /// When its process last said something, or was first waited for.
    pub(super) spoke: Instant,
    /// Connections with a frame that waits for its buffer where it is.
    pub(super) stays: Vec<usize>,
    /// Why nothing more comes, where there may be something that is not received; and the lanes over which that
    /// was said: over others something may be on its way.
    pub(super) gone: Option<CommError>,
    pub(super) left: BTreeSet<u16>,
    /// It is over, and only waits to be closed.
    pub(super) over: bool,
}

impl Receiving {
    /// Whether its sender is this endpoint, and it has no connection from there. Who is known by another
    /// address here than there cannot be asked.
    pub(super) fn misses(&self, home: Home) -> bool {
        let here = self.home == home && *home.address.ip() == self.from;
        here && self.lanes.is_empty() && !self.over && self.gone.is_none()
    }
    /// What is not announced goes with the next acknowledgement.
    fn announces_along(&self) -> bool {
        self.half.is_unhurried() && self.half.unannounced() < MANY
    }
    pub(super) fn fail_all(&mut self) {
        let (count, all) = (self.half.len(), self.half.take_all());
        self.state.end(count);
        all.iter().for_each(|status| status.fail());
    }
}

/// An announcement of buffers that the sender may not have heard.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Announced {
    /// When it is looked at.
    pub(super) due: Instant,
    token: usize,
    /// What the sender's system had acknowledged at the last look.
    acknowledged: Option<(u64, u32)>,
}

/// What comes over a lane.
struct Taking<'a> {
    half: &'a mut RecvHalf<Arc<Status>>,
    state: &'a ChannelState,
    lane: u16,
    bytes: u64,
    bye: Option<Header>,
    /// It wants to hear something.
    asks: bool,
    /// What comes may come over another lane, too: who sends it watches the time.
    repeats: bool,
    /// Some of it the sender has no copy of.
    wanted: bool,
    /// What has no buffer is not left to the system.
    hurries: bool,
    /// Data comes by RDMA.
    roce: bool,
    /// Lanes that have begun to bring what has come now, and receives that are over since.
    late: Vec<u16>,
    over: Vec<(Arc<Status>, Sizes)>,
}

impl Sink for Taking<'_> {
    fn begin(&mut self, header: &Header) -> Result<Span, WireError> {
        if header.eager && self.roce {
            // Its buffer may be where only devices write.
            return Err(WireError::Nonsense("an eager frame over RoCE"));
        }
        self.half.handle_data(self.lane, header)
    }
    fn may_stay(&self, header: &Header) -> bool {
        header.eager && !self.hurries && self.half.is_empty()
    }
    fn end(&mut self, header: &Header, _: &[u8]) -> Result<(), WireError> {
        match header.kind {
            Kind::Data => {
                self.bytes += u64::from(header.len);
                self.repeats |= header.repeats;
                self.wanted |= !header.copied;
                let before = self.half.len();
                let ended = self.half.handle_body(self.lane, header)?;
                // The application may go on as soon as it sees a status: first make room.
                self.state.end(before - self.half.len());
                self.late.extend(ended.late);
                match ended.over {
                    Some((status, sizes)) if self.late.is_empty() => status.finish(&sizes),
                    // First its memory must be left alone.
                    over => self.over.extend(over),
                }
            }
            Kind::Request => self.half.handle_request(header.total),
            Kind::Ping => self.asks |= header.slot == 1,
            Kind::Bye => self.bye = Some(*header),
            _ => return Err(WireError::Nonsense("a sender does not say that")),
        }
        Ok(())
    }
}

impl Engine {
    pub(super) fn receive(
        &mut self,
        channel: u64,
        mut buffers: Vec<(Span, Slot)>,
        status: Arc<Status>,
    ) {
        let number = self.receivers.get(&channel).copied();
        let Some((number, receiving)) =
            number.and_then(|number| Some((number, self.receiving.get_mut(number)?)))
        else {
            return status.fail();
        };
        if receiving.over {
            receiving.state.end(1);
            return status.fail();
        }
        let nics = self.nics.as_ref().filter(|_| receiving.roce);
        if let Err(error) = rdma::lend_receive(nics, &mut buffers, &status) {
            receiving.state.end(1);
            self.fail_receiving(number, error);
            return status.fail();
        }
        if receiving.half.is_empty() {
            (receiving.alive, receiving.spoke) = (self.now, self.now);
        }
        status.note(|notes| notes.peer = Some(receiving.from));
        // `Fate::begin` has counted it, so there is room.
        let taken = receiving.half.post(&buffers, status);
        debug_assert!(taken);
        for token in receiving.stays.drain(..) {
            if let Some(connection) = self.connections.get_mut(&token)
                && !std::mem::replace(&mut connection.queued, true)
            {
                self.ready.push_back(token);
            }
        }
        let before = receiving.half.len();
        #[expect(unsafe_code, reason = "what has come is put where it belongs")]
        // SAFETY: the memory stays until the request is done, by the contract of `irecv`.
        let here = unsafe { receiving.half.fill_early() };
        if let Some((status, sizes)) = here {
            receiving.state.end(before - receiving.half.len());
            status.finish(&sizes);
        }
        self.end_where_over(number);
        self.list_receiving(number);
    }

    /// Fails a half for which something has come that does not fit, or which waits for more than is here of a
    /// sender that has gone.
    fn end_where_over(&mut self, number: u32) {
        let Some(receiving) = self.receiving.get_mut(number) else { return };
        if let Some(TooLarge { size, room }) = receiving.half.too_large() {
            let slot = Reason::TooLarge as u8;
            let bye = Header { slot, offset: room, total: size, ..Header::new(Kind::Bye) };
            let error = said_bye(receiving.from, &bye);
            receiving.state.fail(error);
            self.end_receiving(number, Some(bye));
        } else if !(receiving.half.has_early() && receiving.half.is_empty())
            && receiving.lanes.keys().all(|lane| receiving.left.contains(lane))
            && let Some(error) = receiving.gone.take()
        {
            self.fail_receiving(number, error);
        }
    }

    /// Nothing more comes from its sender: it fails when all is received that has come.
    pub(super) fn leave_receiving(&mut self, number: u32, error: CommError) {
        let Some(receiving) = self.receiving.get_mut(number) else { return };
        receiving.gone.get_or_insert(error);
        self.end_where_over(number);
    }

    pub(super) fn list_receiving(&mut self, number: u32) {
        if let Some(receiving) = self.receiving.get_mut(number)
            && !receiving.listed
        {
            receiving.listed = true;
            self.to_tell.push(number);
        }
    }

    /// Says which buffers there are, over the lane that was heard of last, if what it says gets through.
    pub(super) fn tell(&mut self, number: u32) {
        let Some(receiving) = self.receiving.get_mut(number) else { return };
        receiving.listed = false;
        let lanes = &receiving.lanes;
        let is_heard = |token: &&usize| self.connections.get(*token).is_some_and(|one| !one.mute);
        // Where none is heard, it goes on until there is a new one.
        let Some(&token) = lanes
            .get(&receiving.control)
            .filter(is_heard)
            .or_else(|| lanes.values().find(is_heard))
            .or_else(|| lanes.values().next())
        else {
            return;
        };
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let (unfilled, unannounced) = (receiving.half.unfilled(), receiving.half.unannounced());
        if receiving.announces_along() {
            return;
        }
        if unfilled > 0 && unannounced < ENOUGH && unannounced > 0 {
            if unfilled >= ENOUGH {
                // What fills one of them comes back here.
                return;
            }
            let waits = receiving.announces.is_some();
            let due = *receiving.announces.get_or_insert(self.now + SOON);
            if due > self.now {
                if !waits {
                    self.soon.push_back((due, number));
                }
                return;
            }
        }
        if let Some(next) = held(connection, &receiving.half) {
            acknowledge(connection, next);
        }
        if let Err(broken) = self.announce(token, number) {
            self.lose(token, &broken);
        }
    }

    /// Says which buffers there are, and what else waits to be said, over a connection.
    fn announce(&mut self, token: usize, number: u32) -> Result<(), Broken> {
        let Some(connection) = self.connections.get_mut(&token) else { return Ok(()) };
        let Some(receiving) = self.receiving.get_mut(number) else { return Ok(()) };
        receiving.announces = None;
        let mut some = false;
        while connection.voice().len() < MOST_TO_SAY
            && let Some((group, more, slots)) = receiving.half.poll_clear()
        {
            slots.encode(group, more, connection.voice());
            some = true;
        }
        connection.write_small()?;
        if some && receiving.lanes.len() > 1 && !std::mem::replace(&mut connection.watched, true) {
            self.watch_announced(token, Duration::ZERO, None);
        }
        Ok(())
    }

    fn watch_announced(
        &mut self,
        token: usize,
        answer: Duration,
        acknowledged: Option<(u64, u32)>,
    ) {
        let patience = self.config.patience(0);
        let due = self.now + answer.clamp(patience / 8, patience);
        self.announced.push(Reverse(Announced { due, token, acknowledged }));
    }

    /// Says again over all other lanes what the sender's system does not acknowledge: data and answers take paths
    /// of their own, and those of the answers may be dead, of more than one.
    pub(super) fn look_at_announced(&mut self) {
        while self.announced.peek().is_some_and(|it| it.0.due <= self.now)
            && let Some(Reverse(Announced { token, acknowledged, .. })) = self.announced.pop()
        {
            // Where it is lost, all has been said again.
            let Some(connection) = self.connections.get_mut(&token) else { continue };
            let Role::Receive { channel: number, .. } = connection.role else { continue };
            let Some(receiving) = self.receiving.get_mut(number) else { continue };
            connection.watched = false;
            let unsure = receiving.half.is_unsure();
            let life = if unsure { tcp::life(&connection.stream) } else { None };
            let Some(life) = life.filter(|life| life.unanswered) else { continue };
            if life.taken.is_none() || life.taken != acknowledged {
                connection.watched = true;
                self.watch_announced(token, life.answer, life.taken);
                continue;
            }
            connection.mute = true;
            self.announce_again(number);
        }
    }

    /// Says over each lane that is heard what the sender may not know of; where none is, over a new one.
    fn announce_again(&mut self, number: u32) {
        self.forget_told(number);
        let Some(receiving) = self.receiving.get(number) else { return };
        let mut heard: Vec<usize> = receiving.lanes.values().copied().collect();
        let connections = &mut self.connections;
        heard.retain(|token| connections.get_mut(token).is_some_and(Connection::may_be_heard));
        for token in heard {
            self.forget_told(number);
            if let Err(broken) = self.announce(token, number) {
                self.lose(token, &broken);
            }
        }
    }

    /// What was announced, and perhaps not heard, is announced again.
    fn forget_told(&mut self, number: u32) {
        if let Some(receiving) = self.receiving.get_mut(number) {
            receiving.half.forget_told();
            self.list_receiving(number);
        }
    }

    /// Reads and acknowledges for a while.
    pub(super) fn turn_receive(&mut self, token: usize, number: u32, lane: u16) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let Some(receiving) = self.receiving.get_mut(number) else { return };
        let Receiving { half, state, roce, .. } = receiving;
        let roce = *roce;
        if let Some(link) = connection.link.as_ref().filter(|link| link.has_come()) {
            // Before anybody knows what it was, and asks for it to be flushed.
            state.came_by(link.nic());
        }
        let expected = half.next_frame(lane);
        let (late, over) = (Vec::new(), Vec::new());
        let (asks, repeats, wanted) = Default::default();
        let stayed = connection.inflow.stays();
        let hurries = std::mem::take(&mut connection.hurries);
        let (bytes, bye) = (0, None);
        let mut taking = Taking {
            half,
            state,
            lane,
            bytes,
            bye,
            asks,
            repeats,
            wanted,
            hurries,
            roce,
            late,
            over,
        };
        let mut result = rdma::take(connection, &mut taking, Some(expected))
            .and_then(|came| Ok(came + read(connection, &mut taking)?));
        let Taking { bytes, bye, asks, repeats, wanted, late, over, .. } = taking;
        for lane in late {
            let token = receiving.lanes.get(&lane).copied();
            if let Some(other) = token.and_then(|token| self.connections.get_mut(&token)) {
                other.inflow.divert();
            }
        }
        over.into_iter().for_each(|(status, sizes)| status.finish(&sizes));
        if bytes > 0 {
            *self.counts.received.entry(receiving.from).or_default() += bytes;
        }
        let Some(connection) = self.connections.get_mut(&token) else { return };
        if let Ok(1..) = result {
            (receiving.control, receiving.alive, receiving.spoke) = (lane, self.now, self.now);
            connection.heard = self.now;
            connection.may_be_heard();
        }
        let mut acknowledged = false;
        let next = receiving.half.next_frame(lane);
        let room = connection.voice().len() < MOST_TO_SAY;
        if let Role::Receive { told, .. } = &mut connection.role
            && next > told.next
            && room
        {
            let before = told.held;
            let Held { bytes: held, wanted: waited } =
                before.unwrap_or(Held { bytes: 0, wanted: false });
            let all = Held { bytes: held + bytes, wanted: waited || wanted };
            told.held = Some(all);
            let holds = connection.link.is_none()
                && !repeats
                && (!all.wanted || !receiving.half.is_empty());
            if !holds || all.bytes >= HELD {
                acknowledge(connection, next);
                acknowledged = true;
            } else if before.is_none() || all.wanted && !waited {
                receiving.awaited |= all.wanted;
                let longest = if all.wanted { LONGEST_HELD } else { LONGEST_COPIED };
                // The sender must not take it for silence.
                let due = self.now + longest.min(self.config.path_time_out / 8);
                self.held.push(Reverse((due, token)));
            }
        }
        if connection.inflow.stays() {
            if !receiving.stays.contains(&token) {
                receiving.stays.push(token);
            }
            if !stayed {
                let due = self.now + LONGEST_COPIED.min(self.config.path_time_out / 8);
                self.held.push(Reverse((due, token)));
            }
        }
        if asks && room {
            connection.voice().extend_from_slice(&Header::new(Kind::Ping).encode());
        }
        let more = connection.readable && !connection.inflow.stays();
        let wrote = match acknowledged {
            true => self.announce(token, number),
            false => connection.write_small(),
        };
        if let Err(broken) = wrote {
            result = Err(broken);
        }
        let Some(receiving) = self.receiving.get_mut(number) else { return };
        if let Some(bye) = bye {
            let error = said_bye(receiving.from, &bye);
            match bye.reason() {
                Reason::Closed => {
                    receiving.left.insert(lane);
                    self.leave_receiving(number, error);
                }
                _ => self.fail_receiving(number, error),
            }
        } else if receiving.half.too_large().is_some() {
            self.end_where_over(number);
        }
        let Some(receiving) = self.receiving.get(number).filter(|one| !one.over) else { return };
        let (unannounced, over) = (receiving.half.unannounced(), receiving.half.is_empty());
        if unannounced > 0 && !receiving.announces_along() {
            self.list_receiving(number);
        } else if over {
            self.acknowledge_all(number);
        }
        match result {
            Ok(_) if more => self.line_up(token),
            Ok(_) => {}
            Err(broken) => self.lose(token, &broken),
        }
    }

    /// Says what has been held back for long enough.
    pub(super) fn look_at_held(&mut self) {
        while self.soon.front().is_some_and(|(due, _)| *due <= self.now)
            && let Some((_, number)) = self.soon.pop_front()
        {
            self.tell(number);
        }
        while self.held.peek().is_some_and(|it| it.0.0 <= self.now)
            && let Some(Reverse((_, token))) = self.held.pop()
        {
            if let Some(connection) = self.connections.get_mut(&token)
                && connection.inflow.stays()
            {
                connection.hurries = true;
                self.line_up(token);
            }
            self.acknowledge_held(token, false);
        }
    }

    /// Nothing more is to come that could take along what is held back.
    fn acknowledge_all(&mut self, number: u32) {
        let Some(receiving) = self.receiving.get_mut(number) else { return };
        // Each message that empties the half comes by here.
        if !std::mem::take(&mut receiving.awaited) {
            return;
        }
        let tokens: Vec<usize> = receiving.lanes.values().copied().collect();
        tokens.into_iter().for_each(|token| self.acknowledge_held(token, true));
    }

    /// Says what is held back over a connection: only what is `wanted`, or all.
    fn acknowledge_held(&mut self, token: usize, wanted: bool) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let Role::Receive { channel, told, .. } = connection.role else { return };
        if wanted && told.held.is_none_or(|held| !held.wanted) {
            return;
        }
        let Some(receiving) = self.receiving.get(channel) else { return };
        let Some(next) = held(connection, &receiving.half) else { return };
        acknowledge(connection, next);
        if let Err(broken) = self.announce(token, channel) {
            self.lose(token, &broken);
        }
    }

    pub(super) fn lose_receive(&mut self, number: u32, lane: u16, token: usize, why: &Broken) {
        let Some(receiving) = self.receiving.get_mut(number) else { return };
        if receiving.lanes.get(&lane) == Some(&token) {
            receiving.lanes.remove(&lane);
        }
        receiving.half.forget_told();
        if let Broken::Wire(error @ WireError::Nonsense(_)) = why {
            let error = CommError::Remote(format!("{}: {error}", receiving.from));
            return self.fail_receiving(number, error);
        }
        if let Broken::System(error) = why
            && is_fault(error)
        {
            let what = format!("{}: receiving from {}", self.config.name, receiving.from);
            return self.fail_receiving(number, CommError::system(what, error));
        }
        let home = receiving.home;
        if receiving.misses(home) {
            self.miss(home);
        }
        self.end_where_over(number);
        self.list_receiving(number);
    }

    /// All its requests fail, and all to come.
    pub(super) fn fail_receiving(&mut self, number: u32, error: CommError) {
        let Some(receiving) = self.receiving.get_mut(number) else { return };
        receiving.state.fail(error);
        self.end_receiving(number, None);
    }

    /// Says goodbye over its lanes, and does not touch its memory again.
    pub(super) fn end_receiving(&mut self, number: u32, bye: Option<Header>) {
        let Some(receiving) = self.receiving.get_mut(number) else { return };
        receiving.over = true;
        // Before any status says that memory is free again.
        for token in receiving.lanes.values() {
            if let Some(connection) = self.connections.get_mut(token) {
                connection.link = None;
            }
        }
        receiving.fail_all();
        let lanes = std::mem::take(&mut receiving.lanes);
        let lanes = lanes.into_iter().map(|(lane, token)| (receiving.half.next_frame(lane), token));
        for (next, token) in lanes.collect::<Vec<_>>() {
            let Some(connection) = self.connections.get_mut(&token) else { continue };
            // The last one may have been said by a link.
            let ack = Header { frame: next, ..Header::new(Kind::Ack) };
            let bye = bye.unwrap_or(Header::new(Kind::Bye));
            connection.small.extend_from_slice(&ack.encode());
            connection.small.extend_from_slice(&bye.encode());
            self.leave(token);
        }
    }

    pub(super) fn close_receiving(&mut self, channel: u64) {
        let Some(number) = self.receivers.remove(&channel) else { return };
        let over = self.receiving.get(number).is_some_and(|receiving| receiving.over);
        if !over {
            let closed = CommError::Invalid("the channel is closed".into());
            self.fail_receiving(number, closed);
        }
        self.receiving.remove(number);
        self.closed.push_back(channel);
        if self.closed.len() > MOST_CLOSED {
            self.closed.pop_front();
        }
    }
}

/// Up to which frame an acknowledgement is held back.
fn held(connection: &Connection, half: &RecvHalf<Arc<Status>>) -> Option<u64> {
    let Role::Receive { lane, told, .. } = &connection.role else { return None };
    told.held.map(|_| half.next_frame(*lane))
}

/// Says that all frames below `next` are here.
fn acknowledge(connection: &mut Connection, next: u64) {
    if let Role::Receive { told, .. } = &mut connection.role {
        *told = Told { next, held: None };
    }
    let ack = Header { frame: next, ..Header::new(Kind::Ack) };
    connection.voice().extend_from_slice(&ack.encode());
}

fn said_bye(peer: Ipv4Addr, bye: &Header) -> CommError {
    match bye.reason() {
        Reason::Closed | Reason::Full => {
            CommError::Remote(format!("{peer}: the peer has closed the channel"))
        }
        Reason::TooLarge => {
            let Header { offset: room, total: size, .. } = bye;
            CommError::Invalid(format!(
                "{peer}: a message of {size} bytes has come for a buffer of {room}; receive into a \
                 buffer as large as what is sent"
            ))
        }
        Reason::Broken | Reason::Encryption => {
            CommError::Remote(format!("{peer}: the peer did not understand what was sent"))
        }
    }
}
