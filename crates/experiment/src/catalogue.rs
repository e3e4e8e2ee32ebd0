//! What there is to choose from, for `weft list`: collected from the decoders and the
//! registries themselves, so that it cannot say anything else than they do.

use crate::reader::{Asked, keys_of};
use crate::section::{balance, fabric, sending, transport};
use crate::value::{Table, Value};
use weft_balance::scheme::SCHEMES;
use weft_transport::RECOVERIES;
use weft_units::{Rate, Time};
use weft_workload::PATTERNS;
use weft_workload::pattern::COMMON_OPTIONS;

/// What to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Catalogue {
    /// Load balancers.
    Schemes,
    /// Congestion controls and loss recoveries.
    Transports,
    /// Traffic patterns and file formats.
    Workloads,
    /// Fabrics.
    Topologies,
}

/// One thing to choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What to write.
    pub name: String,
    /// What it is, in one sentence.
    pub summary: String,
    /// Where it comes from.
    pub source: String,
    /// Its keys.
    pub options: Vec<OptionEntry>,
}

/// One key of a thing to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionEntry {
    /// The dotted key.
    pub key: String,
    /// Its default, or `required`.
    pub default: String,
    /// What it means.
    pub meaning: String,
}

impl Catalogue {
    /// All lists by name.
    pub const NAMES: [(&'static str, Catalogue); 4] = [
        ("schemes", Catalogue::Schemes),
        ("transports", Catalogue::Transports),
        ("workloads", Catalogue::Workloads),
        ("topologies", Catalogue::Topologies),
    ];

    /// The list.
    pub fn entries(self) -> Vec<Entry> {
        match self {
            Catalogue::Schemes => schemes(),
            Catalogue::Transports => transports(),
            Catalogue::Workloads => workloads(),
            Catalogue::Topologies => topologies(),
        }
    }

    /// The list in JSON: `[{name, summary, source, options: [{key, default, meaning}]}]`.
    pub fn to_json(self) -> String {
        let entries = self.entries().into_iter().map(|entry| entry.to_value());
        Value::from(entries.collect::<Vec<_>>()).to_json()
    }
}

impl Entry {
    fn to_value(&self) -> Value {
        let options = self.options.iter().map(|option| {
            let mut table = Table::new();
            table.put("key", option.key.as_str());
            table.put("default", option.default.as_str());
            table.put("meaning", option.meaning.as_str());
            Value::Table(table)
        });
        let mut table = Table::new();
        table.put("name", self.name.as_str());
        table.put("summary", self.summary.as_str());
        table.put("source", self.source.as_str());
        table.put("options", options.collect::<Vec<_>>());
        Value::Table(table)
    }
}

fn entry(name: &str, summary: &str, source: &str, options: Vec<OptionEntry>) -> Entry {
    Entry { name: name.into(), summary: summary.into(), source: source.into(), options }
}

fn option(section: &str, asked: &Asked) -> OptionEntry {
    let default = asked.default.as_ref().map_or_else(|| "required".into(), Value::to_label);
    OptionEntry { key: format!("{section}.{}", asked.key), default, meaning: asked.meaning.into() }
}

fn options(section: &str, asked: &[Asked]) -> Vec<OptionEntry> {
    asked.iter().map(|asked| option(section, asked)).collect()
}

fn schemes() -> Vec<Entry> {
    let entries = SCHEMES.iter().map(|info| {
        let own = options("balance", &balance::keys(info));
        entry(&info.spelling(), info.summary, info.source, own)
    });
    entries.collect()
}

fn transports() -> Vec<Entry> {
    let context = transport::Context { bdp: 1, round_trip: Time::ZERO, line: Rate::gbps(100) };
    let congestion = sending::CONGESTION.iter().map(|choice| {
        let own = options("transport", &keys_of("transport", choice, &context));
        entry(choice.name, choice.summary, choice.source, own)
    });
    let (name, summary, source) = transport::NATURAL;
    let common = options("transport", &transport::recovery_keys(None));
    let natural = entry(name, summary, source, common);
    let recoveries = RECOVERIES.iter().map(|info| {
        let own = options("transport", &transport::recovery_keys(Some(info)));
        entry(info.name, info.summary, info.source, own)
    });
    congestion.chain([natural]).chain(recoveries).collect()
}

fn workloads() -> Vec<Entry> {
    let patterns = PATTERNS.iter().map(|info| {
        let all = COMMON_OPTIONS.iter().chain(info.options).map(|option| OptionEntry {
            key: format!("workload.{}", option.key),
            default: option.default.into(),
            meaning: option.meaning.into(),
        });
        entry(info.name, info.summary, info.source, all.collect())
    });
    let file = OptionEntry {
        key: "workload.file".into(),
        default: "required".into(),
        meaning: "path of the file, relative to the experiment's folder".into(),
    };
    let files = [
        entry("*.cm", "a connection matrix, triggers included", "htsim", vec![file.clone()]),
        entry("*.csv", "a table of flows: src, dst, size, start, id, after", "Weft", vec![file]),
    ];
    patterns.chain(files).collect()
}

fn topologies() -> Vec<Entry> {
    let boxes = options("fabric", &fabric::box_keys());
    let entries = fabric::TOPOLOGIES.iter().map(|choice| {
        let mut own = options("fabric", &keys_of("fabric", choice, &()));
        own.extend(boxes.iter().cloned());
        entry(choice.name, choice.summary, choice.source, own)
    });
    let file = OptionEntry {
        key: "fabric.file".into(),
        default: "required".into(),
        meaning: "path of the file, relative to the experiment's folder; instead of topology"
            .into(),
    };
    let own: Vec<_> = [file].into_iter().chain(boxes.iter().cloned()).collect();
    let files = [
        entry("*.topo", "radices and rates of two or three tiers", "htsim", own.clone()),
        entry("*.txt", "every link on a line", "ASTRA-sim's ns-3 backend", own),
    ];
    entries.chain(files).collect()
}
