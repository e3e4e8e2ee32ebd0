//! Options as text, read with the errors that a catalogue can give: how load balancers and
//! traffic patterns learn what an experiment file tells them.
//!
//! Whoever has options lists them as [`OptionInfo`]s, each with its default as a person would
//! write it, and asks [`Options`] for each by its key. Nothing else knows a default, and what
//! was asked for comes back as text with [`Options::resolve`]: the given options and the
//! defaults, in one form each, which read back as the same.
//!
//! Invariant: an option that was given is either asked for or refused.

use crate::parse::{UnitError, parse_rate, parse_size, parse_time, size_text};
use crate::{Rate, Time};
use std::fmt;
use std::ops::{Bound, RangeBounds, RangeInclusive};

/// One option, as the catalogue shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    /// Its key in the experiment file.
    pub key: &'static str,
    /// What holds without it, as one would write it; in words where it depends on the rest of
    /// the experiment (see [`Options::number_if_given`]).
    pub default: &'static str,
    /// What it means, with its values or unit.
    pub meaning: &'static str,
}

/// A mistake in an option. Displays as `key: what`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionError {
    /// The key of the option.
    pub key: String,
    /// What is wrong with it, and after a semicolon the mend.
    pub what: String,
}

impl OptionError {
    /// `what` is wrong with the option `key`.
    pub fn new(key: impl Into<String>, what: impl Into<String>) -> OptionError {
        OptionError { key: key.into(), what: what.into() }
    }
    /// `value` of `key` is none of `known`.
    pub fn unknown(key: &str, value: &str, known: &[&str]) -> OptionError {
        let (value, known) = (quoted(value), known.join(", "));
        OptionError::new(key, format!("unknown value {value}; use one of {known}"))
    }
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.what)
    }
}
impl std::error::Error for OptionError {}

/// Options as they were understood, defaults included.
pub type ResolvedOptions = Vec<ResolvedOption>;

/// One option as it was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedOption {
    /// Its key.
    pub key: &'static str,
    /// Its value, as text that reads back as the same.
    pub text: String,
    /// The words that it may be; empty where it is something else.
    pub words: Vec<String>,
    /// What it may be, with its range and its unit.
    pub kind: String,
}

/// The options of one thing: those given, and the defaults of the others.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    known: &'static [OptionInfo],
    given: &'a [(&'a str, &'a str)],
    resolved: ResolvedOptions,
}

/// No time in an experiment is longer: sums stay far from an overflow.
const LONGEST: Time = Time::secs(1_000);

