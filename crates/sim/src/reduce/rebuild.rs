//! Trees that are built again, since routing has learnt of dead links.

use super::contribution::Contribution;
use super::state::Operation;
use crate::engine::Engine;
use crate::partition::OwnHost;
use crate::ports::Ports;
use crate::queue::EventQueue;
use std::sync::Arc;

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// Routing has learnt something: sets whose trees change begin again on the new ones.
    pub(crate) fn rebuild_trees(&mut self) {
        let world = Arc::clone(&self.world);
        let Some(trees) = &world.trees else { return };
        let Some(current) = trees.from(self.now) else { return };
        let state = self.reduction.as_mut().expect("trees have states");
        let before = std::mem::replace(&mut state.current, current.to_vec());
        let is_current = |tree: u32| current[trees.set_of(tree) as usize] == tree;
        state.sums.retain(|(_, tree, _), _| is_current(*tree));
        state.passed.retain(|(_, tree, _)| is_current(*tree));
        let hosts: Vec<OwnHost> = state.hosts.ids().collect();
        for host in hosts {
            let state = self.reduction.as_mut().expect("trees have states");
            for id in state.hosts[host].operations.clone() {
                let state = self.reduction.as_mut().expect("trees have states");
                let set = state.operation(id).set as usize;
                if before[set] != current[set] {
                    state.operation(id).own.rewind();
                    self.leave_round(host, id);
                    self.line_up_operation(id);
                }
            }
            self.pull(host);
        }
    }

    /// Others need a host's last contributions to an operation that it is through with.
    pub(super) fn repeat(&mut self, host: OwnHost, set: u32, number: u32) {
        let world = Arc::clone(&self.world);
        let trees = world.trees.as_ref().expect("operations have trees");
        let jobs = self.config.job.as_ref().expect("operations are those of ranks");
        let partition = &world.partitioning.partitions[usize::from(self.own)];
        let place = trees.place(set, partition.hosts[host]);
        let own = Contribution::of_finished(trees.segments(jobs, set, number), trees.window(set));
        let (rank, queued, slot, age) = (None, None, None, self.nics.opened_by(host));
        let one = Operation { host, set, number, place, rank, own, queued, age, slot };
        let id = self.reduction.as_mut().expect("trees have states").begin(one);
        self.line_up_operation(id);
        self.pull(host);
    }
}
