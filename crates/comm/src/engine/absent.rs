//! Whether the process behind a channel still lives, where all connections of the channel are gone.
//!
//! A sender that lives connects again by itself. A receiver cannot, so it asks: it connects to where
//! the sender's endpoint listens. The system of a host refuses for a process that is dead, at once; a
//! path that is dead says nothing, or refuses for some source ports and not for others.

use super::connection::{Broken, Connection, Role};
use super::{Engine, read};
use crate::memory::Span;
use crate::stream::inflow::Sink;
use crate::wire::{Header, Hello, Home, Kind, WireError};
use crate::{CommError, tcp};
use std::time::{Duration, Instant};

/// A sender that lives comes back earlier, as a rule.
const AT_FIRST: Duration = Duration::from_millis(10);
/// So many refusals from different ports, over so long a time, are no accident of a path.
pub(super) const REFUSALS: u32 = 4;
pub(super) const REFUSED_FOR: Duration = Duration::from_millis(200);
/// How often it is asked after, and how often while it refuses.
const AGAIN: Duration = Duration::from_millis(250);
const SOON: Duration = Duration::from_millis(50);

/// An endpoint that some channel has no connection from.
#[derive(Debug)]
pub(super) struct Absent {
    /// How often it has refused, and since when.
    refused: Option<(u32, Instant)>,
    /// The connection that asks.
    token: Option<usize>,
    next: Instant,
}

/// What is answered.
#[derive(Default)]
struct Answer(Option<Kind>);

impl Sink for Answer {
    fn begin(&mut self, _: &Header) -> Result<Span, WireError> {
        Err(WireError::Nonsense("data for a question"))
    }
    fn end(&mut self, header: &Header, _: &[u8]) -> Result<(), WireError> {
        if header.kind != Kind::Challenge {
            self.0.get_or_insert(header.kind);
        }
        Ok(())
    }
}

impl Engine {
    /// A receiving half has lost its last connection.
    pub(super) fn miss(&mut self, home: Home) {
        let next = self.now + AT_FIRST;
        self.absent.entry(home).or_insert(Absent { refused: None, token: None, next });
        self.next_look = self.next_look.min(next);
    }

    /// Asks after endpoints that have not come back.
    pub(super) fn look_at_absent(&mut self) {
        for home in self.absent.keys().copied().collect::<Vec<_>>() {
            let Some(absent) = self.absent.get(&home) else { continue };
            if let Some(token) = absent.token {
                let since = self.connections.get(&token).map(|one| one.heard);
                if since.is_none_or(|at| self.now - at >= self.config.path_time_out) {
                    self.lose(token, &Broken::Closed);
                }
                continue;
            }
            if self.now < absent.next {
                self.next_look = self.next_look.min(absent.next);
            } else if self.receiving.iter().any(|(_, one)| one.misses(home)) {
                self.ask_after(home);
            } else {
                self.absent.remove(&home);
            }
        }
    }

    fn ask_after(&mut self, home: Home) {
        let hello = Hello { home, asks: true, ..self.hello() };
        let from = (self.config.address, 0);
        let stream = tcp::connect(from, home.address, self.brief(self.config.dscp));
        let token = stream.and_then(|stream| {
            let mut connection = Connection::new(stream, Role::Asks { home }, self.now);
            connection.small.extend_from_slice(&hello.encode());
            self.add(connection)
        });
        match token {
            Ok(token) => {
                self.line_up(token);
                let Some(absent) = self.absent.get_mut(&home) else { return };
                absent.token = Some(token);
            }
            Err(error) => self.heard_nothing(home, &Broken::System(error)),
        }
    }

    pub(super) fn turn_asking(&mut self, token: usize, home: Home) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let mut answer = Answer::default();
        let heard = connection.write_small().and_then(|()| read(connection, &mut answer));
        match (answer.0, heard) {
            (Some(kind), _) => {
                self.connections.remove(&token);
                self.has_answered(home, kind);
            }
            (None, Err(broken)) => self.lose(token, &broken),
            (None, Ok(_)) => {}
        }
    }

    fn has_answered(&mut self, home: Home, kind: Kind) {
        if kind != Kind::Welcome {
            return self.is_gone(home, "another process listens there now");
        }
        let next = self.now + AGAIN;
        self.absent.insert(home, Absent { refused: None, token: None, next });
        self.next_look = self.next_look.min(next);
    }

    /// The connection that asked is over without an answer.
    pub(super) fn heard_nothing(&mut self, home: Home, why: &Broken) {
        let Some(absent) = self.absent.get_mut(&home) else { return };
        absent.token = None;
        if !why.is_refused() {
            (absent.refused, absent.next) = (None, self.now + AGAIN);
        } else {
            let (count, since) = absent.refused.unwrap_or((0, self.now));
            (absent.refused, absent.next) = (Some((count + 1, since)), self.now + SOON);
            if count + 1 >= REFUSALS && self.now - since >= REFUSED_FOR {
                return self.is_gone(home, "it refuses connections");
            }
        }
        let next = absent.next;
        self.next_look = self.next_look.min(next);
    }

    /// Its process is dead: no channel without connections will have one again.
    fn is_gone(&mut self, home: Home, why: &str) {
        self.absent.remove(&home);
        for number in self.receiving.numbers() {
            if self.receiving.get(number).is_some_and(|one| one.misses(home)) {
                self.leave_receiving(number, gone(home.address, why));
            }
        }
    }
}

/// The process at `peer` is dead.
pub(super) fn gone(peer: impl std::fmt::Display, why: &str) -> CommError {
    CommError::Remote(format!(
        "{peer}: the process there is gone: all its connections are closed, and {why}; see why it ended"
    ))
}