impl<'a> Options<'a> {
    /// The options of `owner` (`scheme "reps"`), which are `known`; `given` are keys and texts.
    ///
    /// # Errors
    /// If a key is unknown or stands twice.
    pub fn new(
        owner: &str,
        known: &'static [OptionInfo],
        given: &'a [(&'a str, &'a str)],
    ) -> Result<Options<'a>, OptionError> {
        for (at, (key, _)) in given.iter().enumerate() {
            if !known.iter().any(|option| option.key == *key) {
                let all: Vec<_> = known.iter().map(|option| option.key).collect();
                let has = if all.is_empty() { "none".into() } else { all.join(", ") };
                return Err(OptionError::new(
                    *key,
                    format!("unknown option of {owner}; it has {has}"),
                ));
            }
            if given[..at].iter().any(|(earlier, _)| earlier == key) {
                return Err(OptionError::new(*key, "given twice; remove one"));
            }
        }
        Ok(Options { known, given, resolved: Vec::new() })
    }

    /// Whether `key` was given.
    pub fn has(&self, key: &str) -> bool {
        self.given.iter().any(|(given, _)| *given == key)
    }

    /// A whole number within `range`.
    ///
    /// # Errors
    /// If it is no whole number or out of range.
    pub fn number(&mut self, key: &str, range: impl RangeBounds<u32>) -> Result<u32, OptionError> {
        let kind = whole_kind(&range);
        self.read(key, kind, |text, default| whole(text, default, &range), u32::to_string)
    }

    /// A whole number within `range` if it was given; its default is in words.
    ///
    /// # Errors
    /// As [`Options::number`].
    pub fn number_if_given(
        &mut self,
        key: &str,
        range: impl RangeBounds<u32>,
    ) -> Result<Option<u32>, OptionError> {
        if self.has(key) { self.number(key, range).map(Some) } else { Ok(None) }
    }

    /// A whole number within `range`, or the word that is its default: `None`.
    ///
    /// # Errors
    /// If it is neither, or out of range.
    pub fn number_or_word(
        &mut self,
        key: &str,
        range: impl RangeBounds<u32>,
    ) -> Result<Option<u32>, OptionError> {
        let kind = whole_kind(&range);
        self.read_or_word(key, kind, |text, word| whole(text, word, &range), u32::to_string)
    }

    /// A number within `range`, such as a share.
    ///
    /// # Errors
    /// If it is no number or out of range.
    pub fn fraction(
        &mut self,
        key: &str,
        range: impl RangeBounds<f64>,
    ) -> Result<f64, OptionError> {
        // Debug prints the shortest text that reads back as the same number.
        let parse = |text: &str, default: &str| real(text, default, &range);
        self.read(key, real_kind(&range), parse, |number| format!("{number:?}"))
    }

    /// Numbers within `range`, with spaces between them, if they were given; the default is in words.
    ///
    /// # Errors
    /// If one is no number or out of range, or there are none.
    pub fn numbers_if_given(
        &mut self,
        key: &str,
        range: impl RangeBounds<f64>,
    ) -> Result<Option<Vec<f64>>, OptionError> {
        let parse = |text: &str, _: &str| {
            let all = text.split_whitespace().map(|part| real(part, "1.0", &range));
            let all = all.collect::<Result<Vec<f64>, String>>()?;
            match all.is_empty() {
                true => Err("has no numbers; write some such as \"2.0 1.0\"".into()),
                false => Ok(all),
            }
        };
        let write = |all: &Vec<f64>| {
            all.iter().map(|number| format!("{number:?}")).collect::<Vec<_>>().join(" ")
        };
        let kind = format!("{}, several with spaces between them", real_kind(&range));
        if self.has(key) { self.read(key, kind, parse, write).map(Some) } else { Ok(None) }
    }

    /// A number within `range`, or the word that is its default: `None`.
    ///
    /// # Errors
    /// If it is neither, or out of range.
    pub fn fraction_or_word(
        &mut self,
        key: &str,
        range: impl RangeBounds<f64>,
    ) -> Result<Option<f64>, OptionError> {
        let parse = |text: &str, _: &str| real(text, "1.0", &range);
        self.read_or_word(key, real_kind(&range), parse, |number| format!("{number:?}"))
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// If it is neither.
    pub fn flag(&mut self, key: &str) -> Result<bool, OptionError> {
        let value = self.choice(key, &[("true", true), ("false", false)])?;
        // Everybody knows these two.
        let read = self.resolved.last_mut().expect("just read");
        read.words.clear();
        read.kind = FLAG.to_owned();
        Ok(value)
    }

    /// A span of time, written with its unit.
    ///
    /// # Errors
    /// If it is none, or longer than 1000 seconds.
    pub fn time(&mut self, key: &str) -> Result<Time, OptionError> {
        self.time_from(key, Time::ZERO)
    }

    /// A span of time that is no shorter than `least`.
    ///
    /// # Errors
    /// If it is none, shorter, or longer than 1000 seconds.
    pub fn time_from(&mut self, key: &str, least: Time) -> Result<Time, OptionError> {
        self.read(key, span_kind(least), |text, _| span(text, least), Time::to_string)
    }

    /// A span of time that is no shorter than `least`, or the word that is its default: `None`.
    ///
    /// # Errors
    /// If it is neither, shorter, or longer than 1000 seconds.
    pub fn time_or_word(&mut self, key: &str, least: Time) -> Result<Option<Time>, OptionError> {
        self.read_or_word(key, span_kind(least), |text, _| span(text, least), Time::to_string)
    }

    /// Bits per second, written with their unit.
    ///
    /// # Errors
    /// If it is no rate, or none of [`Rate::SENSIBLE`].
    pub fn rate(&mut self, key: &str) -> Result<Rate, OptionError> {
        let parse = |text: &str, _: &str| match parse_rate(text).map_err(mend)? {
            rate if Rate::SENSIBLE.contains(&rate) => Ok(rate),
            rate => {
                let (least, most) = (Rate::SENSIBLE.start(), Rate::SENSIBLE.end());
                Err(format!("\"{rate}\" is out of range; use \"{least}\" to \"{most}\""))
            }
        };
        let (least, most) = (Rate::SENSIBLE.start(), Rate::SENSIBLE.end());
        self.read(key, format!("{RATE}, {least} to {most}"), parse, Rate::to_string)
    }

    /// A window in bytes, one at least: a size, or a multiple of `bdp`, the bandwidth-delay product in
    /// bytes (`"1.5bdp"`).
    ///
    /// # Errors
    /// If it is neither, or zero.
    pub fn window(&mut self, key: &str, bdp: u64) -> Result<u64, OptionError> {
        let parse = |text: &str, _: &str| {
            let example =
                || format!("{} is not a window; write one such as \"1bdp\"", quoted(text));
            if let Some(times) = text.strip_suffix("bdp") {
                let times = times.trim().parse::<f64>().ok();
                let times =
                    times.filter(|times| *times > 0.0 && *times <= 1e6).ok_or_else(example)?;
                return Ok((((bdp as f64 * times) as u64).max(1), format!("{times}bdp")));
            }
            match parse_size(text).map_err(|error| format!("{}, or \"1bdp\"", mend(error)))? {
                0 => Err(example()),
                bytes => Ok((bytes, size_text(bytes))),
            }
        };
        let kind = format!("{SIZE}, or a multiple of the bandwidth-delay product (\"1.5bdp\")");
        self.read(key, kind, parse, |(_, text)| text.clone()).map(|(bytes, _)| bytes)
    }

    /// A span of time if it was given; its default is in words.
    ///
    /// # Errors
    /// As [`Options::time`].
    pub fn time_if_given(&mut self, key: &str) -> Result<Option<Time>, OptionError> {
        if self.has(key) { self.time(key).map(Some) } else { Ok(None) }
    }

    /// A number of bytes, written with its unit.
    ///
    /// # Errors
    /// If it is none.
    pub fn size(&mut self, key: &str) -> Result<u64, OptionError> {
        let parse = |text: &str, _: &str| parse_size(text).map_err(mend);
        self.read(key, SIZE.to_owned(), parse, |bytes| size_text(*bytes))
    }

    /// A number of bytes within `range`.
    ///
    /// # Errors
    /// If it is none, or out of range.
    pub fn size_within(
        &mut self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<u64, OptionError> {
        self.read(
            key,
            size_kind(&range),
            |text, _| size_in(text, &range),
            |bytes| size_text(*bytes),
        )
    }

    /// The same, or `none`.
    ///
    /// # Errors
    /// If it is neither, or out of range.
    pub fn size_or_none(
        &mut self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, OptionError> {
        let parse = |text: &str, _: &str| match text {
            "none" => Ok(None),
            _ => size_in(text, &range).map(Some).map_err(|what| format!("{what}, or \"none\"")),
        };
        let kind = format!("{}, or \"none\"", size_kind(&range));
        self.read(key, kind, parse, |bytes| bytes.map_or_else(|| "none".to_owned(), size_text))
    }

    /// A number of bytes if it was given; its default is in words.
    ///
    /// # Errors
    /// As [`Options::size`].
    pub fn size_if_given(&mut self, key: &str) -> Result<Option<u64>, OptionError> {
        if self.has(key) { self.size(key).map(Some) } else { Ok(None) }
    }

    /// One of several words, each with what it stands for.
    ///
    /// # Errors
    /// If it is none of them.
    pub fn choice<T: Copy + PartialEq>(
        &mut self,
        key: &str,
        words: &[(&str, T)],
    ) -> Result<T, OptionError> {
        let parse = |text: &str, _: &str| {
            words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
                let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                OptionError::unknown(key, text, &known).what
            })
        };
        let write = |value: &T| {
            let word = words.iter().find(|(_, other)| other == value);
            word.map_or_else(String::new, |(word, _)| (*word).to_owned())
        };
        let value = self.read(key, WORD.to_owned(), parse, write)?;
        self.resolved.last_mut().expect("just read").words =
            words.iter().map(|(word, _)| (*word).to_owned()).collect();
        Ok(value)
    }

    /// Ends reading: every option that was asked for, defaults included.
    ///
    /// # Errors
    /// If an option was given that nobody asked for, since others make it meaningless.
    pub fn resolve(self) -> Result<ResolvedOptions, OptionError> {
        let unread =
            self.given.iter().find(|(key, _)| !self.resolved.iter().any(|read| read.key == *key));
        match unread {
            Some((key, _)) => Err(OptionError::new(*key, "does nothing here; remove it")),
            None => Ok(self.resolved),
        }
    }

    /// Reads the given text or the default, which is of this `kind`, and notes how `write` writes what it
    /// means.
    fn read<T>(
        &mut self,
        key: &str,
        kind: String,
        parse: impl FnOnce(&str, &str) -> Result<T, String>,
        write: impl FnOnce(&T) -> String,
    ) -> Result<T, OptionError> {
        let info = self.known.iter().find(|option| option.key == key);
        let info = info.unwrap_or_else(|| panic!("{key:?} is read but not listed as an option"));
        let given = self.given.iter().find(|(given, _)| *given == key);
        let text = given.map_or(info.default, |(_, text)| text.trim());
        let value = parse(text, info.default).map_err(|what| OptionError::new(key, what))?;
        let (key, text, words) = (info.key, write(&value), Vec::new());
        self.resolved.push(ResolvedOption { key, text, words, kind });
        Ok(value)
    }

    /// As `read`; the text of the default is a word that stands for `None`.
    fn read_or_word<T>(
        &mut self,
        key: &str,
        kind: String,
        parse: impl FnOnce(&str, &str) -> Result<T, String>,
        write: impl FnOnce(&T) -> String,
    ) -> Result<Option<T>, OptionError> {
        let known = self.known;
        let word = known.iter().find(|option| option.key == key).map_or("", |info| info.default);
        let or_word = |text: &str, _: &str| match text == word {
            true => Ok(None),
            false => parse(text, word).map(Some).map_err(|what| format!("{what}, or {word:?}")),
        };
        let kind = format!("{kind}, or {word:?}");
        self.read(key, kind, or_word, |value| value.as_ref().map_or_else(|| word.to_owned(), write))
    }
}

