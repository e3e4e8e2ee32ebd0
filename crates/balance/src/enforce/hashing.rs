//! How switches choose by a hash over addresses and ports, and what hosts must know of it to choose
//! in their place (Ethereal 2025, section 3.2, after RePaC).
//!
//! A switch folds its seed into the value of the [`HashFunction`], turns that by an offset, and takes
//! the remainder by the number of its hops.
//!
//! The functions are linear, so a seed, where it is a start value too, changes all values by one
//! constant. Two tiers that look at the same bits would then choose hand in hand: by the uplink that
//! a packet took at the leaf it would be settled where it goes next, and most paths would be out of
//! reach of any port (polarisation). So every tier looks at bits of its own, eight further on, as
//! switches can be told to; with `same_salt` all look at the same ones.

use super::Ends;
use crate::hash::salt;
use weft_fabric::{Fabric, FiveTuple, HashFunction, Node};
use weft_units::{PortId, SwitchId};

/// The hash of all switches of a fabric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hashing {
    /// What they hash with.
    pub function: HashFunction,
    /// Their seeds follow from it, as the salts of [`crate::hash`] do.
    pub seed: u64,
    /// All of them have the same seed and offset.
    pub same_salt: bool,
}

/// The hash of one switch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hasher {
    /// What it hashes with.
    pub function: HashFunction,
    /// Folded into the value.
    pub seed: u32,
    /// By so many bits the value is turned to the right.
    pub offset: u32,
}

impl Hashing {
    /// That of `switch`.
    pub fn at(&self, fabric: &Fabric, switch: SwitchId) -> Hasher {
        let Hashing { function, seed, same_salt } = *self;
        let salted = if same_salt { SwitchId(0) } else { switch };
        let offset = 8 * u32::from(fabric.tier(salted)) % function.width();
        Hasher { function, seed: salt(seed, salted) as u32, offset }
    }

    /// The uplinks that a packet takes at the leaf, and at the switch there if that sends up.
    pub(crate) fn named(&self, fabric: &Fabric, ends: &Ends, port: u16) -> (u32, Option<u32>) {
        let tuple = FiveTuple::rocev2(ends.from, ends.to, port);
        let leaf = SwitchId(fabric.leaf_of(ends.src));
        let ups = fabric.next_hops(leaf, ends.dst);
        let first = uplink_of(&self.at(fabric, leaf), &tuple, ups.count);
        let Node::Switch(above) = fabric.ports()[PortId(ups.first.0 + first)].peer else {
            return (first, None);
        };
        let hops = fabric.next_hops(above, ends.dst).count;
        (first, Some(uplink_of(&self.at(fabric, above), &tuple, hops)))
    }
}

impl Hasher {
    /// The hash of `tuple` as this switch sees it, in as many bits as the function has.
    pub fn hash(&self, tuple: &FiveTuple) -> u32 {
        self.turned(self.function.value(tuple))
    }
    /// What the switch makes of the function's value.
    fn turned(&self, value: u32) -> u32 {
        let (width, offset) = (self.function.width(), self.offset);
        let mask = u32::MAX >> (32 - width);
        let value = (value ^ self.seed) & mask;
        match offset {
            0 => value,
            _ => (value >> offset | value << (width - offset)) & mask,
        }
    }
    /// The hash of `tuple` in 32 bits, as [`crate::forward::Passing::hash`] has it, and the hop, below
    /// `hops`.
    pub fn spread(&self, tuple: &FiveTuple, hops: u32) -> (u32, u32) {
        let hash = self.hash(tuple);
        let wide = if self.function.width() == 16 { hash << 16 | hash } else { hash };
        (wide, hash % hops)
    }
    /// The hop, below `hops`, for a packet of which the function has this value.
    pub fn pick(&self, value: u32, hops: u32) -> u32 {
        self.turned(value) % hops
    }
}

/// The uplink, below `uplinks`, by which a switch sends packets of `tuple`.
pub fn uplink_of(hasher: &Hasher, tuple: &FiveTuple, uplinks: u32) -> u32 {
    hasher.hash(tuple) % uplinks
}
