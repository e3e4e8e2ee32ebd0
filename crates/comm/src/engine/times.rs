//! What is late: lanes on which nothing comes back, peers that are gone, pending connections that say nothing.

use super::connection::{Broken, Connection, Role};
use super::lanes::{Lane, Phase};
use super::{Engine, rdma};
use crate::statistics::Statistics;
use crate::wire::{Header, Kind};
use crate::{CommError, tcp};
use std::io;
use std::time::{Duration, Instant};

/// A pending connection gets so long to say who it is.
const STRANGER: Duration = Duration::from_secs(5);
/// The same where it has the last descriptor.
const LAST_STRANGER: Duration = Duration::from_millis(500);

/// So much longer than its sender a receiver bears with a device that refuses queue pairs.
const REFUSED: Duration = Duration::from_secs(1);
/// Losses in a row without a byte in between that are no accident.
const HOPELESS: u32 = 3;

impl Engine {
    /// Does what is due. The time-out of a path is noticed a quarter late at most.
    pub(super) fn look_at_times(&mut self) {
        let tick = self.config.path_time_out / 4;
        self.next_look =
            self.now + tick.clamp(Duration::from_millis(1), Duration::from_millis(250));
        self.look_at_itself();
        for number in self.sending.numbers() {
            self.look_at_sending(number);
            self.look_at_receiver(number);
        }
        for number in self.receiving.numbers() {
            self.look_at_receiving(number);
            self.look_at_sender(number);
        }
        self.look_at_absent();
        let now = self.now;
        self.keep_spare();
        // Where there were no descriptors for somebody there may be some now.
        self.knocking = true;
        let late = |(token, one): &(&usize, &Connection)| match one.role {
            Role::Stranger { since, .. } if self.has_last(**token) => now - since >= LAST_STRANGER,
            Role::Stranger { since, .. } => now.duration_since(since) >= STRANGER,
            Role::Leaving { until, .. } => now >= until,
            _ => false,
        };
        let late: Vec<usize> =
            self.connections.iter().filter(late).map(|(token, _)| *token).collect();
        let why = Broken::System(io::ErrorKind::TimedOut.into());
        late.into_iter().for_each(|token| self.lose(token, &why));
    }

    fn look_at_sending(&mut self, number: u32) {
        let time_out = self.config.path_time_out;
        let Some(sending) = self.sending.get(number) else { return };
        if sending.over {
            return;
        }
        if sending.closes.is_some_and(|until| until <= self.now) {
            return self.fail_closing(number);
        }
        let (mut wanting, mut silent) = (false, false);
        for lane in 0..sending.lanes.len() as u16 {
            let Some(sending) = self.sending.get_mut(number) else { return };
            let this = &sending.lanes[usize::from(lane)];
            let busy = sending.half.is_waiting(lane);
            wanting |= sending.half.is_busy(lane) || lane == 0 && this.phase != Phase::Live;
            if self.is_hopeless(number, lane) {
                return self.fail_hopeless(number, lane);
            }
            let Some(sending) = self.sending.get_mut(number) else { return };
            let this = &sending.lanes[usize::from(lane)];
            let age = self.now.duration_since(this.since);
            match (this.phase, this.token) {
                (Phase::Closed, _) if this.again_at.is_some_and(|at| at <= self.now) => {
                    self.open(number, lane);
                }
                (Phase::Closed, _) => {
                    self.next_look =
                        this.again_at.map_or(self.next_look, |at| self.next_look.min(at));
                }
                (Phase::Greeting, Some(token)) if age >= time_out => {
                    let (roce, planned) = (sending.roce, sending.end(lane).dst.is_some());
                    if !(roce && self.is_only_slow(token, age)) {
                        self.time_out(number, lane);
                    } else if !planned {
                        self.pass_on(number, lane);
                    }
                }
                (Phase::Greeting, Some(token)) => {
                    let patience = self.config.patience(this.failures);
                    let others = self.now - sending.spoke < self.config.patience(0);
                    if age < patience {
                        self.next_look = self.next_look.min(this.since + patience);
                    } else if others && self.is_opening(token) {
                        self.lose(token, &Broken::System(io::ErrorKind::HostUnreachable.into()));
                    }
                }
                (Phase::Live, Some(token)) => {
                    let waits = sending.half.waits();
                    let Some(connection) = self.connections.get_mut(&token) else { continue };
                    let verdict = match rdma::is_late(connection, self.now, time_out) {
                        Some(true) => Quiet::Late,
                        Some(false) => Quiet::Fine,
                        None if is_stuck(connection, self.now, time_out, busy) => Quiet::Late,
                        None => quiet(connection, self.now, time_out, busy || waits),
                    };
                    // The system over there has taken all that is sent, and the process hears none of
                    // it, though it hears what comes over other lanes.
                    let silence = self.now.duration_since(connection.spoke.max(connection.took));
                    silent |= busy && silence >= self.config.give_up / 8;
                    let swallows = busy
                        && silence >= self.config.give_up / 4
                        && self.now.duration_since(sending.spoke) < time_out;
                    match verdict {
                        _ if swallows => self.time_out(number, lane),
                        Quiet::Fine => {}
                        Quiet::Answers => sending.alive = self.now,
                        Quiet::Ask if waits && !busy => {
                            sending.alive = self.now;
                            // Another lane may not have brought it.
                            connection.out.push_header(&sending.half.request());
                            self.line_up(token);
                        }
                        Quiet::Ask => {
                            sending.alive = self.now;
                            if busy && sending.roce {
                                // The device there has all, and does not say whether anybody takes it.
                                connection.out.push_header(&Header::new(Kind::Ping));
                                self.line_up(token);
                            }
                        }
                        Quiet::Late => self.time_out(number, lane),
                    }
                }
                _ => {}
            }
        }
        if silent {
            self.ask(number);
        }
        let Some(sending) = self.sending.get_mut(number) else { return };
        if sending.leaves.is_some_and(|since| self.now.duration_since(since) >= time_out) {
            return self.fail_closed(number);
        }
        if !wanting {
            sending.alive = self.now;
        } else if self.now.duration_since(sending.alive) >= self.config.give_up && !sending.over {
            let (peer, give_up) = (sending.to.address, self.config.give_up);
            let why =
                sending.device_error.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            let error = CommError::Remote(format!(
                "{peer}: no path has worked for {give_up:?}{why}; gave up"
            ));
            self.fail_sending(number, error, None);
        }
    }

