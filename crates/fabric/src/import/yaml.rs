//! A YAML or JSON text as a tree whose parts know their lines. JSON is YAML.

#![cfg_attr(not(feature = "yaml"), allow(dead_code, unused_imports))]

use super::Odd;
#[cfg(feature = "yaml")]
use saphyr_parser::{Event, Parser};
use weft_units::options::quoted;

/// A part of a text.
pub(super) struct Tree {
    /// Where it begins, counted from 1.
    pub(super) line: u64,
    value: Value,
}

enum Value {
    Word(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

/// Lists within lists: more than any file needs.
const DEEPEST: usize = 32;

/// Something that has begun and not ended.
struct Open {
    line: u64,
    /// Of a map the key whose value comes next.
    key: Option<String>,
    value: Value,
}

/// Reads a text of one document.
#[cfg(not(feature = "yaml"))]
pub(super) fn read(_: &str) -> Result<Tree, Odd> {
    Err(Odd::whole("this build of Weft reads no YAML (feature \"yaml\")"))
}

/// Reads a text of one document.
#[cfg(feature = "yaml")]
pub(super) fn read(text: &str) -> Result<Tree, Odd> {
    let mut open: Vec<Open> = Vec::new();
    let mut whole = None;
    let mut parser = Parser::new_from_str(text);
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| {
            let what = format!("this is neither YAML nor JSON: {}; correct it", error.info());
            Odd::at(error.marker().line() as u64, what.replace('\n', " "))
        })?;
        let line = span.start.line() as u64;
        let done = match event {
            Event::Alias(_) => {
                return Err(Odd::at(line, "an alias (*name); write out what it stands for"));
            }
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() == DEEPEST => {
                return Err(Odd::at(line, format!("lists and maps {DEEPEST} deep; simplify it")));
            }
            Event::SequenceStart(..) => {
                open.push(Open { line, key: None, value: Value::List(Vec::new()) });
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open { line, key: None, value: Value::Map(Vec::new()) });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Open { line, value, .. }) = open.pop() else { continue };
                Tree { line, value }
            }
            Event::Scalar(word, ..) => Tree { line, value: Value::Word(word.into_owned()) },
            _ => continue,
        };
        match open.last_mut() {
            Some(above) => above.take(done)?,
            None if whole.is_none() => whole = Some(done),
            None => return Err(Odd::at(line, "a second document; give each a file of its own")),
        }
    }
    whole.ok_or_else(|| Odd::whole("the file says nothing; it is empty or truncated"))
}

impl Open {
    /// Takes in what has just ended.
    fn take(&mut self, done: Tree) -> Result<(), Odd> {
        match &mut self.value {
            Value::List(list) => list.push(done),
            Value::Map(map) => match (self.key.take(), done.value) {
                (Some(key), value) => {
                    if map.iter().any(|(known, _)| *known == key) {
                        let what = format!("{} is given twice; remove one", quoted(&key));
                        return Err(Odd::at(done.line, what));
                    }
                    map.push((key, Tree { line: done.line, value }));
                }
                (None, Value::Word(key)) => self.key = Some(key),
                (None, _) => {
                    return Err(Odd::at(done.line, "a list or map as a key; use a word"));
                }
            },
            Value::Word(_) => {}
        }
        Ok(())
    }
}

impl Tree {
    /// What a map has under a key; `None`: nothing, or it is no map.
    pub(super) fn get(&self, key: &str) -> Option<&Tree> {
        let Value::Map(map) = &self.value else { return None };
        map.iter().find(|(known, _)| known == key).map(|(_, tree)| tree)
    }
    /// Refuses keys of it, the infrastructure or such, that are not among `known`.
    pub(super) fn only(&self, known: &[&str], what: &str) -> Result<(), Odd> {
        let Value::Map(map) = &self.value else { return Ok(()) };
        match map.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some((key, tree)) => {
                let what = format!(
                    "{} is no key of {what}; remove it, or use one of {}",
                    quoted(key),
                    known.join(", ")
                );
                Err(Odd::at(tree.line, what))
            }
        }
    }
    /// The same, where it has to be there; `what` has it, for errors.
    pub(super) fn need(&self, key: &str, what: &str) -> Result<&Tree, Odd> {
        let missing = || Odd::at(self.line, format!("{what} without {}; add it", quoted(key)));
        self.get(key).ok_or_else(missing)
    }
    /// The text of a word that has to be there.
    pub(super) fn word(&self, key: &str, what: &str) -> Result<&str, Odd> {
        let tree = self.need(key, what)?;
        match &tree.value {
            Value::Word(word) => Ok(word),
            _ => {
                let what = format!("{} of {what} is no word; correct it", quoted(key));
                Err(Odd::at(tree.line, what))
            }
        }
    }
    /// The parts of a list; of no list none.
    pub(super) fn list(&self, key: &str, what: &str) -> Result<&[Tree], Odd> {
        let Some(tree) = self.get(key) else { return Ok(&[]) };
        match &tree.value {
            Value::List(list) => Ok(list),
            _ => {
                let what = format!("{} of {what} is no list; correct it", quoted(key));
                Err(Odd::at(tree.line, what))
            }
        }
    }
    /// A whole number that has to be there.
    pub(super) fn count(&self, key: &str, what: &str) -> Result<u32, Odd> {
        let word = self.word(key, what)?;
        word.parse().map_err(|_| {
            let what = format!("{key} {} of {what} is no whole number; correct it", quoted(word));
            Odd::at(self.need(key, "").map_or(self.line, |tree| tree.line), what)
        })
    }
}
