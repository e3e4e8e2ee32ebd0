//! What there is to choose from, for `weft list`: collected from the decoders and the
//! registries themselves, so that it cannot say anything else than they do.

use crate::reader::{Asked, keys_of};
use crate::section::{balance, fabric, sending, transport, workload};
use crate::value::{Table, Value};
use weft_balance::scheme::SCHEMES;
use weft_balance::scheme::platform::{Platform, SourcePorts};
use weft_transport::{CONGESTION_CONTROLS, RECOVERIES};

/// What to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Catalogue {
    /// Load balancers.
    Schemes,
    /// Congestion controls and loss recoveries.
    Transports,
    /// Traffic patterns, collectives with their algorithms, models, formats of files.
    Workloads,
    /// Fabrics.
    Topologies,
}

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
    /// Of a scheme: where it runs ([`Platform::ALL`]).
    pub runs_on: Vec<&'static str>,
    /// Of a scheme: what leaves of real hosts make of source ports, `"hashed"` or `"segments"`.
    pub source_ports: Option<&'static str>,
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

    /// The list in JSON: `[{key, name, summary, source, options}]`, where an option is
    /// `{key, default, words, meaning}`; schemes have `runs_on` and `source_ports` as well.
    pub fn to_json(self) -> String {
        Entry::list_to_json(&self.entries())
    }
}

impl Entry {
    /// A list in JSON, as [`Catalogue::to_json`] has it.
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
        }
        Value::Table(table)
    }
}

fn entry(key: &str, name: &str, summary: &str, source: &str, options: Vec<OptionEntry>) -> Entry {
    Entry {
        key: key.into(),
        name: name.into(),
        summary: summary.into(),
        source: source.into(),
        options,
        ..Entry::default()
    }
}

fn option(section: &str, asked: &Asked) -> OptionEntry {
    let default = asked.default.as_ref().map_or_else(|| "required".into(), Value::to_label);
    OptionEntry {
        key: format!("{section}.{}", asked.key),
        default,
        words: asked.words.clone(),
        meaning: asked.meaning.into(),
    }
}

fn options(section: &str, asked: &[Asked]) -> Vec<OptionEntry> {
    asked.iter().map(|asked| option(section, asked)).collect()
}

fn schemes() -> Vec<Entry> {
    let entries = SCHEMES.iter().map(|info| {
        let own = options("balance", &balance::keys(info));
        let here = Platform::ALL.iter().filter(|(_, place)| info.needs_beyond(*place).is_none());
        Entry {
            runs_on: here.map(|(name, _)| *name).collect(),
            source_ports: Some(match info.source_ports() {
                SourcePorts::Hashed => "hashed",
                SourcePorts::Segments => "segments",
            }),
            ..entry("balance.scheme", &info.spelling(), info.summary, info.source, own)
        }
    });
    entries.collect()
}

fn transports() -> Vec<Entry> {
    let congestion = CONGESTION_CONTROLS.iter().map(|info| {
        let own = options("transport", &sending::keys(info));
        entry("transport.congestion", info.name, info.summary, info.source, own)
    });
    let recovery = |name: &str, summary: &str, source: &str, info| {
        let own = options("transport", &transport::recovery_keys(info));
        entry("transport.recovery", name, summary, source, own)
    };
    let (name, summary, source) = transport::NATURAL;
    let natural = recovery(name, summary, source, None);
    let recoveries =
        RECOVERIES.iter().map(|info| recovery(info.name, info.summary, info.source, Some(info)));
    congestion.chain([natural]).chain(recoveries).collect()
}

fn workloads() -> Vec<Entry> {
    let entries = workload::listed().into_iter().map(|one| Entry {
        key: format!("workload.{}", one.key),
        name: one.name.into(),
        summary: one.summary,
        source: one.source.into(),
        options: options("workload", &one.asked),
        ..Entry::default()
    });
    entries.collect()
}

fn topologies() -> Vec<Entry> {
    let boxes = options("fabric", &fabric::box_keys());
    let entries = fabric::TOPOLOGIES.iter().map(|choice| {
        let mut own = options("fabric", &keys_of("fabric", choice, &()));
        own.extend(boxes.iter().cloned());
        entry("fabric.topology", choice.name, choice.summary, choice.source, own)
    });
    let files = [
        ("*.topo", "radices and rates of two or three tiers", "htsim"),
        ("*.txt", "every link on a line", "ASTRA-sim's ns-3 backend"),
    ];
    let files = files
        .map(|(name, summary, source)| entry("fabric.file", name, summary, source, boxes.clone()));
    entries.chain(files).collect()
}
