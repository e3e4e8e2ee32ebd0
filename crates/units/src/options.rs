//! Options as text, read with the errors that a catalogue can give: how load balancers and
//! traffic patterns learn what an experiment file tells them.
//!
//! Whoever has options lists them as [`OptionInfo`]s, each with its default as a person would
//! write it and with what it may be, and asks [`Options`] for each by its key. Nothing else knows a
//! default or a range, and what was asked for comes back as text with [`Options::resolve`]: the given options and the
//! defaults, in one form each, which read back as the same.
//!
//! Invariant: an option that was given is either asked for or refused.

use crate::parse::{UnitError, parse_rate, parse_size, parse_time, size_text};
use crate::{Rate, Time};
use std::fmt;
use std::ops::RangeInclusive;

/// One option, as the catalogue shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptionInfo {
    /// Its key in the experiment file.
    pub key: &'static str,
    /// What holds without it, as one would write it; in words where it depends on the rest of
    /// the experiment (see [`Options::number_if_given`]).
    pub default: &'static str,
    /// What it may be.
    pub kind: OptionKind,
    /// What it means.
    pub meaning: &'static str,
}

/// What an option may be, with its range, ends included. Displays as lists of keys say it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OptionKind {
    /// A whole number from one to another.
    Whole(u32, u32),
    /// A number from one to another; infinity is no end.
    Number(f64, f64),
    /// Several of them, with spaces between them.
    Numbers(f64, f64),
    /// `true` or `false`.
    Flag,
    /// A time that is no shorter than this, and no longer than 1000 seconds.
    Time(Time),
    /// Bytes, from one number to another.
    Size(u64, u64),
    /// Bits per second within [`Rate::SENSIBLE`].
    Rate,
    /// Bytes, or a multiple of the bandwidth-delay product ([`Options::window`]).
    Window,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any text.
    Text,
    /// The first, or this word.
    Or(&'static OptionKind, &'static str),
}

impl OptionKind {
    /// The words that it may be; empty where it is something else.
    pub fn words(&self) -> &'static [&'static str] {
        match self {
            OptionKind::Word(words) => words,
            _ => &[],
        }
    }
}

