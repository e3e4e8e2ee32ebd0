//! Process groups as PyTorch tells of them.

use serde_json::Value;
use std::collections::BTreeMap;

/// Ranks of groups by their names; no ranks are all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Groups(BTreeMap<String, Vec<u32>>);

impl Groups {
    /// Takes in a list of objects with `pg_name` and `ranks`; what is none is left out.
    pub(super) fn add(&mut self, list: &Value) {
        for entry in list.as_array().into_iter().flatten() {
            let name = entry
                .get("pg_name")
                .map(|name| name.as_str().map_or(name.to_string(), str::to_owned));
            let ranks = entry.get("ranks").and_then(numbers).unwrap_or_default();
            let ranks = ranks.into_iter().filter_map(|rank| u32::try_from(rank).ok()).collect();
            if let Some(name) = name {
                self.0.insert(name, ranks);
            }
        }
    }

    /// The same of a text.
    pub(super) fn add_json(&mut self, text: &str) {
        if let Ok(list) = serde_json::from_str(text) {
            self.add(&list);
        }
    }

    /// The ranks of a communication's group: those that it lists, else those of the group of this name, else
    /// those that first rank, stride and size tell; none are all ranks.
    pub(super) fn ranks(
        &self,
        name: &str,
        listed: Option<&str>,
        span: Option<(u64, u64)>,
        size: Option<u32>,
    ) -> Vec<u32> {
        let narrow =
            |all: Vec<u64>| all.into_iter().filter_map(|rank| u32::try_from(rank).ok()).collect();
        // Long lists are cut, with dots.
        let whole = listed.and_then(|text| serde_json::from_str::<Value>(text).ok());
        if let Some(ranks) = whole.as_ref().and_then(numbers).filter(|ranks| !ranks.is_empty()) {
            return narrow(ranks);
        }
        if let Some(ranks) = self.0.get(name).filter(|ranks| !ranks.is_empty()) {
            return ranks.clone();
        }
        match (span, size) {
            (Some((start, stride @ 1..)), Some(size)) => {
                let rank = |place: u64| start.saturating_add(stride.saturating_mul(place));
                (0..u64::from(size.min(1 << 20)))
                    .map(rank)
                    .filter_map(|rank| u32::try_from(rank).ok())
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The numbers in a list, or in a text that is one.
pub(super) fn numbers(value: &Value) -> Option<Vec<u64>> {
    match value {
        Value::Array(items) => items.iter().map(Value::as_u64).collect(),
        Value::String(text) => {
            numbers(&serde_json::from_str::<Value>(text).ok().filter(Value::is_array)?)
        }
        _ => None,
    }
}
