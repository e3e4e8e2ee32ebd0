//! What receivers say, and how sending halves end.

use super::Engine;
use super::connection::Broken;
use super::lanes::Phase;
use super::pending::ALIKE;
use super::sending::finish;
use crate::CommError;
use crate::half::sender::{Completed, Part, TooLarge};
use crate::request::Status;
use crate::wire::{Header, Kind, Reason, Slots, WireError};
use std::sync::Arc;

impl Engine {
    /// What the receiver has said over `lane`.
    pub(super) fn hear(
        &mut self,
        number: u32,
        lane: u16,
        header: &Header,
        slots: &Slots,
    ) -> Result<(), WireError> {
        let Some(sending) = self.sending.get_mut(number) else { return Ok(()) };
        let mut completed = sending.completed();
        let this = &mut sending.lanes[usize::from(lane)];
        (sending.alive, sending.spoke) = (self.now, self.now);
        // Over RoCE all but this may come by the connection beside the queue pair, which says nothing of that.
        if !sending.roce || header.kind == Kind::Ack {
            sending.ends[usize::from(this.way.member)].heard = Some(self.now);
        }
        let greeting = this.phase == Phase::Greeting;
        if greeting != matches!(header.kind, Kind::Welcome | Kind::Refused) {
            return Err(WireError::Nonsense("an answer out of order"));
        }
        if let Some(connection) = this.token.and_then(|token| self.connections.get_mut(&token)) {
            connection.heard = self.now;
            if matches!(header.kind, Kind::Welcome | Kind::Ack) {
                connection.spoke = self.now;
            }
        }
        match header.kind {
            Kind::Welcome => {
                (this.phase, this.failures, this.shut) = (Phase::Live, 0, false);
                let member = this.way.member;
                // The connection beside a queue pair says nothing of the queue pair's path.
                if let Some(path) = this.way.path.filter(|_| this.losses > 0 && !sending.roce)
                    && let Some(planning) = self.members.planning(member)
                    && let Some(dst) = sending.ends[usize::from(member)].dst
                {
                    planning.works(self.now, dst, path);
                }
                sending.refused = None;
                sending.half.resume(lane, header.frame, &mut completed)?;
                sending.state.open(sending.roce);
                // What has waited for this can leave.
                self.wake_lane(number, lane);
                self.list_sending(number);
            }
            Kind::Clear => {
                let before = sending.half.next_group();
                let matched = sending.half.handle_clear(header.group, header.total, *slots)?;
                // What was said before is no progress.
                if sending.half.next_group() > before {
                    (this.losses, this.lacks) = (0, None);
                }
                if let Err(too_large) = matched {
                    self.fail_too_large(number, too_large);
                    return Ok(());
                }
                self.list_sending(number);
            }
            Kind::Ack => {
                let connection = this.token.and_then(|token| self.connections.get_mut(&token));
                let next = match connection.and_then(|connection| connection.link.as_mut()) {
                    Some(link) => link.handle_ack(header.frame, self.now)?,
                    None => header.frame,
                };
                sending.half.handle_ack(lane, next, &mut completed)?;
            }
            Kind::Ping if header.slot == 1 => {
                if let Some(token) = this.token
                    && let Some(connection) = self.connections.get_mut(&token)
                {
                    connection.out.push_header(&Header::new(Kind::Ping));
                    self.line_up(token);
                }
            }
            Kind::Ping => {}
            Kind::Refused | Kind::Bye if header.reason() == Reason::Broken => {
                let what = "the peer did not understand what was sent";
                let error = CommError::Remote(format!("{}: {what}", sending.to.address));
                self.fail_sending(number, error, None);
                return Ok(());
            }
            Kind::Bye if header.reason() == Reason::TooLarge => {
                let (size, room) = (header.total, header.offset);
                self.fail_too_large(number, TooLarge { size, room });
                return Ok(());
            }
            Kind::Refused if header.reason() == Reason::Encryption => {
                let error = CommError::Invalid(format!("{}: {ALIKE}", sending.to.address));
                self.fail_sending(number, error, None);
                return Ok(());
            }
            Kind::Refused if header.reason() == Reason::Full => {
                let token = this.token;
                token.into_iter().for_each(|token| self.lose(token, &Broken::Full));
                return Ok(());
            }
            Kind::Refused | Kind::Bye => {
                sending.leaves.get_or_insert(self.now);
                let this = &mut sending.lanes[usize::from(lane)];
                this.phase = Phase::Closed;
                if let Some(token) = this.token.take() {
                    let gone = self.connections.remove(&token);
                    let place = sending.place(lane);
                    self.counts.close(place, sending.host(lane));
                    let link = gone.and_then(|mut gone| gone.link.take());
                    self.complete_link(number, lane, link);
                }
                self.check_leaving(number);
                return Ok(());
            }
            Kind::Data | Kind::Challenge | Kind::Request => {
                return Err(WireError::Nonsense("what a receiver does not say"));
            }
        }
        self.complete(number, lane, completed);
        Ok(())
    }

