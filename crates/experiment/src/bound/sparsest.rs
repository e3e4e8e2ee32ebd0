//! Cuts through links at both ends, where links fail: what a leaf or a pod sends to some others can only go
//! where both its links and theirs are whole.
//!
//! Which cuts are worth a look is asked of [`weft_capacity::sparsest_cuts`], at every time with
//! capacities that no earlier time had. Any cut would do: what it carries is then counted over all
//! of the run, as of the cuts around one host, leaf or pod.

use super::Ground;
use super::carrying::Carrying;
use std::collections::{BTreeMap, BTreeSet};
use weft_capacity::{Demands, SparseCut, sparsest_cuts};
use weft_fabric::{Fabric, Failures};
use weft_units::{HostId, Time};

/// Something to send.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub(super) src: HostId,
    pub(super) dst: HostId,
    /// With headers.
    pub(super) wire_bytes: u64,
    /// No earlier than this.
    pub(super) posted: Time,
}

/// With more different capacities over time, only the first of them are looked at.
const MOST_MOMENTS: usize = 8;

/// The longest time that any of the cuts asks for; `all` goes through all that is sent.
pub(super) fn fullest(
    ground: &Ground<'_>,
    failures: &Failures,
    all: impl Fn(&mut dyn FnMut(Sent)),
) -> Time {
    let fabric = ground.fabric;
    let failing = failures.ports().filter(|port| !failures.turning_points(*port).is_empty());
    if fabric.clos().is_none() || failing.count() < 2 {
        return Time::ZERO;
    }
    let mut demands = Demands::none(fabric);
    all(&mut |sent| {
        let [src, dst] = [sent.src, sent.dst].map(|host| fabric.leaf_of(host));
        demands.add_between(src, dst, sent.wire_bytes);
    });
    let mut cuts = Cuts::default();
    for cut in sparse(fabric, failures, &demands) {
        cuts.add(ground, failures, cut);
    }
    if cuts.all.is_empty() {
        return Time::ZERO;
    }
    all(&mut |sent| cuts.load(ground, sent));
    cuts.all.iter().map(Loaded::asked).max().unwrap_or(Time::ZERO)
}

/// The sparsest cuts at every time, each once.
fn sparse(fabric: &Fabric, failures: &Failures, demands: &Demands) -> Vec<SparseCut> {
    let mut cuts = Vec::new();
    for (_, capacities) in failures.different_capacities(fabric).take(MOST_MOMENTS) {
        for cut in sparsest_cuts(fabric, &capacities, demands) {
            if !cuts.contains(&cut) {
                cuts.push(cut);
            }
        }
    }
    cuts
}

/// Cuts, found by the leaf that sends.
#[derive(Default)]
struct Cuts {
    all: Vec<Loaded>,
    from: BTreeMap<u32, Vec<usize>>,
}

/// A cut and what has to cross it.
struct Loaded {
    to: BTreeSet<u32>,
    carrying: Carrying,
    /// By the time from which on it can be there: bytes, and the least way behind the cut.
    crossing: BTreeMap<Time, (u64, Time)>,
}

impl Cuts {
    fn add(&mut self, ground: &Ground<'_>, failures: &Failures, cut: SparseCut) {
        for leaf in cut.from {
            self.from.entry(leaf).or_default().push(self.all.len());
        }
        let to = cut.to.into_iter().collect();
        let carrying = Carrying::of_links(ground.fabric, failures, &cut.ports, ground.packet);
        self.all.push(Loaded { to, carrying, crossing: BTreeMap::new() });
    }

    fn load(&mut self, ground: &Ground<'_>, sent: Sent) {
        let [src, dst] = [sent.src, sent.dst].map(|host| ground.fabric.leaf_of(host));
        if src == dst {
            return;
        }
        let path = ground.path(sent.src, sent.dst);
        // A cut may have a leaf's uplink, or another one's downlink, or what lies between.
        let from = sent.posted + path.before[1];
        let after = path.after[path.after.len() - 2];
        for cut in self.from.get(&src).into_iter().flatten() {
            let cut = &mut self.all[*cut];
            if cut.to.contains(&dst) {
                let load = cut.crossing.entry(from).or_insert((0, Time::MAX));
                *load = (load.0 + sent.wire_bytes, load.1.min(after));
            }
        }
    }
}

impl Loaded {
    /// When all that crosses can be received: of all, all but the earliest, ... the latest.
    fn asked(&self) -> Time {
        let (mut sum, mut least, mut fullest) = (0, Time::MAX, Time::ZERO);
        for (from, (bytes, after)) in self.crossing.iter().rev() {
            sum += bytes;
            least = least.min(*after);
            // A cut that will never let all through stalls the run, which says so itself.
            let left = self.carrying.carried(*from, sum);
            fullest = left.map_or(fullest, |left| fullest.max(left + least));
        }
        fullest
    }
}
