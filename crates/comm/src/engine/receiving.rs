//! Strangers that knock, and receiving halves: frames in, "clear to send" and acknowledgements out.

use super::connection::{Broken, Connection, Role};
use super::{Engine, rdma, read};
use crate::api::Inbox;
use crate::half::receiver::RecvHalf;
use crate::handle::SECRET;
use crate::memory::Span;
use crate::request::{Fate, Status};
use crate::stream::inflow::Sink;
use crate::wire::{HELLO, Header, Hello, Kind, Reason, Slot, WireError};
use crate::{CommError, Sizes, tcp};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

/// Connections that may be about to say who they are.
const MOST_STRANGERS: usize = 256;
/// What a receiver may have to say and not be rid of.
const MOST_TO_SAY: usize = 64 << 10;
/// Channels that are remembered when they are closed, so that late lanes do not open them again.
const MOST_CLOSED: usize = 4_096;

/// A listener.
pub(super) struct Listening {
    pub(super) secret: [u8; SECRET],
    pub(super) inbox: Arc<Inbox>,
}

/// A receiving half.
pub(super) struct Receiving {
    pub(super) from: Ipv4Addr,
    secret: [u8; SECRET],
    pub(super) fate: Arc<Fate>,
    pub(super) half: RecvHalf<Arc<Status>>,
    /// Connections, by lane.
    pub(super) lanes: BTreeMap<u16, usize>,
    /// The lane that was heard of last.
    control: u16,
    /// It waits to be told.
    listed: bool,
    /// When the peer was last known to live, or was first waited for.
    pub(super) alive: Instant,
    /// It is over, and only waits to be closed.
    pub(super) over: bool,
}

impl Receiving {
    pub(super) fn fail_all(&mut self) {
        let (count, all) = (self.half.len(), self.half.take_all());
        self.fate.end(count);
        all.iter().for_each(|status| status.fail());
    }
}

/// What comes over a lane.
struct Taking<'a> {
    half: &'a mut RecvHalf<Arc<Status>>,
    fate: &'a Fate,
    lane: u16,
    bytes: u64,
    bye: Option<Header>,
    /// It wants to hear something.
    asks: bool,
}

impl Sink for Taking<'_> {
    fn begin(&mut self, header: &Header) -> Result<Span, WireError> {
        self.half.handle_data(self.lane, header)
    }
    fn end(&mut self, header: &Header, _: &[u8]) -> Result<(), WireError> {
        match header.kind {
            Kind::Data => {
                self.bytes += u64::from(header.len);
                let before = self.half.len();
                let over: Option<(Arc<Status>, Sizes)> = self.half.handle_body(self.lane, header);
                // The application may go on as soon as it sees a status: first make room.
                self.fate.end(before - self.half.len());
                if let Some((status, sizes)) = over {
                    status.finish(&sizes);
                }
            }
            Kind::Ping => self.asks |= header.slot == 1,
            Kind::Bye => self.bye = Some(*header),
            _ => return Err(WireError::Nonsense("a sender does not say that")),
        }
        Ok(())
    }
}

impl Engine {
    /// Takes in whoever has connected.
    pub(super) fn take_in(&mut self) {
        let mut strangers = self.strangers();
        loop {
            let (stream, from) = match self.listener.accept() {
                Ok(both) => both,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Whoever it was is gone; or there are no descriptors, and an event comes with the next.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(_) => return,
            };
            let IpAddr::V4(from) = from.ip() else { continue };
            if strangers >= MOST_STRANGERS || tcp::tune(&stream).is_err() {
                self.counts.strangers += 1;
                continue;
            }
            strangers += 1;
            let role = Role::Stranger { hello: [0; HELLO], have: 0, since: self.now, from };
            match self.add(Connection::new(stream, role, self.now)) {
                Ok(token) => self.line_up(token),
                Err(_) => self.counts.strangers += 1,
            }
        }
    }

    fn strangers(&self) -> usize {
        let is_stranger = |one: &&Connection| matches!(one.role, Role::Stranger { .. });
        self.connections.values().filter(is_stranger).count()
    }

