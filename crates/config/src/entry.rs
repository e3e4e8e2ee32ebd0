//! One thing to choose, as `weft list` shows it.

use crate::value::{Table, Value};

/// One thing to choose.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// The dotted key that chooses it: `workload.collective`.
    pub key: String,
    /// What to write there; of a file, how its name ends.
    pub name: String,
    /// What it is, in one sentence.
    pub summary: String,
    /// Where it comes from.
    pub source: String,
    /// Its keys.
    pub options: Vec<OptionEntry>,
    /// Of a scheme: where it runs ([`weft_balance::scheme::platform::Platform::ALL`]).
    pub runs_on: Vec<&'static str>,
    /// Of a scheme: what leaves of real hosts make of source ports, `"hashed"` or `"segments"`.
    pub source_ports: Option<&'static str>,
    /// Of a scheme: what switches on sale can be asked to do for it beyond hashing: `"trimming"`,
    /// `"adaptive-routing"`, `"queue-pair-hashing"`.
    pub switch_features: Vec<&'static str>,
}

/// One key of a thing to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionEntry {
    /// The dotted key.
    pub key: String,
    /// Its default, or `required`.
    pub default: String,
    /// The words that it may be; empty where it is something else.
    pub words: Vec<String>,
    /// What it may be, with its range and its unit; empty where nothing says it.
    pub kind: String,
    /// What it means.
    pub meaning: String,
}

impl Entry {
    /// A list in JSON, as `weft list --json` has it.
    pub fn list_to_json(entries: &[Entry]) -> String {
        let entries = entries.iter().map(Entry::to_value);
        Value::from(entries.collect::<Vec<_>>()).to_json()
    }
    fn to_value(&self) -> Value {
        let options = self.options.iter().map(|option| {
            let mut table = Table::new();
            table.put("key", option.key.as_str());
            table.put("default", option.default.as_str());
            let words = option.words.iter().map(|word| Value::from(word.as_str()));
            table.put("words", words.collect::<Vec<_>>());
            table.put("kind", option.kind.as_str());
            table.put("meaning", option.meaning.as_str());
            Value::Table(table)
        });
        let mut table = Table::new();
        table.put("key", self.key.as_str());
        table.put("name", self.name.as_str());
        table.put("summary", self.summary.as_str());
        table.put("source", self.source.as_str());
        table.put("options", options.collect::<Vec<_>>());
        if let Some(ports) = self.source_ports {
            let places = self.runs_on.iter().map(|place| Value::from(*place));
            table.put("runs_on", places.collect::<Vec<_>>());
            table.put("source_ports", ports);
            let features =
                self.switch_features.iter().map(|one| Value::from(*one)).collect::<Vec<_>>();
            table.put("switch_features", features);
        }
        Value::Table(table)
    }
}
