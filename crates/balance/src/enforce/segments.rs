//! Port segments: switches map ranges of UDP source ports to uplinks, as under DNLB (CTCCL 2025,
//! section 3), in as many tiers as a fabric has.
//!
//! A leaf cuts the port range into as many equal segments as it has uplinks; members of a bundle are
//! uplinks each. In three tiers every segment is cut again, into as many parts as an aggregation
//! switch has uplinks: `range.part(i, leaf uplinks).part(j, aggregation uplinks)` are the ports that
//! go up by uplink i of the leaf and uplink j of the aggregation switch there. So all rules are
//! ranges, of which an aggregation switch needs only those that reach it: one an uplink, and with
//! bundles below one for each member. Where both counts are powers of two a rule is a mask as well
//! ([`Segment::mask`]): the high bits of the port's 14 are i, the next are j.
//!
//! On the way down only bundles leave a choice. A packet goes down over the member by which it went
//! up: the same ranges say so at spines, aggregation switches and cores ([`Segments::table`] has
//! those rows with `up: false`). Switches without them hash among the members instead, which keeps
//! every switch on the path but not the balance of members.
//!
//! Whatever no row names is hashed, and so is what names an uplink that is known to be dead, among
//! the live ones.

use super::crossing::Place;
use super::{PortError, PortRange, clos, uplinks};
use crate::forward::{Forward, Hops, Passing, SwitchContext};
use std::collections::BTreeMap;
use weft_fabric::{Fabric, PathId};
use weft_units::{HostId, SwitchId};

/// How the port range is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    range: PortRange,
    /// Uplinks of a leaf.
    leaf: u32,
    /// Uplinks of an aggregation switch; zero with two tiers.
    mid: u32,
}

/// One rule of a switch: packets from these ports take this hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The first source port.
    pub first: u16,
    /// The last source port.
    pub last: u16,
    /// On the way up, or down over a bundle.
    pub up: bool,
    /// The uplink of the switch, or the member of the bundle, from zero.
    pub hop: u32,
}

impl Segment {
    /// Value and mask of the source port, if such a pair says the same as the range.
    pub fn mask(&self) -> Option<(u16, u16)> {
        let differs = self.last ^ self.first;
        let whole = differs & differs.wrapping_add(1) == 0 && self.first & differs == 0;
        whole.then_some((self.first, !differs))
    }
}

impl Segments {
    /// For the switches of `fabric`, in ports of `range`.
    ///
    /// # Errors
    /// If the range has fewer ports than there are ways up.
    pub fn new(fabric: &Fabric, range: PortRange) -> Result<Segments, PortError> {
        let (leaf, mid) = uplinks(fabric);
        let ports = range.len();
        if leaf > ports || ports / leaf < mid {
            let each = if mid > 0 { format!(" times {mid}") } else { String::new() };
            return Err(PortError(format!(
                "{ports} source ports cannot be cut into {leaf}{each} segments, one for each way up"
            )));
        }
        Ok(Segments { range, leaf, mid })
    }

    /// The ports that are cut.
    pub fn range(&self) -> PortRange {
        self.range
    }

    /// The ports that lead from `src` to `dst` along `path`.
    ///
    /// # Panics
    /// If there is no such path.
    #[inline]
    pub(super) fn between(
        &self,
        fabric: &Fabric,
        (src, dst): (HostId, HostId),
        path: PathId,
    ) -> PortRange {
        self.ports(path, fabric.hops(src, dst) / 2 - 1)
    }

    /// The ports of `path`, of which the first `tiers` bytes count: none within a rack, one where
    /// the second switch sends down, two across pods.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn ports(&self, path: PathId, tiers: u32) -> PortRange {
        let (first, second) = (u32::from(path.first()), u32::from(path.second()));
        match tiers {
            0 => self.range,
            1 => self.range.part(first, self.leaf),
            _ => self.range.part(first, self.leaf).part(second, self.mid),
        }
    }

    /// The uplinks that `port` names: of the leaf, and of the aggregation switch, if it names one.
    pub(crate) fn named(&self, port: u16) -> Option<(u32, Option<u32>)> {
        let first = self.range.part_of(port, self.leaf)?;
        if self.mid == 0 {
            return Some((first, None));
        }
        Some((first, self.range.part(first, self.leaf).part_of(port, self.mid)))
    }

    /// The rules of `switch`, all of its tier and place alike: for a leaf, and for an aggregation
    /// switch without bundles below, one an uplink and in their order. The rules of a direction do not
    /// overlap. Rows with `up: false` are there only where links down come in bundles.
    pub fn table(&self, fabric: &Fabric, switch: SwitchId) -> Vec<Segment> {
        let members = match fabric.tier(switch) {
            0 => 1,
            1 => clos(fabric).leaf_bundle.members,
            _ => clos(fabric).agg_bundle.members,
        };
        let mut rules = Vec::new();
        if fabric.uplinks(switch) > 0 {
            self.add_rules(fabric, switch, true, &mut rules);
        }
        if members > 1 {
            self.add_rules(fabric, switch, false, &mut rules);
        }
        rules
    }

    /// Adds the rules of one direction. Ranges that touch and say the same are one.
    fn add_rules(&self, fabric: &Fabric, switch: SwitchId, up: bool, rules: &mut Vec<Segment>) {
        let place = Place::of(fabric, switch);
        let is_cut = place.tier == 2 || place.tier == 1 && up;
        let parts = if is_cut { self.mid } else { 1 };
        let mut by_hop: BTreeMap<u32, Vec<Segment>> = BTreeMap::new();
        for first in (0..self.leaf).filter(|first| comes_by(fabric, switch, *first)) {
            let segment = self.range.part(first, self.leaf);
            for second in (0..parts).filter(|second| reaches(fabric, switch, *second)) {
                let PortRange { first: from, last } = segment.part(second, parts);
                let Some(hop) = place.hop(!up, (first, Some(second))) else { continue };
                let row = by_hop.entry(hop).or_default();
                match row.last_mut() {
                    Some(rule) if rule.last.checked_add(1) == Some(from) => rule.last = last,
                    _ => row.push(Segment { first: from, last, up, hop }),
                }
            }
        }
        rules.extend(by_hop.into_values().flatten());
    }
}

