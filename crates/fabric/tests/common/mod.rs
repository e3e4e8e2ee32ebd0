//! What the tests of routes share.

// Every test binary is a crate of its own.
#![allow(unreachable_pub)]

use weft_fabric::{Bundle, Clos, Link, Tiers};
use weft_trial::prelude::*;
use weft_units::{Rate, Time};

pub const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::us(1) };

/// Small fabrics of two and three tiers, with bundles.
pub fn any_clos() -> impl Strategy<Value = Clos> {
    let two = (1u32..5, 1u32..4, 1u32..3, 1u32..4).prop_map(|(leaves, spines, hosts, members)| {
        let mut clos = Clos::leaf_spine(leaves, spines, hosts, LINK);
        clos.leaf_bundle = Bundle { link: LINK, members };
        clos
    });
    let three = ((1u32..4, 1u32..4, 1u32..4, 1u32..3), 1u32..3, 1u32..3, 1u32..3).prop_map(
        |((pods, leaves_per_pod, aggs_per_pod, per_plane), hosts, leaf_members, agg_members)| {
            let cores = aggs_per_pod * per_plane;
            let tiers = Tiers::Three { pods, leaves_per_pod, aggs_per_pod, cores };
            let mut clos = Clos::uniform(tiers, hosts, LINK);
            clos.leaf_bundle.members = leaf_members;
            clos.agg_bundle.members = agg_members;
            clos
        },
    );
    prop_oneof![two, three]
}
