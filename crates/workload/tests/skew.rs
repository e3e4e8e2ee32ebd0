//! Zipf's law, and who is popular.

use weft_workload::Skew;
use weft_workload::collective::Algorithm;

fn skew(exponent: f64, seed: u64) -> Skew {
    let read = Algorithm::read("direct", &[("skew", &exponent.to_string())]).expect("an exponent");
    let Algorithm::Direct(direct) = read.under(seed) else { unreachable!("it was asked for") };
    direct.skew.expect("it is unequal")
}

/// What each of `ranks` gets of so many bytes.
fn blocks(skew: Skew, bytes: u64, ranks: u32) -> Vec<u64> {
    (0..ranks).map(|rank| skew.block(bytes, ranks, rank)).collect()
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a second computation")]
fn shares_are_those_of_the_law() {
    const BYTES: u64 = 1 << 60;
    /// Shares count in these.
    const UNIT: f64 = (1u64 << 40) as f64;
    for exponent in [0.01, 0.5, 0.999_999, 1.0, 1.000_001, 1.5, 2.0, 3.0, 4.0] {
        let mut got = blocks(skew(exponent, 1), BYTES, 5_000);
        assert_eq!(got.iter().sum::<u64>(), BYTES);
        got.sort_unstable_by(|one, other| other.cmp(one));
        for (j, ours) in (1..).zip(&got) {
            let share = f64::from(j).powf(-exponent);
            let ours = *ours as f64 / got[0] as f64;
            // Two parts of a unit for rounding, and the one that each rank gets beside its share.
            let off = (ours - share).abs();
            assert!(off < 0.001 * share + 3.0 / UNIT, "{exponent} {j}: {ours} {share}");
        }
    }
}

#[test]
fn every_rank_has_a_place_of_its_own() {
    for ranks in [1, 2, 3, 5, 8, 17, 100, 1_000] {
        let mut got = blocks(skew(1.0, 7), 1 << 60, ranks);
        got.sort_unstable();
        // Of two that were at one place, one would be as much as the other, and another nobody's.
        assert!(got.windows(2).all(|pair| pair[0] < pair[1]), "{ranks}");
        assert_eq!(got.iter().sum::<u64>(), 1 << 60);
    }
    let first = |seed| {
        let got = blocks(skew(1.0, seed), 1 << 60, 64);
        (0..64).max_by_key(|rank| got[*rank])
    };
    assert!((1..10).any(|seed| first(seed) != first(0)));
}
