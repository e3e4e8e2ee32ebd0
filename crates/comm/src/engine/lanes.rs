//! Connections of lanes: opened when there is something to carry, lost, and opened again.

use super::absent::{REFUSALS, REFUSED_FOR, gone};
use super::connection::{Broken, Connection, Greeting, Role};
use super::members::End;
use super::planning::LanePart;
use super::room::is_fault;
use super::routes::{Key, LanePath};
use super::sending::{Heard, Refused, Sending};
use super::{Engine, random, read};
use crate::error::{explain, is_local};
use crate::notes::Carrier;
use crate::statistics::Place;
use crate::tcp::Traits;
use crate::wire::{Hello, NONCE, Nonce, PROOF, WireError};
use crate::{CommError, tcp};
use std::io;
use std::net::Shutdown;
use std::time::{Duration, Instant};

/// Ports that are tried for a connection that could not be made before.
const TRIES: u32 = 16;
/// The first wait before a lane connects again, and the longest.
const FIRST_WAIT: Duration = Duration::from_millis(2);
const LONGEST_WAIT: Duration = Duration::from_millis(250);
/// Failures of the device in a row, by one lane, before it is believed: a path that is dead is none. All queue pairs may
/// fail at one instant.
const TROUBLES: u32 = 8;

/// Queue pairs that are made in a round, a millisecond or two each: peers are to be answered in between.
const LINKS: u32 = 4;

/// A lane of a sending half.
pub(super) struct Lane {
    pub(super) way: LanePath,
    /// Which port of the way.
    pub(super) spare: u32,
    /// Where to count what it does: path and port of its connection, or of the last one; and which host of
    /// the fabric is there.
    place: Place,
    host: Option<u32>,
    pub(super) phase: Phase,
    pub(super) token: Option<usize>,
    pub(super) epoch: u32,
    /// Connections in a row that were not welcomed.
    pub(super) failures: u32,
    /// Connections lost since something was acknowledged, and when the first of them was.
    pub(super) losses: u32,
    pub(super) lacks: Option<Instant>,
    /// How often the device has failed since something went well.
    pub(super) device_errors: u32,
    /// There was no room for a connection.
    pub(super) shut: bool,
    /// When it connects again.
    pub(super) again_at: Option<Instant>,
    /// When its phase began.
    pub(super) since: Instant,
}

/// How far the connection of a lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// There is none.
    Closed,
    /// The receiver has not answered.
    Greeting,
    /// Frames go over it.
    Live,
}

/// The process at `peer` has challenged this one, and closes the connection after its proof, as it does with strangers.
fn turned_away(peer: impl std::fmt::Display, roce: bool) -> CommError {
    let or = if roce { ", or its RDMA device has failed (its log says so)" } else { "" };
    CommError::Remote(format!(
        "{peer}: the process there turns this one away: it does not know the secret of this job{or}; use \
         the same WEFT_KEY_FILE everywhere"
    ))
}

impl Sending {
    /// Where to count what `lane` does.
    pub(super) fn place(&self, lane: u16) -> Place {
        self.lanes[usize::from(lane)].place
    }

    /// What notes say of `lane`.
    pub(super) fn carrier(&self, lane: u16) -> Carrier {
        let Lane { way, place, .. } = &self.lanes[usize::from(lane)];
        Carrier { lane, nic: way.member, place: *place }
    }

    /// Which host of the fabric it goes to, if it is one.
    pub(super) fn host(&self, lane: u16) -> Option<u32> {
        self.lanes[usize::from(lane)].host
    }

    /// The other end of `lane`.
    pub(super) fn end(&self, lane: u16) -> &End {
        &self.ends[usize::from(self.lanes[usize::from(lane)].way.member)]
    }

    /// A lane that has a connection, or is about to.
    pub(super) fn open_lane(&self) -> Option<u16> {
        let live = self.lanes.iter().position(|lane| lane.phase == Phase::Live);
        let any = || self.lanes.iter().position(|lane| lane.token.is_some());
        live.or_else(any).map(|lane| lane as u16)
    }
}

