//! All-to-all with unequal sizes (all-to-allv): some ranks are more popular than others, as the
//! experts of a mixture-of-experts model are.
//!
//! Zipf's law: the j-th most popular of `n` ranks gets of every sender's buffer a share in
//! proportion to `1 / j^skew`. Who is popular is drawn from the seed, and the same for all
//! senders. A rank's own share stays with it, as in an all-to-all of equal sizes, so that all
//! ranks together send as much as there: what a skew changes is who receives it.
//!
//! Invariant: the blocks of a buffer add up to it, to the byte. A block is the difference of two
//! sums, rounded down; a sum takes as long for the last of a million ranks as for the first
//! (Euler-Maclaurin, within 0.1 % of each share).

use weft_units::random::Draw;
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

/// How unequal an all-to-all is, and by which seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Skew {
    exponent: f64,
    seed: u64,
}

/// No exponent is NaN: options refuse it.
impl Eq for Skew {}

/// A sum of shares counts in these, so that sums of whole numbers add up.
const UNIT: f64 = (1u64 << 40) as f64;

/// Beyond, a million ranks have nothing and the first has all.
const MOST: f64 = 4.0;

impl Skew {
    /// How options list it.
    pub(crate) const OPTION: OptionInfo = OptionInfo {
        key: "skew",
        default: "0",
        kind: OptionKind::Number(0.0, MOST),
        meaning: "of an all-to-all: 0 for equal sizes, else how unequally popular the receivers \
                  are; the j-th gets 1 / j^skew (Zipf)",
    };

    /// Takes the option; `None`: equal sizes.
    ///
    /// # Errors
    /// If it is no number or out of range.
    pub(crate) fn read(options: &mut Options<'_>) -> Result<Option<Skew>, OptionError> {
        let exponent = options.fraction(Skew::OPTION.key)?;
        Ok((exponent > 0.0).then_some(Skew { exponent, seed: 0 }))
    }
    /// The same with popular ranks drawn from `seed`.
    pub(crate) fn under(self, seed: u64) -> Skew {
        Skew { seed, ..self }
    }

    /// What of a buffer of `bytes` is for `rank` of `ranks`.
    pub fn block(&self, bytes: u64, ranks: u32, rank: u32) -> u64 {
        let place = self.place(ranks, rank);
        let all = u128::from(self.sum(ranks));
        let before = |place| (u128::from(bytes) * u128::from(self.sum(place)) / all) as u64;
        before(place + 1) - before(place)
    }

    /// How many of `ranks` are more popular than `rank`: a random order that is computed for each
    /// alone (a Feistel network, walked until it ends below `ranks`).
    fn place(&self, ranks: u32, rank: u32) -> u32 {
        const ROUNDS: u64 = 4;
        let draw = Draw::new(self.seed, "popular-ranks");
        let half = (u32::BITS - ranks.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
        let mask = (1u32 << half) - 1;
        let mut place = rank;
        loop {
            let (mut left, mut right) = (place >> half, place & mask);
            for round in 0..ROUNDS {
                let mixed = draw.at(u64::from(ranks) << 8 | round, u64::from(right)) as u32;
                (left, right) = (right, left ^ (mixed & mask));
            }
            place = left << half | right;
            if place < ranks {
                return place;
            }
        }
    }

    /// What the `many` most popular ranks get together, in `UNIT`s of what the first gets. Each
    /// gets at least one part of a unit, so that rounding never makes a sum less than the one
    /// before it.
    fn sum(&self, many: u32) -> u64 {
        /// Shares that are added one by one.
        const FIRST: u32 = 3;
        let share = |j: u32| libm::pow(f64::from(j), -self.exponent);
        let mut sum: f64 = (1..=many.min(FIRST)).map(share).sum();
        if many > FIRST {
            sum += self.between(f64::from(FIRST) + 0.5, f64::from(many) + 0.5);
        }
        (sum * UNIT) as u64 + u64::from(many)
    }

    /// The shares between two halves `from` and `to`: the midpoint rule read backwards, with its
    /// first two corrections.
    fn between(&self, from: f64, to: f64) -> f64 {
        let (s, ratio) = (self.exponent, libm::log(to / from));
        // The integral of x^-s, which is a logarithm for s = 1.
        let bend = (1.0 - s) * ratio;
        let grown = if bend == 0.0 { 1.0 } else { libm::expm1(bend) / bend };
        let ends = [from, to].map(|x| (x, libm::pow(x, -s)));
        let fall =
            |order: fn(f64) -> f64| ends[0].1 / order(ends[0].0) - ends[1].1 / order(ends[1].0);
        let once = s / 24.0 * fall(|x| x);
        let thrice = 7.0 / 5760.0 * s * (s + 1.0) * (s + 2.0) * fall(|x| x * x * x);
        ends[0].1 * from * ratio * grown - once + thrice
    }
}
