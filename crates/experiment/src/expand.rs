//! Experiment text to runs: what the command line and Python ask for.

use crate::catalogue::SaidKey;
use crate::control_characters;
use crate::experiment::Resolved;
use crate::extends;
use crate::fidelity;
use crate::overrides;
use crate::parse::{Format, parse};
use crate::presets;
use crate::quick::Quick;
use crate::relative_start::RelativeStarts;
use crate::sweep::{Combination, MOST_SEEDS, Sweep};
use crate::value::{Item, Table, Value, one_line, quoted};
use std::collections::BTreeSet;
use std::path::Path;
use weft_balance::scheme::SchemeInfo;
use weft_config::section::folder_of;
use weft_config::{ExperimentError, Origin};

/// What to expand.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The experiment.
    pub text: &'a str,
    /// How it is written.
    pub format: Format,
    /// Its file, or another name for errors. Workload and topology files are relative to
    /// its folder.
    pub source: &'a str,
    /// Dotted keys and values to write over it.
    pub overrides: &'a [(String, String)],
    /// Run seeds `1..=n`, whatever the file says.
    pub seeds: Option<u64>,
}

/// All runs of an experiment.
#[derive(Clone, Debug)]
pub struct Expansion {
    /// Of the experiment; empty if it has none.
    pub title: String,
    /// Free text for the report.
    pub notes: String,
    /// The swept key for the x axis of plots.
    pub x: Option<String>,
    /// Swept keys that an override or `[quick]` gave a single value.
    pub ended: Vec<String>,
    /// `report`, `best` and `printed` as written, for whoever shows the results.
    pub shown: Table,
    /// One for each combination and seed.
    pub runs: Vec<Run>,
    /// What the user should know, each line once.
    pub warnings: Vec<String>,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The experiment with every default written out.
    pub experiment: Table,
    /// Its seed.
    pub seed: u64,
    /// Names its result ([`Resolved::key`]).
    pub key: String,
    /// The swept keys and values.
    pub swept: Table,
    /// The swept values in words; the scheme without a sweep.
    pub label: String,
}

/// Reads an experiment and lists its runs.
///
/// # Errors
/// The first mistake, with the name of the source.
pub fn expand(request: &Request<'_>) -> Result<Expansion, ExperimentError> {
    expand_unnamed(request, false).map_err(|error| error.in_source(request.source))
}

/// The same with what the experiment's `[quick]` says: one seed, if it says nothing.
///
/// # Errors
/// The first mistake, with the name of the source.
pub fn expand_quick(request: &Request<'_>) -> Result<Expansion, ExperimentError> {
    expand_unnamed(request, true).map_err(|error| error.in_source(request.source))
}