impl Engine {
    /// The lane of `key`, perhaps a new one, which begins on `way`.
    pub(super) fn lane(&mut self, number: u32, key: Key, way: &LanePath) -> u16 {
        let sending = self.sending.get_mut(number).expect("the caller has it");
        if let Some(lane) = sending.by_key.get(&(way.member, key)) {
            return *lane;
        }
        let lane = sending.half.open_lane();
        sending.by_key.insert((way.member, key), lane);
        // Channels begin with different ports, so that two to one peer do not get into each other's way.
        let spare = (sending.channel >> 32) as u32;
        let end = &sending.ends[usize::from(way.member)];
        let (place, host) = ((*end.address.ip(), way.path, 0), end.host);
        sending.lanes.push(Lane {
            way: *way,
            spare,
            place,
            host,
            phase: Phase::Closed,
            token: None,
            epoch: 0,
            failures: 0,
            losses: 0,
            lacks: None,
            device_errors: 0,
            shut: false,
            again_at: None,
            since: self.now,
        });
        lane
    }

    /// A lane that carries nothing, and has been moved from its way, takes it again: whoever plans
    /// thinks well of it.
    pub(super) fn return_home(&mut self, number: u32, lane: u16, way: &LanePath) {
        let Some(sending) = self.sending.get_mut(number) else { return };
        let this = &sending.lanes[usize::from(lane)];
        if this.way.is_like(way) || sending.half.is_busy(lane) {
            return;
        }
        let (place, host) = (sending.place(lane), sending.host(lane));
        let this = &mut sending.lanes[usize::from(lane)];
        (this.way, this.phase, this.again_at) = (*way, Phase::Closed, None);
        if let Some(token) = this.token.take() {
            self.connections.remove(&token);
            self.counts.close(place, host);
        }
    }

