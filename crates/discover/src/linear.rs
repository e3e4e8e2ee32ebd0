//! Linear hashes, such as CRCs and exclusive ors: bits of the source port that are flipped move every flow in
//! the same way, whatever its addresses are (RePaC, Zhang et al. 2021).
//!
//! Two ports of one path differ by something that moves nothing. Such differences form a space over GF(2);
//! where a group has 2^b members, all of which are reached, 2^(16 - b) of the 65,536 differences are in it. So
//! the space is known as soon as ports that were asked span it, and every other port belongs to the path that
//! its difference to a known one says. The same space holds for all targets.
//!
//! That a hash is linear is not assumed: differences that go on fitting after the space is full are the test
//! ([`Space::surplus`]). Under another hash each fits by chance with probability 2^-b.

/// Bits of a source port.
const BITS: usize = 16;

/// Differences of ports that move nothing: a space, by a basis whose vectors have leading bits of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// The vector that begins with this bit; zero: there is none.
    basis: [u16; BITS],
    /// Differences that were in it already.
    surplus: u32,
}

impl Space {
    /// The space that differences of ports of one path span, over all `paths`.
    pub fn of<'a>(paths: impl Iterator<Item = &'a [u16]>) -> Space {
        let mut space = Space::default();
        for ports in paths {
            let (first, rest) = ports.split_first().unwrap_or((&0, &[]));
            rest.iter().for_each(|port| space.add(first ^ port));
        }
        space
    }

    fn add(&mut self, difference: u16) {
        match self.rest(difference) {
            0 => self.surplus += 1,
            rest => self.basis[top(rest)] = rest,
        }
    }

    /// What is left of a port or a difference when all that moves nothing is taken away: alike for all ports
    /// of a path, and for no others.
    pub fn rest(&self, mut port: u16) -> u16 {
        for bit in (0..BITS).rev() {
            if port >> bit & 1 == 1 && self.basis[bit] != 0 {
                port ^= self.basis[bit];
            }
        }
        port
    }

    /// Its dimension.
    pub fn rank(&self) -> u32 {
        self.basis.iter().filter(|one| **one != 0).count() as u32
    }

    /// How many differences fitted although nothing new came of them.
    pub fn surplus(&self) -> u32 {
        self.surplus
    }

    /// Whether it is that of a linear hash onto `paths` paths, by ports that differ in `bits` bits: all of the
    /// space is known, and enough differences have fitted since that another hash is out of the question.
    pub fn is_hash(&self, paths: usize, bits: u32) -> bool {
        paths > 1
            && paths.is_power_of_two()
            && self.rank() + paths.trailing_zeros() == bits
            && self.surplus >= checks(paths, DOUBT)
    }

    /// How many paths there are, if it is that of a linear hash of ports that differ in `bits` bits.
    pub fn paths(&self, bits: u32) -> usize {
        1 << bits.saturating_sub(self.rank())
    }

    /// Whether ports of these paths are alike within each and differ between them: the space of another target
    /// holds for this one.
    pub fn fits<'a>(&self, paths: impl Iterator<Item = &'a [u16]>) -> bool {
        let mut seen = std::collections::BTreeSet::new();
        for ports in paths {
            let mut rests = ports.iter().map(|port| self.rest(*port));
            let Some(first) = rests.next() else { continue };
            if rests.any(|rest| rest != first) || !seen.insert(first) {
                return false;
            }
        }
        true
    }
}

/// One of so many hashes that are not linear may be taken for one.
const DOUBT: u64 = 1_000_000;
/// The same, where the hash was found to be linear towards another target.
const DOUBT_AGAIN: u64 = 100;

/// Differences that must fit, when each fits by chance for one of `paths`.
fn checks(paths: usize, doubt: u64) -> u32 {
    (0..).find(|count| (paths as u64).saturating_pow(*count) >= doubt).expect("it grows")
}

/// Ports beyond one a path that must fit where the hash was found to be linear towards another target.
pub fn checks_again(paths: usize) -> u32 {
    checks(paths.max(2), DOUBT_AGAIN)
}

fn top(value: u16) -> usize {
    BITS - 1 - value.leading_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_units::Draw;

    /// A matrix over GF(2), as a CRC is one: so many bits of a port, and a constant.
    fn linear(seed: u64, bits: u32) -> impl Fn(u16) -> u32 {
        let rows: Vec<u16> =
            (0..bits).map(|row| Draw::new(seed, "row").at(u64::from(row), 0) as u16).collect();
        move |port| {
            let bit = |row: &u16| (row & port).count_ones() & 1;
            rows.iter().fold(seed as u32 & 1, |value, row| value << 1 | bit(row))
        }
    }

    fn by_path(hash: &dyn Fn(u16) -> u32, ports: &[u16]) -> Vec<Vec<u16>> {
        let mut paths: std::collections::BTreeMap<u32, Vec<u16>> = Default::default();
        ports.iter().for_each(|port| paths.entry(hash(*port)).or_default().push(*port));
        paths.into_values().collect()
    }

    fn drawn(seed: u64, count: u64) -> Vec<u16> {
        (0..count).map(|place| 0xC000 | Draw::new(seed, "port").at(place, 0) as u16 >> 2).collect()
    }

    #[test]
    fn some_ports_of_a_linear_hash_tell_all_others() {
        for seed in 0..50 {
            let hash = linear(seed, 3);
            let paths = by_path(&hash, &drawn(seed, 48));
            if paths.len() < 8 {
                // Rows that are not independent: fewer paths.
                continue;
            }
            let space = Space::of(paths.iter().map(Vec::as_slice));
            assert!(space.is_hash(8, 14), "{seed}: {space:?}");
            for (one, other) in drawn(seed + 1_000, 200).iter().zip(drawn(seed + 2_000, 200)) {
                let alike = space.rest(*one) == space.rest(other);
                assert_eq!(alike, hash(*one) == hash(other), "{seed}: {one} {other}");
            }
        }
    }

    #[test]
    fn another_hash_is_not_taken_for_linear() {
        for seed in 0..200 {
            for bits in [1, 2, 3, 5] {
                let hash = |port: u16| {
                    (Draw::new(seed, "mix").at(u64::from(port), 0) % (1 << bits)) as u32
                };
                let paths = by_path(&hash, &drawn(seed, 200));
                let space = Space::of(paths.iter().map(Vec::as_slice));
                assert!(!space.is_hash(1 << bits, 14), "{seed}, {bits} bits: {space:?}");
            }
        }
    }

    #[test]
    fn too_few_ports_tell_nothing() {
        let paths = by_path(&linear(1, 2), &drawn(1, 14));
        assert!(!Space::of(paths.iter().map(Vec::as_slice)).is_hash(4, 14));
        assert!(!Space::of([&[50_000][..]].into_iter()).is_hash(1, 14));
    }
}
