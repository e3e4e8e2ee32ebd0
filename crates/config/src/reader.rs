//! Typed reading of a table: knows the dotted path for messages, writes every value that it
//! hands out into the resolved experiment, and refuses what nobody asked for.
//!
//! One pass of a decoder through a `Reader` therefore gives three things that can never
//! disagree: the values, the resolved table with all defaults, and the list of keys.

use crate::kind::{Kind, OneOf};
use crate::nearest::nearest;
use crate::value::{Item, Table, Value};
use crate::{ExperimentError, Origin};

/// A key that a decoder asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Its name within the table.
    pub key: String,
    /// What it is unless given; `None`: it has to be given.
    pub default: Option<Value>,
    /// The words that it may be; empty where it is something else.
    pub words: Vec<String>,
    /// What it may be, with its range and its unit; empty where the key says no more.
    pub kind: String,
    /// What it means, with units.
    pub meaning: &'static str,
}

/// One way to fill a section, with the keys of its own: a topology, a scheme, ...
pub struct Choice<C, T> {
    /// What the user writes.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Reads its keys.
    pub decode: fn(&mut Reader<'_>, &C) -> Result<T, ExperimentError>,
}

/// A key of a choice that was not taken.
struct Elsewhere {
    key: String,
    /// What to say if it is there; `None`: nothing.
    refusal: Option<String>,
}

/// The keys of `choice` in the section at `path`.
pub fn keys_of<C, T>(path: &str, choice: &Choice<C, T>, context: &C) -> Vec<Asked> {
    keys_asked_by(path, |r| (choice.decode)(r, context))
}

/// The keys that `decode` asks for in the section at `path`.
pub fn keys_asked_by<T>(
    path: &str,
    decode: impl FnOnce(&mut Reader<'_>) -> Result<T, ExperimentError>,
) -> Vec<Asked> {
    let empty = Table::new();
    let mut rehearsal = Reader::rehearse(path, &empty);
    // A made-up value may be refused; what was asked for until then is all there is to learn.
    let _ = decode(&mut rehearsal);
    rehearsal.asked
}

/// A table being read.
pub struct Reader<'a> {
    path: String,
    table: &'a Table,
    /// Only to learn which keys there are: values that are missing or wrong are made up.
    rehearsal: bool,
    asked: Vec<Asked>,
    elsewhere: Vec<Elsewhere>,
    resolved: Table,
}

impl<'a> Reader<'a> {
    /// Reads `table`, the whole experiment.
    pub fn root(table: &'a Table) -> Reader<'a> {
        Reader::new(String::new(), table, false)
    }
    /// Learns the keys of the section at `path`.
    pub fn rehearse(path: &str, table: &'a Table) -> Reader<'a> {
        Reader::new(path.to_owned(), table, true)
    }
    fn new(path: String, table: &'a Table, rehearsal: bool) -> Reader<'a> {
        Reader {
            path,
            table,
            rehearsal,
            asked: Vec::new(),
            elsewhere: Vec::new(),
            resolved: Table::new(),
        }
    }

    /// The dotted name of the table; empty for the whole experiment.
    pub fn path(&self) -> &str {
        &self.path
    }
    /// Of keys with whole numbers the one to blame for their being too large together: what a `--set`
    /// or a sweep gave, or else the largest. Dotted; the section itself if none is there.
    pub fn largest(&self, keys: &[&str]) -> String {
        let given = keys.iter().filter_map(|key| Some((key, self.table.get(key)?)));
        let weight = |(_, item): &(&&str, &Item)| {
            let changed = matches!(item.origin, Origin::Set | Origin::Sweep(_));
            let number = match item.value {
                Value::Int(number) => number,
                _ => 0,
            };
            (changed, number)
        };
        let key = given.max_by_key(weight);
        key.map_or_else(|| self.path.clone(), |(key, _)| self.dotted(key))
    }
    /// What was asked for so far.
    pub fn asked(&self) -> &[Asked] {
        &self.asked
    }
    /// Whether this only learns which keys there are.
    pub fn is_rehearsal(&self) -> bool {
        self.rehearsal
    }
    /// Whether `key` was given.
    pub fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// The value of `key`. `default` `None`: it has to be there.
    ///
    /// # Errors
    /// If it is missing or not of its kind.
    pub fn get<K: Kind>(
        &mut self,
        key: &'static str,
        kind: K,
        default: Option<K::Out>,
        meaning: &'static str,
    ) -> Result<K::Out, ExperimentError> {
        let shown = default.as_ref().map(|value| kind.write(value));
        let (words, what) = (kind.words(), kind.describe());
        self.asked.push(Asked { key: key.to_owned(), default: shown, words, kind: what, meaning });
        let found = self.table.get(key).map(|item| (item.origin, kind.read(item)));
        let value = match (found, default) {
            (Some((_, Ok(value))), _) => value,
            (None, Some(default)) => default,
            (_, default) if self.rehearsal => default.unwrap_or_else(|| made_up(&kind)),
            (Some((origin, Err(what))), _) => return Err(self.wrong_at(key, origin, what)),
            (None, None) => {
                let example = kind.example().to_json();
                let what = format!("missing; add it, for example {key} = {example}");
                return Err(ExperimentError::missing(self.dotted(key), what));
            }
        };
        self.resolved.put(key, kind.write(&value));
        Ok(value)
    }

    /// Reads a choice and the keys that belong to it. Keys of the choices not taken are
    /// refused if they stand beside a choice in the file, and ignored if the choice came from
    /// a sweep or a `--set`: the file then serves several.
    ///
    /// # Errors
    /// If the choice is missing, unknown, or its keys are wrong.
    pub fn choose<C, T>(
        &mut self,
        key: &'static str,
        default: Option<&str>,
        meaning: &'static str,
        choices: &[Choice<C, T>],
        context: &C,
    ) -> Result<T, ExperimentError> {
        let names: Vec<&str> = choices.iter().map(|choice| choice.name).collect();
        let default = default.and_then(|name| names.iter().position(|known| *known == name));
        let taken = self.get(key, OneOf(&names), default, meaning)?;
        let value = (choices[taken].decode)(self, context)?;
        for other in choices.iter().filter(|other| other.name != names[taken]) {
            let keys = keys_of(&self.path, other, context);
            let keys = keys.into_iter().map(|asked| asked.key);
            self.others(key, names[taken], other.name, keys);
        }
        Ok(value)
    }

    /// Says which keys `decode` would ask for: the way to go on from here had `key` been
    /// `other` instead of `taken`.
    pub fn instead<T>(
        &mut self,
        key: &str,
        taken: &str,
        other: &str,
        decode: impl FnOnce(&mut Reader<'_>) -> Result<T, ExperimentError>,
    ) {
        let asked = keys_asked_by(&self.path, decode);
        if self.rehearsal {
            self.asked.extend(asked);
        } else {
            self.others(key, taken, other, asked.into_iter().map(|asked| asked.key));
        }
    }

    /// Says that `keys` belong to the choice `other` of `key`, where `taken` was chosen.
    pub fn others(
        &mut self,
        key: &str,
        taken: &str,
        other: &str,
        keys: impl Iterator<Item = String>,
    ) {
        self.beside(key, &format!("belongs to {key} = {other:?}, not {taken:?}; remove it"), keys);
    }

    /// Says that `keys` have no place beside `key`, for the reason `refusal`; where a sweep or a
    /// `--set` gave `key`, they are ignored.
    pub fn beside(&mut self, key: &str, refusal: &str, keys: impl Iterator<Item = String>) {
        let origin = self.table.get(key).map_or(Origin::Unknown, |item| item.origin);
        let serves_several = matches!(origin, Origin::Set | Origin::Sweep(_));
        let refusal = (!serves_several).then(|| refusal.to_owned());
        self.elsewhere.extend(keys.map(|key| Elsewhere { key, refusal: refusal.clone() }));
    }

    /// Says that `key` was there once, and `instead` what holds now.
    pub fn gone(&mut self, key: &str, instead: &str) {
        let refusal = Some(format!("is gone: {instead}; remove it"));
        self.elsewhere.push(Elsewhere { key: key.to_owned(), refusal });
    }

    /// All keys that there are, in the order of the file.
    pub fn keys(&self) -> Vec<String> {
        self.table.iter().map(|(key, _)| key.to_owned()).collect()
    }

    /// Reads the table `key`; an absent one is empty.
    ///
    /// # Errors
    /// As `decode`, or if it is not a table or has keys that `decode` does not ask for.
    pub fn section<T>(
        &mut self,
        key: &str,
        meaning: &'static str,
        decode: impl Fn(&mut Reader<'_>) -> Result<T, ExperimentError>,
    ) -> Result<T, ExperimentError> {
        let (words, kind) = (Vec::new(), "a table".to_owned());
        let default = Some(Value::Table(Table::new()));
        self.asked.push(Asked { key: key.to_owned(), default, words, kind, meaning });
        let empty = Table::new();
        let table = match self.table.get(key) {
            None => &empty,
            Some(Item { value: Value::Table(table), .. }) => table,
            Some(Item { value, origin }) => {
                let what =
                    format!("is {}, not a table; write [{}]", value.kind(), self.dotted(key));
                return Err(self.wrong_at(key, *origin, what));
            }
        };
        let mut inner = Reader::new(self.dotted(key), table, self.rehearsal);
        let value = decode(&mut inner).map_err(|error| inner.blame(error, &decode))?;
        inner.check_unknown()?;
        self.resolved.put(key, inner.resolved);
        Ok(value)
    }

    /// A missing key may be there under a wrong name: then that name is the mistake.
    fn blame<T>(
        &self,
        error: ExperimentError,
        decode: impl Fn(&mut Reader<'_>) -> Result<T, ExperimentError>,
    ) -> ExperimentError {
        let mut rehearsal = Reader::rehearse(&self.path, self.table);
        if !error.is_missing() || decode(&mut rehearsal).is_err() {
            return error;
        }
        rehearsal.rehearsal = false;
        rehearsal.check_unknown().err().unwrap_or(error)
    }

    /// Ends reading.
    ///
    /// # Errors
    /// If there are keys that nobody asked for.
    pub fn finish(self) -> Result<Table, ExperimentError> {
        self.check_unknown()?;
        Ok(self.resolved)
    }

    fn check_unknown(&self) -> Result<(), ExperimentError> {
        if self.rehearsal {
            return Ok(());
        }
        for (key, item) in self.table.iter() {
            if self.asked.iter().any(|asked| asked.key == key) {
                continue;
            }
            let what = match self.elsewhere.iter().find(|other| other.key == key) {
                Some(Elsewhere { refusal: None, .. }) => continue,
                Some(Elsewhere { refusal: Some(what), .. }) => what.clone(),
                None => unknown_key(key, self.asked.iter().map(|asked| asked.key.as_str())),
            };
            return Err(self.wrong_at(key, item.origin, what));
        }
        Ok(())
    }

    /// Replaces what the resolved experiment says about `key`: what a word such as
    /// `"natural"` turned out to mean.
    pub fn record(&mut self, key: &str, value: impl Into<Value>) {
        self.resolved.put(key, value);
    }
    /// Leaves `key` out of the resolved experiment.
    pub fn omit(&mut self, key: &str) {
        self.resolved.remove(key);
    }

    /// The mistake `what` (with its mend) at `key`.
    pub fn wrong(&self, key: &str, what: impl Into<String>) -> ExperimentError {
        let origin = self.table.get(key).map_or(Origin::Unknown, |item| item.origin);
        self.wrong_at(key, origin, what.into())
    }
    /// Which of `keys` a mistake of all of them is blamed on: what a `--set` changed, else the first.
    pub fn changed<'k>(&self, keys: &[&'k str]) -> &'k str {
        let is_set = |key: &&&str| self.table.get(key).is_some_and(|at| at.origin == Origin::Set);
        keys.iter().find(is_set).unwrap_or(&keys[0])
    }
    /// The mistake `what` (with its mend) in this section as a whole.
    pub fn wrong_here(&self, what: impl Into<String>) -> ExperimentError {
        ExperimentError::new(self.path.as_str(), Origin::Unknown, what)
    }
    fn wrong_at(&self, key: &str, origin: Origin, what: String) -> ExperimentError {
        ExperimentError::new(self.dotted(key), origin, what)
    }
    fn dotted(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// A value to go on with when only the keys matter.
fn made_up<K: Kind>(kind: &K) -> K::Out {
    kind.read(&Item::new(kind.example())).unwrap_or_else(|what| panic!("example refused: {what}"))
}

/// The refusal of `key` where `valid` are the keys there are.
pub fn unknown_key<'a>(key: &str, valid: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(key, valid.clone()) {
        Some(near) => format!("unknown key; did you mean {near:?}?"),
        None => {
            let mut all: Vec<&str> = Vec::new();
            for key in valid {
                // Several choices may have a key of the same name.
                if !all.contains(&key) {
                    all.push(key);
                }
            }
            match all.is_empty() {
                true => "unknown key; remove it".to_owned(),
                false => format!("unknown key; remove it or use one of {}", all.join(", ")),
            }
        }
    }
}
