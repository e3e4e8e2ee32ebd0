//! Keys that have two names: both work in files, in sweeps, in short forms and in `--set`.

use crate::ExperimentError;
use crate::value::{Item, Table, Value};

/// The other name and the name, dotted.
const OTHER_NAMES: [(&str, &str); 1] = [("fabric.hosts", "fabric.hosts_per_leaf")];

/// The name of the dotted key `key`.
pub fn name_of(key: &str) -> &str {
    OTHER_NAMES.iter().find(|(other, _)| *other == key).map_or(key, |(_, name)| name)
}

/// Gives the keys of a whole file their names.
///
/// # Errors
/// If a key is there under both.
pub fn apply(whole: &mut Table) -> Result<(), ExperimentError> {
    for (other, name) in OTHER_NAMES {
        let (section, old) = other.split_once('.').expect("dotted");
        let (_, new) = name.split_once('.').expect("dotted");
        rename(whole, section, old, new, other)?;
        rename(whole, "sweep", other, name, other)?;
    }
    Ok(())
}

fn rename(
    whole: &mut Table,
    section: &str,
    old: &str,
    new: &str,
    dotted: &str,
) -> Result<(), ExperimentError> {
    let Some(Item { value: Value::Table(table), .. }) = whole.get_mut(section) else {
        return Ok(());
    };
    let Some(item) = table.remove(old) else { return Ok(()) };
    if table.get(new).is_some() {
        let what = format!("is there as {new}, too; remove one");
        return Err(ExperimentError::new(dotted, item.origin, what));
    }
    table.set(new, item);
    Ok(())
}
