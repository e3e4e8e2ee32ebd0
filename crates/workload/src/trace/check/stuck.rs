//! Running a trace without time: which nodes never start or finish, and in which circles they
//! wait.

use super::meetings::{Meetings, Place, call_key, label, receive_key, send_key};
use super::{Findings, Looks};
use crate::trace::rank_graph::Followers;
use crate::trace::{Action, Collective, Trace, Work};
use std::collections::{BTreeMap, BTreeSet};

/// Runs the trace and tells of what stays behind.
pub(super) fn look(trace: &Trace, looks: &Looks, meetings: &Meetings, findings: &mut Findings) {
    let mut run = Run::new(trace, looks, meetings);
    run.all();
    findings.nodes = run.done.len() as u64;
    findings.stuck = run.done.iter().filter(|done| !**done).count() as u64;
    run.circles(findings);
}

struct Run<'a> {
    trace: &'a Trace,
    looks: &'a Looks,
    meetings: &'a Meetings,
    followers: Vec<Followers>,
    /// Where the nodes of each rank that is looked at begin among all; one more than there are.
    starts: Vec<usize>,
    /// How much each node waits for; what will never come counts, too.
    unmet: Vec<u32>,
    done: Vec<bool>,
    ready: Vec<Place>,
    /// How many ranks have reached each collective.
    arrived: BTreeMap<(u32, u32, u32), u32>,
}

/// What a node waits for.
enum Wait {
    /// Another node.
    Node(Place),
    /// Something that is not there, which has been told already.
    Nothing,
}

/// Whether a collective makes its ranks wait for each other.
fn joins(one: &Collective) -> bool {
    one.action == Action::Barrier || !one.size.is_zero()
}

impl<'a> Run<'a> {
    fn new(trace: &'a Trace, looks: &'a Looks, meetings: &'a Meetings) -> Run<'a> {
        let mut starts = vec![0];
        for rank in looks.ranks() {
            starts.push(starts[looks.place(rank)] + trace.graph(rank).nodes().len());
        }
        let count = starts[starts.len() - 1];
        let mut run = Run {
            trace,
            looks,
            meetings,
            followers: trace.graphs.iter().map(|one| one.followers()).collect(),
            starts,
            unmet: vec![0; count],
            done: vec![false; count],
            ready: Vec::new(),
            arrived: BTreeMap::new(),
        };
        for rank in looks.ranks() {
            run.count(rank);
        }
        run
    }

    fn at(&self, (rank, node): Place) -> usize {
        self.starts[self.looks.place(rank)] + node as usize
    }

    fn work(&self, (rank, node): Place) -> &'a Work {
        &self.trace.graph(rank).nodes()[node as usize].work
    }

    /// What the nodes of a rank wait for.
    fn count(&mut self, rank: u32) {
        let graph = self.trace.graph(rank);
        for node in 0..graph.nodes().len() as u32 {
            let place = self.at((rank, node));
            self.unmet[place] = graph.waits(node).len() as u32;
            if matches!(self.work((rank, node)), Work::Receive(_)) {
                self.unmet[place] += 1;
            }
        }
        for (node, _) in graph.missing() {
            let place = self.at((rank, *node));
            self.unmet[place] += 1;
        }
        let places = (0..graph.nodes().len() as u32).map(|node| (rank, node));
        let free: Vec<Place> = places.filter(|place| self.unmet[self.at(*place)] == 0).collect();
        self.ready.extend(free);
    }

    fn all(&mut self) {
        while let Some(place) = self.ready.pop() {
            match self.work(place) {
                Work::Collective(one) if joins(one) => self.arrive(place, one),
                _ => self.finish(place),
            }
        }
    }

    /// A rank has reached a collective, and is the last one perhaps.
    fn arrive(&mut self, place: Place, one: &Collective) {
        if self.looks.is_own(one.group) {
            return self.finish(place);
        }
        let Some(key) = call_key(self.trace, place.0, one) else { return };
        let meetings = self.meetings;
        let Some(meeting) = meetings.calls.get(&key) else { return };
        let arrived = self.arrived.entry(key).or_default();
        *arrived += 1;
        if *arrived == meeting.expected {
            for member in &meeting.present {
                self.finish(*member);
            }
        }
    }