    /// Nothing comes back over `lane`: its planner gives it another way, and what has not begun goes
    /// to the lanes of other ways.
    pub(super) fn move_away(&mut self, number: u32, lane: u16) {
        if self.leave_member(number, lane) {
            return;
        }
        let Some(sending) = self.sending.get_mut(number) else { return };
        let Some(dst) = sending.end(lane).dst else { return };
        let member = sending.lanes[usize::from(lane)].way.member;
        // Chunks have time-outs of their own, and leave by other lanes: this one stays on its path, and tries
        // another port.
        if self.members.planning(member).is_none_or(|planning| planning.watches) {
            return;
        }
        let place = sending.place(lane);
        let host = sending.host(lane);
        let mut subflows: Vec<u32> = sending.half.subflows_on(lane).collect();
        subflows.dedup();
        let rest = sending.half.take_rest(lane);
        let begun = subflows.first().copied();
        let (stay, go): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|part| !self.members.may_part(part.subflow));
        stay.into_iter().for_each(|part| sending.half.assign(lane, part));
        // What has begun stays with the lane, and the lane goes where its first subflow does.
        let way = match begun {
            Some(subflow) => self.members.on_loss(self.now, subflow).map(|(_, way)| way),
            None => self.members.planning(member).and_then(|planning| {
                planning.trouble_idle(self.now, dst, &sending.lanes[usize::from(lane)].way)
            }),
        };
        if let Some(way) = way {
            let this = &mut sending.lanes[usize::from(lane)];
            self.counts.at(place, host).re_routes += u64::from(!this.way.is_like(&way));
            this.way = way;
        }
        let mut moved = begun;
        for part in go {
            if moved != Some(part.subflow) {
                moved = Some(part.subflow);
                self.members.on_loss(self.now, part.subflow);
            }
            let planning = self.members.planning_of(part.subflow);
            let Some((key, way)) = planning.and_then(|it| it.lane(part.subflow)) else { continue };
            self.cuts.push_back(LanePart { owner: number, key, way, part });
        }
    }

    /// `lane` has something to do: its connection gets a turn, or is opened.
    pub(super) fn wake_lane(&mut self, number: u32, lane: u16) {
        let Some(sending) = self.sending.get(number) else { return };
        let this = &sending.lanes[usize::from(lane)];
        match (this.token, this.again_at) {
            (Some(token), _) => self.line_up(token),
            (None, None) => self.open(number, lane),
            (None, Some(_)) => {}
        }
    }

    /// Of a connection that carries few words.
    pub(super) fn brief(&self, dscp: u8) -> Traits<'_> {
        Traits { dscp, pace: None, congestion: self.config.congestion.as_deref() }
    }

    /// A hello of this endpoint that asks for nothing yet.
    pub(super) fn hello(&self) -> Hello {
        Hello {
            lane: 0,
            epoch: 0,
            listener: 0,
            host: self.config.plan.as_ref().map_or(u32::MAX, |plan| plan.host.0),
            channel: 0,
            nonce: [0; NONCE],
            next_group: 0,
            roce: false,
            known: false,
            asks: false,
            over: false,
            sealed: false,
            extra: [0; 32],
            dscp: self.config.dscp,
            home: self.shared.home(),
            proof: [0; PROOF],
        }
    }

    /// Opens a connection for `lane`.
    pub(super) fn open(&mut self, number: u32, lane: u16) {
        let Some(sending) = self.sending.get(number) else { return };
        if sending.over || sending.leaves.is_some() {
            return;
        }
        let plain = self.hello();
        let nonce: Nonce = match random() {
            Ok(nonce) => nonce,
            Err(error) => return self.try_later(number, lane, &io::Error::other(error)),
        };
        let Some(sending) = self.sending.get_mut(number) else { return };
        let known = sending.state.is_open();
        let roce = sending.roce;
        let this = &mut sending.lanes[usize::from(lane)];
        if roce && self.made_links >= LINKS {
            this.again_at = Some(self.now);
            self.next_look = self.now;
            return;
        }
        (this.again_at, this.since) = (None, self.now);
        this.epoch += 1;
        let mut hello = Hello {
            lane,
            epoch: this.epoch,
            listener: sending.to.listener,
            channel: sending.channel,
            next_group: sending.half.next_group(),
            known,
            nonce,
            sealed: self.config.encrypt,
            dscp: sending.dscp,
            ..plain
        };
        let end = &sending.ends[usize::from(this.way.member)];
        let (to, host, dscp) = (end.address, end.host, sending.dscp);
        let own = sending.stays.then_some(tcp::WITHIN_HOST);
        let congestion = self.config.congestion.as_deref().or(own);
        let traits = Traits { dscp, pace: this.way.pace, congestion };
        let member = this.way.member;
        let address = self.members.address(member);
        let at = match (end.dst, self.members.planning(member)) {
            (Some(dst), Some(it)) if !roce => it.routes.address(dst, &this.way, to),
            _ => to,
        };
        // All of them, before it is said that none is free; later on a few.
        let most = if this.failures == 0 { this.way.count() } else { TRIES };
        let mut tries = 0;
        let stream = loop {
            let port = this.way.port(this.spare);
            match tcp::connect((address, port), at, traits) {
                Err(error) if tcp::is_taken(&error) && port > 0 && tries < most => {
                    tries += 1;
                    this.spare = this.spare.wrapping_add(1);
                }
                Err(error) => break Err(error),
                Ok(stream) => break Ok(stream),
            }
        };
        let role = Role::Send { channel: number, lane };
        let connection = stream.and_then(|stream| {
            let port = stream.local_addr()?.port();
            Ok((port, Connection::new(stream, role, self.now)))
        });
        let (port, mut connection) = match connection {
            Ok(both) => both,
            Err(error) => return self.try_later(number, lane, &error),
        };
        let port = match roce.then(|| self.new_link(member, port)) {
            None => port,
            Some(Ok(link)) => {
                let greeting = link.greeting();
                (hello.roce, hello.extra) = (true, greeting.encode());
                connection.link = Some(link);
                greeting.source_port
            }
            Some(Err(error)) => {
                if let Some(sending) = self.sending.get_mut(number) {
                    sending.device_error = Some(error.to_string());
                }
                return self.try_later(number, lane, &io::Error::other(error));
            }
        };
        let Some(sending) = self.sending.get_mut(number) else { return };
        let greeting = Greeting { hello, key: sending.key, challenge: None };
        connection.greeting = Some(Box::new(greeting));
        let this = &mut sending.lanes[usize::from(lane)];
        let before = std::mem::replace(&mut this.place, (*to.ip(), this.way.path, port));
        let before = (before, std::mem::replace(&mut this.host, host));
        self.counts.fold(before.0, before.1);
        this.phase = Phase::Greeting;
        let failures = this.failures;
        let token = match self.add(connection) {
            Ok(token) => token,
            Err(error) => return self.try_later(number, lane, &error),
        };
        let Some(sending) = self.sending.get_mut(number) else { return };
        sending.lanes[usize::from(lane)].token = Some(token);
        let place = sending.place(lane);
        self.counts.at(place, host).open += 1;
        self.next_look = self.next_look.min(self.now + self.config.patience(failures));
        self.line_up(token);
    }

    fn try_later(&mut self, number: u32, lane: u16, error: &io::Error) {
        if !is_local(error) {
            self.doubt(number, lane);
        }
        let Some(sending) = self.sending.get_mut(number) else { return };
        let this = &mut sending.lanes[usize::from(lane)];
        this.phase = Phase::Closed;
        this.losses += 1;
        this.lacks.get_or_insert(self.now);
        self.reopen(number, lane, false);
        let Some(sending) = self.sending.get_mut(number) else { return };
        if is_local(error) {
            let (name, peer) = (&self.config.name, sending.to.address);
            let what = format!("{name}: no connection to {peer} can be opened");
            self.counts.starve(explain(error));
            return self.has_no_room(number, lane, CommError::system(what, error));
        }
        if self.now.duration_since(sending.alive) >= self.config.give_up {
            let peer = sending.to.address;
            let error = CommError::Remote(format!("{peer} cannot be reached: {error}"));
            self.fail_sending(number, error, None);
        }
    }

    /// A connection is over.
    pub(super) fn lose(&mut self, token: usize, why: &Broken) {
        if let Some(connection) = self.connections.get_mut(&token)
            && connection.inflow.stays()
            && !std::mem::replace(&mut connection.hurries, true)
        {
            // What has come before its sender went is taken first.
            return self.line_up(token);
        }
        let Some(mut connection) = self.connections.remove(&token) else { return };
        self.counts.damaged += u64::from(matches!(why, Broken::Wire(WireError::Damaged)));
        match connection.role {
            Role::Send { channel, lane } => {
                if self.was_given_up(&connection, channel, lane, why) {
                    self.blame(channel, lane);
                }
                tcp::reset(&connection.stream);
                let link = connection.link.take();
                let has_proved = connection.has_proved();
                drop(connection);
                self.complete_link(channel, lane, link);
                self.lose_send(channel, lane, why, has_proved);
            }
            Role::Receive { channel, lane, .. } => {
                tcp::reset(&connection.stream);
                // With its link: only then may memory be given back.
                drop(connection);
                self.lose_receive(channel, lane, token, why);
            }
            Role::Stranger { .. } => {
                // Who goes away by itself has not been refused: it may be a peer that tries another path.
                let stays = match why {
                    Broken::Wire(_) | Broken::Full => true,
                    Broken::System(error) => error.kind() == io::ErrorKind::TimedOut,
                    Broken::Closed | Broken::Rdma(_) => false,
                };
                self.counts.refused_connections += u64::from(stays);
                self.pending_connections.retain(|one| *one != token);
            }
            Role::Asks { home } => self.heard_nothing(home, why),
            Role::Leaving { .. } => {}
        }
    }

    /// Whether the peer has given up a connection on which nothing came through: it has noticed before
    /// us that the path is dead.
    fn was_given_up(&self, connection: &Connection, number: u32, lane: u16, why: &Broken) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};
        let by_peer = match why {
            Broken::Closed => true,
            Broken::System(error) => matches!(error.kind(), BrokenPipe | ConnectionReset),
            _ => false,
        };
        let Some(sending) = self.sending.get(number).filter(|_| by_peer) else { return false };
        let silence = self.now.duration_since(connection.heard);
        sending.half.is_busy(lane)
            && sending.lanes[usize::from(lane)].phase == Phase::Live
            && silence >= self.config.path_time_out / 2
    }

    fn lose_send(&mut self, number: u32, lane: u16, why: &Broken, has_proved: bool) {
        let Some(sending) = self.sending.get_mut(number) else { return };
        let place = sending.place(lane);
        let host = sending.host(lane);
        self.counts.at(place, host).reconnects += 1;
        self.counts.close(place, host);
        let this = &mut sending.lanes[usize::from(lane)];
        this.token = None;
        this.losses += 1;
        this.lacks.get_or_insert(self.now);
        let welcomed = this.phase == Phase::Live;
        this.phase = Phase::Closed;
        if welcomed {
            // It may have been the one to say so.
            sending.half.forget_request();
            self.list_sending(number);
        }
        let Some(sending) = self.sending.get_mut(number) else { return };
        if sending.leaves.is_some() {
            return self.check_leaving(number);
        }
        if self.is_no_path(number, lane, why)
            || !welcomed && self.is_refused(number, why, has_proved)
        {
            return;
        }
        let late = matches!(why, Broken::System(error) if error.kind() == io::ErrorKind::TimedOut);
        if !welcomed && !late {
            self.doubt(number, lane);
        }
        // Lanes that nobody plans are alike.
        if !welcomed && self.sending.get(number).is_some_and(|one| one.end(lane).dst.is_none()) {
            self.pass_on(number, lane);
        }
        self.reopen(number, lane, welcomed);
    }

    /// Deals with what no other path would help against. Whether it was that.
    fn is_no_path(&mut self, number: u32, lane: u16, why: &Broken) -> bool {
        let Some(sending) = self.sending.get_mut(number) else { return true };
        let peer = sending.to.address;
        match why {
            Broken::Wire(error @ WireError::Nonsense(_)) => {
                let error = CommError::Remote(format!("{peer}: {error}"));
                self.fail_sending(number, error, None);
            }
            Broken::System(error) if is_fault(error) => self.fail_unreadable(number, error),
            Broken::Full => {
                self.reopen(number, lane, false);
                let error = CommError::Remote(format!(
                    "{peer}: the process there has no descriptor left for a connection: raise its \
                     limit there (ulimit -n), or use fewer channels or connections"
                ));
                self.has_no_room(number, lane, error);
            }
            Broken::Rdma(_) if self.leave_member(number, lane) => self.reopen(number, lane, false),
            Broken::Rdma(why) => {
                let Some(sending) = self.sending.get_mut(number) else { return true };
                sending.device_error = Some(why.clone());
                let count = &mut sending.lanes[usize::from(lane)].device_errors;
                *count += 1;
                if *count < TROUBLES {
                    self.reopen(number, lane, false);
                } else {
                    let error = CommError::System(format!("{}: RDMA: {why}", self.config.name));
                    self.fail_aside(number, error);
                }
            }
            Broken::Closed | Broken::System(_) | Broken::Wire(_) => return false,
        }
        true
    }

    /// A connection was not welcomed; `has_proved`: though its proof had left. Whether the peer has refused so often
    /// that it will not welcome any.
    fn is_refused(&mut self, number: u32, why: &Broken, has_proved: bool) -> bool {
        let Some(sending) = self.sending.get_mut(number) else { return true };
        if !why.is_refused() && !matches!(why, Broken::Closed) {
            return false;
        }
        let first = Refused { count: 0, since: self.now, proved: 0 };
        let refused = sending.refused.get_or_insert(first);
        refused.count += 1;
        refused.proved += u32::from(has_proved && matches!(why, Broken::Closed));
        let Refused { count, since, proved } = *refused;
        // Of a process that is dead no connection is left, and its system refuses. Where somebody takes
        // connections and closes them there may be a proxy in between.
        let alone = !sending.lanes.iter().any(|lane| lane.phase == Phase::Live);
        let patience = match why.is_refused() && alone {
            true => REFUSED_FOR.min(self.config.give_up / 4),
            false => self.config.give_up / 4,
        };
        let gone_for_good = count >= REFUSALS && self.now.duration_since(since) >= patience;
        if gone_for_good {
            let peer = sending.to.address;
            // Who is gone challenges nobody. Whoever did may have ended since, for the same cause.
            let error = match 2 * proved > count {
                true => turned_away(peer, sending.roce),
                false => gone(peer, "it refuses connections"),
            };
            self.fail_sending(number, error, None);
        }
        gone_for_good
    }

    /// A connection of `lane` was not welcomed. Every second time the path is taken for the cause.
    fn doubt(&mut self, number: u32, lane: u16) {
        let Some(sending) = self.sending.get(number) else { return };
        if sending.lanes[usize::from(lane)].failures % 2 == 1 {
            self.move_away(number, lane);
        }
    }

    /// Connects again: soon if the last connection was `good`, later if there have been others that
    /// were not.
    pub(super) fn reopen(&mut self, number: u32, lane: u16, good: bool) {
        let Some(sending) = self.sending.get_mut(number) else { return };
        let this = &mut sending.lanes[usize::from(lane)];
        this.spare = this.spare.wrapping_add(1);
        // Where nothing arrives between two losses, a welcome is worth little.
        if good && this.losses < 2 {
            return self.open(number, lane);
        }
        this.failures += u32::from(!good);
        let wait = LONGEST_WAIT.min(FIRST_WAIT * (1 << this.failures.max(this.losses).min(10)));
        this.again_at = Some(self.now + wait);
        self.next_look = self.next_look.min(self.now + wait);
    }

    /// What is in `small` still leaves; what comes is thrown away.
    pub(super) fn leave(&mut self, token: usize) {
        let until = self.now + super::LAST;
        let Some(connection) = self.connections.get_mut(&token) else { return };
        connection.role = Role::Leaving { until, shut: false };
        self.line_up(token);
    }

    pub(super) fn turn_leaving(&mut self, token: usize) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        if connection.greeting.as_ref().is_some_and(|greeting| greeting.challenge.is_none()) {
            return self.turn_challenged(token);
        }
        let written = connection.write_small();
        if written.is_ok()
            && connection.is_written()
            && let Role::Leaving { shut, .. } = &mut connection.role
            && !std::mem::replace(shut, true)
        {
            // If it is gone already, reading tells.
            let _ = connection.stream.shutdown(Shutdown::Write);
        }
        match written.and_then(|()| connection.discard()) {
            Ok(true) => self.line_up(token),
            Ok(false) => {}
            Err(_) => drop(self.connections.remove(&token)),
        }
    }

    /// Waits for a challenge, where the answer is the last that is to be said.
    fn turn_challenged(&mut self, token: usize) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let mut heard = Heard::default();
        let read = read(connection, &mut heard);
        let answered = heard.challenge.map(|challenge| connection.answer_challenge(&challenge));
        match (answered, read) {
            (Some(Ok(())), _) => self.turn_leaving(token),
            (None, Ok(_)) => {}
            _ => drop(self.connections.remove(&token)),
        }
    }
}
