//! Lanes that have a queue pair beside their connection.

use super::connection::{Broken, Connection, Role};
use super::lanes::Phase;
use super::{Engine, QUEUES};
use crate::half::sender::SendHalf;
use crate::handle::Parts;
use crate::memory::Span;
use crate::request::Status;
use crate::roce::greeting::{GREETING, Greeting};
use crate::roce::link::LinkError;
use crate::roce::{Keys, Link, Nic, Nics};
use crate::stream::inflow::{Sink, check};
use crate::wire::{HEADER, Header, Hello, Kind, Slot, WireError};
use crate::{Backend, CommError, EndpointConfig};
use mio::Interest;
use mio::unix::SourceFd;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use weft_verbs::VerbsError;

const FAILED: &str = "the RDMA device has failed";

impl From<VerbsError> for Broken {
    fn from(error: VerbsError) -> Broken {
        Broken::Rdma(error.to_string())
    }
}

/// The devices, if the configurations want them; and if they do, one is not there and TCP will do, why.
///
/// # Errors
/// If one is not there and TCP will not do.
pub(super) fn open(
    configs: &[EndpointConfig],
) -> Result<(Option<Nics>, Option<String>), CommError> {
    let (at, error) = match Nics::open(configs, super::random()?) {
        Ok(nics) => return Ok((nics, None)),
        Err((at, error)) => (at, error.to_string()),
    };
    let name = &configs[at].name;
    let or_tcp = |one: &EndpointConfig| matches!(one.backend, Backend::Roce { or_tcp: true, .. });
    match configs.iter().all(or_tcp) {
        true => Ok((None, Some(format!("{name}: {error}; using TCP")))),
        false => Err(CommError::System(format!("{name}: {error}; allow TCP to do without RoCE"))),
    }
}

/// Makes the memory of a send known, if it goes by a device.
pub(super) fn lend_send(
    nics: Option<&Nics>,
    body: Span,
    status: &Arc<Status>,
) -> Result<(), CommError> {
    match nics {
        Some(nics) if !body.is_empty() => lend(nics, body, status).map(drop),
        _ => Ok(()),
    }
}

/// Makes the memory of a receive known, if it comes by a device, and writes into its slots where it is.
pub(super) fn lend_receive(
    nics: Option<&Nics>,
    buffers: &mut [(Span, Slot)],
    status: &Arc<Status>,
) -> Result<(), CommError> {
    let Some(nics) = nics else { return Ok(()) };
    for (span, slot) in buffers.iter_mut().filter(|(span, _)| !span.is_empty()) {
        (slot.address, slot.keys) = (span.start() as u64, lend(nics, *span, status)?);
    }
    Ok(())
}

impl Engine {
    /// Whether there is a way to the peer's memory, or TCP will do. A device may have failed since it was opened.
    pub(super) fn check_roce(&self, to: &Parts) -> Result<(), CommError> {
        let name = &self.config.name;
        match &self.config.backend {
            Backend::Roce { or_tcp: false, .. } if self.nics.is_none() => Err(CommError::System(
                format!("{name}: {FAILED}; start the process again, or allow TCP"),
            )),
            Backend::Roce { or_tcp: false, .. } if !to.roce => Err(CommError::Remote(format!(
                "{} has no RoCE; allow TCP, or see what its log says about its RDMA device",
                to.address
            ))),
            _ => Ok(()),
        }
    }

    /// A link for the connection that will be added next and leaves from `port` of a NIC. Where that is none of
    /// RoCE's, since the system has picked it, its packets leave from the one that has its last bits.
    pub(super) fn new_link(&mut self, nic: u8, port: u16) -> Result<Link, VerbsError> {
        let (token, now) = (self.next_token as u32, self.now);
        let none = || VerbsError::Device(FAILED.into());
        let nic = self.nics.as_mut().and_then(|nics| nics.get_mut(nic)).ok_or_else(none)?;
        self.made_links += 1;
        let link = nic.link(token, port | 0xC000, now)?;
        self.watch_queues();
        Ok(link)
    }

    /// The receiver has answered: connects the link of the connection, if it has one. From now on
    /// frames below `next` are completed.
    pub(super) fn connect_link(
        &mut self,
        token: usize,
        next: u64,
        answer: Option<&[u8; GREETING]>,
    ) -> Result<(), Broken> {
        let Some(connection) = self.connections.get_mut(&token) else { return Ok(()) };
        let Some(link) = &mut connection.link else { return Ok(()) };
        let nics = self.nics.as_ref();
        let Some(nic) = nics.and_then(|nics| nics.get(link.nic())) else { return Ok(()) };
        let Some(answer) = answer else {
            return Err(WireError::Nonsense("an answer without a queue pair").into());
        };
        let dscp = connection.greeting.as_ref().map_or(self.config.dscp, |it| it.hello.dscp);
        nic.connect(link, &Greeting::decode(answer)?, dscp)?;
        link.begin(next, self.now);
        Ok(())
    }

