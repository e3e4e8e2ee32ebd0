//! One value tree for TOML and JSON: tables keep their order, values remember their line.

use crate::origin::Origin;

/// A value and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The value.
    pub value: Value,
    /// The place in the file, or the flag, that it comes from.
    pub origin: Origin,
}

/// What TOML and JSON have in common.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(String),
    /// Values in order.
    List(Vec<Item>),
    /// Named values.
    Table(Table),
}

impl Item {
    /// A value of unknown origin.
    pub fn new(value: Value) -> Item {
        Item { value, origin: Origin::Unknown }
    }
    /// The same value, it and everything in it written at `origin`.
    pub fn at(self, origin: Origin) -> Item {
        self.map_origins(&|_| origin)
    }
    /// The same value, it and everything in it written where `to` says of where it was.
    pub fn map_origins(self, to: &impl Fn(Origin) -> Origin) -> Item {
        let value = match self.value {
            Value::List(items) => {
                Value::List(items.into_iter().map(|item| item.map_origins(to)).collect())
            }
            Value::Table(table) => {
                let entries = table.entries.into_iter();
                let entries = entries.map(|(key, item)| (key, item.map_origins(to))).collect();
                Value::Table(Table { entries })
            }
            other => other,
        };
        Item { value, origin: to(self.origin) }
    }
}

impl Value {
    /// What it is, with an article, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value in JSON, without spaces. Equal values have equal texts: canonical.
    pub fn to_json(&self) -> String {
        let mut text = String::new();
        self.write_json(&mut text);
        text
    }

    /// How a person would write a scalar; JSON for the rest.
    pub fn to_label(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            other => other.to_json(),
        }
    }

    fn write_json(&self, out: &mut String) {
        match self {
            Value::Bool(flag) => *out += if *flag { "true" } else { "false" },
            Value::Int(number) => *out += &number.to_string(),
            // Debug prints the shortest text that reads back as the same number.
            Value::Float(number) => *out += &format!("{number:?}"),
            Value::Text(text) => *out += &quoted(text),
            Value::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.value.write_json(out);
                }
                out.push(']');
            }
            Value::Table(table) => {
                out.push('{');
                for (index, (key, item)) in table.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    *out += &quoted(key);
                    out.push(':');
                    item.value.write_json(out);
                }
                out.push('}');
            }
        }
    }
}

/// `text` as a JSON string.
pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text is always JSON")
}

impl From<bool> for Value {
    fn from(flag: bool) -> Value {
        Value::Bool(flag)
    }
}
impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}
impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}
impl From<Table> for Value {
    fn from(table: Table) -> Value {
        Value::Table(table)
    }
}
impl From<Vec<Value>> for Value {
    fn from(values: Vec<Value>) -> Value {
        Value::List(values.into_iter().map(Item::new).collect())
    }
}

/// Named values in the order in which they were written; every name once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    entries: Vec<(String, Item)>,
}

impl Table {
    /// An empty table.
    pub fn new() -> Table {
        Table::default()
    }
    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Item> {
        self.entries.iter().find(|(known, _)| known == key).map(|(_, item)| item)
    }
    /// The value of `key`, to change.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Item> {
        self.entries.iter_mut().find(|(known, _)| known == key).map(|(_, item)| item)
    }
    /// Sets `key`, in its old place if it is there already, else at the end.
    pub fn set(&mut self, key: &str, item: Item) {
        match self.get_mut(key) {
            Some(old) => *old = item,
            None => self.entries.push((key.to_owned(), item)),
        }
    }
    /// Sets `key` to a value of unknown origin.
    pub fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.set(key, Item::new(value.into()));
    }
    /// Takes `key` out.
    pub fn remove(&mut self, key: &str) -> Option<Item> {
        let index = self.entries.iter().position(|(known, _)| known == key)?;
        Some(self.entries.remove(index).1)
    }
    /// Takes out what is at a path of keys, and tables on the way that are empty then.
    pub fn remove_path(&mut self, path: &[String]) {
        let Some((key, rest)) = path.split_first() else { return };
        match self.get_mut(key).map(|item| &mut item.value) {
            Some(Value::Table(inner)) if !rest.is_empty() => {
                inner.remove_path(rest);
                if inner.is_empty() {
                    self.remove(key);
                }
            }
            Some(_) if rest.is_empty() => drop(self.remove(key)),
            _ => {}
        }
    }
    /// All entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Item)> {
        self.entries.iter().map(|(key, item)| (key.as_str(), item))
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Where the value at a dotted path was written; unknown if it is not there.
    pub fn origin_of(&self, dotted: &str) -> Origin {
        let (key, rest) = dotted.split_once('.').unwrap_or((dotted, ""));
        match self.get(key) {
            Some(Item { value: Value::Table(table), .. }) if !rest.is_empty() => {
                table.origin_of(rest)
            }
            Some(item) if rest.is_empty() => item.origin,
            _ => Origin::Unknown,
        }
    }

    /// Sets the value at a path of keys, making the tables on the way. A table that meets a
    /// table is merged into it.
    ///
    /// # Errors
    /// With how many keys of the path lead to something that is not a table.
    pub fn set_path(&mut self, path: &[String], item: Item) -> Result<(), usize> {
        let Some((key, rest)) = path.split_first() else {
            let Value::Table(table) = item.value else { return Err(0) };
            return self.merge(table);
        };
        if rest.is_empty() {
            if let (Some(Item { value: Value::Table(old), .. }), Value::Table(new)) =
                (self.get_mut(key), &item.value)
            {
                return old.merge(new.clone());
            }
            self.set(key, item);
            return Ok(());
        }
        if self.get(key).is_none() {
            self.set(key, Item { value: Value::Table(Table::new()), origin: item.origin });
        }
        match self.get_mut(key).map(|found| &mut found.value) {
            Some(Value::Table(table)) => table.set_path(rest, item).map_err(|depth| depth + 1),
            _ => Err(1),
        }
    }

    /// Writes every entry of `other` over this, table by table.
    fn merge(&mut self, other: Table) -> Result<(), usize> {
        for (key, item) in other.entries {
            self.set_path(&[key], item)?;
        }
        Ok(())
    }
}

/// A title: all of it on one line.
pub fn one_line(title: &str) -> String {
    title.split_whitespace().collect::<Vec<_>>().join(" ")
}
