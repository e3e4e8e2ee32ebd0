//! Numbers with units, as people write them: `"400Gbps"`, `"500ns"`, `"64MB"`, `"1.5us"`.
//!
//! Sizes are decimal (`KB` = 1000 bytes) unless they say binary (`KiB` = 1024 bytes), as in
//! the papers, whoever reads them. Letters alone are as tools have them: `1M` is a binary size, `100G` a
//! decimal rate. Only where nccl-tests' options are taken over may a size be a number alone
//! ([`parse_nccl_size`]). Arithmetic is exact: `"0.1us"` is 100,000 ps, with no binary fraction between.

use crate::{Rate, Time};
use std::fmt;

/// Why a text is not a quantity. Its message says how to write one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError(String);

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
impl std::error::Error for UnitError {}

/// A kind of quantity: its name, an example, the unit to suggest where there is none, and its
/// units with their size in base units.
struct Kind {
    name: &'static str,
    example: &'static str,
    usual: &'static str,
    units: &'static [(&'static str, u64)],
    /// Letters that stand alone, in either case.
    letters: &'static [(&'static str, u64)],
}

const TIME: Kind = Kind {
    letters: &[],
    name: "time",
    example: "500ns",
    usual: "ns",
    units: &[
        ("ps", 1),
        ("ns", 1_000),
        ("us", 1_000_000),
        ("µs", 1_000_000),
        ("ms", 1_000_000_000),
        ("s", 1_000_000_000_000),
    ],
};
const SIZE: Kind = Kind {
    // As nccl-tests and coreutils have them.
    letters: &[("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40)],
    name: "size",
    example: "64MB",
    usual: "B",
    units: &[
        ("B", 1),
        ("KB", 1_000),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
    ],
};
const RATE: Kind = Kind {
    letters: &[("K", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("T", 1_000_000_000_000)],
    name: "rate",
    example: "400Gbps",
    usual: "Gbps",
    units: &[
        ("bps", 1),
        ("Kbps", 1_000),
        ("Mbps", 1_000_000),
        ("Gbps", 1_000_000_000),
        ("Tbps", 1_000_000_000_000),
        ("Kb/s", 1_000),
        ("Mb/s", 1_000_000),
        ("Gb/s", 1_000_000_000),
        ("Tb/s", 1_000_000_000_000),
    ],
};

/// A span of time, such as `"500ns"` or `"1.5us"`.
///
/// # Errors
/// If the number, the unit or the precision (a picosecond) is wrong.
pub fn parse_time(text: &str) -> Result<Time, UnitError> {
    parse(text, &TIME).map(Time)
}

/// A number of bytes, such as `"64MB"` (decimal) or `"32KiB"` (binary). Letters alone are binary, too:
/// `"1M"` is 1,048,576 bytes, as in nccl-tests and coreutils.
///
/// # Errors
/// If the number or the unit is wrong, or the size is not a whole number of bytes.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    parse(text, &SIZE)
}

/// As [`parse_size`], where a number alone is bytes, as nccl-tests has it.
///
/// # Errors
/// As [`parse_size`].
pub fn parse_nccl_size(text: &str) -> Result<u64, UnitError> {
    match split(text) {
        (number, "") if !number.is_empty() => scaled(text, number, 1, &SIZE),
        _ => parse_size(text),
    }
}

/// A link rate, such as `"400Gbps"` or `"400G"`.
///
/// # Errors
/// If the number or the unit is wrong, or the rate is zero.
pub fn parse_rate(text: &str) -> Result<Rate, UnitError> {
    match parse(text, &RATE)? {
        0 => Err(UnitError(format!("rate {text:?} is zero: write one such as \"400Gbps\""))),
        bits => Ok(Rate::bps(bits)),
    }
}

/// A size that [`parse_size`] reads back exactly: the largest decimal unit that keeps the number whole.
pub fn size_text(bytes: u64) -> String {
    const UNITS: [(u64, &str); 5] = [
        (1_000_000_000_000, "TB"),
        (1_000_000_000, "GB"),
        (1_000_000, "MB"),
        (1_000, "KB"),
        (1, "B"),
    ];
    let whole = |(scale, _): &(u64, &str)| bytes != 0 && bytes.is_multiple_of(*scale);
    let (scale, unit) = UNITS.into_iter().find(whole).unwrap_or((1, "B"));
    format!("{}{unit}", bytes / scale)
}

fn parse(text: &str, kind: &Kind) -> Result<u64, UnitError> {
    let Kind { name, example, usual, units, letters } = kind;
    let (number, unit) = split(text);
    if number.is_empty() {
        return Err(UnitError(format!("{text:?} is not a {name}: write one such as {example:?}")));
    }
    if unit.is_empty() {
        return Err(UnitError(format!("{name} {text:?} has no unit: write \"{number}{usual}\"")));
    }
    let letter = || letters.iter().find(|(known, _)| unit.eq_ignore_ascii_case(known));
    // The Greek letter looks the same.
    let spelt = if unit == "\u{3bc}s" { "\u{b5}s" } else { unit };
    let Some((_, scale)) = units.iter().find(|(known, _)| *known == spelt).or_else(letter) else {
        let unknown = format!("{name} {text:?} has an unknown unit {unit:?}");
        let meant = units.iter().find(|(known, _)| unit.eq_ignore_ascii_case(known));
        // Bytes a second, where rates are in bits.
        let in_bits = |bits: &str, scale: u64| match unit.contains('B') && !bits.contains('B') {
            true => scale_decimal(number, 8 * scale).ok().filter(|bits| *bits > 0).map(Rate::bps),
            false => None,
        };
        return Err(UnitError(match meant {
            Some((meant, scale)) => match in_bits(meant, *scale) {
                Some(rate) => {
                    format!("{unknown}: write \"{rate}\", or \"{number}{meant}\" if bits are meant")
                }
                None => format!("{unknown}: write \"{number}{meant}\""),
            },
            None => {
                let known: Vec<_> = units.iter().map(|(known, _)| *known).collect();
                format!("{unknown}: use one of {}", known.join(", "))
            }
        }));
    };
    scaled(text, number, *scale, kind)
}

/// The number at the beginning of `text`, and the unit behind it.
fn split(text: &str) -> (&str, &str) {
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    (&trimmed[..end], trimmed[end..].trim_start())
}

fn scaled(text: &str, number: &str, scale: u64, kind: &Kind) -> Result<u64, UnitError> {
    let Kind { name, example, .. } = kind;
    scale_decimal(number, scale)
        .map_err(|why| UnitError(format!("{name} {text:?} {why}: write one such as {example:?}")))
}

/// `number * scale` as a whole number, where `number` is digits with at most one point.
fn scale_decimal(number: &str, scale: u64) -> Result<u64, &'static str> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return Err("is not a number");
    }
    if fraction.len() > 18 {
        return Err("has more than 18 decimals");
    }
    let digits = format!("{whole}{fraction}");
    let value: u128 = digits.parse().map_err(|_| "is too large")?;
    let denominator = 10u128.pow(fraction.len() as u32);
    let scaled = value.checked_mul(u128::from(scale)).ok_or("is too large")?;
    if !scaled.is_multiple_of(denominator) {
        return Err("is finer than the smallest unit");
    }
    u64::try_from(scaled / denominator).map_err(|_| "is too large")
}
