//! How sure a sample of ports makes us: whether all paths were seen, and how even they are.
//!
//! Ports are drawn at random, so each falls on one of k paths as a ball into a box.

/// Ports that must have been seen when `known` paths are, before one more is unlikely: were there
/// `known + 1` of equal share, the probability that not all of them were seen is at most `unseen`
/// (Augustin, Friedman and Teixeira 2007: 6, 11, 16, ... for 0.05). By the union bound, as
/// [`confidence`].
///
/// # Panics
/// Unless `unseen` is between 0 and 1.
pub fn enough(known: u32, unseen: f64) -> u32 {
    assert!(unseen > 0.0 && unseen < 1.0, "a probability, not {unseen}");
    let k = f64::from(known.max(1));
    let (mut missed, mut ports) = (k + 1.0, 0);
    while missed > unseen {
        missed *= k / (k + 1.0);
        ports += 1;
    }
    ports
}

/// A lower bound of the probability that, were there one more path than the `known` ones, all of equal
/// share, `ports` ports would have shown all of them (coupon collector, union bound).
pub fn confidence(known: u32, ports: u32) -> f64 {
    let k = f64::from(known.max(1));
    (1.0 - (k + 1.0) * libm::pow(k / (k + 1.0), f64::from(ports))).max(0.0)
}

/// The smallest share of all ports that a path can have to be seen in `ports` ports with probability
/// `1 - unseen`: what is rarer may well be missing.
pub fn smallest_share(ports: u32, unseen: f64) -> f64 {
    if ports == 0 {
        return 1.0;
    }
    1.0 - libm::pow(unseen, 1.0 / f64::from(ports))
}

/// How even counts are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evenness {
    /// The largest count over the mean.
    pub max_over_mean: f64,
    /// Pearson's chi-square against equal shares.
    pub chi_square: f64,
    /// How likely a chi-square at least that large is if all shares are equal. Small: they are not.
    pub p_value: f64,
}

/// How even `counts` are; `None`: there are fewer than two, or all are zero.
pub fn evenness(counts: &[u32]) -> Option<Evenness> {
    let sum: f64 = counts.iter().map(|count| f64::from(*count)).sum();
    if counts.len() < 2 || sum == 0.0 {
        return None;
    }
    let mean = sum / counts.len() as f64;
    let square = |count: &u32| (f64::from(*count) - mean) * (f64::from(*count) - mean) / mean;
    let chi_square = counts.iter().map(square).sum();
    let most = counts.iter().copied().max().map_or(0.0, f64::from);
    let p_value = chi_square_tail(chi_square, counts.len() as u32 - 1);
    Some(Evenness { max_over_mean: most / mean, chi_square, p_value })
}

/// How likely a chi-square of so many degrees of freedom is at least `value`, by Wilson and Hilferty's
/// cube root (1931): right to some 0.01.
fn chi_square_tail(value: f64, degrees: u32) -> f64 {
    let spread = 2.0 / (9.0 * f64::from(degrees));
    let z = (libm::cbrt(value / f64::from(degrees)) - (1.0 - spread)) / libm::sqrt(spread);
    libm::erfc(z / core::f64::consts::SQRT_2) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopping_points_are_those_of_the_paper() {
        assert_eq!([1, 2, 3, 4, 5].map(|k| enough(k, 0.05)), [6, 11, 16, 21, 27]);
        assert_eq!([1, 2, 3].map(|k| enough(k, 0.01)), [8, 15, 21]);
    }

    #[test]
    fn confidence_passes_the_mark_where_it_is_enough() {
        for known in 1..40 {
            let ports = enough(known, 0.05);
            assert!(confidence(known, ports) >= 0.95, "{known}");
            assert!(confidence(known, ports - 1) < 0.95, "{known}");
        }
        assert_eq!(confidence(4, 0), 0.0);
    }

    #[test]
    fn a_rare_path_needs_more_ports() {
        assert!((smallest_share(59, 0.05) - 0.0495).abs() < 1e-3);
        assert_eq!(smallest_share(0, 0.05), 1.0);
    }

    /// Against a table of chi-square: its 5 % points.
    #[test]
    fn tails_are_those_of_tables() {
        for (degrees, value) in [(1, 3.841), (3, 7.815), (7, 14.067), (31, 44.985)] {
            let tail = chi_square_tail(value, degrees);
            assert!((tail - 0.05).abs() < 0.01, "{degrees}: {tail}");
        }
    }

    #[test]
    fn even_counts_are_even_and_others_are_not() {
        let even = evenness(&[25, 25, 25, 25]).unwrap();
        assert_eq!((even.max_over_mean, even.chi_square), (1.0, 0.0));
        assert!(even.p_value > 0.95);
        let uneven = evenness(&[60, 20, 10, 10]).unwrap();
        assert!(uneven.p_value < 1e-6 && uneven.max_over_mean == 2.4);
        assert_eq!(evenness(&[7]), None);
        assert_eq!(evenness(&[0, 0]), None);
    }
}