    /// Whether the first packet of a connection is not answered: one way or the other leads nowhere.
    fn is_opening(&self, token: usize) -> bool {
        let connection = self.connections.get(&token);
        connection.and_then(|it| tcp::life(&it.stream)).is_some_and(|life| life.opening)
    }

    /// Whether the system at the other end of a connection answers, and only the process there does not: queue pairs
    /// take their time, a second for a thousand of them.
    fn is_only_slow(&self, token: usize, age: Duration) -> bool {
        let life = self.connections.get(&token).and_then(|it| tcp::life(&it.stream));
        let time_out = self.config.path_time_out;
        age < self.config.give_up / 4
            && life.is_some_and(|it| !it.opening && (!it.unanswered || it.silent < time_out))
    }

    /// Whether `lane` is lost again and again, with nothing arriving in between, and is needed.
    fn is_hopeless(&mut self, number: u32, lane: u16) -> bool {
        let Some(sending) = self.sending.get_mut(number) else { return false };
        let is_fine = |lane: &Lane| lane.phase == Phase::Live && lane.losses == 0;
        // Buffers are announced over any lane.
        let deaf = sending.half.waits() && !sending.lanes.iter().any(is_fine);
        let needed = sending.half.is_busy(lane) || deaf;
        let this = &mut sending.lanes[usize::from(lane)];
        if !needed && this.phase == Phase::Live {
            (this.losses, this.lacks) = (0, None);
        }
        let Some(since) = this.lacks.filter(|_| needed) else { return false };
        // Whoever is welcome and stays may be slow.
        let hopeless = this.phase != Phase::Live || this.losses >= HOPELESS;
        hopeless && self.now.duration_since(since) >= self.config.give_up
    }

    fn fail_hopeless(&mut self, number: u32, lane: u16) {
        let Some(sending) = self.sending.get(number) else { return };
        let (peer, give_up) = (sending.to.address, self.config.give_up);
        let losses = sending.lanes[usize::from(lane)].losses;
        let error = CommError::Remote(format!(
            "{peer}: a connection was lost {losses} times in {give_up:?}, with nothing arriving in \
             between; gave up"
        ));
        self.fail_sending(number, error, None);
    }

    /// Asks the peer for a word over the lanes that carry nothing.
    pub(super) fn ask(&mut self, number: u32) {
        let Some(sending) = self.sending.get(number) else { return };
        let mut asked = Vec::new();
        for (lane, this) in sending.lanes.iter().enumerate() {
            if this.phase == Phase::Live
                && !sending.half.is_waiting(lane as u16)
                && let Some(token) = this.token
                && let Some(connection) = self.connections.get_mut(&token)
            {
                connection.out.push_header(&Header { slot: 1, ..Header::new(Kind::Ping) });
                asked.push(token);
            }
        }
        asked.into_iter().for_each(|token| self.line_up(token));
    }

    /// Chunks that have timed out go again over other lanes, once all is heard that is here: who waited for a core
    /// may have their answers in its sockets.
    pub(super) fn look_at_chunks(&mut self) {
        if !self.ready.is_empty() {
            return;
        }
        let (now, patience) = (self.now, self.config.patience(0));
        for (token, since) in std::mem::take(&mut self.silent) {
            let silent = self.connections.get(&token).is_some_and(|one| one.heard < since);
            match silent {
                true if now - since < patience => self.silent.push((token, since)),
                true => self.lose(token, &Broken::System(io::ErrorKind::TimedOut.into())),
                false => {}
            }
        }
        while let Some((owner, subflow, key, way)) = self.members.poll_lost(now) {
            self.send_again(owner, subflow, key, way);
        }
    }

