//! Path ids and the set of paths between two hosts (Ethereal 2025, section 3.2).

use crate::{Fabric, FabricError, Node, Shape};
use weft_units::{HostId, PortId, SwitchId, random};

/// A path in 16 bits, as Ethereal writes it into the source port of a packet.
///
/// The high byte says which port of its group the next switch shall use; the switch then
/// swaps the two bytes, so every switch does the same. From the source, the high byte names
/// the uplink of the leaf and the low byte the uplink of the next tier. Where the second
/// switch already sends down (two tiers, or one pod of three) the low byte would be idle: it
/// names the member of the bundle down. A switch with a single port towards the destination
/// ignores its byte.
///
/// In a network that is no Clos the id is a number whose digits say which of its next hops each switch takes;
/// nobody changes it on the way, and any number leads to the destination. A number with the highest bit names another
/// group to go over ([`PathId::over`]); the first switch there notes that it has been passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u16);

/// Of a path over another group, and of one that has been there.
const OVER: u16 = 1 << 15;
const PASSED: u16 = 1 << 14;
/// Groups that a path can name.
const MOST_GROUPS: u32 = 1 << 10;

impl PathId {
    /// A path by its two bytes.
    pub const fn new(first: u8, second: u8) -> PathId {
        PathId(u16::from_be_bytes([first, second]))
    }
    /// The byte for the next switch.
    #[inline(always)]
    pub const fn first(self) -> u8 {
        (self.0 >> 8) as u8
    }
    /// The byte for the switch after that.
    pub const fn second(self) -> u8 {
        self.0 as u8
    }
    /// In a network of groups that is no Clos: over another group, by shortest paths to it and on from there.
    /// `digit` (of 16) chooses among them.
    pub const fn over(group: u16, digit: u16) -> PathId {
        PathId(OVER | (digit & 15) << 10 | group & (MOST_GROUPS as u16 - 1))
    }
    /// Over one of `groups` that `bits` draw, but for the two at its ends.
    pub fn over_random(bits: u64, groups: u32, mut ends: [u32; 2]) -> PathId {
        ends.sort_unstable();
        let group = random::below(bits, u64::from(groups - 2)) as u32;
        let group = group + u32::from(group >= ends[0]);
        let group = group + u32::from(group >= ends[1]);
        PathId::over(group as u16, (bits & 15) as u16)
    }
    /// The group that it still leads to, and the digit.
    pub(crate) const fn group(self) -> Option<(u32, u16)> {
        match self.0 & (OVER | PASSED) {
            OVER => Some((self.0 as u32 & (MOST_GROUPS - 1), self.0 >> 10 & 15)),
            _ => None,
        }
    }
    /// The same path, where the group has been passed.
    pub(crate) const fn passed(self) -> PathId {
        PathId(self.0 | PASSED)
    }
    /// The shortest path that it follows where it leads to no other group.
    pub(crate) const fn shortest(self) -> PathId {
        match self.0 & OVER {
            0 => self,
            _ => PathId(self.0 >> 10 & 15),
        }
    }
    /// What a switch sends on: the bytes swapped.
    #[inline(always)]
    pub const fn swapped(self) -> PathId {
        PathId(self.0.rotate_left(8))
    }
}

/// The paths from one leaf to another, numbered so that consecutive numbers spread over the
/// uplinks: what Ethereal assigns flows to.
///
/// The two bytes of path `i`, by where the paths lie:
///
/// ```text
///                      first byte                 second byte
/// within a rack        0                          0                          1 path
/// within a pod, or     i: uplink of the leaf,     i mod m: link of the       spines * m
///   two tiers          spine by spine             bundle down (m links)
/// across pods          i div p: uplink of the     i mod p: uplink of the     cores
///                      leaf, so the plane         aggregation switch (p)
/// ```
///
/// Bundles under three tiers have more paths than cores: every uplink of the leaf with every one of
/// the aggregation switch. Path ids cannot lead along them ([`Fabric::check_path_ids`]), since no byte
/// is left for members on the way down; source ports can.
///
/// With 2 spines and bundles of m = 3, path 4 goes up by uplink 4, the second link to spine 1,
/// and comes down from there by the second link too (4 mod 3 = 1). With 4 cores in 2 planes
/// (p = 2), path 3 takes uplink 1 of the leaf to plane 1 and there uplink 1 to the last core.
/// In a network that is no Clos: all shortest paths, in the order of the ports that they take, as far as 16 bits
/// name them.
#[derive(Clone, Copy, Debug)]
pub struct PathSet<'a> {
    count: u32,
    /// How many values the second byte takes, in turn: m or p above.
    second: u32,
    /// How many paths in a row share a first byte: 1, or p.
    per_first: u32,
    /// The ends, in a network that is no Clos.
    between: Option<(&'a Fabric, SwitchId, u32)>,
}

