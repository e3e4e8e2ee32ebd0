//! What the tests share.

pub(crate) mod flow;
pub(crate) mod leaves;
pub(crate) mod paths;
pub(crate) mod switch;

/// The chi-square statistic of `counts` against equal ones: about the number of cells less one
/// for a random function.
pub(crate) fn chi_square(counts: &[u64]) -> f64 {
    let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let squared = |count: &u64| (*count as f64 - mean) * (*count as f64 - mean);
    counts.iter().map(squared).sum::<f64>() / mean
}