    /// Nothing comes back over `lane`: another route, and another connection.
    pub(super) fn time_out(&mut self, number: u32, lane: u16) {
        let Some(sending) = self.sending.get(number) else { return };
        let token = sending.lanes[usize::from(lane)].token;
        self.blame(number, lane);
        if let Some(token) = token {
            self.lose(token, &Broken::System(io::ErrorKind::TimedOut.into()));
        }
        self.give_out();
    }

    /// The path of `lane` is taken for dead.
    pub(super) fn blame(&mut self, number: u32, lane: u16) {
        let Some(sending) = self.sending.get(number) else { return };
        self.counts.at(sending.place(lane), sending.host(lane)).time_outs += 1;
        sending.note_time_out(self.now, lane, None);
        self.move_away(number, lane);
    }

    fn look_at_receiving(&mut self, number: u32) {
        let Some(receiving) = self.receiving.get_mut(number) else { return };
        // By then its sender has given up, and has said to look here.
        let patience = self.config.give_up / 4 + REFUSED;
        if let Some((since, why)) = &receiving.refuses
            && receiving.lanes.is_empty()
            && !receiving.over
            && self.now.duration_since(*since) >= patience
        {
            let error = CommError::System(format!("{}: RDMA: {why}", self.config.name));
            return self.fail_receiving(number, error);
        }
        if receiving.over || receiving.half.is_empty() {
            (receiving.alive, receiving.spoke) = (self.now, self.now);
            return;
        }
        let time_out = self.config.path_time_out;
        for token in receiving.lanes.values().copied().collect::<Vec<_>>() {
            let Some(receiving) = self.receiving.get_mut(number) else { return };
            let Some(connection) = self.connections.get_mut(&token) else { continue };
            // A read that stops where memory ends looks like an empty socket: only another one is told.
            let in_body = connection.inflow.is_in_body();
            connection.readable |= in_body;
            match quiet(connection, self.now, time_out, true) {
                Quiet::Fine => {}
                Quiet::Answers => receiving.alive = self.now,
                Quiet::Ask => {
                    receiving.alive = self.now;
                    connection.voice().extend_from_slice(&Header::new(Kind::Ping).encode());
                    if let Err(broken) = connection.write_small() {
                        self.lose(token, &broken);
                    }
                }
                Quiet::Late => self.lose(token, &Broken::System(io::ErrorKind::TimedOut.into())),
            }
            if in_body {
                self.line_up(token);
            }
        }
        let Some(receiving) = self.receiving.get(number) else { return };
        if self.now.duration_since(receiving.alive) >= self.config.give_up {
            let (peer, give_up) = (receiving.from, self.config.give_up);
            let error = CommError::Remote(format!(
                "{peer}: nothing has been heard of the sender for {give_up:?}; gave up"
            ));
            self.fail_receiving(number, error);
        }
    }

    pub(super) fn statistics(&self) -> Statistics {
        self.counts.snapshot()
    }
}

/// What silence means.
enum Quiet {
    /// Nothing yet.
    Fine,
    /// The peer's system answers.
    Answers,
    /// Nothing is on the way that could be answered.
    Ask,
    /// What is on the way is not answered.
    Late,
}

/// Whether nothing of what a sending connection has out gets through. The peer may be heard all the
/// while: what it says takes its own path.
fn is_stuck(connection: &mut Connection, now: Instant, time_out: Duration, busy: bool) -> bool {
    let life = if busy { tcp::life(&connection.stream) } else { None };
    let taken = life.and_then(|life| life.taken);
    let unanswered = life.is_some_and(|life| life.unanswered);
    let stands = taken == connection.taken;
    // Where all is taken, what grows is questions and answers.
    if !busy || unanswered && !stands {
        connection.took = now;
    }
    if !(unanswered && stands && taken.is_some()) {
        connection.grew = now;
    }
    connection.taken = taken;
    now.duration_since(connection.grew) >= time_out
}

/// How a connection is that something is `wanted` of.
fn quiet(connection: &mut Connection, now: Instant, time_out: Duration, wanted: bool) -> Quiet {
    if !wanted {
        (connection.heard, connection.spoke) = (now, now);
        return Quiet::Fine;
    }
    if now.duration_since(connection.heard) < time_out {
        return Quiet::Fine;
    }
    match tcp::life(&connection.stream) {
        Some(life) if life.unanswered && life.silent < time_out => Quiet::Answers,
        Some(life) if life.unanswered => Quiet::Late,
        _ => {
            connection.heard = now;
            Quiet::Ask
        }
    }
}