fn real(text: &str, example: &str, range: &impl RangeBounds<f64>) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if !number.is_nan() => within(number, range),
        _ => Err(format!("{} is not a number; write one such as {example}", quoted(text))),
    }
}

fn span(text: &str, least: Time) -> Result<Time, String> {
    match parse_time(text).map_err(mend)? {
        time if (least..=LONGEST).contains(&time) => Ok(time),
        time => Err(format!("\"{time}\" is out of range; use \"{least}\" to \"{LONGEST}\"")),
    }
}

fn size_in(text: &str, range: &RangeInclusive<u64>) -> Result<u64, String> {
    let bytes = parse_size(text).map_err(mend)?;
    if range.contains(&bytes) {
        return Ok(bytes);
    }
    let [given, least, most] = [bytes, *range.start(), *range.end()].map(size_text);
    Err(match *range.end() {
        u64::MAX => format!("{given:?} is out of range; use {least:?} or more"),
        _ => format!("{given:?} is out of range; use {least:?} to {most:?}"),
    })
}

fn whole(text: &str, default: &str, range: &impl RangeBounds<u32>) -> Result<u32, String> {
    let Ok(number) = text.parse::<u64>() else {
        // The default of a number that may be left out is in words.
        let example = if default.parse::<u32>().is_ok() { default } else { "4" };
        let text = quoted(text);
        return Err(format!("{text} is not a whole number; write one such as {example}"));
    };
    let most = u64::from(u32::MAX);
    let narrow = u32::try_from(number).map_err(|_| out_of_range(number, &(..=most)))?;
    within(narrow, range)
}

