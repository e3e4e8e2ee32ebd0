//! What there is to choose from, for `weft list`: collected from the decoders and the
//! registries themselves, so that it cannot say anything else than they do.

use crate::presets;
use crate::reader::{Asked, keys_of};
use crate::section::{
    background, balance, fabric, failures, probe, run, sending, stragglers, topology, transport,
    workload,
};
use crate::value::Value;
use crate::{expand, experiment, quick, sweep};
use weft_balance::scheme::platform::{Platform, SourcePorts};
use weft_balance::scheme::{SCHEMES, SchemeInfo};
use weft_config::{Entry, OptionEntry};
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
    /// Keys that go together.
    Presets,
    /// The sections of an experiment, with the keys that no other list has.
    Sections,
}

impl Catalogue {
    /// All lists by name.
    pub const NAMES: [(&'static str, Catalogue); 6] = [
        ("schemes", Catalogue::Schemes),
        ("transports", Catalogue::Transports),
        ("workloads", Catalogue::Workloads),
        ("topologies", Catalogue::Topologies),
        ("presets", Catalogue::Presets),
        ("sections", Catalogue::Sections),
    ];

    /// The list.
    pub fn entries(self) -> Vec<Entry> {
        match self {
            Catalogue::Schemes => schemes(),
            Catalogue::Transports => transports(),
            Catalogue::Workloads => workloads(),
            Catalogue::Topologies => topologies(),
            Catalogue::Presets => presets(),
            Catalogue::Sections => sections(),
        }
    }

    /// The list in JSON: `[{key, name, summary, source, options}]`, where an option is
    /// `{key, default, words, kind, meaning}`; schemes have `runs_on`, `source_ports` and
    /// `switch_features` as well.
    pub fn to_json(self) -> String {
        Entry::list_to_json(&self.entries())
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

/// Keys of sections that stand for each other: one of them has to be given.
const ALTERNATIVES: [(&str, &[&str]); 3] = [
    ("fabric", &["topology", "file"]),
    ("workload", &["pattern", "collective", "trace", "model", "file", "jobs"]),
    ("failures.NAME", &["tier", "links", "switches", "planes"]),
];

/// What lists say that a key is unless given.
fn default_of(section: &str, asked: &Asked) -> String {
    let is_it = |keys: &[&str]| keys.contains(&&*asked.key);
    if let Some((_, keys)) = ALTERNATIVES.iter().find(|(of, keys)| *of == section && is_it(keys)) {
        return format!("required: one of {}", keys.join(", "));
    }
    match &asked.default {
        None => "required".into(),
        Some(Value::Table(_)) => "empty".into(),
        Some(default) => default.to_label(),
    }
}

fn option(section: &str, asked: &Asked) -> OptionEntry {
    OptionEntry {
        key: format!("{section}.{}", asked.key),
        default: default_of(section, asked),
        words: asked.words.clone(),
        kind: asked.kind.clone(),
        meaning: asked.meaning.into(),
    }
}

fn options(section: &str, asked: &[Asked]) -> Vec<OptionEntry> {
    asked.iter().map(|asked| option(section, asked)).collect()
}

/// What switches on sale can be asked to do for a scheme, by what it says that they must do.
fn switch_features(info: &SchemeInfo) -> Vec<&'static str> {
    let asks = |words: &[&str]| words.iter().any(|word| info.switches.contains(word));
    let adaptive = ["dynamic load balancing", "queue lengths", "flowlet table"];
    let wanted = [
        (info.wants_reports, "trimming"),
        (asks(&adaptive), "adaptive-routing"),
        (asks(&["hash the queue pair"]), "queue-pair-hashing"),
    ];
    wanted.into_iter().filter_map(|(wants, what)| wants.then_some(what)).collect()
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
            switch_features: switch_features(info),
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
        name: one.name,
        summary: one.summary,
        source: one.source.into(),
        options: options("workload", &one.asked),
        ..Entry::default()
    });
    let own = options(stragglers::NAME, &stragglers::keys());
    let late = entry("section", "[stragglers]", stragglers::SUMMARY, stragglers::SOURCE, own);
    let own = options(background::NAME, &background::keys());
    let others = entry("section", "[background]", background::SUMMARY, background::SOURCE, own);
    entries.chain([late, others]).collect()
}

