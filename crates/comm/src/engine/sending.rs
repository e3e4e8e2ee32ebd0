//! Sending halves: orders in, frames out, answers back.

use super::connection::{Broken, Connection, Role, TURN};
use super::even_split::Turn;
use super::lanes::{Lane, Phase};
use super::members::{End, Share};
use super::planning::LanePart;
use super::routes::{Key, LanePath};
use super::{Engine, rdma, read};
use crate::half::sender::{Completed, GivenUp, Part, SendHalf, Written};
use crate::handle::Parts;
use crate::memory::Span;
use crate::request::{ChannelState, Status};
use crate::roce::Link;
use crate::stream::inflow::Sink;
use crate::wire::{ChannelKey, Header, Kind, Nonce, Slots, Welcome, WireError};
use crate::{Checksum, CommError, Sizes};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Instant;

/// Of parts that no planner has cut.
pub(super) const NO_PIECE: u32 = u32::MAX;

/// A sending half.
pub(super) struct Sending {
    pub(super) channel: u64,
    pub(super) to: Parts,
    pub(super) key: ChannelKey,
    /// The other end of what leaves from each NIC of this endpoint.
    pub(super) ends: Vec<End>,
    pub(super) dscp: u8,
    pub(super) state: Arc<ChannelState>,
    pub(super) half: SendHalf<Arc<Status>>,
    /// Whether data goes by RDMA.
    pub(super) roce: bool,
    /// Whether the peer is on this host.
    pub(super) stays: bool,
    pub(super) lanes: Vec<Lane>,
    /// By NIC and key.
    pub(super) by_key: FxHashMap<(u8, Key), u16>,
    /// Whose turn it is among even lanes.
    turn: Turn,
    /// When the peer was last known to live.
    pub(super) alive: Instant,
    /// When it last said something, over any lane.
    pub(super) spoke: Instant,
    /// How often the peer has refused since it last welcomed.
    pub(super) refused: Option<Refused>,
    /// Why the device has failed the last time since something went well.
    pub(super) device_error: Option<String>,
    /// It waits to be matched.
    listed: bool,
    /// The receiver has said goodbye over some lane: the others may still have acknowledgements.
    pub(super) leaves: Option<Instant>,
    /// It has failed, and only waits to be closed.
    pub(super) over: bool,
    /// The application has closed it: it goes when its copies are acknowledged, or then.
    pub(super) closes: Option<Instant>,
}

/// Connections in a row that were refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refused {
    pub(super) count: u32,
    /// When the first was.
    pub(super) since: Instant,
    /// How many of them were closed after their proof.
    pub(super) proved: u32,
}

impl Sending {
    pub(super) fn fail_all(&mut self) {
        let all = self.half.take_all();
        self.state.end(all.len());
        all.iter().for_each(|status| status.fail());
    }

    /// Whether all that is under way is copied, and over for the application: where a lane dies, it still has to go
    /// over another one.
    pub(super) fn holds_copies(&self) -> bool {
        !self.half.is_idle() && self.half.is_over()
    }

    /// For what acknowledgements complete.
    pub(super) fn completed(&self) -> Completed<Arc<Status>> {
        Completed { parts: self.state.keeps_notes().then(Vec::new), ..Completed::default() }
    }

    /// Notes that nothing comes back over `lane`, or of one of its sends alone.
    pub(super) fn note_time_out(&self, now: Instant, lane: u16, of: Option<&Arc<Status>>) {
        if !self.state.keeps_notes() {
            return;
        }
        let mut last = None;
        for status in self.half.tokens_on(lane) {
            let is_other = of.is_some_and(|only| !Arc::ptr_eq(only, status));
            if !is_other && last != Some(Arc::as_ptr(status)) {
                last = Some(Arc::as_ptr(status));
                status.note(|notes| notes.time_out(now, self.carrier(lane)));
            }
        }
    }
}

