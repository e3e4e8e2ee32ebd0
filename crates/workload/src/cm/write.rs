//! Jobs as connection matrices: a connection for each message, and a trigger for each set of ends of
//! messages that others wait for.
//!
//! An end of a message activates one trigger at most. So of what a message waits for, ends are left out that
//! another of them implies: because it happens later in any run, or because both are messages of one pair of
//! hosts, posted in this order (a remark says so, since packets may overtake each other).
//!
//! What it does not do: computations behind messages, which a matrix cannot say.

use crate::WorkloadError;
use crate::trace::export::Written;
use crate::trace::rank_graph::RankGraph;
use crate::trace::{Trace, Transfer, Work};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use weft_units::Time;

/// Ends that are looked at before one counts as not implied by another.
const LOOKS: usize = 1_024;

/// An end of a message: the node that is over with it, by rank and place.
type End = (u32, u32);

/// Writes an unfolded trace.
pub(crate) fn write_cm(trace: &Trace) -> Result<Written, WorkloadError> {
    let mut matrix = Matrix::of(trace);
    for rank in 0..trace.ranks.unwrap_or(0) {
        matrix.rank(rank)?;
    }
    matrix.written()
}

struct Matrix<'a> {
    trace: &'a Trace,
    /// The receive of each send, and the other way round.
    partners: BTreeMap<End, End>,
    /// What each node that has been looked at comes after: sets of ends, and a time where there are none.
    after: BTreeMap<End, (usize, Time)>,
    sets: Vec<Vec<End>>,
    /// Sets by what is in them; those with ends that others imply have the number of what is left.
    numbers: BTreeMap<Vec<End>, usize>,
    /// Messages in their order: send, set and start.
    messages: Vec<(End, usize, Time)>,
    /// What comes before ends, of those that the rank at hand has asked for.
    causes: BTreeMap<End, BTreeSet<End>>,
    /// When computations that wait for no message go on: by rank and stream.
    busy: BTreeMap<(u32, u32), Vec<(Time, Time)>>,
    in_order: u64,
}

/// What a matrix names a message by in the table of partners.
type Key = (u32, u32, u64, u32);