fn expand_unnamed(request: &Request<'_>, quick: bool) -> Result<Expansion, ExperimentError> {
    let folder = folder_of(request.source);
    let mut table = extends::resolve(parse(request.text, request.format)?, &folder)?;
    let shorter = Quick::read(&take_table(&mut table, "quick")?)?;
    let mut ended = if quick { shorter.apply(&mut table)? } else { Vec::new() };
    ended.extend(overrides::apply(&mut table, request.overrides)?);
    control_characters::refuse(&table)?;
    let title = one_line(&take_text(&mut table, "title")?);
    let notes = take_text(&mut table, "notes")?;
    let report = take_table(&mut table, "report")?;
    let shown = take_shown(&mut table, &report);
    let mut sweep = Sweep::read(&take_table(&mut table, "sweep")?)?;
    match request.seeds {
        None if quick => shorter.shorten(&mut sweep.seeds),
        None => {}
        Some(0) => {
            return Err(ExperimentError::new("seeds", Origin::Set, "0 is none; use 1 or more"));
        }
        Some(seeds) if seeds > MOST_SEEDS => {
            let what = format!("{seeds} are more than {MOST_SEEDS}; use fewer");
            return Err(ExperimentError::new("seeds", Origin::Set, what));
        }
        Some(seeds) => sweep.seeds = (1..=seeds).collect(),
    }
    let x = read_report(&report, &sweep, &ended)?;
    let near = sweep.needs(request.seeds.is_some()).check()?;
    let (runs, warnings) = (Vec::new(), near.into_iter().collect());
    let mut expansion = Expansion { title, notes, x, ended, shown, runs, warnings };
    let (mut warned, mut traffic) = (BTreeSet::new(), BTreeSet::new());
    let mut relative = RelativeStarts::new(&folder, sweep.seeds[0]);
    for mut combination in sweep.combinations(&table)? {
        presets::apply(&mut combination.table)?;
        let placed = relative.resolve(&mut combination.table);
        let resolved = match placed.and_then(|()| Resolved::read(&combination.table, &folder)) {
            Err(error)
                if is_of_a_fidelity_among_others(&error, &combination)
                    || sweep.leaves_out && is_of_a_scheme(&error, &combination) =>
            {
                let what = format!("left out: {error}");
                if warned.insert(what.clone()) {
                    expansion.warnings.push(what);
                }
                continue;
            }
            other => other?,
        };
        let mut near = Vec::new();
        // Generating messages takes a while: each kind once, under one seed.
        if traffic.insert(resolved.traffic_key()) {
            let checked = resolved.traffic(sweep.seeds[0]);
            let checked = checked.map_err(|error| error.located_in(&combination.table))?;
            near = checked.stays(&resolved.fabric).into_iter().collect();
            near.extend(checked.warnings);
        }
        for warning in resolved.warnings.iter().chain(&near) {
            if warned.insert(warning.clone()) {
                expansion.warnings.push(warning.clone());
            }
        }
        push_runs(&mut expansion.runs, &resolved, &combination, &sweep.seeds);
    }
    if expansion.runs.is_empty() {
        let what = "leaves no run: no scheme can run in any combination";
        return Err(ExperimentError::new("sweep.refused", Origin::Unknown, what.to_owned()));
    }
    Ok(expansion)
}

/// Whether a scheme that there is cannot run there.
fn is_of_a_scheme(error: &ExperimentError, combination: &Combination) -> bool {
    let Some(Value::Table(balance)) = combination.table.get("balance").map(|item| &item.value)
    else {
        return false;
    };
    let is_known =
        |item: &Item| matches!(&item.value, Value::Text(name) if SchemeInfo::find(name).is_ok());
    error.key() == "balance.scheme" && balance.get("scheme").is_some_and(is_known)
}

/// Whether one of several fidelities cannot tell: the others may.
fn is_of_a_fidelity_among_others(error: &ExperimentError, combination: &Combination) -> bool {
    let known = |item: &Item| matches!(&item.value, Value::Text(word) if fidelity::is_known(word));
    error.key() == fidelity::KEY && combination.swept.get(fidelity::KEY).is_some_and(known)
}

fn push_runs(runs: &mut Vec<Run>, resolved: &Resolved, combination: &Combination, seeds: &[u64]) {
    let label = Some(combination.label()).filter(|label| !label.is_empty());
    let label = label.unwrap_or_else(|| resolved.balance.scheme.name().to_owned());
    for &seed in seeds {
        runs.push(Run {
            experiment: resolved.table().clone(),
            seed,
            key: resolved.key(seed),
            swept: combination.swept.clone(),
            label: label.clone(),
        });
    }
}

fn take_text(table: &mut Table, key: &str) -> Result<String, ExperimentError> {
    match table.remove(key) {
        None => Ok(String::new()),
        Some(Item { value: Value::Text(text), .. }) => Ok(text),
        Some(Item { value, origin }) => {
            let what = format!("is {}, not text; put it in quotes", value.kind());
            Err(ExperimentError::new(key, origin, what))
        }
    }
}

fn take_table(table: &mut Table, key: &str) -> Result<Table, ExperimentError> {
    match table.remove(key) {
        None => Ok(Table::new()),
        Some(Item { value: Value::Table(inner), .. }) => Ok(inner),
        Some(Item { value, origin }) => {
            let what = format!("is {}, not a table; write [{key}]", value.kind());
            Err(ExperimentError::new(key, origin, what))
        }
    }
}