/// What a receiver has said.
#[derive(Default)]
pub(super) struct Heard {
    frames: Vec<Header>,
    /// Of each frame that is clear to send.
    slots: Vec<Slots>,
    welcome: Option<Welcome>,
    pub(super) challenge: Option<Nonce>,
}

impl Sink for Heard {
    fn begin(&mut self, _: &Header) -> Result<Span, WireError> {
        Err(WireError::Nonsense("data from a receiver"))
    }
    fn end(&mut self, header: &Header, body: &[u8]) -> Result<(), WireError> {
        match header.kind {
            Kind::Clear => self.slots.push(Slots::decode(header.slot, body)),
            Kind::Welcome => self.welcome = Welcome::decode(body),
            Kind::Challenge => self.challenge = body.try_into().ok(),
            _ => {}
        }
        self.frames.push(*header);
        Ok(())
    }
}

impl Engine {
    pub(super) fn connect(
        &mut self,
        channel: u64,
        to: &Parts,
        dscp: Option<u8>,
        state: Arc<ChannelState>,
    ) {
        let ends = self.members.ends(to);
        let stays = self.members.is_here(*to.address.ip()) || to.address.ip().is_loopback();
        let roce = self.nics.is_some() && to.roce;
        let checked = match self.config.checksum {
            _ if self.config.encrypt => false,
            Checksum::None => false,
            // Devices check every packet of RoCE (ICRC), and payload may be where only they read.
            Checksum::BetweenHosts => !stays && !roce,
            Checksum::All => true,
        };
        let mut half = SendHalf::new(checked);
        if self.members.watches(&ends) {
            half.allow_repeats();
        } else if !roce && !state.keeps_notes() {
            // Notes tell when something is acknowledged.
            half.allow_copies();
            if ends.iter().all(|end| end.dst.is_none()) {
                half.allow_eager(self.members.whole(&ends).min(self.spread.quantum()));
            }
        }
        let first = ends.iter().position(|end| end.reaches);
        let sending = Sending {
            channel,
            to: *to,
            key: self.shared.key(&to.secret),
            ends,
            dscp: dscp.unwrap_or(self.config.dscp),
            state,
            half,
            roce,
            stays,
            lanes: Vec::new(),
            by_key: FxHashMap::default(),
            turn: Turn::default(),
            alive: self.now,
            spoke: self.now,
            refused: None,
            device_error: None,
            listed: false,
            leaves: None,
            over: false,
            closes: None,
        };
        let number = self.sending.insert(sending);
        self.senders.insert(channel, number);
        if let Err(error) = self.check_roce(to) {
            return self.fail_sending(number, error, None);
        }
        let Some(first) = first else {
            let what =
                "it has no NIC in a plane of this one; merge NICs of the same planes everywhere";
            let error = CommError::Invalid(format!("{}: {what}", to.address));
            return self.fail_sending(number, error, None);
        };
        let (key, way) = self.first_way(number, first as u8);
        let lane = self.lane(number, key, &way);
        self.wake_lane(number, lane);
    }

    /// The way of the first lane of a channel from a NIC.
    pub(super) fn first_way(&mut self, number: u32, member: u8) -> (Key, LanePath) {
        let sending = self.sending.get(number);
        let ends = sending.and_then(|one| Some((one.channel, one.ends[usize::from(member)].dst?)));
        match (self.members.planning(member), ends) {
            (Some(it), Some((channel, dst))) => it.routes.first(dst, channel, it.pinned),
            _ => (Key::Even(0), LanePath::of(member)),
        }
    }

