//! What a key may hold: how to read it, how to write it back, and what to say if it is wrong.

use crate::nearest::nearest;
use crate::value::{Item, Value};
use weft_units::options::{FLAG, NUMBER, RATE, SIZE, TIME, WHOLE, WORD};
use weft_units::{Rate, Time, UnitError, parse_rate, parse_size, parse_time, size_text};

/// A type of value.
pub trait Kind {
    /// What the program gets.
    type Out: Clone;
    /// The value of `item`.
    ///
    /// # Errors
    /// With what is wrong and the mend, in one line.
    fn read(&self, item: &Item) -> Result<Self::Out, String>;
    /// The value as it is written out. Reads back as the same.
    fn write(&self, value: &Self::Out) -> Value;
    /// A valid value in TOML, for messages and for listing keys.
    fn example(&self) -> Value;
    /// What it may be, with its range and its unit, for lists of keys.
    fn describe(&self) -> String;
    /// The words that it may be, where these can be told.
    fn words(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A whole number within bounds.
#[derive(Clone, Copy, Debug)]
pub struct Integer {
    /// The least that is allowed.
    pub min: u32,
    /// The most that is allowed.
    pub max: u32,
}

impl Integer {
    /// `min` or more.
    pub const fn from(min: u32) -> Integer {
        Integer { min, max: i32::MAX as u32 }
    }
}

impl Kind for Integer {
    type Out = u32;
    fn read(&self, item: &Item) -> Result<u32, String> {
        let Value::Int(number) = item.value else {
            return Err(not_a("a whole number", item, self));
        };
        let Integer { min, max } = *self;
        u32::try_from(number)
            .ok()
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| format!("{number} is out of range; use {min} to {max}"))
    }
    fn write(&self, value: &u32) -> Value {
        Value::Int(i64::from(*value))
    }
    fn example(&self) -> Value {
        Value::Int(i64::from(self.min.max(2).min(self.max)))
    }
    fn describe(&self) -> String {
        match *self {
            Integer { min, max } if max == i32::MAX as u32 => format!("{WHOLE}, {min} or more"),
            Integer { min, max } => format!("{WHOLE}, {min} to {max}"),
        }
    }
}

/// A number within bounds, both included.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// The least that is allowed.
    pub min: f64,
    /// The most that is allowed.
    pub max: f64,
}

impl Kind for Number {
    type Out = f64;
    fn read(&self, item: &Item) -> Result<f64, String> {
        let number = match item.value {
            Value::Int(number) => number as f64,
            Value::Float(number) => number,
            _ => return Err(not_a("a number", item, self)),
        };
        let Number { min, max } = *self;
        if (min..=max).contains(&number) {
            return Ok(number);
        }
        Err(format!("{number} is out of range; use {min} to {max}"))
    }
    fn write(&self, value: &f64) -> Value {
        Value::Float(*value)
    }
    fn example(&self) -> Value {
        // The ends of a range that stops short of 1 are no values that anybody wants.
        let Number { min, max } = *self;
        Value::Float(if max < 1.0 { f64::midpoint(min, max) } else { 1.0 })
    }
    fn describe(&self) -> String {
        format!("{NUMBER}, {} to {}", self.min, self.max)
    }
}

/// `true` or `false`.
#[derive(Clone, Copy, Debug)]
pub struct Flag;

impl Kind for Flag {
    type Out = bool;
    fn read(&self, item: &Item) -> Result<bool, String> {
        match item.value {
            Value::Bool(flag) => Ok(flag),
            _ => Err(not_a("a boolean", item, self)),
        }
    }
    fn write(&self, value: &bool) -> Value {
        Value::Bool(*value)
    }
    fn example(&self) -> Value {
        Value::Bool(true)
    }
    fn describe(&self) -> String {
        FLAG.to_owned()
    }
}

/// Text.
#[derive(Clone, Copy, Debug)]
pub struct Text;

impl Kind for Text {
    type Out = String;
    fn read(&self, item: &Item) -> Result<String, String> {
        match &item.value {
            Value::Text(text) => Ok(text.clone()),
            _ => Err(not_a("text", item, self)),
        }
    }
    fn write(&self, value: &String) -> Value {
        Value::Text(value.clone())
    }
    fn example(&self) -> Value {
        "text".into()
    }
    fn describe(&self) -> String {
        "text".to_owned()
    }
}

/// A list of texts.
#[derive(Clone, Copy, Debug)]
pub struct Texts;