impl fmt::Display for OptionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |kind: &str, range: Option<String>| match range {
            Some(range) => format!("{kind}, {range}"),
            None => kind.to_owned(),
        };
        let text = match *self {
            OptionKind::Whole(least, most) => range(WHOLE, bounds(least, most, (0, u32::MAX))),
            OptionKind::Number(least, most) => range(NUMBER, bounds(least, most, ALL_NUMBERS)),
            OptionKind::Numbers(least, most) => {
                let one = range(NUMBER, bounds(least, most, ALL_NUMBERS));
                format!("{one}, several with spaces between them")
            }
            OptionKind::Flag => FLAG.to_owned(),
            OptionKind::Time(least) => format!("{TIME}, {least} to {LONGEST}"),
            OptionKind::Size(0, u64::MAX) => SIZE.to_owned(),
            OptionKind::Size(least, u64::MAX) => format!("{SIZE}, {} or more", size_text(least)),
            OptionKind::Size(least, most) => {
                format!("{SIZE}, {} to {}", size_text(least), size_text(most))
            }
            OptionKind::Rate => {
                format!("{RATE}, {} to {}", Rate::SENSIBLE.start(), Rate::SENSIBLE.end())
            }
            OptionKind::Window => {
                format!("{SIZE}, or a multiple of the bandwidth-delay product (\"1.5bdp\")")
            }
            OptionKind::Word(_) => WORD.to_owned(),
            OptionKind::Text => "text".to_owned(),
            OptionKind::Or(kind, word) => format!("{kind}, or {word:?}"),
        };
        f.write_str(&text)
    }
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

    /// A whole number.
    ///
    /// # Errors
    /// If it is no whole number or out of range.
    pub fn number(&mut self, key: &str) -> Result<u32, OptionError> {
        let OptionKind::Whole(least, most) = self.kind(key) else { self.misread(key) };
        self.read(key, |text, default| whole(text, default, least..=most), u32::to_string)
    }

    /// A whole number if it was given; its default is in words.
    ///
    /// # Errors
    /// As [`Options::number`].
    pub fn number_if_given(&mut self, key: &str) -> Result<Option<u32>, OptionError> {
        if self.has(key) { self.number(key).map(Some) } else { Ok(None) }
    }

    /// A whole number, or the word beside it: `None`.
    ///
    /// # Errors
    /// If it is neither, or out of range.
    pub fn number_or_word(&mut self, key: &str) -> Result<Option<u32>, OptionError> {
        let OptionKind::Or(OptionKind::Whole(least, most), word) = self.kind(key) else {
            self.misread(key)
        };
        self.read_or(key, word, |text| whole(text, word, *least..=*most), u32::to_string)
    }

    /// A number, such as a share.
    ///
    /// # Errors
    /// If it is no number or out of range.
    pub fn fraction(&mut self, key: &str) -> Result<f64, OptionError> {
        let OptionKind::Number(least, most) = self.kind(key) else { self.misread(key) };
        // Debug prints the shortest text that reads back as the same number.
        let parse = |text: &str, default: &str| real(text, default, least..=most);
        self.read(key, parse, |number| format!("{number:?}"))
    }

    /// Numbers with spaces between them, if they were given; the default is in words.
    ///
    /// # Errors
    /// If one is no number or out of range, or there are none.
    pub fn numbers_if_given(&mut self, key: &str) -> Result<Option<Vec<f64>>, OptionError> {
        let OptionKind::Numbers(least, most) = self.kind(key) else { self.misread(key) };
        let parse = |text: &str, _: &str| {
            let all = text.split_whitespace().map(|part| real(part, "1.0", least..=most));
            let all = all.collect::<Result<Vec<f64>, String>>()?;
            match all.is_empty() {
                true => Err("has no numbers; write some such as \"2.0 1.0\"".into()),
                false => Ok(all),
            }
        };
        let write = |all: &Vec<f64>| {
            all.iter().map(|number| format!("{number:?}")).collect::<Vec<_>>().join(" ")
        };
        if self.has(key) { self.read(key, parse, write).map(Some) } else { Ok(None) }
    }

    /// A number, or the word beside it: `None`.
    ///
    /// # Errors
    /// If it is neither, or out of range.
    pub fn fraction_or_word(&mut self, key: &str) -> Result<Option<f64>, OptionError> {
        let OptionKind::Or(OptionKind::Number(least, most), word) = self.kind(key) else {
            self.misread(key)
        };
        let parse = |text: &str| real(text, "1.0", *least..=*most);
        self.read_or(key, word, parse, |number| format!("{number:?}"))
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// If it is neither.
    pub fn flag(&mut self, key: &str) -> Result<bool, OptionError> {
        let OptionKind::Flag = self.kind(key) else { self.misread(key) };
        self.one_of(key, &[("true", true), ("false", false)])
    }

    /// A span of time, written with its unit.
    ///
    /// # Errors
    /// If it is none, shorter than its kind has it, or longer than 1000 seconds.
    pub fn time(&mut self, key: &str) -> Result<Time, OptionError> {
        let OptionKind::Time(least) = self.kind(key) else { self.misread(key) };
        self.read(key, |text, _| span(text, least), Time::to_string)
    }

    /// A span of time, or the word beside it: `None`.
    ///
    /// # Errors
    /// If it is neither, or as [`Options::time`].
    pub fn time_or_word(&mut self, key: &str) -> Result<Option<Time>, OptionError> {
        let OptionKind::Or(OptionKind::Time(least), word) = self.kind(key) else {
            self.misread(key)
        };
        self.read_or(key, word, |text| span(text, *least), Time::to_string)
    }

    /// A span of time if it was given; its default is in words.
    ///
    /// # Errors
    /// As [`Options::time`].
    pub fn time_if_given(&mut self, key: &str) -> Result<Option<Time>, OptionError> {
        if self.has(key) { self.time(key).map(Some) } else { Ok(None) }
    }

    /// Bits per second, written with their unit.
    ///
    /// # Errors
    /// If it is no rate, or none of [`Rate::SENSIBLE`].
    pub fn rate(&mut self, key: &str) -> Result<Rate, OptionError> {
        let OptionKind::Rate = self.kind(key) else { self.misread(key) };
        let parse = |text: &str, _: &str| match parse_rate(text).map_err(mend)? {
            rate if Rate::SENSIBLE.contains(&rate) => Ok(rate),
            rate => {
                let (least, most) = (Rate::SENSIBLE.start(), Rate::SENSIBLE.end());
                Err(format!("\"{rate}\" is out of range; use \"{least}\" to \"{most}\""))
            }
        };
        self.read(key, parse, Rate::to_string)
    }

    /// A window in bytes, one at least: a size, or a multiple of `bdp`, the bandwidth-delay product in
    /// bytes (`"1.5bdp"`).
    ///
    /// # Errors
    /// If it is neither, or zero.
    pub fn window(&mut self, key: &str, bdp: u64) -> Result<u64, OptionError> {
        let OptionKind::Window = self.kind(key) else { self.misread(key) };
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
        self.read(key, parse, |(_, text)| text.clone()).map(|(bytes, _)| bytes)
    }

    /// A number of bytes, written with its unit.
    ///
    /// # Errors
    /// If it is none, or out of range.
    pub fn size(&mut self, key: &str) -> Result<u64, OptionError> {
        let OptionKind::Size(least, most) = self.kind(key) else { self.misread(key) };
        self.read(key, |text, _| size_in(text, least, most), |bytes| size_text(*bytes))
    }

    /// A number of bytes, or the word beside it: `None`.
    ///
    /// # Errors
    /// If it is neither, or out of range.
    pub fn size_or_word(&mut self, key: &str) -> Result<Option<u64>, OptionError> {
        let OptionKind::Or(OptionKind::Size(least, most), word) = self.kind(key) else {
            self.misread(key)
        };
        self.read_or(key, word, |text| size_in(text, *least, *most), |bytes| size_text(*bytes))
    }

    /// A number of bytes if it was given; its default is in words.
    ///
    /// # Errors
    /// As [`Options::size`].
    pub fn size_if_given(&mut self, key: &str) -> Result<Option<u64>, OptionError> {
        if self.has(key) { self.size(key).map(Some) } else { Ok(None) }
    }

    /// One of the words of its kind, each with what it stands for, in the same order.
    ///
    /// # Errors
    /// If it is none of them.
    pub fn choice<T: Copy + PartialEq>(
        &mut self,
        key: &str,
        words: &[(&str, T)],
    ) -> Result<T, OptionError> {
        let OptionKind::Word(listed) = self.kind(key) else { self.misread(key) };
        let is_listed = words.iter().map(|(word, _)| word).eq(listed);
        assert!(is_listed, "{key:?} is read as other words than {listed:?}, which are listed");
        self.one_of(key, words)
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

    /// One of some words.
    fn one_of<T: Copy + PartialEq>(
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
        self.read(key, parse, write)
    }

    fn info(&self, key: &str) -> &'static OptionInfo {
        let info = self.known.iter().find(|option| option.key == key);
        info.unwrap_or_else(|| panic!("{key:?} is read but not listed as an option"))
    }

    fn kind(&self, key: &str) -> OptionKind {
        self.info(key).kind
    }

    /// Whoever reads an option as something else than it is listed as has made a mistake.
    fn misread(&self, key: &str) -> ! {
        panic!("{key:?} is listed as {:?}, and read as something else", self.kind(key))
    }

    /// Reads the given text or the default, and notes how `write` writes what it means.
    fn read<T>(
        &mut self,
        key: &str,
        parse: impl FnOnce(&str, &str) -> Result<T, String>,
        write: impl FnOnce(&T) -> String,
    ) -> Result<T, OptionError> {
        let info = self.info(key);
        let given = self.given.iter().find(|(given, _)| *given == key);
        let text = given.map_or(info.default, |(_, text)| text.trim());
        let value = parse(text, info.default).map_err(|what| OptionError::new(key, what))?;
        self.resolved.push(ResolvedOption { key: info.key, text: write(&value) });
        Ok(value)
    }

    /// As `read`; `word` stands for `None`.
    fn read_or<T>(
        &mut self,
        key: &str,
        word: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
        write: impl FnOnce(&T) -> String,
    ) -> Result<Option<T>, OptionError> {
        let or_word = |text: &str, _: &str| match text == word {
            true => Ok(None),
            false => parse(text).map(Some).map_err(|what| format!("{what}, or {word:?}")),
        };
        self.read(key, or_word, |value| value.as_ref().map_or_else(|| word.to_owned(), write))
    }
}