    pub(super) fn send(&mut self, channel: u64, body: Span, tag: i32, status: Arc<Status>) {
        let number = self.senders.get(&channel).copied();
        let Some((number, sending)) =
            number.and_then(|number| Some((number, self.sending.get_mut(number)?)))
        else {
            return status.fail();
        };
        if sending.over {
            sending.state.end(1);
            return status.fail();
        }
        let lent = rdma::lend_send(self.nics.as_ref().filter(|_| sending.roce), body, &status);
        if let Err(error) = lent {
            sending.state.end(1);
            self.fail_sending(number, error, None);
            return status.fail();
        }
        status.note(|notes| {
            (notes.peer, notes.host) = (Some(*sending.to.address.ip()), sending.to.host);
        });
        #[expect(unsafe_code, reason = "what is sent is read later")]
        // SAFETY: the memory stays until the request is done or the channel is closed, by the contract
        // of `isend`; a channel that fails takes all from its half before it says so.
        let posted = unsafe { sending.half.post(body, tag, status) };
        match posted {
            Ok(()) => self.list_sending(number),
            Err(too_large) => self.fail_too_large(number, too_large),
        }
    }

    pub(super) fn list_sending(&mut self, number: u32) {
        if let Some(sending) = self.sending.get_mut(number)
            && !sending.listed
        {
            sending.listed = true;
            self.to_match.push(number);
        }
    }

    /// Gives what has a buffer now to lanes.
    pub(super) fn match_sends(&mut self, number: u32) {
        let Some(sending) = self.sending.get_mut(number) else { return };
        sending.listed = false;
        while let Some((send, bytes)) = sending.half.poll_matched() {
            if sending.state.keeps_notes()
                && let Some(status) = sending.half.token(send)
            {
                status.note(|notes| notes.matched = Some(self.now));
            }
            for share in self.members.shares(&mut sending.ends, bytes, self.now) {
                let Share { member, start, end } = share;
                let dst = sending.ends[usize::from(member)].dst;
                match (self.members.planning(member), dst) {
                    (Some(planning), Some(dst)) => {
                        planning.post(self.now, dst, (number, send), (start, end));
                    }
                    _ => self.spread.cut(end - start, &mut sending.turn, |from, to, lane| {
                        let (start, end) = (start + from, start + to);
                        let part = Part { send, subflow: NO_PIECE, start, end };
                        let (key, way) = (Key::Even(lane), LanePath::of(member));
                        self.cuts.push_back(LanePart { owner: number, key, way, part });
                    }),
                }
            }
        }
        self.give_out();
        self.request(number);
    }

    /// Says over a lane that somebody waits for buffers, where the receiver may not know. Without a lane it is said
    /// as soon as there is one.
    fn request(&mut self, number: u32) {
        let Some(sending) = self.sending.get_mut(number) else { return };
        if !sending.half.has_request() {
            return;
        }
        let live = sending.lanes.iter().filter(|lane| lane.phase == Phase::Live);
        let tokens = live.filter_map(|lane| lane.token);
        // Where it goes at once, as far as is known.
        let at_once = |token: &usize| {
            let connection = self.connections.get(token);
            connection.map(|one| (one.writable && one.out.is_empty(), one.heard))
        };
        let Some(token) = tokens.max_by_key(at_once) else { return };
        let Some(connection) = self.connections.get_mut(&token) else { return };
        connection.out.push_header(&sending.half.request());
        self.line_up(token);
    }

    /// Gives lanes what the planner has cut.
    pub(super) fn plan(&mut self) {
        self.give_out();
        let now = self.now;
        self.members.plannings().for_each(|planning| planning.flush(now));
        while let Some(cut) = self.members.poll(now) {
            self.assign(&cut);
        }
    }

    /// Gives lanes the parts that are theirs.
    pub(super) fn give_out(&mut self) {
        while let Some(cut) = self.cuts.pop_front() {
            self.assign(&cut);
        }
    }

