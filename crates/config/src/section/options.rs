//! Options of things that registries list (schemes, patterns): passed on as text, so that a
//! registry's entry alone says what it can be told.

use crate::error::ExperimentError;
use crate::kind::Kind;
use crate::reader::Reader;
use crate::value::{Item, Value};
use weft_units::options::ResolvedOptions;
use weft_units::{OptionError, OptionInfo};

type Result<T> = std::result::Result<T, ExperimentError>;

/// Reads those of the `known` options that were given; `resolve` makes something of them, and
/// says which options hold in the end. Those that are known are written out, all others left out.
///
/// # Errors
/// If a value is not a scalar, or `resolve` refuses one.
pub fn read<T>(
    r: &mut Reader<'_>,
    known: impl IntoIterator<Item = &'static OptionInfo>,
    resolve: impl FnOnce(&[(&str, &str)]) -> std::result::Result<(T, ResolvedOptions), OptionError>,
) -> Result<T> {
    let mut given: Vec<(&str, String)> = Vec::new();
    let known: Vec<&'static OptionInfo> = known.into_iter().collect();
    for option in known.iter().copied() {
        let unset = Some(Word(None));
        let word = r.get(option.key, AsText(option), unset, option.meaning)?;
        r.omit(option.key);
        if let Some(text) = word.0 {
            given.push((option.key, text));
        }
    }
    // A rehearsal only wants to know which keys there are.
    if r.is_rehearsal() {
        given.clear();
    }
    let given: Vec<_> = given.iter().map(|(key, text)| (*key, text.as_str())).collect();
    let (value, resolved) = resolve(&given).map_err(|error| r.wrong(&error.key, error.what))?;
    for one in resolved.iter().filter(|one| known.iter().any(|known| known.key == one.key)) {
        r.record(one.key, crate::parse::parse_bare(&one.text));
    }
    Ok(value)
}

/// An option as text, if it was given.
#[derive(Clone, Debug)]
struct Word(Option<String>);

/// Any scalar, passed on as text; holds the default for the list of keys.
struct AsText(&'static OptionInfo);

impl Kind for AsText {
    type Out = Word;
    fn read(&self, item: &Item) -> std::result::Result<Word, String> {
        match &item.value {
            Value::List(_) | Value::Table(_) => {
                Err(format!("is {}; write one value such as {}", item.value.kind(), self.0.default))
            }
            scalar => Ok(Word(Some(scalar.to_label()))),
        }
    }
    fn write(&self, value: &Word) -> Value {
        // Not given, it is not written out; the list of keys has the default as it is told.
        value.0.as_deref().map_or_else(|| self.0.default.into(), crate::parse::parse_bare)
    }
    fn example(&self) -> Value {
        self.0.default.into()
    }
    fn describe(&self) -> String {
        self.0.kind.to_string()
    }
    fn words(&self) -> Vec<String> {
        self.0.kind.words().iter().map(|word| (*word).to_owned()).collect()
    }
}
