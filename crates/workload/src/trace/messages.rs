//! Messages of hosts ([`Workload`]) as a job: every host is a rank, which sends and receives.
//!
//! What it does not do: messages that wait for what happens at another host.

use super::{Compute, Degrees, Group, Membership, Node, Peer, RankGraph, Trace, Transfer, Work};
use crate::{When, Workload, WorkloadError};
use std::collections::BTreeMap;
use weft_units::id::Id;
use weft_units::{MessageId, Time};

/// The job in which each host is a rank that sends its messages and receives those for it; `name` is what
/// errors call it.
///
/// # Errors
/// If a message waits for what its own host does not see.
pub fn of_messages(name: &str, workload: &Workload) -> Result<Trace, WorkloadError> {
    let mut ranks = Ranks::of(name, workload);
    for id in ranks.in_order_of_starts() {
        ranks.push(id)?;
    }
    let mut graphs = ranks.graphs;
    graphs.iter_mut().for_each(RankGraph::number_turns);
    Ok(Trace {
        name: name.into(),
        ranks: Some(workload.hosts()),
        graphs,
        shared: false,
        groups: vec![Group::of(Membership::World)],
        degrees: Degrees::NONE,
        exchanges: Vec::new(),
        carried: Vec::new(),
        remarks: Vec::new(),
    })
}

struct Ranks<'a> {
    name: &'a str,
    workload: &'a Workload,
    graphs: Vec<RankGraph>,
    /// Of each host: the last of its waits from the start, and when that is over.
    clocks: BTreeMap<u32, (Option<u32>, Time)>,
    /// Places of each message's send and receive in the graphs of its ends.
    places: Vec<[u32; 2]>,
}

impl<'a> Ranks<'a> {
    fn of(name: &'a str, workload: &'a Workload) -> Ranks<'a> {
        let graph = |host| RankGraph::new(&format!("{name}: host {host}"));
        let graphs: Vec<RankGraph> = (0..workload.hosts()).map(graph).collect();
        let places = vec![[0; 2]; workload.messages().len()];
        Ranks { name, workload, graphs, clocks: BTreeMap::new(), places }
    }

    /// Each after those that it waits for; among those that wait for nothing, by start and number.
    fn in_order_of_starts(&self) -> Vec<MessageId> {
        let mut order = self.workload.dependents().in_order();
        let messages = self.workload.messages();
        let is_free = |id: &MessageId| self.workload.dependencies(*id).is_empty();
        let free = order.iter().take_while(|id| is_free(id)).count();
        order[..free].sort_by_key(|id| (messages[*id].start, *id));
        order
    }

    fn push(&mut self, id: MessageId) -> Result<(), WorkloadError> {
        let message = self.workload.messages()[id];
        let (src, dst, number) = (message.src.0, message.dst.0, id.index() as u64);
        let mut waits = Vec::new();
        for wait in self.workload.dependencies(id) {
            let other = &self.workload.messages()[wait.on];
            let (host, end) = match wait.when {
                When::Sent => (other.src.0, 0),
                When::Received => (other.dst.0, 1),
            };
            if host != src {
                return Err(WorkloadError(format!(
                    "{}: message {number} (host {src} to host {dst}) waits for what happens at host \
                     {host}, which ranks cannot say; keep it as .cm or .csv",
                    self.name
                )));
            }
            waits.push(self.places[wait.on.index()][end]);
        }
        if message.start > Time::ZERO {
            waits = vec![self.wait(number, src, message.start, waits)];
        }
        // Every message has a tag of its own, so that it meets its own receive.
        let one =
            |peer| Transfer { peer: Peer::Rank(peer), bytes: message.bytes, tag: number, turn: 0 };
        let sent = add(&mut self.graphs[src as usize], number, Work::Send(one(dst)), &waits);
        let received = add(&mut self.graphs[dst as usize], number, Work::Receive(one(src)), &[]);
        self.places[id.index()] = [sent, received];
        Ok(())
    }

    /// A wait of `start`: after `waits`, or from the start of the run, where one goes on from the last.
    fn wait(&mut self, number: u64, host: u32, start: Time, waits: Vec<u32>) -> u32 {
        let graph = &mut self.graphs[host as usize];
        if !waits.is_empty() {
            let compute = Compute { time: start, on_host: true, ..Compute::default() };
            return add(graph, number, Work::Compute(compute), &waits);
        }
        let (last, until) = self.clocks.entry(host).or_default();
        if *until < start {
            let compute = Compute { time: until.until(start), ..Compute::default() };
            let before = last.as_slice();
            *last = Some(add(graph, number, Work::Compute(compute), before));
            *until = start;
        }
        last.expect("a wait, since the start is not zero")
    }
}

fn add(graph: &mut RankGraph, id: u64, work: Work, waits: &[u32]) -> u32 {
    graph.push(Node { id, name: "".into(), work, start: Time::ZERO }, waits)
}
