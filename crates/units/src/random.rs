//! Randomness that does not depend on who drew before.
//!
//! Every draw is a pure function of (seed, purpose, entity, counter): two schemes under the
//! same seed see the same workload, jitter and hash salts, and the order in which entities
//! draw changes nothing. The generator is SplitMix64 (Steele, Lea, Flood 2014), whose n-th
//! output is a hash of its n-th counter, which is the property that matters here.

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes 64 bits into 64 bits: a bijection whose every output bit depends on every input bit.
#[inline(always)]
pub const fn mix64(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// 64 random bits as a number in [0, 1), of which 53 bits are random.
#[inline(always)]
pub const fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// 64 random bits as a number below `n`, for ranges beyond 32 bits; zero if `n` is zero.
#[inline(always)]
pub const fn below(bits: u64, n: u64) -> u64 {
    ((bits as u128 * n as u128) >> 64) as u64
}

/// What a random number is for. Draws for different purposes never share a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Draw {
    key: u64,
}

impl Draw {
    /// The source for one purpose (`"ecn-mark"`, `"permutation"`, ...) under `seed`.
    pub const fn new(seed: u64, purpose: &str) -> Draw {
        // FNV-1a over the name, then mixed with the seed.
        let bytes = purpose.as_bytes();
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut at = 0;
        while at < bytes.len() {
            hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            at += 1;
        }
        Draw { key: mix64(mix64(seed.wrapping_add(GOLDEN)) ^ hash) }
    }
    /// The stream of one entity (a host, a flow, a port).
    #[inline(always)]
    pub const fn stream(self, entity: u64) -> Stream {
        Stream { state: mix64(self.key ^ mix64(entity.wrapping_add(GOLDEN))) }
    }
    /// The `counter`-th number of `entity`'s stream, without keeping the stream.
    #[inline(always)]
    pub const fn at(self, entity: u64, counter: u64) -> u64 {
        let start = self.stream(entity).state;
        mix64(start.wrapping_add(GOLDEN.wrapping_mul(counter.wrapping_add(1))))
    }
}

/// A sequence of random numbers that belongs to one entity and purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    state: u64,
}

impl Stream {
    /// The next 64 random bits.
    #[inline(always)]
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix64(self.state)
    }
    /// A number below `n`, uniform but for a bias under 2^-32. Zero if `n` is zero.
    #[inline(always)]
    pub fn below(&mut self, n: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(n)) >> 32) as u32
    }
    /// A number in [0, 1): see [`unit()`].
    pub fn unit(&mut self) -> f64 {
        unit(self.bits())
    }
    /// Shuffles `items` (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u32 + 1) as usize;
            items.swap(last, other);
        }
    }
}
