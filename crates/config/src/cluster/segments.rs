//! Which source ports go over which uplink, as it follows from a cluster.
//!
//! A leaf cuts the range of source ports into equal segments, one an uplink (DNLB 2025, equation 2,
//! with ends that do not overlap). In three tiers every segment is cut again where paths are pinned,
//! one part an uplink of the aggregation switch that it leads to; members of a bundle below give that
//! switch several ranges an uplink. What does not divide is behind the last segment and hashed.

use super::Cluster;
use crate::in_order::InOrder;
use crate::{ExperimentError, Origin};
use rustc_hash::FxHashMap;
use weft_balance::enforce::PortRange;

/// First and last port.
pub type PortSpan = (u16, u16);
/// For each uplink of each switch that has some: its ranges of source ports.
pub type PortSegments = InOrder<Vec<Vec<PortSpan>>>;

impl Cluster {
    /// The segments of all leaves; if `tiers`, of the switches between them and cores, too.
    ///
    /// # Errors
    /// If there are fewer ports than segments.
    pub fn segments(&self, tiers: bool) -> Result<PortSegments, ExperimentError> {
        let mut up: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
        let mut below: FxHashMap<&str, &str> = FxHashMap::default();
        for link in &self.links {
            up.entry(&link.lower).or_default().push(&link.upper);
            below.entry(&link.upper).or_insert(&link.lower);
        }
        let whole = PortRange { first: self.first_port, last: self.last_port };
        let mut found = PortSegments::default();
        for switch in &self.switches {
            let Some(above) = up.get(switch.node.as_str()).map(|above| above.len() as u32) else {
                continue;
            };
            let parts = match switch.tier {
                0 => (0..above).map(|index| vec![span(whole.part(index, above))]).collect(),
                // Every leaf below has the same uplinks here, so the first one is enough.
                1 if tiers => cut_again(whole, &up[below[&*switch.node]], &switch.node, above)?,
                _ => continue,
            };
            found.0.push((switch.node.clone(), parts));
        }
        Ok(found)
    }
}

/// The segments of the aggregation switch `node`, which leaves with the uplinks `leaf` are below.
fn cut_again(
    whole: PortRange,
    leaf: &[&str],
    node: &str,
    above: u32,
) -> Result<Vec<Vec<PortSpan>>, ExperimentError> {
    let uplinks = leaf.len() as u32;
    if whole.len() / uplinks < above {
        let what = format!(
            "{} source ports cannot be cut into {uplinks} times {above} segments; widen first_port \
             to last_port, or steer leaves alone with --scheme dnlb",
            whole.len()
        );
        return Err(ExperimentError::new("cluster.last_port", Origin::Unknown, what));
    }
    let here = |first: &u32| leaf[*first as usize] == node;
    let parts: Vec<_> = (0..uplinks).filter(here).map(|first| whole.part(first, uplinks)).collect();
    let of = |index| parts.iter().map(|part| span(part.part(index, above))).collect();
    Ok((0..above).map(of).collect())
}

fn span(range: PortRange) -> PortSpan {
    (range.first, range.last)
}
