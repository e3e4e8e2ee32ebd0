//! `failures.NAME.start = "50%"`: a failure that begins at a share of the completion time.
//!
//! The share is of the lower bound without failures, under the first seed. So it is one time for every
//! scheme, which the resolved experiment says as any other start.

use crate::bound::bound;
use crate::experiment::Resolved;
use crate::section::failures;
use crate::value::{Item, Table, Value};
use std::collections::HashMap;
use std::path::Path;
use weft_config::{ExperimentError, Origin};
use weft_fabric::Failures;
use weft_units::Time;

/// Later than this, in percent of the bound, is taken for a mistake.
const LATEST: f64 = 10_000.0;

/// Starts of one experiment's combinations, of which many have the same bound.
pub(crate) struct RelativeStarts<'a> {
    folder: &'a Path,
    seed: u64,
    bounds: HashMap<String, Time>,
}

impl<'a> RelativeStarts<'a> {
    /// For an experiment whose files are looked for in `folder`, and whose first seed is `seed`.
    pub(crate) fn new(folder: &'a Path, seed: u64) -> RelativeStarts<'a> {
        RelativeStarts { folder, seed, bounds: HashMap::new() }
    }

    /// Writes the time of each start that `table` gives in percent.
    ///
    /// # Errors
    /// If a share is none, or the experiment without failures is wrong.
    pub(crate) fn resolve(&mut self, table: &mut Table) -> Result<(), ExperimentError> {
        let shares = shares(table)?;
        if shares.is_empty() {
            return Ok(());
        }
        let bound = self.bound(table)?;
        for (name, percent, origin) in shares {
            let start = Time((bound.0 as f64 * percent / 100.0) as u64);
            let path = [failures::NAME, &name, failures::START].map(str::to_owned);
            let item = Item::new(start.to_string().into()).at(origin);
            table.set_path(&path, item).expect("there was a start at this path");
        }
        Ok(())
    }

    fn bound(&mut self, table: &Table) -> Result<Time, ExperimentError> {
        let mut healthy = table.clone();
        healthy.remove(failures::NAME);
        let resolved = Resolved::read(&healthy, self.folder)?;
        let key = format!("{} {:?}", resolved.traffic_key(), resolved.packet);
        if let Some(known) = self.bounds.get(&key) {
            return Ok(*known);
        }
        let traffic = resolved.traffic(self.seed).map_err(|error| error.located_in(table))?;
        let found = bound(&resolved.fabric, &Failures::default(), &traffic, &resolved.packet);
        self.bounds.insert(key, found);
        Ok(found)
    }
}

/// The failures whose start is in percent: name, percent, and where that was written.
fn shares(table: &Table) -> Result<Vec<(String, f64, Origin)>, ExperimentError> {
    let Some(Item { value: Value::Table(all), .. }) = table.get(failures::NAME) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for (name, item) in all.iter() {
        let Value::Table(one) = &item.value else { continue };
        let Some(start) = one.get(failures::START) else { continue };
        let Some(text) = start.value.as_text().and_then(|text| text.trim().strip_suffix('%'))
        else {
            continue;
        };
        let percent = text.trim().parse().ok().filter(|share| (0.0..=LATEST).contains(share));
        let Some(percent) = percent else {
            let key = format!("{}.{name}.{}", failures::NAME, failures::START);
            let what = format!(
                "{} is not a share of the completion time; write one such as \"50%\"",
                start.value.to_json()
            );
            return Err(ExperimentError::new(key, start.origin, what));
        };
        found.push((name.to_owned(), percent, start.origin));
    }
    Ok(found)
}