impl PathSet<'_> {
    /// How many paths: `s` in theorem 1. One within a rack.
    pub fn len(self) -> u32 {
        self.count
    }
    /// Never: there is always a path.
    pub fn is_empty(self) -> bool {
        self.count == 0
    }
    /// The `index`-th path.
    pub fn get(self, index: u32) -> PathId {
        debug_assert!(index < self.count);
        if let Some((fabric, from, to)) = self.between {
            return fabric.routes().path(fabric, from, to, index);
        }
        PathId::new((index / self.per_first) as u8, (index % self.second) as u8)
    }
}

impl Fabric {
    /// The paths that an Ethereal path id can name from `src` to `dst`: disjoint in their
    /// uplinks and downlinks with two tiers and within a pod; one through each core across
    /// pods.
    pub fn path_set(&self, src: HostId, dst: HostId) -> PathSet<'_> {
        let (from, to) = (SwitchId(self.leaf_of(src)), self.leaf_of(dst));
        let set = |count, second, per_first| PathSet { count, second, per_first, between: None };
        if from.0 == to {
            return set(1, 1, 1);
        }
        let Some(clos) = self.clos() else {
            let between = Some((self, from, to));
            return PathSet { between, ..set(self.routes().paths(from, to), 1, 1) };
        };
        if self.pod_of(src) == self.pod_of(dst) {
            let members = clos.leaf_bundle.members;
            return set(clos.mids_per_pod() * members, members, 1);
        }
        // Every uplink of the leaf with every one of the switch there.
        let plane = clos.cores_per_plane() * clos.agg_bundle.members;
        let leaf_ups = clos.mids_per_pod() * clos.leaf_bundle.members;
        set(leaf_ups * plane, plane, plane)
    }

    /// Whether packets may go over other groups ([`PathId::over`]).
    pub fn has_detours(&self) -> bool {
        self.clos().is_none() && (3..=MOST_GROUPS).contains(&self.pods())
    }

    /// The name of a path as its packets left with it, from that which they arrive with. An acknowledgement with
    /// it retraces the links of its packet in a Clos, and in other networks takes what has the same name on the
    /// way back.
    #[inline(always)]
    pub fn path_as_sent(&self, path: PathId) -> PathId {
        match self.shape() {
            // A path crosses an odd number of switches, so that it arrives swapped.
            Shape::Clos(_) => path.swapped(),
            Shape::Wiring(_) if path.0 & OVER != 0 => PathId(path.0 & !PASSED),
            Shape::Wiring(_) => path,
        }
    }

    /// Whether 16-bit path ids can name every path that Ethereal needs here.
    ///
    /// # Errors
    /// With the reason: more than 256 uplinks, or bundles under three tiers, where both
    /// bytes are taken by switch choices on the way up and none is left to name members.
    pub fn check_path_ids(&self) -> Result<(), FabricError> {
        let Some(clos) = self.clos() else { return Ok(()) };
        let leaf_ups = clos.mids_per_pod() * clos.leaf_bundle.members;
        if leaf_ups > 256 {
            return Err(FabricError(format!(
                "a leaf has {leaf_ups} uplinks, but one byte of the path id names at most 256"
            )));
        }
        if clos.cores() == 0 {
            return Ok(());
        }
        if clos.cores_per_plane() > 256 {
            return Err(FabricError(format!(
                "an aggregation switch has {} uplinks, but one byte of the path id names at \
                 most 256",
                clos.cores_per_plane()
            )));
        }
        if clos.leaf_bundle.members > 1 || clos.agg_bundle.members > 1 {
            return Err(FabricError(
                "with three tiers both bytes of the path id name switches, so the members of \
                 a bundle cannot be named: model each bundle as one link of the summed rate"
                    .into(),
            ));
        }
        Ok(())
    }

    /// The ports that a packet from `src` to `dst` crosses under `path`, NIC first. Where path ids cannot name members
    /// ([`Fabric::check_path_ids`]) source ports lead it down from a core by those that it went up by.
    pub fn trace(&self, src: HostId, dst: HostId, path: PathId) -> Vec<PortId> {
        let mut path = path;
        let mut ports = vec![self.nic(src)];
        loop {
            let Node::Switch(switch) = self.ports()[ports[ports.len() - 1]].peer else {
                return ports;
            };
            if self.clos().is_some() && self.tier(switch) == 2 {
                path = self.down_from_core(path);
            }
            let hop = self.pinned_hop(switch, dst, path, None);
            let (port, next) = hop.expect("every host can be reached");
            ports.push(port);
            path = next;
        }
    }

    /// As switches read it from a core on: which member of each bundle.
    fn down_from_core(&self, path: PathId) -> PathId {
        let member = |uplink: u8, members: u32| (u32::from(uplink) % members) as u8;
        let clos = self.clos().expect("others have no cores");
        PathId::new(
            member(path.second(), clos.agg_bundle.members),
            member(path.first(), clos.leaf_bundle.members),
        )
    }
}

impl crate::PortGroup {
    /// The port that a switch uses for a packet pinned to `path`.
    #[inline(always)]
    pub fn pinned(self, path: PathId) -> PortId {
        let member = if self.count == 1 { 0 } else { u32::from(path.first()) };
        debug_assert!(member < self.count, "{path:?} does not exist in {self:?}");
        PortId(self.first.0 + member)
    }
}
