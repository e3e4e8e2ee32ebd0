//! Options of things that registries list (schemes, patterns): passed on as text, so that a
//! registry's entry alone says what it can be told.

use crate::error::ExperimentError;
use crate::kind::Kind;
use crate::reader::Reader;
use crate::value::{Item, Value};
use weft_units::options::{FLAG, NUMBER, ResolvedOptions, SIZE, TIME, WHOLE, WORD};
use weft_units::{OptionError, OptionInfo, parse_size, parse_time};

type Result<T> = std::result::Result<T, ExperimentError>;

/// Reads those of the `known` options that were given; `resolve` makes something of them, and
/// says which options hold in the end. Those that are known are written out, all others left out.
///
/// # Errors
/// If a value is not a scalar, or `resolve` refuses one.
pub fn read<T>(
    r: &mut Reader<'_>,
    known: impl IntoIterator<Item = &'static OptionInfo>,
    resolve: impl Fn(&[(&str, &str)]) -> std::result::Result<(T, ResolvedOptions), OptionError>,
) -> Result<T> {
    let mut given: Vec<(&str, String)> = Vec::new();
    let known: Vec<&OptionInfo> = known.into_iter().collect();
    for option in &known {
        let unset = Some(Word(None));
        let word = r.get(option.key, AsText(option.default), unset, option.meaning)?;
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
        r.may_be(one.key, &one.words, &one.kind);
    }
    if r.is_rehearsal() {
        let read = |one: &&&OptionInfo| !resolved.iter().any(|resolved| resolved.key == one.key);
        for option in known.iter().filter(read) {
            let kind = kind_of(option.key, &resolve).unwrap_or_else(|| kind_like(option.default));
            r.may_be(option.key, &[], &kind);
        }
    }
    Ok(value)
}

/// What an option may be that is read only if it is given: as `resolve` takes an example of it.
fn kind_of<T>(
    key: &str,
    resolve: &impl Fn(&[(&str, &str)]) -> std::result::Result<(T, ResolvedOptions), OptionError>,
) -> Option<String> {
    const EXAMPLES: [&str; 7] = ["1", "2", "8", "1KB", "1us", "1.0", "true"];
    EXAMPLES.iter().find_map(|example| {
        let (_, resolved) = resolve(&[(key, example)]).ok()?;
        resolved.into_iter().find(|one| one.key == key).map(|one| one.kind)
    })
}

/// What an option may be that means something beside another one only: what its default is.
fn kind_like(default: &str) -> String {
    let kind = if ["true", "false"].contains(&default) {
        FLAG
    } else if default.parse::<u32>().is_ok() {
        WHOLE
    } else if default.parse::<f64>().is_ok() {
        NUMBER
    } else if parse_time(default).is_ok() {
        TIME
    } else if parse_size(default).is_ok() {
        SIZE
    } else if default.is_empty() {
        "text"
    } else if default.contains(' ') {
        "as its meaning says"
    } else {
        WORD
    };
    kind.to_owned()
}

/// An option as text, if it was given.
#[derive(Clone, Debug)]
struct Word(Option<String>);

/// Any scalar, passed on as text; holds the default for the list of keys.
struct AsText(&'static str);

impl Kind for AsText {
    type Out = Word;
    fn read(&self, item: &Item) -> std::result::Result<Word, String> {
        match &item.value {
            Value::List(_) | Value::Table(_) => {
                Err(format!("is {}; write one value such as {}", item.value.kind(), self.0))
            }
            scalar => Ok(Word(Some(scalar.to_label()))),
        }
    }
    fn write(&self, value: &Word) -> Value {
        // Not given, it is not written out; the list of keys has the default as it is told.
        value.0.as_deref().map_or_else(|| self.0.into(), crate::parse::parse_bare)
    }
    fn example(&self) -> Value {
        self.0.into()
    }
    fn describe(&self) -> String {
        // The one who reads the text says it.
        String::new()
    }
}
