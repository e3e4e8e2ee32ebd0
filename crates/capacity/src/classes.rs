//! Interchangeable leaves and cores, which need not be told apart: where swapping two leaves of
//! a pod changes neither capacities nor demands, averaging a routing with its swapped self gives
//! one that is as good and treats both alike. So one leaf stands for a class of n, with n times
//! the capacity. Likewise the cores of a plane with equal links to every pod.

use crate::Demands;
use crate::network::{CapacityGraph, Edge};

/// Numbers put into classes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes {
    /// The class of each number.
    pub(crate) of: Vec<usize>,
    /// The first member of each class.
    pub(crate) first: Vec<usize>,
    /// How many members each class has.
    pub(crate) size: Vec<usize>,
}

impl Classes {
    /// Puts each number into the class whose first member is `alike`, an equivalence.
    fn new(count: usize, alike: impl Fn(usize, usize) -> bool) -> Classes {
        let mut classes = Classes::default();
        for item in 0..count {
            let known = classes.first.iter().position(|first| alike(*first, item));
            let class = known.unwrap_or(classes.first.len());
            if known.is_none() {
                classes.first.push(item);
                classes.size.push(0);
            }
            classes.of.push(class);
            classes.size[class] += 1;
        }
        classes
    }

    pub(crate) fn len(&self) -> usize {
        self.first.len()
    }

    /// Leaves by what they can and want to send and receive.
    pub(crate) fn leaves(network: &CapacityGraph, demands: &Demands) -> Classes {
        let shape = network.shape;
        let between = |src, dst| demands.between(src, dst);
        Classes::new(shape.leaves, |a, b| {
            shape.pod(a) == shape.pod(b)
                && (0..shape.mids).all(|mid| {
                    network.capacity(Edge::LeafUp(a, mid)) == network.capacity(Edge::LeafUp(b, mid))
                        && network.capacity(Edge::LeafDown(a, mid))
                            == network.capacity(Edge::LeafDown(b, mid))
                })
                && between(a, b) == between(b, a)
                && (0..shape.leaves).filter(|other| *other != a && *other != b).all(|other| {
                    between(a, other) == between(b, other) && between(other, a) == between(other, b)
                })
        })
    }

    /// Cores by their links to the pods.
    pub(crate) fn cores(network: &CapacityGraph) -> Classes {
        let shape = network.shape;
        let per_plane = (shape.cores / shape.mids).max(1);
        Classes::new(shape.cores, |a, b| {
            a / per_plane == b / per_plane
                && (0..shape.pods).all(|pod| {
                    network.capacity(Edge::PodUp(pod, a)) == network.capacity(Edge::PodUp(pod, b))
                        && network.capacity(Edge::PodDown(pod, a))
                            == network.capacity(Edge::PodDown(pod, b))
                })
        })
    }
}