    /// Gives a part to the lane of `key`.
    pub(super) fn assign(&mut self, cut: &LanePart) {
        let LanePart { owner, key, way, part } = *cut;
        let lane = self.lane(owner, key, &way);
        self.return_home(owner, lane, &way);
        let Some(sending) = self.sending.get_mut(owner) else { return };
        let other = sending.open_lane().filter(|_| sending.lanes[usize::from(lane)].shut);
        let lane = other.unwrap_or(lane);
        sending.half.assign(lane, part);
        self.wake_lane(owner, lane);
        // Now it has a port.
        let Some(sending) = self.sending.get(owner) else { return };
        let place = sending.place(lane);
        self.counts.at(place, sending.host(lane)).subflows += 1;
        if sending.state.keeps_notes()
            && let Some(status) = sending.half.token(part.send)
        {
            let carrier = sending.carrier(lane);
            status.note(|notes| notes.give(self.now, carrier, part.start, part.end));
        }
    }

    /// A chunk has timed out: the lane of `key` carries it as well as those that have it.
    pub(super) fn send_again(&mut self, owner: u32, subflow: u32, key: Key, way: LanePath) {
        let Some(sending) = self.sending.get(owner) else { return };
        if let Some(lane) = sending.half.lane_of(subflow) {
            let (place, host) = (sending.place(lane), sending.host(lane));
            let counts = self.counts.at(place, host);
            counts.time_outs += 1;
            counts.re_routes += u64::from(!sending.lanes[usize::from(lane)].way.is_like(&way));
            let status = sending.half.send_of(lane, subflow);
            if status.is_some() {
                sending.note_time_out(self.now, lane, status);
            }
        }
        for part in self.give_up(owner, subflow) {
            self.assign(&LanePart { owner, key, way, part });
        }
    }

    /// Lanes are no longer alone with `subflow`. What of it is not acknowledged.
    pub(super) fn give_up(&mut self, owner: u32, subflow: u32) -> Vec<Part> {
        let Some(sending) = self.sending.get_mut(owner) else { return Vec::new() };
        let mut parts = Vec::new();
        for lane in 0..sending.lanes.len() as u16 {
            let mut out = GivenUp::default();
            sending.half.give_up(lane, subflow, &mut out);
            parts.append(&mut out.parts);
            let token = sending.lanes[usize::from(lane)].token;
            let Some(connection) = token.and_then(|token| self.connections.get_mut(&token)) else {
                continue;
            };
            for frame in out.frames {
                #[expect(unsafe_code, reason = "payload is copied from where it is")]
                // SAFETY: nobody has been told yet that the send is over, so that its memory stays, by the
                // contract of `isend`.
                unsafe {
                    connection.out.keep(frame);
                }
            }
        }
        parts
    }

    /// A chunk has arrived over one lane that others have had `since` then. Those of which nothing was heard all the
    /// while are taken for dead, if not their paths: answers may have another one. They get another port.
    pub(super) fn doubt_others(&mut self, owner: u32, subflow: u32, since: Instant) {
        let Some(sending) = self.sending.get(owner) else { return };
        for (number, lane) in sending.lanes.iter().enumerate() {
            let token = lane.token.filter(|_| lane.phase == Phase::Live);
            let connection = token.and_then(|token| self.connections.get(&token));
            if connection.is_some_and(|connection| connection.heard < since)
                && sending.half.has_given_up(number as u16, subflow)
            {
                self.silent.extend(token.map(|token| (token, since)));
            }
        }
    }

    /// Writes and reads for a while.
    pub(super) fn turn_send(&mut self, token: usize, number: u32, lane: u16) {
        if !self.turn_send_link(token, number, lane) {
            return;
        }
        let mut heard = Heard::default();
        let result = self.try_turn_send(token, (number, lane), &mut heard);
        let (none, mut slots) = (Slots::default(), heard.slots.iter());
        for header in heard.frames {
            let Some(connection) = self.connections.get_mut(&token) else { return };
            if !matches!(connection.role, Role::Send { .. }) {
                return;
            }
            let slots = if header.kind == Kind::Clear { slots.next() } else { None };
            let slots = slots.unwrap_or(&none);
            let heard = match (header.kind, &heard.challenge) {
                (Kind::Challenge, Some(challenge)) => connection
                    .answer_challenge(challenge)
                    .map_err(Broken::from)
                    .and_then(|()| connection.write_small()),
                (Kind::Welcome, _) => self
                    .welcomed(token, &header, heard.welcome.as_ref())
                    .and_then(|()| Ok(self.hear(number, lane, &header, slots)?)),
                _ => self.hear(number, lane, &header, slots).map_err(Broken::from),
            };
            if let Err(broken) = heard {
                return self.lose(token, &broken);
            }
        }
        match result {
            Ok(true) => self.line_up(token),
            Ok(false) => {}
            Err(broken) => self.lose(token, &broken),
        }
    }

