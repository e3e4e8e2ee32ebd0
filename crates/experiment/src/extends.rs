//! `extends = "other.toml"`: an experiment that says only what it does differently.
//!
//! The named file is read first, the experiment is written over it table by table; a `[sweep]`
//! of its own takes the place of the other's, because half a sweep means nothing. The other may
//! extend a third. Paths are relative to the file that names them.

use crate::error::{ExperimentError, Origin};
use crate::parse::{Format, parse};
use crate::value::{Item, Table, Value};
use std::fs;
use std::path::Path;

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
    let Value::Text(name) = &item.value else {
        return Err(wrong(format!("is {}, not a file; put its path in quotes", item.value.kind())));
    };
    if depth == 0 {
        return Err(wrong(format!("{name} leads in a circle; remove one \"extends\"")));
    }
    let path = folder.join(name);
    let text = fs::read_to_string(&path)
        .map_err(|why| wrong(format!("{name} cannot be read: {why}; mend the path")))?;
    let json = path.extension().is_some_and(|ending| ending == "json");
    let format = if json { Format::Json } else { Format::Toml };
    let source = path.display().to_string();
    let base = parse(&text, format).map_err(|error| error.in_source(&source))?;
    let base = resolve_within(base, path.parent().unwrap_or(folder), depth - 1)?;
    let Value::Table(mut base) = Item::new(Value::Table(base)).at(Origin::Extended).value else {
        unreachable!("it went in as a table")
    };
    if table.get("sweep").is_some() {
        base.remove("sweep");
    }
    let over = Item::new(Value::Table(table));
    base.set_path(&[], over).map_err(|_| wrong("cannot be merged; compare the files".into()))?;
    Ok(base)
}