fn within<T: PartialOrd + fmt::Display>(
    number: T,
    range: &impl RangeBounds<T>,
) -> Result<T, String> {
    if range.contains(&number) { Ok(number) } else { Err(out_of_range(number, range)) }
}

fn out_of_range<T: fmt::Display>(number: T, range: &impl RangeBounds<T>) -> String {
    let mend = bounds(range).unwrap_or_else(|| "another".into());
    format!("{number} is out of range; use {mend}")
}

/// A range in words, if it has an end.
fn bounds<T: fmt::Display>(range: &impl RangeBounds<T>) -> Option<String> {
    let text = |bound: Bound<&T>, open: &str| match bound {
        Bound::Included(limit) => Some(limit.to_string()),
        Bound::Excluded(limit) => Some(format!("{open} {limit}")),
        Bound::Unbounded => None,
    };
    match (text(range.start_bound(), "above"), text(range.end_bound(), "below")) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) => Some(format!("{least} or more")),
        (None, Some(most)) => Some(format!("{most} or less")),
        (None, None) => None,
    }
}

/// What each kind of value is called: lists of keys say so.
pub const FLAG: &str = "true or false";
/// As [`FLAG`].
pub const WORD: &str = "a word";
/// As [`FLAG`].
pub const WHOLE: &str = "a whole number";
/// As [`FLAG`].
pub const NUMBER: &str = "a number";
/// As [`FLAG`].
pub const TIME: &str = "a time with its unit (ps, ns, us, ms, s)";
/// As [`FLAG`].
pub const SIZE: &str = "a size with its unit (B, KB, MB, KiB, MiB, ...)";
/// As [`FLAG`].
pub const RATE: &str = "a rate with its unit (Mbps, Gbps, ...)";