    /// Fails a half whose receiver has left, if nothing more can come.
    pub(super) fn check_leaving(&mut self, number: u32) {
        let Some(sending) = self.sending.get(number) else { return };
        let connected = sending.lanes.iter().any(|lane| lane.phase == Phase::Live);
        if sending.leaves.is_some() && (!connected || sending.half.is_idle()) {
            self.fail_closed(number);
        }
    }

    pub(super) fn fail_closed(&mut self, number: u32) {
        let Some(sending) = self.sending.get(number) else { return };
        let peer = sending.to.address;
        let error = CommError::Remote(format!("{peer}: the peer has closed the channel"));
        self.fail_sending(number, error, None);
    }

    pub(super) fn complete(&mut self, number: u32, lane: u16, completed: Completed<Arc<Status>>) {
        let Some(sending) = self.sending.get_mut(number) else { return };
        if !completed.subflows.is_empty() {
            let this = &mut sending.lanes[usize::from(lane)];
            (this.losses, this.lacks) = (0, None);
            if sending.device_error.take().is_some() {
                sending.lanes.iter_mut().for_each(|lane| lane.device_errors = 0);
            }
        }
        let (path, carrier) = (sending.lanes[usize::from(lane)].way.path, sending.carrier(lane));
        for (status, Part { start, end, .. }) in completed.parts.into_iter().flatten() {
            status.note(|notes| notes.acknowledge(self.now, carrier, start, end - start));
        }
        for (subflow, bytes) in completed.subflows {
            let Some(planning) = self.members.planning_of(subflow) else { continue };
            if let Some(since) = planning.acknowledged(self.now, subflow, bytes, path) {
                // Its memory may be free now.
                self.give_up(number, subflow);
                self.doubt_others(number, subflow, since);
            }
        }
        let Some(sending) = self.sending.get_mut(number) else { return };
        for (status, bytes) in completed.sends {
            finish(&sending.state, &status, bytes);
        }
        if sending.closes.is_some() && sending.half.is_idle() {
            self.fail_closing(number);
        }
    }

    pub(super) fn fail_too_large(&mut self, number: u32, too_large: TooLarge) {
        let Some(sending) = self.sending.get(number) else { return };
        let TooLarge { size, room } = too_large;
        let peer = sending.to.address;
        let error = CommError::Invalid(format!(
            "{peer}: a message of {size} bytes, but the buffer that it is for has {room}; receive \
             into a buffer as large as what is sent"
        ));
        let bye = Header {
            slot: Reason::TooLarge as u8,
            offset: room,
            total: size,
            ..Header::new(Kind::Bye)
        };
        self.fail_sending(number, error, Some(bye));
    }

    /// All its requests fail, and all to come.
    pub(super) fn fail_sending(&mut self, number: u32, error: CommError, bye: Option<Header>) {
        let Some(sending) = self.sending.get_mut(number) else { return };
        sending.state.fail(error);
        let closes = sending.closes.is_some();
        self.end_sending(number, bye);
        if closes {
            self.sending.remove(number);
        }
    }

    /// What was closed by the application goes.
    pub(super) fn fail_closing(&mut self, number: u32) {
        self.fail_sending(number, CommError::Invalid("the channel is closed".into()), None);
    }

    /// Says goodbye over its lanes, and does not touch its memory again.
    pub(super) fn end_sending(&mut self, number: u32, bye: Option<Header>) {
        let bye = bye.unwrap_or(Header::new(Kind::Bye));
        let Some(sending) = self.sending.get_mut(number) else { return };
        sending.over = true;
        let mut leaving = Vec::new();
        for lane in 0..sending.lanes.len() {
            let (place, host) = (sending.place(lane as u16), sending.host(lane as u16));
            let this = &mut sending.lanes[lane];
            this.again_at = None;
            let live = this.phase == Phase::Live;
            this.phase = Phase::Closed;
            let Some(token) = this.token.take() else { continue };
            self.counts.close(place, host);
            let Some(connection) = self.connections.get_mut(&token) else { continue };
            if !live {
                self.connections.remove(&token);
                continue;
            }
            // Before any status says that memory is free again.
            connection.link = None;
            #[expect(unsafe_code, reason = "the rest of a frame is copied")]
            // SAFETY: the caller of this has not let go of the memory yet.
            let rest = unsafe { connection.out.detach() };
            connection.small.extend_from_slice(&rest);
            connection.small.extend_from_slice(&bye.encode());
            leaving.push(token);
        }
        sending.fail_all();
        let now = self.now;
        self.members.plannings().for_each(|planning| planning.forget(now, number));
        leaving.into_iter().for_each(|token| self.leave(token));
    }

    pub(super) fn close_sending(&mut self, channel: u64) {
        let Some(number) = self.senders.remove(&channel) else { return };
        let Some(sending) = self.sending.get_mut(number) else { return };
        let closes = Some(self.now + super::LAST);
        if sending.over {
            self.sending.remove(number);
        } else if sending.holds_copies() {
            sending.closes = closes;
        } else {
            sending.closes = closes;
            self.fail_closing(number);
        }
    }
}
