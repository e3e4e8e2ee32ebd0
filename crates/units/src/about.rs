//! Quantities for a reader: the largest unit that fits and at most four digits, such as `87.02us`
//! and `500KB`. Where a number has to be exact, it is written otherwise ([`Time`]'s own words).

use crate::Time;

const TIMES: [(u64, &str); 5] =
    [(1_000_000_000_000, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns"), (1, "ps")];
const SIZES: [(u64, &str); 5] =
    [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "KB"), (1, "B")];

/// A time, rounded down to four digits.
pub fn about_time(time: Time) -> String {
    if time == Time::ZERO { "0ns".into() } else { about(time.0, &TIMES) }
}

/// A number of bytes, rounded down to four digits; units are decimal.
pub fn about_bytes(bytes: u64) -> String {
    about(bytes, &SIZES)
}

/// `units` from the largest down to one.
fn about(number: u64, units: &[(u64, &str)]) -> String {
    let fits = units.iter().find(|(scale, _)| *scale <= number);
    let (scale, unit) = fits.copied().unwrap_or((1, units[units.len() - 1].1));
    let (whole, rest) = (number / scale, number % scale);
    let digits = 4usize.saturating_sub(whole.to_string().len());
    // Units are a thousand apart, so that three decimals are exact or enough.
    let thousandths = format!("{:03}", (u128::from(rest) * 1000 / u128::from(scale)));
    let decimals = thousandths[..digits.min(3)].trim_end_matches('0');
    match decimals {
        "" => format!("{whole}{unit}"),
        decimals => format!("{whole}.{decimals}{unit}"),
    }
}