impl Kind for Texts {
    type Out = Vec<String>;
    fn read(&self, item: &Item) -> Result<Vec<String>, String> {
        let Value::List(items) = &item.value else {
            return Err(not_a("a list of texts", item, self));
        };
        items.iter().map(|item| Text.read(item)).collect()
    }
    fn write(&self, value: &Vec<String>) -> Value {
        value.iter().map(|text| Value::from(text.as_str())).collect::<Vec<_>>().into()
    }
    fn example(&self) -> Value {
        vec![Value::from("text")].into()
    }
    fn describe(&self) -> String {
        "a list of texts".to_owned()
    }
}

/// A list of whole numbers.
#[derive(Clone, Copy, Debug)]
pub struct Wholes;

impl Kind for Wholes {
    type Out = Vec<u32>;
    fn read(&self, item: &Item) -> Result<Vec<u32>, String> {
        let Value::List(items) = &item.value else {
            return Err(not_a("a list of whole numbers", item, self));
        };
        items.iter().map(|item| Integer::from(0).read(item)).collect()
    }
    fn write(&self, value: &Vec<u32>) -> Value {
        value.iter().map(|number| Value::Int(i64::from(*number))).collect::<Vec<_>>().into()
    }
    fn example(&self) -> Value {
        vec![Value::Int(0)].into()
    }
    fn describe(&self) -> String {
        "a list of whole numbers".to_owned()
    }
}

/// One of some names; the value is its index.
#[derive(Clone, Copy, Debug)]
pub struct OneOf<'a>(pub &'a [&'a str]);

/// More names than this are not listed where one of them is likely to be meant.
const MANY: usize = 24;

impl Kind for OneOf<'_> {
    type Out = usize;
    fn read(&self, item: &Item) -> Result<usize, String> {
        let Value::Text(text) = &item.value else {
            return Err(not_a("a name", item, self));
        };
        self.0.iter().position(|name| name == text).ok_or_else(|| {
            // Names of swept tables may have commas.
            let clear = |name: &&str| match name.contains(',') {
                true => format!("{name:?}"),
                false => (*name).to_owned(),
            };
            let all = self.0.iter().map(clear).collect::<Vec<_>>().join(", ");
            match nearest(text, self.0.iter().copied()) {
                // Nobody reads so many names to find the one that was meant.
                Some(near) if self.0.len() > MANY => {
                    format!("{text:?} is not known; did you mean {near:?}?")
                }
                Some(near) => format!("{text:?} is not one of {all}; did you mean {near:?}?"),
                None => format!("{text:?} is not known; use one of {all}"),
            }
        })
    }
    fn write(&self, value: &usize) -> Value {
        self.0[*value].into()
    }
    fn example(&self) -> Value {
        self.0[0].into()
    }
    fn describe(&self) -> String {
        WORD.to_owned()
    }
    fn words(&self) -> Vec<String> {
        self.0.iter().map(|word| (*word).to_owned()).collect()
    }
}

/// Bytes, written with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Least bytes.
    pub min: u64,
    /// Most bytes.
    pub max: u64,
}

impl Size {
    /// Any size.
    pub const ANY: Size = Size { min: 0, max: 1_000_000_000_000_000 };
    /// At least one byte.
    pub const SOME: Size = Size { min: 1, max: 1_000_000_000_000_000 };
}

impl Kind for Size {
    type Out = u64;
    fn read(&self, item: &Item) -> Result<u64, String> {
        let bytes = match &item.value {
            Value::Text(text) => parse_size(text).map_err(mend)?,
            Value::Int(number) => return Err(size_without_unit(*number)),
            Value::Float(number) => {
                return Err(format!("{number} has no unit; write \"{number}KB\""));
            }
            _ => return Err(not_a("a size", item, self)),
        };
        let Size { min, max } = *self;
        if (min..=max).contains(&bytes) {
            return Ok(bytes);
        }
        let (given, min, max) = (size_text(bytes), size_text(min), size_text(max));
        Err(format!("{given:?} is out of range; use {min:?} to {max:?}"))
    }
    fn write(&self, value: &u64) -> Value {
        size_text(*value).into()
    }
    fn example(&self) -> Value {
        size_text(self.max.min(self.min.max(16_000))).into()
    }
    fn describe(&self) -> String {
        match *self {
            Size::ANY => SIZE.to_owned(),
            Size { min, max } if max == Size::ANY.max => {
                format!("{SIZE}, {} or more", size_text(min))
            }
            Size { min, max } => format!("{SIZE}, {} to {}", size_text(min), size_text(max)),
        }
    }
}

/// 16384 is shown as both what it says and what may have been meant.
fn size_without_unit(number: i64) -> String {
    let rough = if number >= 1000 { format!(" or \"{}KB\"", number / 1000) } else { String::new() };
    format!("{number} has no unit; write \"{number}B\"{rough}")
}

