//! Strangers that knock: who knows the secret gets a lane.

use super::connection::{Broken, Connection, Role};
use super::receiving::Receiving;
use super::{Engine, lock};
use crate::half::receiver::RecvHalf;
use crate::handle::SECRET;
use crate::request::Fate;
use crate::tcp;
use crate::wire::{HELLO, Header, Hello, Kind, MAGIC, WireError};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// Connections that may be about to say who they are.
const MOST_STRANGERS: usize = 256;

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
            if *have >= 8 && hello[..8] != MAGIC {
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
                lock(&inbox).push_back((hello.channel, fate));
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
}

/// Whether two secrets are the same, in a time that does not tell where they differ.
fn same(one: &[u8; SECRET], other: &[u8; SECRET]) -> bool {
    let differ = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    std::hint::black_box(differ) == 0
}
