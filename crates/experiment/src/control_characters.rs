//! Names and texts end up in tables, pictures and terminals, which control characters would break.

use crate::value::{Item, Table, Value};
use weft_config::ExperimentError;

/// Keys whose text may have lines and tabs.
const LINES: [&str; 2] = ["title", "notes"];

/// Refuses control characters in keys and in text.
///
/// # Errors
/// The first one, with its key.
pub(crate) fn refuse(table: &Table) -> Result<(), ExperimentError> {
    table.iter().try_for_each(|(key, item)| {
        check(key, key, item, false)?;
        in_item(key, item)
    })
}

fn in_item(path: &str, item: &Item) -> Result<(), ExperimentError> {
    match &item.value {
        Value::Text(text) => check(path, text, item, LINES.contains(&path)),
        Value::List(items) => items.iter().try_for_each(|item| in_item(path, item)),
        Value::Table(table) => table.iter().try_for_each(|(key, item)| {
            check(path, key, item, false)?;
            in_item(&format!("{path}.{key}"), item)
        }),
        _ => Ok(()),
    }
}

fn check(path: &str, text: &str, item: &Item, lines: bool) -> Result<(), ExperimentError> {
    let refused = |c: &char| c.is_control() && !(lines && c.is_whitespace());
    let Some(found) = text.chars().find(refused) else { return Ok(()) };
    let what = format!("{text:?} has a control character (U+{:04X}); remove it", u32::from(found));
    let shown: String = path.chars().filter(|c| !c.is_control()).collect();
    Err(ExperimentError::new(shown, item.origin, what))
}
