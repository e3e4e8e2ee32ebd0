//! What schemes with a state in leaves took there, as columns of `runs.parquet`.

use crate::columns::Row;
use weft_sim::TorCounts;

/// All zero under other schemes.
pub(crate) fn columns(counts: &TorCounts) -> Row {
    let TorCounts { held, held_for, longest, .. } = *counts;
    let mean = if held > 0 { held_for.as_secs_f64() / held as f64 } else { 0.0 };
    vec![
        ("leaf_flows", counts.flows.into()),
        ("leaf_letters", counts.control_packets.into()),
        ("reroutes", counts.reroutes.into()),
        ("reorder_queues", counts.queues.into()),
        ("reorder_bytes", counts.held_bytes.into()),
        ("held_packets", held.into()),
        ("held_mean_s", mean.into()),
        ("held_max_s", longest.as_secs_f64().into()),
        ("flushes", counts.flushes.into()),
        ("premature_flushes", counts.premature.into()),
        ("blocked_nacks", counts.blocked_nacks.into()),
        ("late_nacks", counts.late_nacks.into()),
    ]
}