    /// The receiving end of what `hello` tells of, if it tells of a queue pair.
    pub(super) fn answer_link(
        &mut self,
        token: usize,
        hello: &Hello,
    ) -> Result<Option<Link>, Broken> {
        if !hello.roce {
            return Ok(None);
        }
        let Some(nics) = &mut self.nics else {
            // There was one when the handle was made.
            return Err(Broken::Rdma(FAILED.into()));
        };
        let by = match self.connections.get(&token).map(|connection| &connection.role) {
            Some(Role::Stranger { nic, .. }) => *nic,
            _ => 0,
        };
        let Some(nic) = nics.get_mut(by) else {
            return Err(Broken::Rdma(FAILED.into()));
        };
        let greeting = Greeting::decode(&hello.extra)?;
        let link = nic.answer(token as u32, &greeting, hello.dscp, self.now)?;
        self.watch_queues();
        Ok(Some(link))
    }

    /// Looks at what has ended; connections of such links get a turn. Whether there were any.
    pub(super) fn poll_links(&mut self) -> bool {
        let Some(nics) = &self.nics else { return false };
        let (connections, now) = (&mut self.connections, self.now);
        let (mut woken, mut lost) = (Vec::new(), None);
        for nic in nics.all() {
            let polled = nic.poll(|tag, end, queue| {
                let token = tag as usize;
                let link = connections.get_mut(&token).and_then(|one| one.link.as_mut());
                if let Some(link) = link {
                    link.handle_end(end, queue, now);
                    if woken.last() != Some(&token) {
                        woken.push(token);
                    }
                }
            });
            lost = lost.or(polled.err().map(|error| (nic.number(), error)));
        }
        let some = !woken.is_empty() || lost.is_some();
        woken.into_iter().for_each(|token| self.line_up(token));
        lost.into_iter().for_each(|(nic, error)| self.lose_device(nic, &error));
        some
    }

    /// A frame has left our memory.
    fn handle_written(&mut self, number: u32, lane: u16, frame: u64) {
        let Some(sending) = self.sending.get_mut(number) else { return };
        let Some(written) = sending.half.handle_written(lane, frame) else { return };
        let (subflow, bytes) = written.subflow;
        self.counts.at(sending.place(lane), sending.host(lane)).bytes += bytes;
        if let Some(planning) = self.members.planning_of(subflow) {
            planning.written(self.now, subflow, bytes);
        }
    }

    /// Ends the link of a sending lane. What the receiver has is completed now: it cannot leave our memory
    /// any more.
    pub(super) fn complete_link(&mut self, number: u32, lane: u16, link: Option<Link>) {
        let Some(link) = link else { return };
        // What it had posted may have arrived, or may not: the receiver will say.
        let acknowledged = link.end(|frame| self.handle_written(number, lane, frame));
        let Some(sending) = self.sending.get_mut(number) else { return };
        let mut completed = sending.completed();
        if sending.half.handle_ack(lane, acknowledged, &mut completed).is_ok() {
            self.complete(number, lane, completed);
        }
    }

    /// Asks to be woken when something ends. Whether nothing has until now.
    pub(super) fn links_may_sleep(&mut self) -> bool {
        let Some(nics) = &self.nics else { return true };
        let broken = |nic: &Nic| nic.arm().err().map(|error| (nic.number(), error));
        let broken = nics.all().find_map(broken);
        match broken {
            None => !self.poll_links(),
            Some((nic, error)) => {
                self.lose_device(nic, &error);
                false
            }
        }
    }

    /// The device of a NIC has failed. Its lanes lose their connections, find that they can have no other there,
    /// and leave for those that are left; without any an endpoint is of no use, and all its channels fail.
    fn lose_device(&mut self, nic: u8, error: &VerbsError) {
        let error = CommError::System(format!("{}: {error}", self.config.name));
        if self.nics.as_mut().is_some_and(|nics| nics.lose(nic)) {
            let is_of = |one: &Connection| one.link.as_ref().is_some_and(|link| link.nic() == nic);
            let all =
                self.connections.iter().filter(|(_, one)| is_of(one)).map(|(token, _)| *token);
            for token in all.collect::<Vec<_>>() {
                self.lose(token, &Broken::System(io::ErrorKind::TimedOut.into()));
            }
            return;
        }
        self.nics = None;
        for number in self.sending.numbers() {
            self.fail_sending(number, error.clone(), None);
        }
        for number in self.receiving.numbers() {
            self.fail_receiving(number, error.clone());
        }
    }

    pub(super) fn watch_queues(&mut self) {
        let Some(nics) = &mut self.nics else { return };
        for file in nics.new_files() {
            // Without it the engine looks again when something is late.
            let _ = self.poll.registry().register(&mut SourceFd(&file), QUEUES, Interest::READABLE);
        }
    }

