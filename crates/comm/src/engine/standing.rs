//! Processes that stand still (SIGSTOP, a debugger): their systems go on acknowledging what is sent, so their
//! paths look well. Whoever waits for such a process asks it for a word, and gives it up.

use super::lanes::Phase;
use super::{CommError, Engine};
use crate::wire::{Header, Kind};
use std::time::{Duration, Instant};

/// An engine that has not looked for so long has stood still itself.
const OWN: Duration = Duration::from_secs(1);

impl Engine {
    /// Who has stood still itself has heard nobody, whoever spoke: all silences begin now.
    pub(super) fn look_at_itself(&mut self) {
        let (now, last) = (self.now, std::mem::replace(&mut self.looked, self.now));
        if now.duration_since(last) < OWN.max(self.config.path_time_out) {
            return;
        }
        for number in self.sending.numbers() {
            let Some(sending) = self.sending.get_mut(number) else { continue };
            (sending.alive, sending.spoke) = (now, now);
            for lane in &mut sending.lanes {
                lane.lacks = lane.lacks.map(|_| now);
            }
        }
        for number in self.receiving.numbers() {
            let Some(receiving) = self.receiving.get_mut(number) else { continue };
            (receiving.alive, receiving.spoke) = (now, now);
        }
        for connection in self.connections.values_mut() {
            (connection.heard, connection.spoke, connection.grew) = (now, now, now);
        }
    }

    /// Asks a receiver that is waited for and says nothing for a word, and in the end gives it up.
    pub(super) fn look_at_receiver(&mut self, number: u32) {
        let (now, give_up) = (self.now, self.config.give_up);
        let Some(sending) = self.sending.get_mut(number).filter(|one| !one.over) else { return };
        let half = &sending.half;
        let mut busy = (0..sending.lanes.len() as u16).filter(|lane| half.is_busy(*lane));
        if !half.waits() && busy.next().is_none() {
            sending.spoke = now;
        }
        let silence = now.duration_since(sending.spoke);
        if silence < give_up / 8 {
            return;
        }
        let (peer, alive) = (sending.to.address, sending.alive);
        self.ask(number);
        if !self.is_taking(number) && silence >= give_up && self.answers(alive) {
            self.fail_sending(number, still(peer, give_up), None);
        }
    }

    /// Whether a system that was last known to live `then` acknowledges what it is sent. Else no path may work,
    /// and it is for others to say so.
    fn answers(&self, then: Instant) -> bool {
        let recent = (self.config.give_up / 2).max(2 * self.config.path_time_out);
        self.now.duration_since(then) < recent
    }

    /// Whether the system of a silent receiver takes more and more of what is sent: then a frame is long.
    fn is_taking(&self, number: u32) -> bool {
        let Some(sending) = self.sending.get(number) else { return false };
        (0..).zip(&sending.lanes).any(|(lane, this)| {
            let token = this.token.filter(|_| this.phase == Phase::Live);
            let took = token.and_then(|token| self.connections.get(&token)).map(|one| one.took);
            sending.half.is_waiting(lane)
                && took.is_some_and(|took| self.now - took < self.config.give_up / 2)
        })
    }

    /// The same of a sender.
    pub(super) fn look_at_sender(&mut self, number: u32) {
        let (now, give_up) = (self.now, self.config.give_up);
        let Some(receiving) = self.receiving.get(number).filter(|one| !one.over) else { return };
        let silence = now.duration_since(receiving.spoke);
        if silence < give_up / 8 {
            return;
        }
        if silence >= give_up && self.answers(receiving.alive) {
            return self.fail_receiving(number, still(receiving.from, give_up));
        }
        for token in receiving.lanes.values().copied().collect::<Vec<_>>() {
            let Some(connection) = self.connections.get_mut(&token) else { continue };
            let ask = Header { slot: 1, ..Header::new(Kind::Ping) };
            connection.voice().extend_from_slice(&ask.encode());
            if let Err(broken) = connection.write_small() {
                self.lose(token, &broken);
            }
        }
    }
}

/// The process at `peer` has not said a word.
fn still(peer: impl std::fmt::Display, give_up: Duration) -> CommError {
    CommError::Remote(format!(
        "{peer}: the process there has not said a word for {give_up:?}, though its host takes what is \
         sent: is it stopped? Gave up"
    ))
}
