//! A job in steps, as though every message took as long as every other: what goes side by side.

use super::runner::{Action, Receipt, Runner, Sent};
use super::{Job, Role};
use crate::collective::Step;
use crate::trace::Work;
use std::ops::ControlFlow;

/// A message of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The sending rank.
    pub src: u32,
    /// Which receives; never `src`.
    pub dst: u32,
    /// Payload, at least one byte.
    pub bytes: u64,
    /// Which node of the sender's graph it is for.
    pub node: u32,
}

enum Happening {
    Received(u32, Receipt),
    Sent(u32, Sent),
    Woken(u32, u32),
}

impl Job {
    /// Everything that the job sends, step by step: a message is in the step after the last one
    /// that it waits for, computations take no time, and so a step is what ranks in lockstep send
    /// at once. `each` gets the messages of one step after the other, those of a rank in the order
    /// in which it posts them.
    pub fn levels(&self, mut each: impl FnMut(&[Transfer])) {
        if let Some(phases) = self.phases() {
            return phases.iter().for_each(|phase| each(phase));
        }
        let mut runner = Runner::new(self, |_| true);
        let (mut actions, mut now, mut later) = (Vec::new(), Vec::new(), Vec::new());
        let mut level: Vec<Transfer> = Vec::new();
        // Time stands still, but for ranks that begin at one of their own.
        let mut time = weft_units::Time::ZERO;
        runner.start(time, &mut actions);
        loop {
            for action in actions.drain(..) {
                match action {
                    Action::Post { src, dst, bytes, sent, receipt } => {
                        level.push(Transfer { src, dst, bytes, node: sent.node });
                        later.push(Happening::Received(dst, receipt));
                        if self.awaits_sent(src, sent.node) {
                            later.push(Happening::Sent(src, sent));
                        }
                    }
                    Action::Wake { rank, node, at } => {
                        time = time.max(at);
                        now.push(Happening::Woken(rank, node));
                    }
                    // Switches are done as soon as the last has joined: in the next step at the earliest.
                    Action::Join { rank, receipt, .. } => {
                        later.push(Happening::Received(rank, receipt));
                    }
                    Action::Begun { .. } | Action::Finished { .. } => {}
                    Action::Phase { .. } | Action::Paused { .. } => {
                        unreachable!("nobody cuts collectives here")
                    }
                }
            }
            let next = now.pop().or_else(|| {
                if !level.is_empty() {
                    level.sort_by_key(|one| one.src);
                    each(&level);
                    level.clear();
                }
                // The last of them is taken first: which is first makes no difference.
                now.append(&mut later);
                now.pop()
            });
            match next {
                None => return,
                Some(Happening::Received(rank, receipt)) => {
                    runner.received(time, rank, receipt, &mut actions);
                }
                Some(Happening::Sent(rank, sent)) => runner.sent(time, rank, sent, &mut actions),
                Some(Happening::Woken(rank, node)) => {
                    runner.woken(time, rank, node, &mut actions);
                }
            }
        }
    }

    /// The steps of a job that is one collective of everybody to everybody: very many messages in
    /// very few steps, which need not be played through.
    fn phases(&self) -> Option<Vec<Vec<Transfer>>> {
        let mut phases: Vec<Vec<Transfer>> = Vec::new();
        for rank in 0..self.ranks() {
            let [node] = self.trace.graph(rank).nodes() else { return None };
            let Work::Collective(one) = &node.work else { return None };
            let Some(role) = self.role(rank, one) else { continue };
            let Role { steps, chunks: 1, .. } = role else { return None };
            if !steps.is_at_once() {
                return None;
            }
            let members = self.trace.members(one.group, rank).expect("it is a member");
            let (mut phase, mut has_received) = (0, false);
            let played = role.each_step(|step| {
                match step {
                    Step::Send { to, payload: bytes, .. } => {
                        phase += usize::from(std::mem::take(&mut has_received));
                        phases.resize_with(phases.len().max(phase + 1), Vec::new);
                        if bytes > 0 {
                            let dst = members.rank(to);
                            phases[phase].push(Transfer { src: rank, dst, bytes, node: 0 });
                        }
                    }
                    Step::Receive { .. } => has_received = true,
                    Step::Sent(_) | Step::Switched { .. } => return ControlFlow::Break(()),
                }
                ControlFlow::Continue(())
            });
            if played.is_break() {
                return None;
            }
        }
        Some(phases)
    }
}
