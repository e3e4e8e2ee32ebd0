//! Results as JSON; rows as Python writes them, letter for letter.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::ser::Formatter;
use serde_json::value::RawValue;
use std::io::{Result as Written, Write};
use weft_experiment::value::{Table, Value};
use weft_experiment::{Cell, Column};

/// A row, as `weft run --json` prints it without times of the machine: the columns, and those swept keys that are none.
pub(crate) struct Row<'a> {
    pub(crate) cells: &'a weft_experiment::Row,
    pub(crate) swept: &'a Table,
}

/// Columns by name.
pub(crate) struct Columns<'a>(pub(crate) &'a weft_experiment::Columns);

impl Row<'_> {
    /// The text, as Python's `json.dumps` has it.
    pub(crate) fn text(&self) -> String {
        let mut text = Vec::new();
        let mut writer = serde_json::Serializer::with_formatter(&mut text, LikePython);
        self.serialize(&mut writer).expect("rows are JSON");
        String::from_utf8(text).expect("JSON is UTF-8")
    }
}

struct LikePython;

impl Formatter for LikePython {
    fn write_f64<W: ?Sized + Write>(&mut self, to: &mut W, value: f64) -> Written<()> {
        // Both have the shortest digits; they differ in when there is an exponent, and in how it looks.
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').expect("an exponent");
        match exponent.parse().expect("a whole number") {
            -4..16 => write!(to, "{value:?}"),
            exponent @ 16.. => write!(to, "{digits}e+{exponent:02}"),
            exponent => write!(to, "{digits}e-{:02}", -exponent),
        }
    }
    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> Written<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }
    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> Written<()> {
        to.write_all(b": ")
    }
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for (name, cell) in self.cells {
            match cell {
                Cell::U64(number) => map.serialize_entry(name, number)?,
                Cell::F64(number) => map.serialize_entry(name, number)?,
                Cell::Text(text) => map.serialize_entry(name, text)?,
                Cell::Unknown => map.serialize_entry(name, &())?,
            }
        }
        for (key, item) in self.swept.iter() {
            if self.cells.iter().all(|(name, _)| *name != key) {
                map.serialize_entry(key, &raw(&item.value))?;
            }
        }
        map.end()
    }
}

impl Serialize for Columns<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (name, column) in self.0 {
            match column {
                Column::U32(values) => map.serialize_entry(name, values)?,
                Column::U64(values) => map.serialize_entry(name, values)?,
                Column::F64(values) => map.serialize_entry(name, values)?,
                Column::Text(values) => map.serialize_entry(name, values)?,
            }
        }
        map.end()
    }
}

/// A value that is JSON already.
pub(crate) fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_json()).expect("values are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_in_python() {
        let numbers = [0.0, 1.0, 0.1, 0.00012, 1.5e-5, 1e-5, -2.5e-7, 1e15, 1e16, 1.25e22, 1e-100];
        let cells = vec![("text", Cell::Text("a \"b\"".into())), ("count", Cell::U64(7))];
        let all = numbers.map(|number| ("x", Cell::F64(number))).into_iter().chain(cells);
        let text = Row { cells: &all.collect(), swept: &Table::new() }.text();
        assert_eq!(
            text.replace("\"x\": ", ""),
            "{0.0, 1.0, 0.1, 0.00012, 1.5e-05, 1e-05, -2.5e-07, 1000000000000000.0, 1e+16, 1.25e+22, 1e-100, \
             \"text\": \"a \\\"b\\\"\", \"count\": 7}"
        );
    }
}
