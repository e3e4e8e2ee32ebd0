//! `[quick]`: how an experiment gets shorter for a first look.
//!
//! `seeds` says how many of the seeds run (one, unless it says more); every other key is written
//! over the experiment as `--set` would: a list replaces swept values, a single value ends a
//! sweep. Quick runs are runs of the whole experiment wherever only seeds and swept values
//! differ, so their results are not simulated again.

use crate::catalogue::SaidKey;
use crate::error::ExperimentError;
use crate::kind::{Integer, Kind};
use crate::overrides::change;
use crate::value::{Item, Table, Value};

/// Its keys.
pub(crate) const KEYS: &[SaidKey] = &[
    SaidKey {
        key: "seeds",
        default: "1",
        kind: "a whole number, 1 or more",
        meaning: "how many of the seeds run under --quick",
    },
    SaidKey {
        key: "KEY",
        default: "as without --quick",
        kind: "a value, or a list for a swept key",
        meaning: "any key of the experiment, as --set changes it",
    },
];

/// What `[quick]` says.
#[derive(Debug)]
pub(crate) struct Quick {
    seeds: usize,
    changes: Vec<(String, Item)>,
}

impl Quick {
    /// Reads the table `quick`.
    ///
    /// # Errors
    /// If `seeds` is not a count.
    pub(crate) fn read(table: &Table) -> Result<Quick, ExperimentError> {
        let mut quick = Quick { seeds: 1, changes: Vec::new() };
        for (key, item) in table.iter() {
            if key == "seeds" {
                let count = Integer::from(1).read(item);
                let wrong = |what| ExperimentError::new("quick.seeds", item.origin, what);
                quick.seeds = count.map_err(wrong)? as usize;
            } else {
                flatten(key, item, &mut quick.changes);
            }
        }
        Ok(quick)
    }

    /// Writes the changes over `table`; returns the keys whose sweep ended.
    ///
    /// # Errors
    /// If a key is not a dotted key, or leads through something that is not a table.
    pub(crate) fn apply(&self, table: &mut Table) -> Result<Vec<String>, ExperimentError> {
        let mut ended = Vec::new();
        for (key, item) in &self.changes {
            ended.extend(change(table, key, item.clone())?);
        }
        Ok(ended)
    }

    /// Leaves the first ones.
    pub(crate) fn shorten(&self, seeds: &mut Vec<u64>) {
        seeds.truncate(self.seeds);
    }
}

/// `"a.b" = 1`, and `[quick.a]` with `b = 1` in it, mean the same.
fn flatten(key: &str, item: &Item, changes: &mut Vec<(String, Item)>) {
    match &item.value {
        Value::Table(table) => {
            for (inner, item) in table.iter() {
                flatten(&format!("{key}.{inner}"), item, changes);
            }
        }
        _ => changes.push((key.to_owned(), item.clone())),
    }
}
