//! Who meets whom across ranks, and who does not turn up.
//!
//! Invariant: the tables hold every collective and transfer of every rank that is looked at, but
//! those that cannot fail, in an order that depends on the trace alone.

use super::{Findings, Looks};
use crate::trace::{Action, Collective, Trace, Transfer, Work};
use std::collections::{BTreeMap, BTreeSet};

/// A node of a rank.
pub(super) type Place = (u32, u32);

/// A collective: group, first rank of the instance, turn.
pub(super) type CallKey = (u32, u32, u32);

/// A message: sender, receiver, tag, turn.
pub(super) type MessageKey = (u32, u32, u64, u32);

/// A collective and who takes part in it.
#[derive(Default)]
pub(super) struct Meeting {
    /// In the order of ranks.
    pub(super) present: Vec<Place>,
    /// How many should.
    pub(super) expected: u32,
}

/// All of them.
#[derive(Default)]
pub(super) struct Meetings {
    pub(super) calls: BTreeMap<CallKey, Meeting>,
    pub(super) sends: BTreeMap<MessageKey, Place>,
    pub(super) receives: BTreeMap<MessageKey, Place>,
}

/// The key under which a rank's collective is found; `None` if the rank is not in its group.
pub(super) fn call_key(trace: &Trace, rank: u32, one: &Collective) -> Option<CallKey> {
    let members = trace.members(one.group, rank)?;
    Some((one.group, members.rank(0), one.turn))
}

pub(super) fn send_key(rank: u32, one: &Transfer) -> MessageKey {
    (rank, one.peer.of(rank), one.tag, one.turn)
}

pub(super) fn receive_key(rank: u32, one: &Transfer) -> MessageKey {
    (one.peer.of(rank), rank, one.tag, one.turn)
}

/// File and node.
pub(super) fn label(trace: &Trace, (rank, node): Place) -> String {
    let graph = trace.graph(rank);
    format!("{}: {}", graph.source, graph.label(node))
}

fn work(trace: &Trace, (rank, node): Place) -> &Work {
    &trace.graph(rank).nodes()[node as usize].work
}

impl Meetings {
    pub(super) fn collect(trace: &Trace, looks: &Looks, findings: &mut Findings) -> Meetings {
        let mut meetings = Meetings::default();
        for rank in looks.ranks() {
            for (node, content) in (0u32..).zip(trace.graph(rank).nodes()) {
                if matches!(&content.work, Work::Collective(one) if looks.is_own(one.group)) {
                    continue;
                }
                meetings.take(trace, (rank, node), &content.work, findings);
            }
        }
        meetings.check_calls(trace, findings);
        meetings.check_messages(trace, findings);
        meetings
    }

    fn take(&mut self, trace: &Trace, place: Place, work: &Work, findings: &mut Findings) {
        let rank = place.0;
        match work {
            Work::Collective(one) => match call_key(trace, rank, one) {
                Some(key) => {
                    let meeting = self.calls.entry(key).or_default();
                    meeting.expected = trace.members(one.group, rank).map_or(0, |all| all.len());
                    meeting.present.push(place);
                }
                None => findings.add(|| {
                    let group = &trace.groups[one.group as usize].name;
                    let label = label(trace, place);
                    format!(
                        "{label}: {} in group {group:?}, in which rank {rank} is not; add it to \
                         the group or remove the node",
                        one.action.name()
                    )
                }),
            },
            Work::Send(one) => drop(self.sends.insert(send_key(rank, one), place)),
            Work::Receive(one) => drop(self.receives.insert(receive_key(rank, one), place)),
            _ => {}
        }
    }

    /// Collectives that lack ranks, and those whose ranks do different things.
    fn check_calls(&self, trace: &Trace, findings: &mut Findings) {
        let mut told = BTreeSet::new();
        for (key, meeting) in &self.calls {
            let (group, instance, _) = *key;
            if meeting.present.len() < meeting.expected as usize {
                // All later ones of the group lack the same ranks.
                if told.insert((group, instance)) {
                    findings.add(|| absent(trace, key, meeting));
                }
            }
            let first = meeting.present[0];
            let odd =
                meeting.present.iter().find(|one| !same(work(trace, first), work(trace, **one)));
            if let Some(odd) = odd {
                findings.add(|| differ(trace, key, first, *odd));
            }
        }
    }

