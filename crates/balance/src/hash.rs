//! How a switch chooses among equal next hops: the hash behind ECMP and every kind of spray.
//!
//! Each switch hashes the addresses of a flow and the entropy value of the packet under a
//! salt of its own. Invariant: for one salt, equal inputs always give the same port, which is
//! what keeps the packets of a single-path flow in order.

use weft_units::{Draw, SwitchId};

/// The port, below `ports`, for a packet. `flow_key` stands for the addresses (source and
/// destination), `entropy` for the source port, `salt` for the switch (see [`salt`]).
///
/// Two multiplications: the first spreads every input bit upwards, the shift brings them
/// down, the second spreads them again, and the range is reduced from the best (top) bits.
/// With one multiplication consecutive entropies would walk the ports almost evenly, which
/// flatters schemes that count.
#[inline(always)]
pub fn choose(flow_key: u32, entropy: u16, salt: u64, ports: u32) -> u32 {
    below(bits(flow_key, entropy, salt), ports)
}

/// The hash itself, uniform over all 32 bits: as in [`choose`].
#[inline(always)]
pub fn bits(flow_key: u32, entropy: u16, salt: u64) -> u32 {
    let input = (u64::from(flow_key) << 16) | u64::from(entropy);
    let mut hash = (input ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    (hash >> 32) as u32
}

/// A hash as a number below `n`: its share of all hashes, times `n`, rounded down.
#[inline(always)]
pub fn below(bits: u32, n: u32) -> u32 {
    ((u64::from(bits) * u64::from(n)) >> 32) as u32
}

/// The salt of `switch` under `seed`, the same for all schemes. To make all switches hash
/// alike (polarisation), give all of them the salt of one switch.
pub fn salt(seed: u64, switch: SwitchId) -> u64 {
    Draw::new(seed, "hash-salt").at(u64::from(switch.0), 0)
}
