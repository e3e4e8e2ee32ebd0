//! `--set key=value` and the short forms of the command line, as tables.

use crate::kind::{Kind, OneOf};
use crate::parse::{parse_bare_for, parse_path};
use crate::reader::unknown_key;
use crate::section::{fabric, topology_file, workload};
use crate::sweep;
use crate::value::{Item, Table, Value};
use std::path::Path;
use weft_config::other_names;
use weft_config::{ExperimentError, Origin};

/// What is read of the text of an experiment, before anything is written over it.
const READ_BEFORE: [&str; 2] = ["extends", "quick"];

/// Writes `overrides` (dotted key, value in TOML or a bare word) over `table`. One that names
/// a swept key ends that key's sweep; a list replaces the swept values, and tables among those may
/// be given by name. Returns the keys whose sweep ended.
///
/// # Errors
/// If a key is not a dotted key, or leads through something that is not a table; if a swept table is
/// named that is not there.
pub fn apply(
    table: &mut Table,
    overrides: &[(String, String)],
) -> Result<Vec<String>, ExperimentError> {
    let mut ended = Vec::new();
    for (key, text) in overrides {
        let last = key.rsplit('.').next().unwrap_or(key);
        let item = Item::new(parse_bare_for(last, text)).at(Origin::Set);
        ended.extend(change(table, key, item)?);
    }
    Ok(ended)
}

/// Writes one value over `table` as [`apply`] does; returns the key if its sweep ended.
pub(crate) fn change(
    table: &mut Table,
    key: &str,
    item: Item,
) -> Result<Option<String>, ExperimentError> {
    let key = other_names::name_of(key);
    if let Some(key) = key.strip_prefix("sweep.").filter(|key| !sweep::is_own(key)) {
        // Files have the whole key in quotes.
        let quoted = parse_path(key).filter(|path| path.len() == 1).map(|path| path[0].clone());
        let key = quoted.as_deref().unwrap_or(key);
        return sweep_over(table, other_names::name_of(key), item).map(|()| None);
    }
    let path = parse_path(key).ok_or_else(|| {
        let what = "not a dotted key; write --set balance.scheme=reps";
        ExperimentError::new(key, item.origin, what)
    })?;
    if READ_BEFORE.contains(&&*path[0]) {
        let what = "is read before --set and [quick]; write it into the experiment itself";
        return Err(ExperimentError::new(key, item.origin, what));
    }
    let mut ended = None;
    if let Some(sweep) = swept(table, key) {
        let values = named(sweep, key, &item)?;
        if matches!(values.value, Value::List(_)) {
            sweep.set(key, values);
            return Ok(None);
        }
        sweep.remove(key);
        ended = Some(key.to_owned());
    }
    set(table, &path, item)?;
    Ok(ended)
}

/// Sweeps `key`, which may be swept already, over the values of `item`.
fn sweep_over(table: &mut Table, key: &str, item: Item) -> Result<(), ExperimentError> {
    if table.get("sweep").is_none() {
        table.put("sweep", Table::new());
    }
    let Some(Item { value: Value::Table(sweep), .. }) = table.get_mut("sweep") else {
        return Ok(()); // The reader of sweeps says what is wrong.
    };
    let values = named(sweep, key, &item)?;
    // `[sweep.workload] size` is the same key.
    if let Some(path) = parse_path(key).filter(|path| path.len() > 1) {
        sweep.remove_path(&path);
    }
    sweep.set(key, values);
    Ok(())
}

/// `item` with the names of tables that `sweep` lists under `key` replaced by those tables; one
/// name alone becomes a list, so that the key stays swept.
///
/// # Errors
/// If there is no table of a name, and `key` takes nothing but tables.
fn named(sweep: &Table, key: &str, item: &Item) -> Result<Item, ExperimentError> {
    let tables = match sweep.get(key).map(|item| &item.value) {
        Some(Value::List(values)) => &values[..],
        _ => &[],
    };
    fn name_of(value: &Item) -> Option<&Value> {
        let Value::Table(table) = &value.value else { return None };
        table.get("name").map(|name| &name.value)
    }
    // A scheme has a name of its own.
    let is_by_name = key != sweep::SCHEME && tables.iter().all(|table| name_of(table).is_some());
    let table_of = |name: &Item| {
        let table = tables.iter().find(|table| name_of(table) == Some(&name.value)).cloned();
        let is_name = is_by_name && matches!(name.value, Value::Text(_));
        if table.is_some() || !is_name {
            return Ok(table);
        }
        let names: Vec<&str> =
            tables.iter().filter_map(|table| name_of(table)?.as_text()).collect();
        match OneOf(&names).read(name) {
            Err(what) if !names.is_empty() => Err(ExperimentError::new(key, item.origin, what)),
            _ => Ok(None),
        }
    };
    let value = match &item.value {
        Value::List(names) => {
            let value = |name| Ok(table_of(name)?.unwrap_or_else(|| name.clone()));
            Value::List(names.iter().map(value).collect::<Result<_, _>>()?)
        }
        other => match table_of(item)? {
            Some(table) => Value::List(vec![table]),
            None => other.clone(),
        },
    };
    Ok(Item { value, origin: item.origin })
}

/// The sweep, if `key` is in it.
fn swept<'a>(table: &'a mut Table, key: &str) -> Option<&'a mut Table> {
    match table.get_mut("sweep").map(|item| &mut item.value) {
        Some(Value::Table(sweep)) if sweep.get(key).is_some() => Some(sweep),
        _ => None,
    }
}

