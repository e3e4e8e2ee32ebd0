//! TOML and JSON text to a [`Table`], in which every key has its own name ([`other_names`]). Does not know
//! what the keys mean.

use crate::other_names;
use crate::value::{Item, Table, Value};
use crate::{ExperimentError, Origin};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// How an experiment is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// TOML.
    Toml,
    /// JSON.
    Json,
}

/// The table that `text` writes.
///
/// # Errors
/// If the text is not what `format` says, with the line; or has a key under both of its names.
pub fn parse(text: &str, format: Format) -> Result<Table, ExperimentError> {
    let mut table = match format {
        Format::Toml => parse_toml(text)?,
        Format::Json => parse_json(text)?,
    };
    other_names::apply(&mut table)?;
    Ok(table)
}

/// The key of a torus whose values have an x between numbers.
const SIZES: &str = "sizes";

/// One value in TOML; text that is not TOML (`16KB`, `ecmp`) stands for itself.
pub fn parse_bare(text: &str) -> Value {
    let value = DeValue::parse(text.trim()).ok();
    let item = value.and_then(|value| item_of(&value, &|_| Origin::Unknown).ok());
    item.map_or_else(|| Value::Text(text.to_owned()), |item| item.value)
}

/// The same for the last part of a key, as files have it: sizes of a torus are text, though `0x3` is a number in TOML.
pub fn parse_bare_for(key: &str, text: &str) -> Value {
    match parse_bare(text) {
        Value::Int(_) if key == SIZES => Value::Text(text.trim().to_owned()),
        value => value,
    }
}

/// The keys of a dotted path as TOML writes it: `a."b.c".d`.
pub fn parse_path(text: &str) -> Option<Vec<String>> {
    let line = format!("{text} = 0");
    let document = DeTable::parse(&line).ok()?;
    let mut path = Vec::new();
    let mut table = document.get_ref();
    loop {
        let (key, value) = table.iter().next().filter(|_| table.len() == 1)?;
        path.push(key.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => return Some(path),
        }
    }
}

fn parse_toml(text: &str) -> Result<Table, ExperimentError> {
    let line_of = |byte: usize| {
        let newlines = text.as_bytes()[..byte.min(text.len())].iter().filter(|b| **b == b'\n');
        Origin::Line(newlines.count() as u32 + 1)
    };
    let document = DeTable::parse(text).map_err(|error| {
        let span = error.span();
        let origin = span.as_ref().map_or(Origin::Unknown, |span| line_of(span.start));
        let what = match span.and_then(|span| text.get(span)) {
            Some(key) if error.message() == "duplicate key" => {
                format!("not TOML: {key} is there twice; remove one")
            }
            _ => format!("not TOML: {}; mend this line", error.message()),
        };
        ExperimentError::new("", origin, what)
    })?;
    table_of(document.get_ref(), &line_of)
}

fn table_of(
    table: &DeTable<'_>,
    line_of: &dyn Fn(usize) -> Origin,
) -> Result<Table, ExperimentError> {
    // The parser sorts by name; a sweep runs in the order of the file.
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut out = Table::new();
    for (key, value) in entries {
        let mut item = item_of(value, line_of)?;
        if let (SIZES, DeValue::Integer(number)) = (&**key.get_ref(), value.get_ref())
            && number.radix() == 16
        {
            item.value = Value::Text(format!("0x{}", number.as_str()));
        }
        item.origin = line_of(key.span().start);
        out.set(key.get_ref(), item);
    }
    Ok(out)
}

fn item_of(
    spanned: &Spanned<DeValue<'_>>,
    line_of: &dyn Fn(usize) -> Origin,
) -> Result<Item, ExperimentError> {
    let origin = line_of(spanned.span().start);
    let wrong = |what: String| ExperimentError::new("", origin, what);
    let value = match spanned.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map(Value::Int).map_err(|_| {
                wrong(format!("{} is too large; use a smaller number", number.as_str()))
            })?
        }
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Value::Float(number),
            _ => return Err(wrong(format!("{} is not a finite number; use one", number.as_str()))),
        },
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(date) => {
            return Err(wrong(format!("{date} is a date; write it in quotes if text is meant")));
        }
        DeValue::Array(items) => {
            Value::List(items.iter().map(|item| item_of(item, line_of)).collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => Value::Table(table_of(table, line_of)?),
    };
    Ok(Item { value, origin })
}

fn parse_json(text: &str) -> Result<Table, ExperimentError> {
    let item: JsonItem = serde_json::from_str(text).map_err(|error| {
        let origin = Origin::Line(error.line() as u32);
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        ExperimentError::new("", origin, format!("not JSON: {message}; mend this line"))
    })?;
    match item.0 {
        Some(Value::Table(table)) => Ok(table),
        other => {
            let kind = other.map_or("null", |value| value.kind());
            let what = format!("an experiment is an object, not {kind}; write {{...}}");
            Err(ExperimentError::new("", Origin::Unknown, what))
        }
    }
}

/// A JSON value; `null` means that a key is absent.
struct JsonItem(Option<Value>);

impl<'de> Deserialize<'de> for JsonItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = JsonItem;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<JsonItem, E> {
        Ok(JsonItem(None))
    }
    fn visit_bool<E>(self, flag: bool) -> Result<JsonItem, E> {
        Ok(JsonItem(Some(Value::Bool(flag))))
    }
    fn visit_i64<E>(self, number: i64) -> Result<JsonItem, E> {
        Ok(JsonItem(Some(Value::Int(number))))
    }
    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<JsonItem, E> {
        let number = i64::try_from(number).map_err(|_| E::custom("a number is too large"))?;
        Ok(JsonItem(Some(Value::Int(number))))
    }
    fn visit_f64<E>(self, number: f64) -> Result<JsonItem, E> {
        Ok(JsonItem(Some(Value::Float(number))))
    }
    fn visit_str<E>(self, text: &str) -> Result<JsonItem, E> {
        Ok(JsonItem(Some(Value::Text(text.to_owned()))))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<JsonItem, A::Error> {
        let mut items = Vec::new();
        while let Some(JsonItem(value)) = seq.next_element()? {
            items.push(Item::new(value.ok_or_else(|| A::Error::custom("null in a list"))?));
        }
        Ok(JsonItem(Some(Value::List(items))))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonItem, A::Error> {
        let mut table = Table::new();
        while let Some((key, JsonItem(value))) = map.next_entry::<String, JsonItem>()? {
            if table.get(&key).is_some() {
                return Err(A::Error::custom(format!("key {key:?} is there twice")));
            }
            if let Some(value) = value {
                table.put(&key, value);
            }
        }
        Ok(JsonItem(Some(Value::Table(table))))
    }
}
