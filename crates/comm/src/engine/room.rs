//! Connections that a host has no room for: descriptors, ports or memory are short, here or at the peer.
//! Lanes that have a connection carry what those without one should; where there is none, the channel
//! fails at once and says what is short.

use super::connection::{Connection, Greeting, Role};
use super::{Engine, lock};
use crate::error::explain;
use crate::wire::{Header, Hello, Kind, Reason};
use crate::{CommError, tcp};
use mio::net::TcpStream;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

/// A descriptor that is kept, so that somebody can still be taken in and told where there is no other.
#[derive(Debug, Default)]
pub(super) struct Spare {
    kept: Option<File>,
    /// Who has it, and why there was no other.
    lent: Option<(usize, String)>,
}

impl Engine {
    /// `lane` has no connection, since there is no room for one. Others of its channel carry what has
    /// not begun; the channel fails if there are none. One that has worked may get back what it lacks,
    /// for the time that a path gets.
    pub(super) fn has_no_room(&mut self, number: u32, lane: u16, error: CommError) {
        let carried = self.pass_on(number, lane);
        let Some(sending) = self.sending.get(number) else { return };
        let since = sending.lanes[usize::from(lane)].lacks.unwrap_or(self.now);
        let waits = sending.state.is_open() && self.now - since < self.config.path_time_out;
        // What has begun can go on nowhere else.
        let stuck = !carried || sending.half.is_busy(lane);
        if stuck && !waits {
            self.fail_sending(number, error, None);
        }
    }

    /// Another lane carries what `lane` has not begun, and what would be its, as long as it has no
    /// connection. Whether there is one.
    pub(super) fn pass_on(&mut self, number: u32, lane: u16) -> bool {
        let Some(sending) = self.sending.get_mut(number) else { return false };
        sending.lanes[usize::from(lane)].shut = true;
        let Some(to) = sending.open_lane() else { return false };
        for part in sending.half.take_rest(lane) {
            sending.half.assign(to, part);
        }
        self.wake_lane(number, to);
        true
    }

    /// Takes in one more than there are descriptors for, to tell it so.
    pub(super) fn take_in_last(
        &mut self,
        listener: usize,
        error: &io::Error,
    ) -> io::Result<(TcpStream, SocketAddr)> {
        let listener = self.members.listener(listener);
        // The system says so before it looks whether anybody is there.
        if self.spare.kept.is_none() || !tcp::is_knocked_at(listener) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.spare.kept = None;
        let both = listener.accept()?;
        self.spare.lent = Some((self.next_token, explain(error)));
        Ok(both)
    }

    /// Whether `token` has the last descriptor.
    pub(super) fn has_last(&self, token: usize) -> bool {
        self.spare.lent.as_ref().is_some_and(|(lent, _)| *lent == token)
    }

    /// Keeps a descriptor again, once whoever had it is gone.
    pub(super) fn keep_spare(&mut self) {
        if self.spare.lent.as_ref().is_some_and(|(lent, _)| !self.connections.contains_key(lent)) {
            self.spare.lent = None;
        }
        if self.spare.lent.is_none() && self.spare.kept.is_none() {
            self.spare.kept = File::open("/dev/null").ok();
        }
    }

    /// Tells a peer that there is no room for its lane; and the listener, if it came for a new channel.
    pub(super) fn turn_away(&mut self, token: usize, from: Ipv4Addr, hello: &Hello) {
        let why = self.spare.lent.as_ref().map_or(String::new(), |(_, why)| why.clone());
        if !self.receivers.contains_key(&hello.channel)
            && let Some(listening) = self.listeners.get(&hello.listener)
        {
            let name = &self.config.name;
            let line = format!("{name}: there is no room for a connection from {from}: {why}");
            lock(&listening.inbox).push_back(Err(CommError::System(line)));
        }
        self.counts.starve(why);
        let full = Header { slot: Reason::Full as u8, ..Header::new(Kind::Refused) };
        self.answer(token, &full);
    }

    /// The memory of a send is not there. Other lanes may have begun to write of it: nothing is copied
    /// from there any more, and the peer is told over a connection of its own.
    pub(super) fn fail_unreadable(&mut self, number: u32, error: &io::Error) {
        let Some(sending) = self.sending.get(number) else { return };
        let what = format!("{}: sending to {}", self.config.name, sending.to.address);
        self.fail_aside(number, CommError::system(what, error));
    }

    /// Fails a half whose lanes can say nothing: the peer is told over a connection of its own.
    pub(super) fn fail_aside(&mut self, number: u32, error: CommError) {
        let Some(sending) = self.sending.get_mut(number) else { return };
        let (peer, key) = (sending.to, sending.key);
        let (channel, listener, dscp) = (sending.channel, sending.to.listener, sending.dscp);
        for lane in 0..sending.lanes.len() as u16 {
            let (place, host) = (sending.place(lane), sending.host(lane));
            let Some(token) = sending.lanes[usize::from(lane)].token.take() else { continue };
            self.counts.close(place, host);
            if let Some(connection) = self.connections.remove(&token) {
                tcp::reset(&connection.stream);
            }
        }
        self.fail_sending(number, error, None);
        let sealed = self.config.encrypt;
        let hello = Hello { channel, listener, over: true, sealed, dscp, ..self.hello() };
        let stream = tcp::connect((self.config.address, 0), peer.address, self.brief(dscp));
        let until = self.now + super::LAST;
        let role = Role::Leaving { until, shut: false };
        let Ok(mut connection) = stream.map(|it| Connection::new(it, role, self.now)) else {
            return;
        };
        connection.greeting = Some(Box::new(Greeting { hello, key, challenge: None }));
        if let Ok(token) = self.add(connection) {
            self.line_up(token);
        }
    }
}

/// Whether the memory of a message is not there.
pub(super) fn is_fault(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EFAULT)
}