    /// Somebody says that the lane is welcome: is it the listener?
    fn welcomed(
        &mut self,
        token: usize,
        header: &Header,
        welcome: Option<&Welcome>,
    ) -> Result<(), Broken> {
        let connection = self.connections.get(&token);
        let greeting = connection.and_then(|connection| connection.greeting.as_ref());
        let welcome = welcome
            .filter(|welcome| greeting.is_some_and(|it| it.is_answered(welcome, header.frame)))
            .ok_or(WireError::Nonsense("a welcome from somebody who does not know the secret"))?;
        self.connect_link(token, header.frame, welcome.extra.as_ref())
    }

    /// Whether there may be more to do at once.
    fn try_turn_send(
        &mut self,
        token: usize,
        (number, lane): (u32, u16),
        heard: &mut Heard,
    ) -> Result<bool, Broken> {
        let Some(connection) = self.connections.get_mut(&token) else { return Ok(false) };
        let Some(sending) = self.sending.get_mut(number) else { return Ok(false) };
        connection.write_small()?;
        let live = sending.lanes[usize::from(lane)].phase == Phase::Live;
        let (place, host) = (sending.place(lane), sending.host(lane));
        let mut all = 0;
        while live && connection.writable && connection.is_written() && all < TURN {
            match &mut connection.link {
                Some(link) => rdma::post(link, &mut sending.half, lane, self.now)?,
                None => fill(connection, &mut sending.half, lane),
            }
            if connection.out.is_empty() {
                break;
            }
            let counts = self.counts.at(place, host);
            let Sending { half, state, .. } = sending;
            let (members, now) = (&mut self.members, self.now);
            #[expect(unsafe_code, reason = "payload is written from where it is")]
            // SAFETY: frames are of sends under way, whose memory stays by the contract of `isend`;
            // a channel that is closed clears `out` first.
            let wrote = unsafe {
                connection.write_out(|frame| {
                    if let Some(Written { subflow, over }) = half.handle_written(lane, frame) {
                        let (subflow, bytes) = subflow;
                        counts.bytes += bytes;
                        if let Some(planning) = members.planning_of(subflow) {
                            planning.written(now, subflow, bytes);
                        }
                        if let Some((status, bytes)) = over {
                            finish(state, &status, bytes);
                        }
                    }
                })
            }?;
            all += wrote;
        }
        rdma::take(connection, heard, None)?;
        read(connection, heard)?;
        if sending.half.has_request() && !sending.listed {
            sending.listed = true;
            self.to_match.push(number);
        }
        let room = connection.link.as_ref().is_none_or(Link::has_room);
        let more = live && (!connection.out.is_empty() || room && sending.half.has_frame(lane));
        Ok(connection.readable || connection.writable && more)
    }
}

/// A send is over.
pub(super) fn finish(state: &ChannelState, status: &Status, bytes: u64) {
    let mut sizes = Sizes { count: 1, ..Sizes::default() };
    sizes.sizes[0] = bytes as usize;
    // The application may go on as soon as it sees a status: first make room.
    state.end(1);
    status.finish(&sizes);
}

/// Frames for one write.
fn fill(connection: &mut Connection, half: &mut SendHalf<Arc<Status>>, lane: u16) {
    while connection.out.has_room() && connection.out.len() < TURN {
        let Some(frame) = half.poll_frame(lane) else { return };
        connection.out.push(&frame);
    }
}