fn kind_within<T: fmt::Display>(kind: &str, range: &impl RangeBounds<T>) -> String {
    bounds(range).map_or_else(|| kind.to_owned(), |words| format!("{kind}, {words}"))
}

fn whole_kind(range: &impl RangeBounds<u32>) -> String {
    match (range.start_bound(), range.end_bound()) {
        (Bound::Included(least), Bound::Included(&u32::MAX)) => format!("{WHOLE}, {least} or more"),
        _ => kind_within(WHOLE, range),
    }
}

fn real_kind(range: &impl RangeBounds<f64>) -> String {
    kind_within(NUMBER, range)
}

fn span_kind(least: Time) -> String {
    format!("{TIME}, {least} to {LONGEST}")
}

fn size_kind(range: &RangeInclusive<u64>) -> String {
    let least = size_text(*range.start());
    match *range.end() {
        u64::MAX => format!("{SIZE}, {least} or more"),
        most => format!("{SIZE}, {least} to {}", size_text(most)),
    }
}

/// The unit parser separates the mend with a colon; here a semicolon does.
fn mend(error: UnitError) -> String {
    error.to_string().replace(": write ", "; write ").replace(": use ", "; use ")
}

/// `text` in quotes, on one line, and short even if it is not meant to be read at all.
pub fn quoted(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}...", &text[..end]),
    }
}
