//! Flows under way spread anew: who has no room on its path goes where there is most.

use crate::plan::{ActiveFlow, Route};
use weft_fabric::{PathId, PathWeights};
use weft_units::Stream;

/// Spreads `flows`, all to one leaf and the largest first, by what is left of them. Appends to `out`
/// those that move, by their number, with their new route.
///
/// A flow stays if the share of its path, of all that is left, has room for it. The others go, one
/// after the other, to the path that is the least full with them.
pub(super) fn spread(
    flows: &[(usize, ActiveFlow)],
    weights: &PathWeights,
    stream: &mut Stream,
    out: &mut Vec<(usize, Route)>,
) {
    let all: u64 = flows.iter().map(|(_, active)| active.left).sum();
    let mut loads = Loads::new(weights, all, stream);
    let mut homeless = flows.to_vec();
    homeless.retain(|(_, active)| !loads.keep(active));
    for (index, active) in homeless {
        let route = Route::Pinned(loads.place(&active));
        if route != active.flow.route {
            out.push((index, route));
        }
    }
}

/// What paths to one leaf carry, while flows are spread over them.
struct Loads {
    paths: Vec<Load>,
    /// Payload and weight of all.
    all: u64,
    sum: u64,
}

/// Of one path.
struct Load {
    path: PathId,
    weight: u64,
    bytes: u64,
}

impl Loads {
    fn new(weights: &PathWeights, all: u64, stream: &mut Stream) -> Loads {
        let paths = weights.iter().filter(|(_, weight)| *weight > 0);
        let mut paths: Vec<_> =
            paths.map(|(path, weight)| Load { path, weight, bytes: 0 }).collect();
        // Not all hosts shall prefer the same one.
        stream.shuffle(&mut paths);
        Loads { paths, all, sum: weights.sum() }
    }

    /// Leaves a flow on its path, if that has room for it in its share.
    fn keep(&mut self, active: &ActiveFlow) -> bool {
        let Route::Pinned(path) = active.flow.route else { return true };
        let Some(load) = self.paths.iter_mut().find(|load| load.path == path) else { return false };
        let share = u128::from(self.all) * u128::from(load.weight);
        let fits = u128::from(load.bytes + active.left) * u128::from(self.sum) <= share;
        load.bytes += if fits { active.left } else { 0 };
        fits
    }

    /// The path that a flow makes the least full; the one that it has, if no other is better.
    fn place(&mut self, active: &ActiveFlow) -> PathId {
        let fill = |load: &Load| (load.bytes + active.left, load.weight);
        // a / b < c / d where a * d < c * b.
        let fuller = |a: &Load, b: &Load| {
            let (a, b) = (fill(a), fill(b));
            (u128::from(a.0) * u128::from(b.1)).cmp(&(u128::from(b.0) * u128::from(a.1)))
        };
        let moves = |load: &Load| active.flow.route != Route::Pinned(load.path);
        let order = |a: &&mut Load, b: &&mut Load| fuller(a, b).then(moves(a).cmp(&moves(b)));
        let load = self.paths.iter_mut().min_by(order).expect("there is always a path");
        load.bytes += active.left;
        load.path
    }
}