fn presets() -> Vec<Entry> {
    let option = |one: &presets::Setting| OptionEntry {
        key: one.key.into(),
        default: one.value.into(),
        words: Vec::new(),
        kind: String::new(),
        meaning: one.meaning.into(),
    };
    let entries = presets::PRESETS.iter().map(|one| {
        let own = one.settings.iter().map(option).collect();
        entry(presets::KEY, one.name, one.summary, one.source, own)
    });
    entries.collect()
}

/// All sections, with those of their keys that stand in no other list.
fn sections() -> Vec<Entry> {
    let others = [schemes(), transports(), workloads(), topologies()].concat();
    let is_elsewhere =
        |key: &str| others.iter().flat_map(|one| &one.options).any(|option| option.key == key);
    let read = |name: &str, asked: &[Asked]| {
        let mut own = options(name, asked);
        own.retain(|option| !is_elsewhere(&option.key));
        let summary = experiment::meaning_of(name);
        entry("section", &format!("[{name}]"), summary, "Weft", own)
    };
    let said = |name: &str, keys: &[SaidKey]| {
        let own = keys.iter().map(|one| one.entry(name)).collect();
        let shown =
            if name.is_empty() { "above all sections".to_owned() } else { format!("[{name}]") };
        entry("section", &shown, experiment::meaning_of(name), "Weft", own)
    };
    let mut all = vec![
        said("", experiment::ABOVE),
        read("fabric", &fabric::section_keys()),
        read("workload", &workload::section_keys()),
        read("balance", &balance::section_keys()),
        read("transport", &transport::section_keys()),
        read("failures.NAME", &failures::keys()),
    ];
    all.extend(failures::KINDS.iter().map(|kind| {
        let own = options("failures.NAME", &keys_of("failures.NAME", kind, &()));
        entry("failures.NAME.kind", kind.name, kind.summary, kind.source, own)
    }));
    all.extend([
        read("probe", &probe::keys()),
        read("run", &run::keys()),
        said("sweep", sweep::KEYS),
        said("quick", quick::KEYS),
        said("report", expand::REPORT),
    ]);
    all
}

/// A key that is read without a [`crate::reader::Reader`]: what lists say of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SaidKey {
    pub(crate) key: &'static str,
    pub(crate) default: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) meaning: &'static str,
}

impl SaidKey {
    fn entry(&self, section: &str) -> OptionEntry {
        let dot = if section.is_empty() { "" } else { "." };
        OptionEntry {
            key: format!("{section}{dot}{}", self.key),
            default: self.default.into(),
            words: Vec::new(),
            kind: self.kind.into(),
            meaning: self.meaning.into(),
        }
    }
}

fn topologies() -> Vec<Entry> {
    let boxes = options("fabric", &fabric::box_keys());
    let entries = topology::TOPOLOGIES.iter().map(|choice| {
        let mut own = options("fabric", &keys_of("fabric", choice, &()));
        own.extend(boxes.iter().cloned());
        entry("fabric.topology", choice.name, choice.summary, choice.source, own)
    });
    let files = [
        ("*.topo", "radices and rates of two or three tiers", "htsim"),
        ("*.txt", "every link on a line", "ASTRA-sim's ns-3 backend"),
        ("*_H100", "the same with NVSwitches: servers, too", "SimAI's ns-3 backend"),
        ("*.yaml, *.json", "devices, their links, and how many of each", "InfraGraph"),
    ];
    let files = files
        .map(|(name, summary, source)| entry("fabric.file", name, summary, source, boxes.clone()));
    entries.chain(files).collect()
}