/// What says how results are shown, and with which printed ones they are compared.
fn take_shown(table: &mut Table, report: &Table) -> Table {
    let mut shown = Table::new();
    shown.put("report", report.clone());
    for key in ["best", "printed"] {
        if let Some(item) = table.remove(key) {
            shown.set(key, item);
        }
    }
    shown
}

/// All keys of `[report]`; those but `x` are for whoever shows the results.
pub(crate) const REPORT: &[SaidKey] = &[
    SaidKey {
        key: "x",
        default: "the longest numeric sweep",
        kind: "a swept key",
        meaning: "what is on the x axis",
    },
    SaidKey {
        key: "series",
        default: "balance.scheme",
        kind: "a swept key, or a list of them",
        meaning: "what is compared",
    },
    SaidKey {
        key: "columns",
        default: "the usual ones",
        kind: "a list of result columns",
        meaning: "what has a column of the table and a figure",
    },
    SaidKey {
        key: "figures",
        default: "all that there are",
        kind: "a list of fct, collectives, queues, goodput, fabric, links",
        meaning: "figures beyond columns",
    },
    SaidKey {
        key: "overview",
        default: "none",
        kind: "a list of result columns",
        meaning: "one table with a line for each scheme and a column for each case, and the largest value \
                  of these",
    },
];

/// `[report]`: which swept key is the x axis; none if its sweep was `ended` by a `--set`.
fn read_report(
    report: &Table,
    sweep: &Sweep,
    ended: &[String],
) -> Result<Option<String>, ExperimentError> {
    for (key, item) in report.iter() {
        let mut known = REPORT.iter().map(|one| one.key);
        if !known.any(|known| known == key) {
            let what = crate::reader::unknown_key(key, REPORT.iter().map(|one| one.key));
            return Err(ExperimentError::new(format!("report.{key}"), item.origin, what));
        }
    }
    let Some(item) = report.get("x") else { return Ok(None) };
    let wrong = |what: String| ExperimentError::new("report.x", item.origin, what);
    match &item.value {
        Value::Text(key) if sweep.has(key) => Ok(Some(key.clone())),
        Value::Text(key) if ended.contains(key) => Ok(None),
        other => {
            let keys: Vec<_> = sweep.keys().collect();
            let mend = match keys.is_empty() {
                true => "nothing is; remove it".to_owned(),
                false => format!("use one of {}", keys.join(", ")),
            };
            Err(wrong(format!("{} is not swept; {mend}", other.to_json())))
        }
    }
}

impl Expansion {
    /// As JSON: `title, notes, x, ended, shown (report, best, printed), runs (experiment, seed,
    /// key, swept, label), warnings`.
    pub fn to_json(&self) -> String {
        let runs: Vec<_> = self.runs.iter().map(Run::to_json).collect();
        let warnings: Vec<_> = self.warnings.iter().map(|line| quoted(line)).collect();
        let ended: Vec<_> = self.ended.iter().map(|key| quoted(key)).collect();
        let x = self.x.as_deref().map_or_else(|| "null".to_owned(), quoted);
        format!(
            r#"{{"title":{},"notes":{},"x":{x},"ended":[{}],"shown":{},"runs":[{}],"warnings":[{}]}}"#,
            quoted(&self.title),
            quoted(&self.notes),
            ended.join(","),
            Value::Table(self.shown.clone()).to_json(),
            runs.join(","),
            warnings.join(",")
        )
    }
}

impl Run {
    fn to_json(&self) -> String {
        let table = |table: &Table| Value::Table(table.clone()).to_json();
        format!(
            r#"{{"experiment":{},"seed":{},"key":{},"swept":{},"label":{}}}"#,
            table(&self.experiment),
            self.seed,
            quoted(&self.key),
            table(&self.swept),
            quoted(&self.label)
        )
    }
}

/// The experiment of one run, as [`Expansion::to_json`] writes it.
///
/// # Errors
/// The first mistake.
pub fn read_run(json: &str) -> Result<Resolved, ExperimentError> {
    parse(json, Format::Json)
        .and_then(|table| Resolved::read(&table, Path::new("")))
        .map_err(|error| error.in_source("experiment"))
}
