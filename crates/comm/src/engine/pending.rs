//! Pending connections: who knows the secret gets a lane.

use super::connection::{Broken, Connection, Role, Told};
use super::receiving::Receiving;
use super::{Engine, lock, random};
use crate::error::is_local;
use crate::half::receiver::RecvHalf;
use crate::wire::{
    HELLO, Header, Hello, Kind, MAGIC, Nonce, Reason, Welcome, WireError, check_sum,
};
use crate::{CommError, tcp};
use mio::net::TcpStream;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr};

/// What is wrong where one side encrypts.
pub(super) const ALIKE: &str =
    "one side encrypts and the other does not; set WEFT_ENCRYPT alike on all hosts";
/// Connections that may be about to say who they are.
const MOST_PENDING: usize = 256;
/// So many are taken in before others have their turn.
const AT_ONCE: usize = 16;

impl Engine {
    /// Takes in some of those who have connected.
    pub(super) fn take_in(&mut self) {
        self.knocking = false;
        for listener in 0..self.members.count() {
            self.knocking |= self.take_in_at(listener);
        }
    }

    /// The same at one of the listeners. Whether more may wait.
    fn take_in_at(&mut self, listener: usize) -> bool {
        for _ in 0..AT_ONCE {
            let accepted = match self.members.listener(listener).accept() {
                Err(error) if is_local(&error) => self.take_in_last(listener, &error),
                other => other,
            };
            let (stream, from) = match accepted {
                Ok(both) => both,
                // Whoever it was is gone.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                // Nobody is there; or there are no descriptors, and it is tried again by and by.
                Err(_) => return false,
            };
            let IpAddr::V4(from) = from.ip() else { continue };
            let token = self.challenge(stream, from, listener as u8);
            let Ok(token) = token else {
                self.counts.refused_connections += 1;
                continue;
            };
            self.pending_connections.push_back(token);
            self.line_up(token);
            self.drop_oldest_pending();
        }
        true
    }

    /// Begins a connection of somebody.
    fn challenge(&mut self, stream: TcpStream, from: Ipv4Addr, nic: u8) -> io::Result<usize> {
        tcp::tune(&stream)?;
        let challenge: Nonce = random().map_err(io::Error::other)?;
        let (hello, have, since) = ([0; HELLO], 0, self.now);
        let role = Role::Stranger { challenge, hello, have, since, from, nic };
        let mut connection = Connection::new(stream, role, self.now);
        say(&mut connection.small, Header::new(Kind::Challenge), &challenge);
        self.add(connection)
    }

    /// Where there are too many pending connections, those go that have been silent for longest: an honest one
    /// speaks at once.
    fn drop_oldest_pending(&mut self) {
        while self.pending_connections.len() > MOST_PENDING
            && let Some(token) = self.pending_connections.pop_front()
        {
            let role = self.connections.get(&token).map(|one| &one.role);
            if matches!(role, Some(Role::Stranger { .. } | Role::Leaving { .. })) {
                self.lose(token, &Broken::Full);
            }
        }
    }

