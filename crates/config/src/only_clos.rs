//! What is only done for a folded Clos, and how other networks are refused there.

use crate::{ExperimentError, Origin};
use weft_fabric::{Clos, Fabric};

/// The folded Clos that `fabric` is, for `what` ("plans are made for", say) is only done there.
///
/// # Errors
/// If it is another network, or NICs have several ports.
pub fn only_clos<'a>(fabric: &'a Fabric, what: &str) -> Result<&'a Clos, ExperimentError> {
    if fabric.planes() > 1 {
        let why = "one plane only; describe one, with planes = 1: each plane has a file of its own";
        return Err(refused("fabric.planes", what, why));
    }
    only_clos_planes(fabric, what)
}

/// The folded Clos that each plane of `fabric` is.
///
/// # Errors
/// If it is another network, or leaves share hosts.
pub fn only_clos_planes<'a>(fabric: &'a Fabric, what: &str) -> Result<&'a Clos, ExperimentError> {
    if fabric.homes() > 1 {
        let why = "hosts with one port only; set homes = 1";
        return Err(refused("fabric.homes", what, why));
    }
    let why = "folded Clos only; choose leaf-spine, fat-tree or clos";
    let clos = fabric.clos().filter(|clos| clos.rails().is_none());
    clos.ok_or_else(|| refused("fabric.topology", what, why))
}

/// A topology file may be what says so.
fn refused(key: &str, what: &str, why: &str) -> ExperimentError {
    let error = ExperimentError::new(key, Origin::Unknown, format!("{what} {why}"));
    error.caused_by(&["fabric.file"])
}
