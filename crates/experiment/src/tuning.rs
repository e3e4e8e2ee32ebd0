//! ParaLet's m and S for the fabric of an experiment (ParaLet 2024, section 5.2).

use crate::experiment::{Resolved, round_trip};
use weft_balance::scheme::{Paralet, Scheme};
use weft_config::{ExperimentError, Origin};
use weft_plan::paralet::Tuning;

/// What is given, for the rest to follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wanted {
    /// At most so many times the time at line rate.
    Slowdown(f64),
    /// So many queue pairs a NIC.
    QueuePairs(u32),
}

/// What follows for the fabric of `experiment`: its hosts are the N of equation 1 unless
/// `accelerators` is given; rate, round trip and packets are its own, as in simulations.
///
/// # Errors
/// If equation 1 has no answer; the line says which value to change.
pub fn tuning(
    experiment: &Resolved,
    wanted: Wanted,
    accelerators: Option<u64>,
) -> Result<Tuning, ExperimentError> {
    let (fabric, packet) = (&experiment.fabric, &experiment.packet);
    let accelerators = accelerators.unwrap_or(u64::from(fabric.hosts()));
    let (rate, round_trip) = (fabric.line_rate(), round_trip(fabric, packet));
    let mtu = packet.mtu;
    let found = match wanted {
        Wanted::Slowdown(most) => Tuning::new(most, accelerators, rate, round_trip, mtu),
        Wanted::QueuePairs(count) => Tuning::with(count, accelerators, rate, round_trip, mtu),
    };
    found.map_err(|error| {
        ExperimentError::new(Paralet::INFO.name, Origin::Unknown, error.to_string())
    })
}