fn real(text: &str, example: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if !number.is_nan() => within(number, range, ALL_NUMBERS),
        _ => Err(format!("{} is not a number; write one such as {example}", quoted(text))),
    }
}

fn span(text: &str, least: Time) -> Result<Time, String> {
    match parse_time(text).map_err(mend)? {
        time if (least..=LONGEST).contains(&time) => Ok(time),
        time => Err(format!("\"{time}\" is out of range; use \"{least}\" to \"{LONGEST}\"")),
    }
}

fn size_in(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let bytes = parse_size(text).map_err(mend)?;
    if (least..=most).contains(&bytes) {
        return Ok(bytes);
    }
    let [given, from, to] = [bytes, least, most].map(size_text);
    Err(match most {
        u64::MAX => format!("{given:?} is out of range; use {from:?} or more"),
        _ => format!("{given:?} is out of range; use {from:?} to {to:?}"),
    })
}

fn whole(text: &str, default: &str, range: RangeInclusive<u32>) -> Result<u32, String> {
    let Ok(number) = text.parse::<u64>() else {
        // The default of a number that may be left out is in words.
        let example = if default.parse::<u32>().is_ok() { default } else { "4" };
        let text = quoted(text);
        return Err(format!("{text} is not a whole number; write one such as {example}"));
    };
    match u32::try_from(number) {
        Ok(number) => within(number, range, (0, u32::MAX)),
        Err(_) => {
            let (least, most) = (range.start(), range.end());
            Err(format!("{number} is out of range; use {least} to {most}"))
        }
    }
}

fn within<T: PartialOrd + fmt::Display + Copy>(
    number: T,
    range: RangeInclusive<T>,
    all: (T, T),
) -> Result<T, String> {
    if range.contains(&number) {
        return Ok(number);
    }
    let mend = bounds(*range.start(), *range.end(), all).unwrap_or_else(|| "another".into());
    Err(format!("{number} is out of range; use {mend}"))
}

const ALL_NUMBERS: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

/// A range among `all` in words, if it has an end.
fn bounds<T: PartialEq + fmt::Display>(least: T, most: T, all: (T, T)) -> Option<String> {
    match (least == all.0, most == all.1) {
        (true, true) => None,
        (false, true) => Some(format!("{least} or more")),
        _ => Some(format!("{least} to {most}")),
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
