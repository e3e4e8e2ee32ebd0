//! `extends = "other.toml"`: an experiment that says only what it does differently.
//!
//! The named file is read first, the experiment is written over it table by table; a `[sweep]`
//! of its own takes the place of the other's, because half a sweep means nothing. The other may
//! extend a third. Of a list of files each is written over those before it. Paths are relative to
//! the file that names them.

use crate::parse::{Format, parse};
use crate::value::{Item, Table, Value};
use std::fs;
use std::path::Path;
use weft_config::ExperimentError;

/// More than any person would nest, and a certain sign of a circle.
const DEEPEST: u32 = 8;

/// `table`, read in `folder`, over what it extends.
///
/// # Errors
/// If the file cannot be read, is malformed, or extends itself.
pub(crate) fn resolve(table: Table, folder: &Path) -> Result<Table, ExperimentError> {
    resolve_within(table, folder, DEEPEST)
}

fn resolve_within(mut table: Table, folder: &Path, depth: u32) -> Result<Table, ExperimentError> {
    let Some(item) = table.remove("extends") else { return Ok(table) };
    let wrong = |what: String| ExperimentError::new("extends", item.origin, what);
    let mut base = Table::new();
    for name in names(&item.value).map_err(&wrong)? {
        if depth == 0 {
            return Err(wrong(format!("{name} leads in a circle; remove one \"extends\"")));
        }
        let other = read(name, folder, depth).map_err(|error| match error {
            Unreadable::File(why) => wrong(format!("{name} cannot be read: {why}; mend the path")),
            Unreadable::Content(error) => error,
        })?;
        let other = Item::new(Value::Table(other)).map_origins(&|at| at.extended(name));
        let Value::Table(other) = other.value else { unreachable!("it went in as a table") };
        base = over(other, base).ok_or_else(|| wrong(UNLIKE.into()))?;
    }
    over(table, base).ok_or_else(|| wrong(UNLIKE.into()))
}

/// A key is a table in one file and a value in another.
const UNLIKE: &str = "cannot be merged; compare the files";

/// One file, or several.
fn names(value: &Value) -> Result<Vec<&str>, String> {
    let name = |value: &'_ Value| match value {
        Value::Text(_) => Ok(()),
        other => Err(format!("is {}, not a file; put its path in quotes", other.kind())),
    };
    match value {
        Value::List(items) => {
            items.iter().try_for_each(|item| name(&item.value))?;
            Ok(items.iter().filter_map(|item| item.value.as_text()).collect())
        }
        value => name(value).map(|()| value.as_text().into_iter().collect()),
    }
}

/// Why there is nothing to extend.
enum Unreadable {
    File(std::io::Error),
    Content(ExperimentError),
}

/// The experiment in the file `name`, over what it extends.
fn read(name: &str, folder: &Path, depth: u32) -> Result<Table, Unreadable> {
    let path = folder.join(name);
    let text = fs::read_to_string(&path).map_err(Unreadable::File)?;
    let json = path.extension().is_some_and(|ending| ending == "json");
    let format = if json { Format::Json } else { Format::Toml };
    let source = path.display().to_string();
    let table = parse(&text, format).map_err(|error| error.in_source(&source));
    let within = |table| resolve_within(table, path.parent().unwrap_or(folder), depth - 1);
    table.and_then(within).map_err(Unreadable::Content)
}

/// `table` written over `base`; `None` if one has a table where the other has none.
fn over(table: Table, mut base: Table) -> Option<Table> {
    if table.get("sweep").is_some() {
        base.remove("sweep");
    }
    base.set_path(&[], Item::new(Value::Table(table))).ok()?;
    Some(base)
}
