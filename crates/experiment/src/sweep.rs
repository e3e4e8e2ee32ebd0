//! From one experiment to its runs: every combination of the swept values, times the seeds.
//!
//! The combinations come in the order of the file, the last key changing fastest, and the
//! seeds within each. A swept value may be a table, which is merged into the table at its
//! key; the key `variant` merges at the top, so that one value may change several sections, and so does a
//! table among the schemes: a scheme with the transport and the switches that it is made for.

use crate::catalogue::SaidKey;
use crate::kind::{Integer, Kind, OneOf};
use crate::memory::{self, Need};
use crate::overrides::set;
use crate::parse::parse_path;
use crate::value::{Item, Table, Value};
use weft_balance::scheme::SchemeInfo;
use weft_config::{ExperimentError, Origin};

/// A table at the key `variant` changes the experiment as a whole.
const VARIANT: &str = "variant";
/// So does one here.
pub(crate) const SCHEME: &str = "balance.scheme";

/// Its keys.
pub(crate) const KEYS: &[SaidKey] = &[
    SaidKey {
        key: "seeds",
        default: "1",
        kind: "a whole number, 1 or more, or a list of whole numbers",
        meaning: "how many seeds each combination runs with (1, 2, ...), or which",
    },
    SaidKey {
        key: "refused",
        default: "error",
        kind: "\"error\" or \"left-out\"",
        meaning: "what becomes of a combination whose scheme cannot run there",
    },
    SaidKey {
        key: VARIANT,
        default: "none",
        kind: "a list of tables, each with a name",
        meaning: "what varies several sections at once",
    },
    SaidKey {
        key: "KEY",
        default: "one value",
        kind: "a list of values",
        meaning: "any dotted key of the experiment, and the values that it runs with",
    },
];

/// Whether `key` of `[sweep]` is no key of the experiment that varies.
pub(crate) fn is_own(key: &str) -> bool {
    matches!(key, "seeds" | "refused")
}

/// What is varied.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    axes: Vec<Axis>,
    /// The seeds that each combination runs with.
    pub seeds: Vec<u64>,
    /// Combinations whose scheme cannot run there are left out, instead of being a mistake.
    pub leaves_out: bool,
}

/// One key and its values.
#[derive(Clone, Debug)]
struct Axis {
    key: String,
    path: Vec<String>,
    values: Vec<SweptValue>,
}

#[derive(Clone, Debug)]
struct SweptValue {
    label: Value,
    item: Item,
    /// It changes the experiment as a whole.
    whole: bool,
}

/// One combination.
#[derive(Clone, Debug)]
pub struct Combination {
    /// The experiment with the values written in.
    pub table: Table,
    /// What was varied: the key and the value (for a table its name).
    pub swept: Table,
}

impl Combination {
    /// The swept values in words; empty without a sweep.
    pub fn label(&self) -> String {
        let values: Vec<_> = self.swept.iter().map(|(_, item)| item.value.to_label()).collect();
        values.join(", ")
    }
}

impl Sweep {
    /// Reads the table `sweep`.
    ///
    /// # Errors
    /// If a key is not a dotted key, has no list of values, or the seeds are wrong.
    pub fn read(table: &Table) -> Result<Sweep, ExperimentError> {
        let mut sweep = Sweep { axes: Vec::new(), seeds: vec![1], leaves_out: false };
        for (key, item) in table.iter() {
            match key {
                "seeds" => sweep.seeds = read_seeds(item)?,
                "refused" => sweep.leaves_out = read_refused(item)?,
                _ => flatten(key, item, &mut sweep.axes)?,
            }
        }
        Ok(sweep)
    }

    /// Whether `key` is varied.
    pub fn has(&self, key: &str) -> bool {
        self.axes.iter().any(|axis| axis.key == key)
    }
    /// The varied keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> + Clone {
        self.axes.iter().map(|axis| axis.key.as_str())
    }

    /// What listing its runs takes; `seeds`: an option said how many.
    pub(crate) fn needs(&self, seeds: bool) -> Need {
        let all = self.axes.iter().map(|axis| axis.values.len() as u64);
        let runs = all.fold(self.seeds.len() as u64, u64::saturating_mul);
        let longest = self.axes.iter().max_by_key(|axis| axis.values.len());
        let key = match longest {
            Some(axis) if axis.values.len() > self.seeds.len() => format!("sweep.{}", axis.key),
            _ if seeds => "seeds".to_owned(),
            _ => "sweep.seeds".to_owned(),
        };
        Need::of(key, runs, "runs", memory::RUN)
    }

    /// Every combination, written into copies of `base`.
    ///
    /// # Errors
    /// If a key leads through something that is not a table.
    pub fn combinations(&self, base: &Table) -> Result<Vec<Combination>, ExperimentError> {
        let mut all = vec![Combination { table: base.clone(), swept: Table::new() }];
        for axis in &self.axes {
            let mut next = Vec::with_capacity(all.len() * axis.values.len());
            for before in &all {
                for value in &axis.values {
                    let mut after = before.clone();
                    let path = if value.whole { &[][..] } else { &axis.path[..] };
                    set(&mut after.table, path, value.item.clone())?;
                    after.swept.put(&axis.key, value.label.clone());
                    next.push(after);
                }
            }
            all = next;
        }
        Ok(all)
    }
}