    /// What the link of a sending lane has done since the last turn. Whether it is still there.
    pub(super) fn turn_send_link(&mut self, token: usize, number: u32, lane: u16) -> bool {
        let Some(connection) = self.connections.get_mut(&token) else { return false };
        let Some(link) = &mut connection.link else { return true };
        let Some(sending) = self.sending.get(number) else { return true };
        if sending.lanes[usize::from(lane)].phase != Phase::Live {
            return true;
        }
        let (next, trouble) = (link.completed(), link.broken.clone());
        let written: Vec<u64> = std::iter::from_fn(|| link.count()).collect();
        written.into_iter().for_each(|frame| self.handle_written(number, lane, frame));
        let Some(sending) = self.sending.get_mut(number) else { return true };
        let mut completed = sending.completed();
        let heard = sending.half.handle_ack(lane, next, &mut completed);
        self.complete(number, lane, completed);
        match (heard, trouble) {
            (Err(error), _) => self.lose(token, &error.into()),
            (Ok(()), Some(LinkError::NoAnswer)) => self.time_out(number, lane),
            (Ok(()), Some(LinkError::Failed(why))) => self.lose(token, &Broken::Rdma(why)),
            (Ok(()), None) => return true,
        }
        false
    }
}

/// Posts what `lane` has to send, as far as there is room.
pub(super) fn post(
    link: &mut Link,
    half: &mut SendHalf<Arc<Status>>,
    lane: u16,
    now: Instant,
) -> Result<(), Broken> {
    while link.has_room()
        && let Some(frame) = half.poll_frame(lane)
    {
        #[expect(unsafe_code, reason = "payload is sent from where it is")]
        // SAFETY: frames are of sends under way, whose memory stays by the contract of `isend` until they
        // are completed, which is when the link has (`turn_send_link`); a channel that is closed or fails
        // drops its links first.
        unsafe { link.post(&frame, now) }?;
    }
    Ok(())
}

/// Says by the link what waits, as far as there is room.
pub(super) fn say(link: &mut Option<Link>, frames: &mut Vec<u8>) -> Result<(), Broken> {
    let Some(link) = link else { return Ok(()) };
    let mut done = 0;
    while let Some(header) = frames[done..].first_chunk() {
        let end = done + HEADER + Header::decode(header)?.len as usize;
        if !link.say(&frames[done..end])? {
            break;
        }
        done = end;
    }
    frames.drain(..done);
    Ok(())
}

/// Takes the frames that came by the link of a lane, data from frame `next` on; bytes taken.
pub(super) fn take(
    connection: &mut Connection,
    sink: &mut impl Sink,
    mut next: Option<u64>,
) -> Result<usize, Broken> {
    let Some(link) = &mut connection.link else { return Ok(0) };
    let mut all = 0;
    while let Some(frame) = link.take()? {
        let (bytes, rest) = frame.split_first_chunk().expect("room for a header");
        let header = Header::decode(bytes)?;
        let mut body = Span::EMPTY;
        let mut words = &[][..];
        if header.kind == Kind::Data {
            // A device that loses a message has failed: the lane goes on with another link.
            if next.is_some_and(|next| header.frame != next) {
                return Err(Broken::Rdma(format!("the device has lost frame {next:?}")));
            }
            next = next.map(|next| next + 1);
            body = sink.begin(&header)?;
            if !header.checked || !link.may_read(body) {
                sink.end(&header, &[])?;
                all += HEADER + body.len();
                continue;
            }
            #[expect(unsafe_code, reason = "reads what came")]
            // SAFETY: it belongs to a receive under way, whose memory stays by the contract of `irecv`,
            // and the device has written all of it before the header.
            unsafe {
                words = body.bytes();
            }
        } else if let Some(some) = rest.get(..header.len as usize) {
            words = some;
        }
        if header.checked && !check(&header, words) {
            return Err(WireError::Damaged.into());
        }
        sink.end(&header, if header.kind == Kind::Data { &[] } else { words })?;
        all += HEADER + body.len();
    }
    match &link.broken {
        None => Ok(all),
        Some(LinkError::NoAnswer) => Err(Broken::System(io::ErrorKind::TimedOut.into())),
        Some(LinkError::Failed(why)) => Err(Broken::Rdma(why.clone())),
    }
}

/// Whether nothing has come back for what the link of a sending lane has out, for `time_out`;
/// `None` if it has nothing out. The process at its other end may stand still: nothing is wrong with the path then.
pub(super) fn is_late(
    connection: &Connection,
    now: Instant,
    time_out: std::time::Duration,
) -> Option<bool> {
    let link = connection.link.as_ref().filter(|link| link.is_out())?;
    debug_assert!(matches!(connection.role, Role::Send { .. }));
    Some(now.duration_since(link.alive.max(connection.heard)) >= time_out)
}

fn lend(nics: &Nics, span: Span, status: &Arc<Status>) -> Result<Keys, CommError> {
    #[expect(unsafe_code, reason = "memory of the application")]
    // SAFETY: mapped while the request is under way, by the contracts of `isend` and `irecv`.
    let lent = unsafe { nics.memory().lend(span, status) };
    lent.map_err(|error| CommError::System(error.to_string()))
}