impl<'a> Matrix<'a> {
    fn of(trace: &'a Trace) -> Matrix<'a> {
        let mut sends: BTreeMap<Key, End> = BTreeMap::new();
        let mut receives: BTreeMap<Key, End> = BTreeMap::new();
        for rank in 0..trace.ranks.unwrap_or(0) {
            for (node, one) in (0u32..).zip(trace.graph(rank).nodes()) {
                match &one.work {
                    Work::Send(Transfer { peer, tag, turn, .. }) => {
                        sends.insert((rank, peer.of(rank), *tag, *turn), (rank, node));
                    }
                    Work::Receive(Transfer { peer, tag, turn, .. }) => {
                        receives.insert((peer.of(rank), rank, *tag, *turn), (rank, node));
                    }
                    _ => {}
                }
            }
        }
        let mut partners = BTreeMap::new();
        for (key, send) in &sends {
            if let Some(receive) = receives.get(key) {
                partners.insert(*send, *receive);
                partners.insert(*receive, *send);
            }
        }
        Matrix {
            trace,
            partners,
            after: BTreeMap::new(),
            sets: vec![Vec::new()],
            numbers: BTreeMap::from([(Vec::new(), 0)]),
            messages: Vec::new(),
            causes: BTreeMap::new(),
            busy: BTreeMap::new(),
            in_order: 0,
        }
    }

    /// All nodes of a rank, each after those that it waits for.
    fn rank(&mut self, rank: u32) -> Result<(), WorkloadError> {
        self.causes.clear();
        let graph = self.trace.graph(rank);
        let mut order: Vec<(u32, u32)> =
            (0u32..).zip(graph.depths()).map(|(node, depth)| (depth, node)).collect();
        order.sort_unstable();
        for (_, node) in order {
            self.node(rank, node).map_err(|what| {
                WorkloadError(format!("{}: {}: {what}", graph.source, graph.label(node)))
            })?;
        }
        Ok(())
    }

    fn node(&mut self, rank: u32, node: u32) -> Result<(), String> {
        let graph = self.trace.graph(rank);
        let one = &graph.nodes()[node as usize];
        let mut ends: BTreeSet<End> = BTreeSet::new();
        let mut time = one.start;
        for wait in graph.waits(node) {
            let (set, after) = self.after[&(rank, *wait)];
            ends.extend(&self.sets[set]);
            time = time.max(after);
        }
        let set = self.reduced(ends);
        let takes = match &one.work {
            Work::Compute(compute) => compute.time,
            Work::Memory(memory) => memory.time,
            Work::Collective(_) | Work::Unsupported(_) => {
                return Err("is no message; remove it".into());
            }
            _ => Time::ZERO,
        };
        if set != 0 && (takes > Time::ZERO || one.start > Time::ZERO) {
            return Err(
                "takes time behind a message, which a connection matrix cannot say; leave \
                        computations out (--no-compute), or write GOAL or Chakra"
                    .into(),
            );
        }
        if let Work::Compute(compute) = &one.work
            && !compute.on_host
            && takes > Time::ZERO
        {
            let busy = self.busy.entry((rank, compute.stream)).or_default();
            let until = time.saturating_add(takes);
            if busy.iter().any(|(from, to)| *from < until && time < *to) {
                return Err(
                    "would wait for another computation, which a connection matrix cannot \
                            say; leave computations out (--no-compute)"
                        .into(),
                );
            }
            busy.push((time, until));
        }
        let end = match &one.work {
            Work::Send(_) => {
                self.messages.push(((rank, node), set, time));
                self.number(vec![(rank, node)])
            }
            Work::Receive(_) => {
                let mut ends: BTreeSet<End> = self.sets[set].iter().copied().collect();
                ends.insert((rank, node));
                self.reduced(ends)
            }
            _ => set,
        };
        self.after.insert((rank, node), (end, time.saturating_add(takes)));
        Ok(())
    }

    fn number(&mut self, set: Vec<End>) -> usize {
        let next = self.sets.len();
        let number = *self.numbers.entry(set.clone()).or_insert(next);
        if number == next {
            self.sets.push(set);
        }
        number
    }

    /// The number of a set without ends that others of it imply.
    fn reduced(&mut self, ends: BTreeSet<End>) -> usize {
        let mut kept: Vec<End> = ends.into_iter().collect();
        if let Some(known) = self.numbers.get(&kept) {
            return *known;
        }
        let all = kept.clone();
        // Of many ends, which none implies, all pairs would take long.
        if (2..=64).contains(&kept.len()) {
            let mut at = 0;
            while at < kept.len() {
                let one = kept[at];
                let is_implied =
                    kept.iter().any(|other| *other != one && self.implies(*other, one));
                if is_implied {
                    kept.remove(at);
                } else {
                    at += 1;
                }
            }
        }
        let number = self.number(kept);
        self.numbers.insert(all, number);
        number
    }

    /// Whether `early` has happened in any run when `late` has.
    fn implies(&mut self, late: End, early: End) -> bool {
        let is_receive = |end: End| {
            matches!(self.trace.graph(end.0).nodes()[end.1 as usize].work, Work::Receive(_))
        };
        if is_receive(late) && is_receive(early) {
            let (Some(later), Some(earlier)) =
                (self.partners.get(&late), self.partners.get(&early))
            else {
                return false;
            };
            let (later, earlier) = (*later, *earlier);
            if later.0 == earlier.0
                && is_posted_before(self.trace.graph(later.0), earlier.1, later.1)
            {
                self.in_order += 1;
                return true;
            }
        }
        self.is_cause(early, late)
    }

    /// Whether `late` comes after `early` by what nodes wait for, over all ranks.
    fn is_cause(&mut self, early: End, late: End) -> bool {
        if !self.causes.contains_key(&late) {
            let causes = self.causes_of(late);
            self.causes.insert(late, causes);
        }
        self.causes[&late].contains(&early)
    }

    /// What comes before an end by what nodes wait for, over all ranks; not all of it where that is much.
    fn causes_of(&self, late: End) -> BTreeSet<End> {
        let mut seen = BTreeSet::new();
        let mut left = VecDeque::from([late]);
        while let Some(end) = left.pop_front() {
            let graph = self.trace.graph(end.0);
            let is_receive = matches!(graph.nodes()[end.1 as usize].work, Work::Receive(_));
            let mut before: Vec<End> = Vec::new();
            if let (true, Some(sent)) = (is_receive, self.partners.get(&end)) {
                let waits = self.trace.graph(sent.0).waits(sent.1);
                before.extend(waits.iter().map(|node| (sent.0, *node)));
            }
            // That a message is there says nothing of what its receive waits for.
            if !(is_receive && end == late) {
                before.extend(graph.waits(end.1).iter().map(|node| (end.0, *node)));
            }
            left.extend(before.into_iter().filter(|end| seen.len() < LOOKS && seen.insert(*end)));
        }
        seen
    }

    fn written(self) -> Result<Written, WorkloadError> {
        let mut triggers: BTreeMap<usize, usize> = BTreeMap::new();
        let mut of_end: BTreeMap<End, usize> = BTreeMap::new();
        for (send, set, _) in self.messages.iter().filter(|(_, set, _)| *set != 0) {
            let next = triggers.len() + 1;
            let trigger = *triggers.entry(*set).or_insert(next);
            for end in &self.sets[*set] {
                if *of_end.entry(*end).or_insert(trigger) != trigger {
                    let graph = self.trace.graph(send.0);
                    return Err(WorkloadError(format!(
                        "{}: {}: one message waits for {} with others, and another message in another \
                         way, but a connection matrix has one trigger for each end of a message; \
                         write GOAL or Chakra",
                        graph.source,
                        graph.label(send.1),
                        self.trace.graph(end.0).label(end.1)
                    )));
                }
            }
        }
        let text = self.text(&triggers, &of_end);
        let mut written =
            Written { files: vec![(".cm".into(), text.into_bytes())], ..Written::default() };
        let what = "messages are taken to arrive after those that their host posted before them to the \
                    same host";
        written.remark(self.in_order, what);
        Ok(written)
    }

    fn text(&self, triggers: &BTreeMap<usize, usize>, of_end: &BTreeMap<End, usize>) -> String {
        let mut out = format!(
            "Nodes {}\nConnections {}\n",
            self.trace.ranks.unwrap_or(0),
            self.messages.len()
        );
        // Writing to a text cannot fail.
        let mut put = |line: std::fmt::Arguments<'_>| {
            let _ = out.write_fmt(line);
        };
        if !triggers.is_empty() {
            put(format_args!("Triggers {}\n", triggers.len()));
        }
        for (number, (send, set, start)) in (1..).zip(&self.messages) {
            let Work::Send(one) = &self.trace.graph(send.0).nodes()[send.1 as usize].work else {
                continue;
            };
            let (src, dst) = (send.0, one.peer.of(send.0));
            put(format_args!("{src}->{dst} id {number}"));
            match triggers.get(set) {
                Some(trigger) => put(format_args!(" trigger {trigger}")),
                None => put(format_args!(" start {}", start.0)),
            }
            put(format_args!(" size {}", one.bytes.max(1)));
            let received = self.partners.get(send).and_then(|end| of_end.get(end));
            for (word, trigger) in [("send", of_end.get(send)), ("recv", received)] {
                if let Some(trigger) = trigger {
                    put(format_args!(" {word}_done_trigger {trigger}"));
                }
            }
            put(format_args!("\n"));
        }
        let mut all: Vec<(usize, usize)> =
            triggers.iter().map(|(set, trigger)| (*trigger, self.sets[*set].len())).collect();
        all.sort_unstable();
        for (trigger, count) in all {
            match count {
                1 => put(format_args!("trigger id {trigger} oneshot\n")),
                _ => put(format_args!("trigger id {trigger} barrier count {count}\n")),
            }
        }
        out
    }
}

/// Whether `early` is posted no later than `late`, two sends of a rank, in any run: all that it waits for
/// the later one waits for, too.
fn is_posted_before(graph: &RankGraph, early: u32, late: u32) -> bool {
    graph.waits(early).iter().all(|wait| {
        let mut seen = BTreeSet::new();
        let mut left: Vec<u32> = graph.waits(late).to_vec();
        while let Some(node) = left.pop() {
            if node == *wait {
                return true;
            }
            if seen.len() < LOOKS && seen.insert(node) {
                left.extend(graph.waits(node));
            }
        }
        false
    })
}
