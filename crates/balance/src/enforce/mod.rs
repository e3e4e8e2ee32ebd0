//! Paths on switches as they are: how a path id becomes a UDP source port, and a port a path.
//!
//! Switches that route by path id ([`weft_fabric::PathId`]) have to be built. Two ways lead along
//! the same paths on switches that can be bought (Ethereal 2025, section 3.2):
//!
//! | way | what switches do | what hosts do |
//! |---|---|---|
//! | [`Enforce::Segments`] | send each segment of the port range over an uplink of its own, as under DNLB (CTCCL 2025) | take a port of the segment |
//! | [`Enforce::Hash`] | nothing: ECMP with a hash that is known | search for a port that hashes onto the path (the idea of RePaC) |
//! | [`Enforce::Discovered`] | nothing: ECMP with any hash | find out by probes which port takes which path ([`PortTable`]) |
//!
//! [`Ports`] is either way; [`Ports::port`] and [`Ports::path`] are its two directions, and
//! [`Segments::table`] is what a switch has to be told. [`PathRoutes`] is the same for a host that
//! keeps count of the ports that it has used. What RDMA verbs want in place of a port is in [`label`].

mod crossing;
mod ends;
mod finding;
mod fitting;
pub mod hashing;
pub mod label;
mod port_table;
mod ports;
mod range;
mod routes;
pub mod segments;

pub use crossing::{Crossing, crossings};
pub use ends::{Ends, address};
pub use finding::links_from;
pub use hashing::{Hasher, Hashing, uplink_of};
pub use port_table::PortTable;
pub use ports::Ports;
pub use range::PortRange;
pub use routes::PathRoutes;
pub use segments::{PortRules, Segment, Segments};
pub use weft_fabric::{FiveTuple, HashFunction, MICROSOFT_KEY};

use crate::forward::SwitchContext;
use crate::scheme::needs_clos;
use std::fmt;
use weft_fabric::{Clos, Fabric, FabricError};
use weft_units::{OptionError, OptionInfo, OptionKind, Options, SwitchId};

/// What makes packets take the path that their host has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforce {
    /// Switches that route by path id, as published.
    PathId,
    /// Segments of the port range, by policy.
    Segments,
    /// The switches' own hash, which the host knows.
    Hash,
    /// The switches' own hash, of which the host finds out where it leads.
    Discovered,
}

impl Enforce {
    /// The option of a scheme that pins paths.
    pub const OPTION: OptionInfo = OptionInfo {
        key: "enforce",
        default: "path-id",
        kind: OptionKind::Word(&["path-id", "segments", "hash", "discovered"]),
        meaning: "what makes packets take their path: \"path-id\", switches that route by it; \
                  \"segments\" of UDP source ports, which switches map to uplinks; \"hash\", ports \
                  that the switches' hash (fabric.switch.hash) puts there; \"discovered\", ports \
                  that were found there by probes (weft discover)",
    };

    /// Reads [`Enforce::OPTION`].
    ///
    /// # Errors
    /// If it is none of the four words.
    pub fn read(options: &mut Options<'_>) -> Result<Enforce, OptionError> {
        let all = [Enforce::PathId, Enforce::Segments, Enforce::Hash, Enforce::Discovered];
        options.choice(Enforce::OPTION.key, &all.map(|one| (one.name(), one)))
    }

    /// The value of [`Enforce::OPTION`].
    pub fn name(self) -> &'static str {
        match self {
            Enforce::PathId => "path-id",
            Enforce::Segments => "segments",
            Enforce::Hash => "hash",
            Enforce::Discovered => "discovered",
        }
    }

    /// What switches must do beyond hashing packets onto equal hops
    /// ([`crate::scheme::SchemeInfo::switches`]).
    pub fn switches(self) -> &'static str {
        match self {
            Enforce::PathId => "route by path id",
            Enforce::Segments => "policy of source ports",
            Enforce::Hash => "a hash that hosts know",
            Enforce::Discovered => "answers to probes of few hops",
        }
    }

    /// What one switch does for it.
    pub fn rules(self, context: &SwitchContext) -> PortRules {
        match self {
            Enforce::Segments => PortRules::of(context),
            Enforce::PathId | Enforce::Hash | Enforce::Discovered => PortRules::none(),
        }
    }

    /// Whether all paths of `fabric` can be named.
    ///
    /// # Errors
    /// If path ids or segments of the port range do not suffice. Whether a hash reaches every path
    /// is for [`Ports::check`].
    pub fn fits(self, fabric: &Fabric) -> Result<(), FabricError> {
        if self != Enforce::PathId && fabric.clos().is_none() {
            return Err(needs_clos("source ports name uplinks of leaves"));
        }
        match self {
            Enforce::PathId => fabric.check_path_ids(),
            Enforce::Segments => {
                Segments::new(fabric, PortRange::ROCE).map_err(|error| FabricError(error.0))?;
                fits_bytes(fabric)
            }
            Enforce::Hash | Enforce::Discovered => fits_bytes(fabric),
        }
    }
}

/// Hosts name a path by a byte a tier, whatever carries it.
fn fits_bytes(fabric: &Fabric) -> Result<(), FabricError> {
    let (leaf, mid) = uplinks(fabric);
    let most = leaf.max(mid);
    if most > 256 {
        let what = format!("a switch has {most} uplinks, but a path names 256 at most");
        return Err(FabricError(what));
    }
    Ok(())
}

/// How many links lead up from a leaf, and from an aggregation switch: none with two tiers.
fn uplinks(fabric: &Fabric) -> (u32, u32) {
    let above = fabric.leaves();
    let mid = if above < fabric.switches() { fabric.uplinks(SwitchId(above)) } else { 0 };
    // A leaf may be a network of its own: then all ports are alike.
    (fabric.uplinks(SwitchId(0)).max(1), mid)
}

/// The folded Clos that a fabric is, where [`Enforce::fits`] has said that it is one.
///
/// # Panics
/// If it is none.
fn clos(fabric: &Fabric) -> &Clos {
    fabric.clos().expect("source ports name paths of a folded Clos")
}

/// Why there is no such port: one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortError(pub String);

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
impl std::error::Error for PortError {}