/// `"a.b" = [..]` is an axis; `[sweep.a]` with `b = [..]` in it means the same.
fn flatten(key: &str, item: &Item, axes: &mut Vec<Axis>) -> Result<(), ExperimentError> {
    let shown = format!("sweep.{key}");
    let wrong = |what: &str| Err(ExperimentError::new(shown.as_str(), item.origin, what));
    match &item.value {
        Value::Table(table) => {
            for (inner, item) in table.iter() {
                flatten(&format!("{key}.{inner}"), item, axes)?;
            }
            return Ok(());
        }
        Value::List(items) if items.is_empty() => {
            return wrong("has no values; list at least one");
        }
        Value::List(items) => {
            let path = if key == VARIANT { Some(Vec::new()) } else { parse_path(key) };
            let Some(path) = path else {
                return wrong("not a dotted key; write \"balance.scheme\" = [...]");
            };
            if axes.iter().any(|axis| axis.key == key) {
                return wrong("is swept twice; remove one");
            }
            if path.is_empty() && !items.iter().all(|item| matches!(item.value, Value::Table(_))) {
                return wrong("varies whole tables; write { name = \"...\", fabric = {...} }");
            }
            let is_table = |item: &Item| matches!(item.value, Value::Table(_));
            let value =
                |item| swept_value(item, path.is_empty() || key == SCHEME && is_table(item));
            if key == SCHEME
                && let Some(name) = items.iter().find_map(scheme_not_set)
            {
                let set = format!("balance = {{ scheme = \"{name}\" }}");
                return wrong(&format!(
                    "has a table called {name:?} that sets no scheme; add {set}"
                ));
            }
            let values: Vec<SweptValue> = items.iter().map(value).collect();
            for (at, value) in values.iter().enumerate() {
                if values[..at].iter().any(|other| other.label == value.label) {
                    return wrong(&format!("lists {} twice; remove one", value.label.to_label()));
                }
            }
            axes.push(Axis { key: key.to_owned(), path, values });
        }
        other => {
            let example = other.to_json();
            return wrong(&format!("is {}, not a list; write [{example}]", other.kind()));
        }
    }
    Ok(())
}

/// The name of a table that is the name of a scheme, which the table does not set.
fn scheme_not_set(item: &Item) -> Option<&str> {
    let Value::Table(table) = &item.value else { return None };
    let name = table.get("name")?.value.as_text()?;
    let is_set = match table.get("balance").map(|item| &item.value) {
        Some(Value::Table(balance)) => balance.get("scheme").is_some(),
        _ => false,
    };
    (!is_set && SchemeInfo::find(name).is_ok()).then_some(name)
}

/// A table is known by its `name`, or else by its content.
fn swept_value(item: &Item, whole: bool) -> SweptValue {
    let line = match item.origin {
        Origin::Line(line) => Some(line),
        _ => None,
    };
    let mut item = item.clone().at(Origin::Sweep(line));
    let label = match &mut item.value {
        Value::Table(table) => match table.remove("name") {
            Some(name) => name.value,
            None => Value::Text(content_label(table)),
        },
        list @ Value::List(_) => Value::Text(list.to_json()),
        scalar => scalar.clone(),
    };
    SweptValue { label, item, whole }
}

/// `links_per_pair=4 uplink=400Gbps`
fn content_label(table: &Table) -> String {
    let parts = table.iter().map(|(key, item)| format!("{key}={}", item.value.to_label()));
    parts.collect::<Vec<_>>().join(" ")
}

/// More seeds than this are taken for a mistake.
pub(crate) const MOST_SEEDS: u64 = 1_000_000;

fn read_refused(item: &Item) -> Result<bool, ExperimentError> {
    const WORDS: [&str; 2] = ["error", "left-out"];
    let taken = OneOf(&WORDS).read(item);
    taken
        .map(|word| word == 1)
        .map_err(|what| ExperimentError::new("sweep.refused", item.origin, what))
}

fn read_seeds(item: &Item) -> Result<Vec<u64>, ExperimentError> {
    let wrong = |what: String| ExperimentError::new("sweep.seeds", item.origin, what);
    match &item.value {
        Value::List(items) if !items.is_empty() => {
            let mut seeds = Vec::with_capacity(items.len());
            for item in items {
                let seed = Integer::from(0).read(item).map(u64::from).map_err(&wrong)?;
                if seeds.contains(&seed) {
                    return Err(wrong(format!("lists {seed} twice; remove one")));
                }
                seeds.push(seed);
            }
            Ok(seeds)
        }
        Value::Int(_) => {
            let count = Integer { min: 1, max: MOST_SEEDS as u32 }.read(item).map_err(wrong)?;
            Ok((1..=u64::from(count)).collect())
        }
        _ => Err(wrong("is neither a number of seeds nor a list; write seeds = 5".into())),
    }
}
