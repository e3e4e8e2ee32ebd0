//! Messages: posted when their dependencies are met, complete when both ends say so.

use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::outcome::MessageResult;
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_balance::plan::Post;
use weft_units::{HostId, IdVec, MessageId, Time};
use weft_workload::{Dependents, When, Workload};

/// The state of all messages: what their senders know, and what their receivers know.
#[derive(Debug)]
pub(crate) struct Jobs {
    dependents: Dependents,
    sending: IdVec<MessageId, Sending>,
    receiving: IdVec<MessageId, Receiving>,
    /// Messages that are not acknowledged to the end.
    unfinished: u32,
}

/// A message at its sender.
#[derive(Clone, Copy, Debug, Default)]
struct Sending {
    /// Dependencies that are not met.
    unmet: u32,
    /// Queue pairs that carry it.
    pieces: u32,
    retransmits: u32,
    /// Payload on queue pairs that are not acknowledged to the end.
    bytes_open: u64,
    /// When the news of the dependencies met so far reaches the sender.
    ready: Time,
    posted: Time,
    sent: Time,
}

/// A message at its receiver.
#[derive(Clone, Copy, Debug, Default)]
struct Receiving {
    bytes_missing: u64,
    spurious: u32,
    received: Time,
}

impl Jobs {
    pub(crate) fn new(workload: &Workload) -> Jobs {
        let messages = workload.messages();
        let dependents = workload.dependents();
        let sending = messages.enumerate().map(|(id, message)| Sending {
            unmet: dependents.unmet()[id],
            bytes_open: message.bytes,
            ..Sending::default()
        });
        let receiving = messages
            .iter()
            .map(|message| Receiving { bytes_missing: message.bytes, ..Receiving::default() });
        Jobs {
            sending: sending.collect(),
            receiving: receiving.collect(),
            dependents,
            unfinished: messages.len() as u32,
        }
    }
    pub(crate) fn unfinished(&self) -> u32 {
        self.unfinished
    }
    pub(crate) fn add_piece(&mut self, message: MessageId) {
        self.sending[message].pieces += 1;
    }
    pub(crate) fn add_retransmit(&mut self, message: MessageId) {
        self.sending[message].retransmits += 1;
    }
    pub(crate) fn add_spurious(&mut self, message: MessageId) {
        self.receiving[message].spurious += 1;
    }
    pub(crate) fn into_results(self) -> IdVec<MessageId, MessageResult> {
        let both = self.sending.iter().zip(self.receiving.iter());
        both.map(|(sending, receiving)| MessageResult {
            posted: sending.posted,
            received: receiving.received,
            sent: sending.sent,
            pieces: sending.pieces,
            retransmits: sending.retransmits,
            spurious: receiving.spurious,
        })
        .collect()
    }
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// Schedules the messages that wait for nothing.
    pub(crate) fn start_jobs(&mut self) {
        let messages = self.config.workload.messages();
        for (id, message) in messages.enumerate() {
            if self.jobs.sending[id].unmet == 0 {
                self.events.push(Event::new(message.start, Class::Post, id.0));
            }
        }
    }

    /// A host posts a message to its NIC.
    pub(crate) fn post(&mut self, id: MessageId) {
        let message = &self.config.workload.messages()[id];
        self.jobs.sending[id].posted = self.now;
        // A pause in the workload is no stall: from now on something can be delivered.
        self.progress = self.now;
        let post = Post { message: id, dst: message.dst, bytes: message.bytes };
        let host = message.src;
        let planner = &mut self.hosts[host].planner;
        planner.post(self.now, post, self.config.fabric, &mut self.pieces);
        let deadline = planner.deadline();
        self.flush_by(host, deadline);
        self.open_flows(host);
    }

    /// Sees to it that a `Flush` event comes at `deadline`.
    fn flush_by(&mut self, host: HostId, deadline: Option<Time>) {
        let state = &mut self.hosts[host];
        if let Some(at) = deadline
            && state.flush_at != deadline
        {
            state.flush_at = deadline;
            self.events.push(Event::new(at, Class::Flush, host.0));
        }
    }

    /// A planner's batch is complete.
    pub(crate) fn flush(&mut self, host: HostId) {
        let state = &mut self.hosts[host];
        state.flush_at = None;
        state.planner.flush(self.now, self.config.fabric, &mut self.pieces);
        let deadline = state.planner.deadline();
        self.flush_by(host, deadline);
        self.open_flows(host);
    }

    /// A receiver has all of one piece, `bytes` of payload.
    pub(crate) fn piece_received(&mut self, id: MessageId, bytes: u64) {
        let receiving = &mut self.jobs.receiving[id];
        receiving.bytes_missing -= bytes;
        if receiving.bytes_missing == 0 {
            receiving.received = self.now;
            self.end_reached(id, When::Received);
        }
    }

    /// A sender has the last acknowledgement of one piece, `bytes` of payload.
    pub(crate) fn piece_sent(&mut self, id: MessageId, bytes: u64) {
        let sending = &mut self.jobs.sending[id];
        sending.bytes_open -= bytes;
        if sending.bytes_open == 0 {
            sending.sent = self.now;
            self.jobs.unfinished -= 1;
            self.end_reached(id, When::Sent);
        }
    }

    /// One end of a message is done: whoever waited for it may go on. Where the waiting host
    /// is not the one that saw it, the news takes one link delay, the least that keeps hosts
    /// independent of each other for that long.
    fn end_reached(&mut self, id: MessageId, when: When) {
        let messages = self.config.workload.messages();
        let observer = match when {
            When::Sent => messages[id].src,
            When::Received => messages[id].dst,
        };
        for next in self.jobs.dependents.waiting(id, when) {
            let message = &messages[*next];
            let news = match message.src == observer {
                true => self.now,
                false => self.now + self.config.fabric.min_delay(),
            };
            let waiting = &mut self.jobs.sending[*next];
            waiting.unmet -= 1;
            waiting.ready = waiting.ready.max(news);
            if waiting.unmet == 0 {
                let at = waiting.ready + message.start;
                self.events.push(Event::new(at, Class::Post, next.0));
            }
        }
    }

    /// Which messages are not done, and what they wait for; the first few.
    pub(crate) fn diagnose(&self) -> String {
        const SHOWN: usize = 4;
        let open = || {
            let all = self.jobs.sending.enumerate();
            all.filter(|(_, sending)| sending.bytes_open > 0).map(|(id, _)| id)
        };
        let lines: Vec<_> = open().take(SHOWN).map(|id| self.diagnose_message(id)).collect();
        let rest = open().count().saturating_sub(SHOWN);
        let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
        format!(
            "nothing delivered since {} (now {}): {}{more}",
            self.progress,
            self.now,
            lines.join("; ")
        )
    }

    fn diagnose_message(&self, id: MessageId) -> String {
        let message = &self.config.workload.messages()[id];
        let name = format!("message {} (host-{} -> host-{})", id.0, message.src.0, message.dst.0);
        let unmet = self.jobs.sending[id].unmet;
        if unmet > 0 {
            return format!("{name} waits for {unmet} dependencies");
        }
        let flows = self.senders.iter().zip(&self.receivers);
        let open = flows.filter(|(send, _)| send.message == id && !send.is_done());
        let mtu = self.config.packet.mtu;
        let (stuck, here) = open.fold((0, 0), |(stuck, here), (_, receive)| {
            (stuck + 1, here + receive.bytes_of_open_piece(mtu))
        });
        format!(
            "{name} misses {} of {} bytes on {stuck} queue pairs",
            self.jobs.receiving[id].bytes_missing - here,
            message.bytes
        )
    }
}