    fn finish(&mut self, place: Place) {
        let at = self.at(place);
        if std::mem::replace(&mut self.done[at], true) {
            return;
        }
        let (rank, node) = place;
        let trace = self.trace;
        let graph = trace.graph_index(rank);
        for next in 0..self.followers[graph].of(node).len() {
            let next = self.followers[graph].of(node)[next];
            self.meet((rank, next));
        }
        if let Work::Send(one) = self.work(place)
            && let Some(receive) = self.meetings.receives.get(&send_key(rank, one))
        {
            self.meet(*receive);
        }
    }

    fn meet(&mut self, place: Place) {
        let at = self.at(place);
        self.unmet[at] -= 1;
        if self.unmet[at] == 0 {
            self.ready.push(place);
        }
    }

    /// What a stuck node waits for.
    fn wait(&self, place: Place) -> Wait {
        let (rank, node) = place;
        let waits = self.trace.graph(rank).waits(node);
        if let Some(wait) = waits.iter().find(|wait| !self.done[self.at((rank, **wait))]) {
            return Wait::Node((rank, *wait));
        }
        match self.work(place) {
            Work::Receive(one) => match self.meetings.sends.get(&receive_key(rank, one)) {
                Some(send) if !self.done[self.at(*send)] => Wait::Node(*send),
                _ => Wait::Nothing,
            },
            Work::Collective(one) => {
                let key = call_key(self.trace, rank, one);
                let meeting = key.and_then(|key| self.meetings.calls.get(&key));
                let late = meeting.and_then(|meeting| {
                    meeting.present.iter().find(|member| self.unmet[self.at(**member)] > 0)
                });
                late.map_or(Wait::Nothing, |late| Wait::Node(*late))
            }
            _ => Wait::Nothing,
        }
    }

    /// Tells of every circle that a walk along what stuck nodes wait for comes upon.
    fn circles(&self, findings: &mut Findings) {
        let mut seen = BTreeSet::new();
        for rank in self.looks.ranks() {
            for node in 0..self.trace.graph(rank).nodes().len() as u32 {
                if self.done[self.at((rank, node))] {
                    continue;
                }
                let mut walk = Vec::new();
                let mut place = (rank, node);
                while seen.insert(place) {
                    walk.push(place);
                    match self.wait(place) {
                        Wait::Node(next) => place = next,
                        Wait::Nothing => break,
                    }
                }
                let closes = walk.iter().position(|before| *before == place);
                let last = walk.last().is_some_and(|last| *last == place);
                if let Some(from) = closes.filter(|_| !last || self.waits_for_itself(place)) {
                    findings.add(|| self.told(&walk[from..]));
                }
            }
        }
    }

    fn waits_for_itself(&self, place: Place) -> bool {
        matches!(self.wait(place), Wait::Node(next) if next == place)
    }

    /// A circle in words.
    fn told(&self, circle: &[Place]) -> String {
        const SHOWN: usize = 6;
        let mut text = format!("{}: can never start: it", label(self.trace, circle[0]));
        let mut rank = circle[0].0;
        for place in circle[1..].iter().chain(&circle[..1]).take(SHOWN) {
            let label = match place.0 == rank {
                true => self.trace.graph(rank).label(place.1),
                false => label(self.trace, *place),
            };
            rank = place.0;
            text += &format!(" waits for {label}, which");
        }
        text.truncate(text.len() - ", which".len());
        if circle.len() > SHOWN {
            text += &format!(", ... ({} in the circle)", circle.len());
        }
        let within = circle.iter().all(|(rank, _)| *rank == circle[0].0);
        text + match within {
            true => "; remove one of these dependencies",
            false => "; let all ranks do them in the same order, or remove a dependency",
        }
    }
}