    /// Hears who it is.
    pub(super) fn greet(&mut self, token: usize) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let Role::Stranger { hello, have, from, .. } = &mut connection.role else { return };
        let from = *from;
        while *have < HELLO {
            match (&connection.stream).read(&mut hello[*have..]) {
                Ok(0) => return self.lose(token, &Broken::Closed),
                Ok(count) => *have += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    connection.readable = false;
                    return;
                }
                Err(error) => return self.lose(token, &Broken::System(error)),
            }
            // Garbage is turned away before all of it is here.
            if *have >= 8 && hello[..8] != *b"weftlane" {
                return self.lose(token, &Broken::Wire(WireError::NotWeft));
            }
        }
        match Hello::decode(hello) {
            Ok(hello) => self.admit(token, from, &hello),
            Err(error) => self.lose(token, &Broken::Wire(error)),
        }
    }

    /// Makes a lane of a connection that has said what it wants, if it knows the secret.
    fn admit(&mut self, token: usize, from: Ipv4Addr, hello: &Hello) {
        let known = self.receivers.get(&hello.channel).copied();
        let listening = self.listeners.get(&hello.listener);
        let secret = match (known.and_then(|number| self.receiving.get(number)), listening) {
            (Some(receiving), _) => receiving.secret,
            (None, Some(listening)) => listening.secret,
            (None, None) => return self.refuse(token),
        };
        if !same(&secret, &hello.secret) {
            return self.lose(token, &Broken::Wire(WireError::NotWeft));
        }
        let number = match (known, listening) {
            (Some(number), _) => number,
            (None, Some(listening)) if !hello.known && !self.closed.contains(&hello.channel) => {
                let fate = Arc::new(Fate::default());
                let inbox = listening.inbox.clone();
                let number = self.receiving.insert(Receiving {
                    from,
                    secret,
                    fate: fate.clone(),
                    half: RecvHalf::default(),
                    lanes: BTreeMap::new(),
                    control: 0,
                    listed: false,
                    alive: self.now,
                    over: false,
                });
                self.receivers.insert(hello.channel, number);
                let mut inbox = inbox.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                inbox.push_back((hello.channel, fate));
                number
            }
            _ => return self.refuse(token),
        };
        self.welcome(token, number, hello);
    }

    fn welcome(&mut self, token: usize, number: u32, hello: &Hello) {
        let Some(receiving) = self.receiving.get_mut(number) else { return };
        if receiving.over {
            return self.refuse(token);
        }
        let lane = hello.lane;
        let next = match receiving.half.hello(lane, hello.epoch, hello.next_group) {
            Ok(Some(next)) => next,
            // A connection that was late; a newer one is there.
            Ok(None) => return drop(self.connections.remove(&token)),
            Err(error) => return self.lose(token, &Broken::Wire(error)),
        };
        // What the old connection still holds comes again over the new one.
        if let Some(old) = receiving.lanes.insert(lane, token)
            && let Some(old) = self.connections.remove(&old)
        {
            // Its link ends here too: nothing late is written once the new one is welcome.
            tcp::drop_now(old.stream);
        }
        receiving.half.forget_told();
        (receiving.control, receiving.alive) = (lane, self.now);
        let link = match self.answer_link(token, hello) {
            Ok(link) => link,
            Err(broken) => return self.lose(token, &broken),
        };
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let greeting = link.as_ref().map(|link| link.greeting().encode());
        connection.link = link;
        connection.role = Role::Receive { channel: number, lane, told: next };
        connection.heard = self.now;
        let body = greeting.as_ref().map_or(&[][..], |greeting| greeting);
        let check = crc32c::crc32c(body);
        let len = body.len() as u32;
        let welcome =
            Header { frame: next, checked: true, len, check, ..Header::new(Kind::Welcome) };
        connection.small.extend_from_slice(&welcome.encode());
        connection.small.extend_from_slice(body);
        self.line_up(token);
        self.list_receiving(number);
    }

    fn refuse(&mut self, token: usize) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        connection.small.extend_from_slice(&Header::new(Kind::Refused).encode());
        self.leave(token);
    }

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
            receiving.fate.end(1);
            return status.fail();
        }
        if let Err(error) = rdma::lend_receive(self.nic.as_ref(), &mut buffers, &status) {
            receiving.fate.end(1);
            self.fail_receiving(number, error);
            return status.fail();
        }
        if receiving.half.is_empty() {
            receiving.alive = self.now;
        }
        // `Fate::begin` has counted it, so there is room.
        let taken = receiving.half.post(&buffers, status);
        debug_assert!(taken);
        self.list_receiving(number);
    }

    pub(super) fn list_receiving(&mut self, number: u32) {
        if let Some(receiving) = self.receiving.get_mut(number)
            && !receiving.listed
        {
            receiving.listed = true;
            self.to_tell.push(number);
        }
    }

    /// Says which buffers there are, over the lane that was heard of last.
    pub(super) fn tell(&mut self, number: u32) {
        let Some(receiving) = self.receiving.get_mut(number) else { return };
        receiving.listed = false;
        let lanes = &receiving.lanes;
        let token = lanes.get(&receiving.control).or_else(|| lanes.values().next()).copied();
        let Some(connection) = token.and_then(|token| self.connections.get_mut(&token)) else {
            return;
        };
        let mut some = false;
        while connection.voice().len() < MOST_TO_SAY
            && let Some((group, slots)) = receiving.half.poll_clear()
        {
            slots.encode(group, connection.voice());
            some = true;
        }
        if !some {
            return;
        }
        if let Err(broken) = connection.write_small()
            && let Some(token) = token
        {
            self.lose(token, &broken);
        }
    }

    /// Reads and acknowledges for a while.
    pub(super) fn turn_receive(&mut self, token: usize, number: u32, lane: u16) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let Some(receiving) = self.receiving.get_mut(number) else { return };
        let Receiving { half, fate, .. } = receiving;
        let expected = half.next_frame(lane);
        let mut taking = Taking { half, fate, lane, bytes: 0, bye: None, asks: false };
        let mut result = rdma::take(connection, &mut taking, Some(expected))
            .and_then(|came| Ok(came + read(connection, &mut taking)?));
        let Taking { bytes, bye, asks, .. } = taking;
        if bytes > 0 {
            *self.counts.received.entry(receiving.from).or_default() += bytes;
        }
        if let Ok(1..) = result {
            (receiving.control, receiving.alive) = (lane, self.now);
            connection.heard = self.now;
        }
        let next = receiving.half.next_frame(lane);
        let room = connection.voice().len() < MOST_TO_SAY;
        if let Role::Receive { told, .. } = &mut connection.role
            && next > *told
            && room
        {
            *told = next;
            let ack = Header { frame: next, ..Header::new(Kind::Ack) };
            connection.voice().extend_from_slice(&ack.encode());
        }
        if asks && room {
            connection.voice().extend_from_slice(&Header::new(Kind::Ping).encode());
        }
        if let Err(broken) = connection.write_small() {
            result = Err(broken);
        }
        let more = connection.readable;
        if let Some(bye) = bye {
            let error = said_bye(receiving.from, &bye);
            return self.fail_receiving(number, error);
        }
        match result {
            Ok(_) if more => self.line_up(token),
            Ok(_) => {}
            Err(broken) => self.lose(token, &broken),
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
        self.list_receiving(number);
    }

    /// All its requests fail, and all to come.
    pub(super) fn fail_receiving(&mut self, number: u32, error: CommError) {
        let Some(receiving) = self.receiving.get_mut(number) else { return };
        receiving.fate.fail(error);
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

fn said_bye(peer: Ipv4Addr, bye: &Header) -> CommError {
    match bye.reason() {
        Reason::Closed => CommError::Remote(format!("{peer}: the peer has closed the channel")),
        Reason::TooLarge => {
            let Header { offset: room, total: size, .. } = bye;
            CommError::Invalid(format!(
                "{peer}: a message of {size} bytes has come for a buffer of {room}; receive into a \
                 buffer as large as what is sent"
            ))
        }
        Reason::Broken => {
            CommError::Remote(format!("{peer}: the peer did not understand what was sent"))
        }
    }
}

/// Whether two secrets are the same, in a time that does not tell where they differ.
fn same(one: &[u8; SECRET], other: &[u8; SECRET]) -> bool {
    let differ = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    std::hint::black_box(differ) == 0
}
