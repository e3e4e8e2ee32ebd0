//! Maximum flow between two nodes, and the minimum cut that proves it (Dinic 1970): shortest
//! augmenting paths, level by level, in integers.
//!
//! Invariant: arc `2i` is the `i`-th link and arc `2i + 1` its reverse; what one loses the
//! other gains.

use std::collections::VecDeque;

/// More than any sum of capacities.
pub const UNLIMITED: u64 = u64::MAX >> 8;

#[derive(Clone, Copy, Debug)]
struct Arc {
    to: usize,
    left: u64,
}

/// A directed network with capacities.
#[derive(Clone, Debug)]
pub struct FlowNetwork {
    arcs: Vec<Arc>,
    out: Vec<Vec<usize>>,
    /// Distance from the source over arcs with capacity left; nothing if there is no way.
    level: Vec<Option<usize>>,
    /// How many arcs of each node lead nowhere any more in this phase.
    tried: Vec<usize>,
}

impl FlowNetwork {
    /// `nodes` nodes without links.
    pub fn new(nodes: usize) -> FlowNetwork {
        FlowNetwork {
            arcs: Vec::new(),
            out: vec![Vec::new(); nodes],
            level: vec![None; nodes],
            tried: vec![0; nodes],
        }
    }

    /// A link from `from` to `to`; links are numbered in the order of these calls.
    pub fn link(&mut self, from: usize, to: usize, capacity: u64) {
        self.out[from].push(self.arcs.len());
        self.arcs.push(Arc { to, left: capacity });
        self.out[to].push(self.arcs.len());
        self.arcs.push(Arc { to: from, left: 0 });
    }

    /// The most that flows from `source` to `sink`, which are two; uses up the capacities.
    pub fn max_flow(&mut self, source: usize, sink: usize) -> u64 {
        let mut flow = 0;
        while self.levels(source, sink) {
            self.tried.fill(0);
            loop {
                let pushed = self.push(source, sink, UNLIMITED);
                if pushed == 0 {
                    break;
                }
                flow += pushed;
            }
        }
        flow
    }

    /// After [`FlowNetwork::max_flow`]: which nodes lie on the source's side of a minimum cut.
    /// The links from there to the other side are the cut.
    pub fn source_side(&self) -> Vec<bool> {
        self.level.iter().map(Option::is_some).collect()
    }

    fn levels(&mut self, source: usize, sink: usize) -> bool {
        self.level.fill(None);
        self.level[source] = Some(0);
        let mut queue = VecDeque::from([source]);
        while let Some(node) = queue.pop_front() {
            let next = self.level[node].map(|level| level + 1);
            for arc in self.out[node].iter().map(|arc| self.arcs[*arc]) {
                if arc.left > 0 && self.level[arc.to].is_none() {
                    self.level[arc.to] = next;
                    queue.push_back(arc.to);
                }
            }
        }
        self.level[sink].is_some()
    }

    /// Pushes up to `most` along one shortest path. Goes as deep as the path is long.
    fn push(&mut self, node: usize, sink: usize, most: u64) -> u64 {
        if node == sink {
            return most;
        }
        while let Some(&index) = self.out[node].get(self.tried[node]) {
            let Arc { to, left } = self.arcs[index];
            if left > 0 && self.level[to] == self.level[node].map(|level| level + 1) {
                let pushed = self.push(to, sink, most.min(left));
                if pushed > 0 {
                    self.arcs[index].left -= pushed;
                    self.arcs[index ^ 1].left += pushed;
                    return pushed;
                }
            }
            self.tried[node] += 1;
        }
        0
    }
}