    /// Hears who it is.
    pub(super) fn greet(&mut self, token: usize) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        if let Err(broken) = connection.write_small() {
            return self.lose(token, &broken);
        }
        let Role::Stranger { hello, have, from, challenge, .. } = &mut connection.role else {
            return;
        };
        let (from, challenge) = (*from, *challenge);
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
            if *have >= 8 && hello[..8] != MAGIC {
                return self.lose(token, &Broken::Wire(WireError::NotWeft));
            }
        }
        match Hello::decode(hello) {
            Ok(hello) => self.admit(token, from, (&hello, &challenge)),
            Err(error) => self.lose(token, &Broken::Wire(error)),
        }
    }

    /// Makes a lane of a connection that has said what it wants, if it knows the secret.
    fn admit(&mut self, token: usize, from: Ipv4Addr, (hello, challenge): (&Hello, &Nonce)) {
        if hello.asks {
            let kind = if hello.home == self.shared.home() { Kind::Welcome } else { Kind::Refused };
            return self.answer(token, &Header::new(kind));
        }
        let known = self.receivers.get(&hello.channel).copied();
        let listening = self.listeners.get(&hello.listener);
        let key = match (known.and_then(|number| self.receiving.get(number)), listening) {
            (Some(receiving), _) => receiving.key,
            (None, Some(listening)) => listening.key,
            (None, None) => return self.refuse(token),
        };
        if !hello.is_proven(&key, challenge) {
            return self.lose(token, &Broken::Wire(WireError::NotWeft));
        }
        let Some(connection) = self.connections.get_mut(&token) else { return };
        if hello.sealed {
            let [theirs, ours] = key.seals(&hello.nonce, challenge);
            connection.seal(&ours, &theirs);
        }
        if hello.sealed != self.config.encrypt {
            let error = CommError::Invalid(format!("{from}: {ALIKE}"));
            listening.into_iter().for_each(|it| lock(&it.inbox).push_back(Err(error.clone())));
            let why = Reason::Encryption as u8;
            return self.answer(token, &Header { slot: why, ..Header::new(Kind::Refused) });
        }
        if hello.over {
            self.connections.remove(&token);
            let error = CommError::Remote(format!("{from}: the peer has failed"));
            return known.into_iter().for_each(|number| self.fail_receiving(number, error.clone()));
        }
        if self.has_last(token) {
            return self.turn_away(token, from, hello);
        }
        let number = match (known, listening) {
            (Some(number), _) => number,
            (None, Some(listening)) if !hello.known && !self.closed.contains(&hello.channel) => {
                let state = self.shared.new_channel_state();
                state.open(hello.roce && self.nics.is_some());
                let inbox = listening.inbox.clone();
                let number = self.receiving.insert(Receiving {
                    from,
                    home: hello.home,
                    key,
                    state: state.clone(),
                    half: RecvHalf::default(),
                    lanes: BTreeMap::new(),
                    control: 0,
                    roce: hello.roce,
                    refuses: None,
                    listed: false,
                    announces: None,
                    awaited: false,
                    alive: self.now,
                    spoke: self.now,
                    stays: Vec::new(),
                    gone: None,
                    left: BTreeSet::new(),
                    over: false,
                });
                self.receivers.insert(hello.channel, number);
                lock(&inbox).push_back(Ok((hello.channel, state)));
                number
            }
            _ => return self.refuse(token),
        };
        self.welcome(token, number, (hello, challenge));
    }

    fn welcome(&mut self, token: usize, number: u32, (hello, challenge): (&Hello, &Nonce)) {
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
        if let Some(old) = receiving.lanes.remove(&lane)
            && let Some(old) = self.connections.remove(&old)
        {
            // Its link ends here too: nothing late is written once the new one is welcome.
            tcp::reset(&old.stream);
        }
        receiving.half.forget_told();
        let link = match self.answer_link(token, hello) {
            Ok(link) => link,
            Err(broken) => {
                self.has_refused(number, &broken);
                return self.lose(token, &broken);
            }
        };
        self.pending_connections.retain(|one| *one != token);
        let Some(receiving) = self.receiving.get_mut(number) else { return };
        receiving.refuses = None;
        receiving.lanes.insert(lane, token);
        (receiving.control, receiving.alive, receiving.spoke) = (lane, self.now, self.now);
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let extra = link.as_ref().map(|link| link.greeting().encode());
        let welcome = Welcome::new(&receiving.key, (&hello.nonce, challenge), next, extra);
        if hello.dscp != self.config.dscp {
            // If the system does not let it, answers have the class of the NIC.
            let _ = tcp::set_dscp(&connection.stream, hello.dscp);
        }
        connection.link = link;
        connection.role = Role::Receive { channel: number, lane, told: Told { next, held: None } };
        connection.heard = self.now;
        let header = Header { frame: next, ..Header::new(Kind::Welcome) };
        say(&mut connection.small, header, &welcome.encode());
        self.line_up(token);
        self.list_receiving(number);
    }

    /// The device has no queue pair for a lane. Its sender tries again, if it lives.
    fn has_refused(&mut self, number: u32, why: &Broken) {
        let Some(receiving) = self.receiving.get_mut(number) else { return };
        if let Broken::Rdma(why) = why {
            let since = receiving.refuses.as_ref().map_or(self.now, |(since, _)| *since);
            receiving.refuses = Some((since, why.clone()));
        }
    }

    fn refuse(&mut self, token: usize) {
        self.answer(token, &Header::new(Kind::Refused));
    }

    /// Says one thing, the last.
    pub(super) fn answer(&mut self, token: usize, answer: &Header) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        connection.small.extend_from_slice(&answer.encode());
        self.leave(token);
    }
}

/// A frame with a body.
fn say(to: &mut Vec<u8>, header: Header, body: &[u8]) {
    let (len, check) = (body.len() as u32, check_sum(body));
    to.extend_from_slice(&Header { len, check, checked: true, ..header }.encode());
    to.extend_from_slice(body);
}