    fn check_messages(&self, trace: &Trace, findings: &mut Findings) {
        for (key, place) in &self.sends {
            match self.receives.get(key) {
                None => findings.add(|| unmet(trace, key, *place, true)),
                Some(other) => {
                    if let (Work::Send(sent), Work::Receive(awaited)) =
                        (work(trace, *place), work(trace, *other))
                        && sent.bytes != awaited.bytes
                    {
                        findings.add(|| {
                            format!(
                                "{}: sends {} B, but {} waits for {} B; make them equal",
                                label(trace, *place),
                                sent.bytes,
                                label(trace, *other),
                                awaited.bytes
                            )
                        });
                    }
                }
            }
        }
        for (key, place) in &self.receives {
            if !self.sends.contains_key(key) {
                findings.add(|| unmet(trace, key, *place, false));
            }
        }
    }
}

/// Whether two ranks mean the same collective.
fn same(one: &Work, other: &Work) -> bool {
    match (one, other) {
        (Work::Collective(one), Work::Collective(other)) => {
            one.action == other.action
                && one.root == other.root
                && (one.size == other.size || one.action == Action::Barrier)
        }
        _ => false,
    }
}

/// What a rank does, in words.
fn told(trace: &Trace, place: Place) -> String {
    match work(trace, place) {
        Work::Collective(one) => {
            let bytes = trace.group_size(one.group).map_or(0, |ranks| one.bytes(ranks));
            format!("{} of {bytes} B", one.action.name())
        }
        other => other.kind().into(),
    }
}

fn absent(trace: &Trace, key: &CallKey, meeting: &Meeting) -> String {
    let (group, _, turn) = *key;
    let here = meeting.present[0];
    let members = trace.members(group, here.0);
    let missing = members.into_iter().flat_map(|all| all.iter().collect::<Vec<u32>>());
    let mut missing =
        missing.filter(|rank| !meeting.present.iter().any(|(there, _)| there == rank));
    let rank = missing.next().unwrap_or(0);
    let name = &trace.groups[group as usize].name;
    let (what, label, number) = (told(trace, here), label(trace, here), turn + 1);
    let others = match missing.count() {
        0 => String::new(),
        more => format!(", and neither do {more} other ranks"),
    };
    match rank < trace.ranks.unwrap_or(1) {
        true => format!(
            "{label}: {what}, collective {number} of group {name:?}, waits for rank {rank}, which \
             has only {turn} in {}{others}; the ranks of a group must take part in the same ones",
            trace.graph(rank).source
        ),
        false => format!(
            "{label}: {what}, collective {number} of group {name:?}, waits for rank {rank}, of \
             which there is no trace{others}; add its file or correct the group"
        ),
    }
}

fn differ(trace: &Trace, key: &CallKey, first: Place, odd: Place) -> String {
    let (group, _, turn) = *key;
    format!(
        "{}: collective {} of group {:?} is {}, but {} has {} there; the ranks of a group must \
         take part in the same ones in the same order",
        label(trace, first),
        turn + 1,
        trace.groups[group as usize].name,
        told(trace, first),
        label(trace, odd),
        told(trace, odd)
    )
}

/// A message that only one side knows of.
fn unmet(trace: &Trace, key: &MessageKey, place: Place, sent: bool) -> String {
    let (src, dst, tag, turn) = *key;
    let label = label(trace, place);
    let other = if sent { dst } else { src };
    let file = match other < trace.ranks.unwrap_or(1) {
        true => trace.graph(other).source.clone(),
        false => format!("rank {other}, of which there is no trace,"),
    };
    let number = turn + 1;
    match sent {
        true => format!(
            "{label}: sends message {number} with tag {tag} to rank {dst}, but {file} has no \
             receive for it; add the receive or remove the send"
        ),
        false => format!(
            "{label}: waits for message {number} with tag {tag} from rank {src}, but {file} never \
             sends it; add the send or remove the receive"
        ),
    }
}
