//! Messages: posted when their dependencies are met, complete when both ends say so.

use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::outcome::MessageResult;
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_balance::plan::Post;
use weft_units::{HostId, IdVec, MessageId, Time};
use weft_workload::{Dependents, When, Workload};

/// The state of all messages.
#[derive(Debug)]
pub(crate) struct Jobs {
    pub(crate) results: IdVec<MessageId, MessageResult>,
    dependents: Dependents,
    progress: IdVec<MessageId, Progress>,
    /// Messages of which one end or both are still open.
    unfinished: u32,
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Dependencies that are not met.
    unmet: u32,
    /// Queue pairs whose last acknowledgement is missing.
    pieces_open: u32,
    /// Payload that the receiver misses.
    bytes_missing: u64,
    /// When the news of the dependencies met so far reaches the sender.
    ready: Time,
}

impl Jobs {
    pub(crate) fn new(workload: &Workload) -> Jobs {
        let messages = workload.messages();
        let dependents = workload.dependents();
        let progress = messages
            .enumerate()
            .map(|(id, message)| Progress {
                unmet: dependents.unmet()[id],
                pieces_open: 0,
                bytes_missing: message.bytes,
                ready: Time::ZERO,
            })
            .collect();
        Jobs {
            results: messages.iter().map(|_| MessageResult::default()).collect(),
            dependents,
            progress,
            unfinished: messages.len() as u32,
        }
    }
    pub(crate) fn unfinished(&self) -> u32 {
        self.unfinished
    }
    pub(crate) fn add_piece(&mut self, message: MessageId) {
        self.results[message].pieces += 1;
        self.progress[message].pieces_open += 1;
    }
    pub(crate) fn into_results(self) -> IdVec<MessageId, MessageResult> {
        self.results
    }
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// Schedules the messages that wait for nothing.
    pub(crate) fn start_jobs(&mut self) {
        let messages = self.config.workload.messages();
        for (id, message) in messages.enumerate() {
            if self.jobs.progress[id].unmet == 0 {
                self.events.push(Event::new(message.start, Class::Post, id.0));
            }
        }
    }

    /// A host posts a message to its NIC.
    pub(crate) fn post(&mut self, id: MessageId) {
        let message = &self.config.workload.messages()[id];
        self.jobs.results[id].posted = self.now;
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
        let progress = &mut self.jobs.progress[id];
        progress.bytes_missing -= bytes;
        if progress.bytes_missing == 0 {
            self.jobs.results[id].received = self.now;
            self.end_reached(id, When::Received);
        }
    }

    /// A sender has the last acknowledgement of one piece.
    pub(crate) fn piece_sent(&mut self, id: MessageId) {
        let progress = &mut self.jobs.progress[id];
        progress.pieces_open -= 1;
        if progress.pieces_open == 0 {
            self.jobs.results[id].sent = self.now;
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
            let progress = &mut self.jobs.progress[*next];
            progress.unmet -= 1;
            progress.ready = progress.ready.max(news);
            if progress.unmet == 0 {
                let at = progress.ready + message.start;
                self.events.push(Event::new(at, Class::Post, next.0));
            }
        }
    }

    /// Which messages are not done, and what they wait for; the first few.
    pub(crate) fn diagnose(&self) -> String {
        const SHOWN: usize = 4;
        let open = || {
            let all = self.jobs.progress.enumerate();
            all.filter(|(id, p)| p.bytes_missing > 0 || self.jobs.results[*id].sent == Time::ZERO)
        };
        let lines: Vec<_> =
            open().take(SHOWN).map(|(id, progress)| self.diagnose_message(id, progress)).collect();
        let rest = open().count().saturating_sub(SHOWN);
        let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
        format!(
            "nothing delivered since {} (now {}): {}{more}",
            self.progress,
            self.now,
            lines.join("; ")
        )
    }

    fn diagnose_message(&self, id: MessageId, progress: &Progress) -> String {
        let message = &self.config.workload.messages()[id];
        let name = format!("message {} (host-{} -> host-{})", id.0, message.src.0, message.dst.0);
        if progress.unmet > 0 {
            return format!("{name} waits for {} dependencies", progress.unmet);
        }
        let flows = self.senders.iter().zip(&self.receivers);
        let open = flows.filter(|(send, _)| send.message == id && !send.is_done());
        let mtu = self.config.packet.mtu;
        let (stuck, here) = open.fold((0, 0), |(stuck, here), (_, receive)| {
            (stuck + 1, here + receive.bytes_of_open_piece(mtu))
        });
        format!(
            "{name} misses {} of {} bytes on {stuck} queue pairs",
            progress.bytes_missing - here,
            message.bytes
        )
    }
}