/// A span of time, written with a unit.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The shortest that is allowed.
    pub min: Time,
    /// The longest that is allowed.
    pub max: Time,
}

impl Span {
    /// Zero or more. The most is far from where sums of times would overflow.
    pub const ANY: Span = Span { min: Time::ZERO, max: Time::secs(1_000) };
    /// More than zero.
    pub const SOME: Span = Span { min: Time::ps(1), ..Span::ANY };
}

impl Kind for Span {
    type Out = Time;
    fn read(&self, item: &Item) -> Result<Time, String> {
        let time = match &item.value {
            Value::Text(text) => parse_time(text).map_err(mend)?,
            Value::Int(number) => return Err(time_without_unit(number)),
            Value::Float(number) => return Err(time_without_unit(number)),
            _ => return Err(not_a("a time", item, self)),
        };
        let Span { min, max } = *self;
        if (min..=max).contains(&time) {
            return Ok(time);
        }
        Err(format!("\"{time}\" is out of range; use \"{min}\" to \"{max}\""))
    }
    fn write(&self, value: &Time) -> Value {
        value.to_string().into()
    }
    fn example(&self) -> Value {
        "1us".into()
    }
    fn describe(&self) -> String {
        format!("{TIME}, {} to {}", self.min, self.max)
    }
}

fn time_without_unit(number: &dyn std::fmt::Display) -> String {
    format!("{number} has no unit; write \"{number}ns\" or \"{number}us\"")
}

fn rate_without_unit(number: &dyn std::fmt::Display) -> String {
    format!("{number} has no unit; write \"{number}Gbps\"")
}

/// Bits per second, written with a unit.
#[derive(Clone, Copy, Debug)]
pub struct Speed;

impl Kind for Speed {
    type Out = Rate;
    fn read(&self, item: &Item) -> Result<Rate, String> {
        let rate = match &item.value {
            Value::Text(text) => parse_rate(text).map_err(mend)?,
            Value::Int(number) => return Err(rate_without_unit(number)),
            Value::Float(number) => return Err(rate_without_unit(number)),
            _ => return Err(not_a("a rate", item, self)),
        };
        if Rate::SENSIBLE.contains(&rate) {
            return Ok(rate);
        }
        let range = Rate::SENSIBLE;
        let (min, max) = (range.start(), range.end());
        Err(format!("\"{rate}\" is out of range; use \"{min}\" to \"{max}\""))
    }
    fn write(&self, value: &Rate) -> Value {
        value.to_string().into()
    }
    fn example(&self) -> Value {
        "100Gbps".into()
    }
    fn describe(&self) -> String {
        format!("{RATE}, {} to {}", Rate::SENSIBLE.start(), Rate::SENSIBLE.end())
    }
}

/// What `K` reads, or a word that stands for "let the program choose".
#[derive(Clone, Copy, Debug)]
pub struct Or<K>(pub K, pub &'static str);

impl<K: Kind> Kind for Or<K> {
    type Out = Option<K::Out>;
    fn read(&self, item: &Item) -> Result<Self::Out, String> {
        if matches!(&item.value, Value::Text(text) if text == self.1) {
            return Ok(None);
        }
        self.0.read(item).map(Some).map_err(|what| format!("{what}, or {:?}", self.1))
    }
    fn write(&self, value: &Self::Out) -> Value {
        value.as_ref().map_or_else(|| self.1.into(), |value| self.0.write(value))
    }
    fn example(&self) -> Value {
        self.1.into()
    }
    fn describe(&self) -> String {
        format!("{}, or {:?}", self.0.describe(), self.1)
    }
    fn words(&self) -> Vec<String> {
        let words = self.0.words();
        match words.is_empty() {
            true => words,
            false => [self.1.to_owned()].into_iter().chain(words).collect(),
        }
    }
}

/// The unit parser separates the mend with a colon; here a semicolon does.
fn mend(error: UnitError) -> String {
    let text = error.to_string();
    ["write", "use"].iter().fold(text, |text, verb| {
        let (colon, semicolon) = (format!(": {verb} "), format!("; {verb} "));
        text.replace(&colon, &semicolon)
    })
}

fn not_a<K: Kind>(kind: &str, item: &Item, of: &K) -> String {
    let (given, found) = (item.value.to_json(), item.value.kind());
    let given = if given.len() > 40 { String::new() } else { format!("{given} is ") };
    let verb = if given.is_empty() { "is " } else { "" };
    format!("{given}{verb}{found}, not {kind}; write one such as {}", of.example().to_json())
}
