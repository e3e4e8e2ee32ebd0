//! Jobs on an ideal network: every message takes a latency and its bytes at a rate, whatever else
//! is under way.

use std::collections::BTreeMap;
use weft_units::Time;
use weft_workload::job::{Action, Job, Receipt, Runner, Sent};

/// A network without a network.
#[derive(Clone, Copy)]
pub(crate) struct Ideal {
    /// Of a message, and of an acknowledgement.
    pub(crate) latency: Time,
    /// How long a byte of a message takes.
    pub(crate) ps_per_byte: u64,
}

#[derive(Clone, Copy)]
enum Event {
    Received(u32, Receipt),
    Sent(u32, Sent),
    Wake(u32, u32),
}

/// What a run came to.
pub(crate) struct Outcome {
    /// When the last node was done.
    pub(crate) end: Time,
    /// How many messages there were.
    pub(crate) messages: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// When each node of each rank was done.
    pub(crate) finished: BTreeMap<(u32, u32), Time>,
}

/// Runs `job` to its end.
pub(crate) fn run(job: &Job, ideal: Ideal) -> Outcome {
    let mut runner = Runner::new(job, |_| true);
    let mut agenda: BTreeMap<(Time, u64), Event> = BTreeMap::new();
    let mut outcome = Outcome { end: Time::ZERO, messages: 0, bytes: 0, finished: BTreeMap::new() };
    let (mut count, mut now, mut out) = (0, Time::ZERO, Vec::new());
    runner.start(now, &mut out);
    loop {
        for action in out.drain(..) {
            let mut at = |time: Time, event: Event| {
                count += 1;
                agenda.insert((time, count), event);
            };
            match action {
                Action::Post { src, dst, bytes, sent, receipt } => {
                    let there = now + ideal.latency + Time(ideal.ps_per_byte * bytes);
                    at(there + receipt.takes, Event::Received(dst, receipt));
                    at(there + ideal.latency, Event::Sent(src, sent));
                    outcome.messages += 1;
                    outcome.bytes += bytes;
                }
                Action::Join { .. } => unreachable!("no switch adds up here"),
                Action::Wake { rank, node, at: time } => at(time, Event::Wake(rank, node)),
                Action::Begun { .. } => {}
                Action::Phase { .. } | Action::Paused { .. } => {
                    unreachable!("nobody cuts collectives here")
                }
                Action::Finished { rank, node } => {
                    assert_eq!(outcome.finished.insert((rank, node), now), None);
                    outcome.end = now;
                }
            }
        }
        let Some(((time, _), event)) = agenda.pop_first() else { break };
        now = time;
        match event {
            Event::Received(rank, receipt) => runner.received(now, rank, receipt, &mut out),
            Event::Sent(rank, sent) => runner.sent(now, rank, sent, &mut out),
            Event::Wake(rank, node) => runner.woken(now, rank, node, &mut out),
        }
    }
    assert_eq!(
        runner.unfinished(),
        0,
        "{:?}",
        (0..job.ranks()).map(|r| runner.waits(r)).collect::<Vec<_>>()
    );
    outcome
}