/// Sets the value at `path`.
///
/// # Errors
/// If the path leads through something that is not a table.
pub fn set(table: &mut Table, path: &[String], item: Item) -> Result<(), ExperimentError> {
    let origin = item.origin;
    table.set_path(path, item).map_err(|depth| {
        let what = "is not a table, so nothing can be set in it; correct the key";
        ExperimentError::new(path[..depth].join("."), origin, what)
    })
}

/// What a short form describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShortKind {
    /// `leaf-spine:leaves=16,spines=16,hosts=16,link=400Gbps,delay=500ns`, or a file: `x.topo`
    Fabric,
    /// `all-to-all:size=16KB`, `all-reduce:algorithm=ring,size=64MB`, `gpt2-small`, or a file:
    /// `matrix.cm`, `flows.csv`, `trace.0.et`
    Workload,
}

impl ShortKind {
    /// The section that it is short for.
    fn section(self) -> &'static str {
        match self {
            ShortKind::Fabric => "fabric",
            ShortKind::Workload => "workload",
        }
    }
    /// The keys that the part before the colon may set, and what each may be.
    fn choosers(self) -> Vec<(&'static str, Vec<&'static str>)> {
        match self {
            ShortKind::Fabric => vec![("topology", fabric::names())],
            ShortKind::Workload => workload::choosers(),
        }
    }
    /// The key that a file goes under, if `name` is one.
    fn file_key(self, name: &str) -> Option<&'static str> {
        match self {
            ShortKind::Fabric => topology_file::is_file(name).then_some(topology_file::KEY),
            ShortKind::Workload => workload::file_key(name),
        }
    }
    /// The keys that may follow `name`, which is what `chooser` chooses.
    fn keys(self, chooser: &str, name: &str) -> Vec<String> {
        match self {
            ShortKind::Fabric => fabric::keys(name),
            ShortKind::Workload => workload::keys(chooser, name),
        }
    }
}

/// The key of `[workload]` that the file at `path` goes under: `trace` or `file`; `None`: it is
/// neither.
pub fn workload_key(path: &str) -> Option<&'static str> {
    workload::file_key(path)
}

/// The table of an experiment that `text` is short for. Of what has the same name (`all-to-all`) the
/// first counts that knows all keys which follow.
///
/// # Errors
/// If the name or a key is unknown, or a part is not `key=value`.
pub fn shorthand(kind: ShortKind, text: &str) -> Result<Table, ExperimentError> {
    let text = text.trim();
    let mut table = Table::new();
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let name = name.trim();
    let choosers = kind.choosers();
    let mut names: Vec<&str> = Vec::new();
    for name in choosers.iter().flat_map(|(_, names)| names) {
        // Two kinds may have one of the same name.
        if !names.contains(name) {
            names.push(name);
        }
    }
    let chosen = Item::new(name.into());
    let file = kind.file_key(name);
    let parts = || at_commas(rest).into_iter().filter(|part| !part.trim().is_empty());
    let given: Vec<&str> =
        parts().filter_map(|part| Some(part.split_once('=')?.0.trim())).collect();
    let mut able = choosers.iter().filter(|(_, names)| names.contains(&name)).map(|(key, _)| {
        let keys = kind.keys(key, name);
        (*key, given.iter().all(|given| keys.iter().any(|key| key == given)))
    });
    if let Some((_, key)) = (0..).zip(&given).find(|(at, key)| given[..*at].contains(key)) {
        return Err(ExperimentError::new(*key, Origin::Unknown, "is there twice; remove one"));
    }
    let first = able.clone().next();
    let chooser = match able.find(|(_, knows)| *knows).or(first) {
        Some((chooser, _)) => chooser,
        None => match (file, OneOf(&names).read(&chosen)) {
            (Some(key), _) => key,
            (None, _) if Path::new(name).is_dir() => {
                let what = format!("{name} is a directory; name a file in it");
                return Err(ExperimentError::new("", Origin::Unknown, what));
            }
            (None, wrong) => {
                let what = wrong.expect_err("it is none of them");
                return Err(ExperimentError::new(choosers[0].0, Origin::Unknown, what));
            }
        },
    };
    table.set(chooser, chosen);
    let keys = kind.keys(chooser, name);
    for part in parts() {
        read_part(&mut table, kind, &keys, part)?;
    }
    Ok(table)
}

/// The parts between commas, but for those within brackets.
fn at_commas(text: &str) -> Vec<&str> {
    let mut depth = 0i32;
    let between = |sign: char| {
        depth += i32::from(matches!(sign, '[' | '{')) - i32::from(matches!(sign, ']' | '}'));
        sign == ',' && depth <= 0
    };
    text.split(between).collect()
}

/// One `key=value`, where the key may be dotted.
fn read_part(
    table: &mut Table,
    kind: ShortKind,
    keys: &[String],
    part: &str,
) -> Result<(), ExperimentError> {
    let wrong = |key: &str, what| Err(ExperimentError::new(key, Origin::Unknown, what));
    let Some((key, value)) = part.split_once('=') else {
        return wrong(part.trim(), "has no value; write key=value".to_owned());
    };
    let dotted = format!("{}.{}", kind.section(), key.trim());
    let named = other_names::name_of(&dotted).split_once('.').expect("dotted").1;
    let path: Vec<String> = named.split('.').map(str::to_owned).collect();
    if !keys.contains(&path[0]) {
        let is_said = kind == ShortKind::Fabric
            && table.get(topology_file::KEY).is_some()
            && topology_file::said_by_files().any(|said| said == path[0]);
        // What is there under neither name is told by the one that was typed.
        let typed = key.trim();
        return match is_said {
            true => wrong(named, topology_file::SAID.to_owned()),
            false => wrong(typed, unknown_key(typed, keys.iter().map(String::as_str))),
        };
    }
    let last = path.last().expect("it is not empty");
    set(table, &path, Item::new(parse_bare_for(last, value)))
}
