//! Numbers with units, read as everywhere (`weft_units::parse`).

use crate::wrong;
use pyo3::prelude::*;
use weft_units::{parse_nccl_size, parse_rate, parse_size, parse_time};

/// The number in `text` in seconds, bytes or bits per second, and which of these it is.
#[pyfunction]
pub(crate) fn quantity(text: &str) -> Option<(f64, &'static str)> {
    // A letter alone may be of a size or of a rate.
    if text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim().len() == 1
        && text.ends_with(|c: char| "KMGTkmgt".contains(c))
    {
        return None;
    }
    let time = || parse_time(text).ok().map(|time| (time.as_secs_f64(), "time"));
    let bytes = || parse_size(text).ok().map(|bytes| (bytes as f64, "bytes"));
    let rate = || parse_rate(text).ok().map(|rate| (rate.as_bps() as f64, "rate"));
    time().or_else(bytes).or_else(rate)
}

/// The bytes in `text`, a size or one of nccl-tests.
#[pyfunction]
pub(crate) fn nccl_size(text: &str) -> PyResult<u64> {
    parse_nccl_size(text).map_err(wrong)
}