/// Whether packets that leave a leaf by uplink `first` come to `switch`: all at a leaf, else those
/// of its plane.
fn comes_by(fabric: &Fabric, switch: SwitchId, first: u32) -> bool {
    let clos = clos(fabric);
    let plane = first / clos.leaf_bundle.members;
    match fabric.tier(switch) {
        0 => true,
        1 => (switch.0 - fabric.leaves()) % clos.mids_per_pod() == plane,
        _ => core(fabric, switch) / clos.cores_per_plane() == plane,
    }
}

/// Whether packets that leave an aggregation switch by uplink `second` may come to `switch`: of the
/// cores only one of each plane.
fn reaches(fabric: &Fabric, switch: SwitchId, second: u32) -> bool {
    let clos = clos(fabric);
    let place = second / clos.agg_bundle.members;
    fabric.tier(switch) < 2 || core(fabric, switch) % clos.cores_per_plane() == place
}

/// Which of the cores.
fn core(fabric: &Fabric, switch: SwitchId) -> u32 {
    switch.0 - fabric.leaves() - fabric.pods() * clos(fabric).mids_per_pod()
}

/// A switch that follows port segments, or has no rules.
#[derive(Clone, Copy, Debug)]
pub struct PortRules(Option<Rules>);

#[derive(Clone, Copy, Debug)]
struct Rules {
    segments: Segments,
    place: Place,
}

impl PortRules {
    /// Of every switch.
    ///
    /// # Panics
    /// If the fabric has more ways up than RoCE has ports ([`Segments::new`]).
    pub fn of(context: &SwitchContext<'_>) -> PortRules {
        let SwitchContext { switch, fabric, .. } = *context;
        match Segments::new(fabric, PortRange::ROCE) {
            Ok(segments) => PortRules(Some(Rules { segments, place: Place::of(fabric, switch) })),
            Err(error) => panic!("{error}"),
        }
    }

    /// Of leaves only, for their uplinks: those of DNLB.
    pub fn of_leaf(context: &SwitchContext<'_>) -> PortRules {
        let PortRules(rules) = PortRules::of_uplinks(context);
        PortRules(rules.filter(|rules| rules.place.tier == 0))
    }

    /// For uplinks of leaves, and on the way down for members of the bundles to them: what switches are
    /// configured to do under DNLB.
    pub fn of_uplinks(context: &SwitchContext<'_>) -> PortRules {
        let SwitchContext { switch, fabric, .. } = *context;
        let segments = Segments { range: PortRange::ROCE, leaf: uplinks(fabric).0, mid: 0 };
        PortRules(Some(Rules { segments, place: Place::of(fabric, switch) }))
    }

    /// No rules: everything is hashed.
    pub fn none() -> PortRules {
        PortRules(None)
    }

    /// The hop that the rules have for packets to `dst` from this source port, if they have one.
    #[inline]
    pub fn hop(&self, dst: HostId, port: u16) -> Option<u32> {
        let Rules { segments, place } = self.0.as_ref()?;
        place.hop(place.is_above(dst), segments.named(port)?)
    }
}

impl Forward for PortRules {
    #[inline]
    fn is_hashed(&self) -> bool {
        self.0.is_none()
    }
    #[inline]
    fn choose<H: Hops>(&mut self, packet: &Passing, hops: &H) -> u32 {
        match self.hop(packet.dst, packet.entropy) {
            Some(hop) if hops.count() == hops.places() && hop < hops.count() => hop,
            // Some are dead: who is left, and is it among them?
            Some(place) => {
                let mut left = 0..hops.count();
                left.find(|hop| hops.place(*hop) == place).unwrap_or(packet.hashed)
            }
            None => packet.hashed,
        }
    }
}
