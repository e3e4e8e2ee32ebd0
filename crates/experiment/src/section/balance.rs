//! `[balance]`: the scheme and its options.

use crate::error::ExperimentError;
use crate::kind::{Flag, Kind, OneOf, Span, Whole};
use crate::reader::Reader;
use crate::value::{Item, Table, Value};
use weft_balance::scheme::{BalanceConfig, EtherealConfig, SCHEMES, SchemeConfig, SchemeInfo};
use weft_fabric::Fabric;
use weft_units::Time;

type Result<T> = std::result::Result<T, ExperimentError>;

/// Reads `[balance]`. `bdp`: bytes that a flow may send before feedback can be expected.
pub(crate) fn read(r: &mut Reader<'_>, fabric: &Fabric, bdp: u64) -> Result<BalanceConfig> {
    let names: Vec<&str> = SCHEMES.iter().map(|info| info.name).collect();
    let taken = r.get("scheme", OneOf(&names), None, "the load balancer")?;
    let info = &SCHEMES[taken];
    for other in SCHEMES.iter().filter(|other| other.name != info.name) {
        let keys = other.options.iter().map(|(key, _, _)| (*key).to_owned());
        r.others("scheme", info.name, other.name, keys);
    }
    let config = read_chosen(r, info, bdp)?;
    if config.scheme.needs_path_ids() && !r.is_rehearsal() {
        fabric.check_path_ids().map_err(|error| {
            let mend = "change the fabric or the scheme";
            r.wrong("scheme", format!("{} cannot run here: {error}; {mend}", info.name))
        })?;
    }
    Ok(config)
}

/// The scheme's own keys, and those that any scheme may have.
fn read_chosen(r: &mut Reader<'_>, info: &SchemeInfo, bdp: u64) -> Result<BalanceConfig> {
    let scheme = read_scheme(r, info)?;
    scheme.validate().map_err(|what| match what.split_once(" = ") {
        Some((key, rest)) => r.wrong(key, rest.replacen(": ", " is out of range; ", 1)),
        None => r.wrong("scheme", what),
    })?;
    // Ethereal as published randomises start times and positions in the NIC; the baselines
    // are published without.
    let randomised = matches!(scheme, SchemeConfig::Ethereal(_));
    let jitter = if randomised { Time::ns(50) } else { Time::ZERO };
    let start_jitter = r.get(
        "start_jitter",
        Span::ANY,
        Some(jitter),
        "every flow starts after a random delay below this",
    )?;
    let random_position = r.get(
        "random_position",
        Flag,
        Some(randomised),
        "a flow enters its NIC's list of queue pairs at a random position",
    )?;
    Ok(BalanceConfig { scheme, start_jitter, random_position, first_window: bdp })
}

/// The keys of `[balance]` beside `scheme`.
pub(crate) fn keys(info: &SchemeInfo) -> Vec<crate::reader::Asked> {
    let empty = Table::new();
    let mut r = Reader::rehearse("balance", &empty);
    let _ = read_chosen(&mut r, info, 1);
    r.asked().to_vec()
}

fn read_scheme(r: &mut Reader<'_>, info: &SchemeInfo) -> Result<SchemeConfig> {
    let entropies = |r: &mut Reader<'_>| option(r, info, "entropies", Whole::from(1));
    Ok(match info.name {
        "ecmp" => SchemeConfig::Ecmp,
        "spray" => SchemeConfig::Spray,
        "spray-counter" => SchemeConfig::SprayCounter { entropies: entropies(r)? },
        "reps" => SchemeConfig::Reps { entropies: entropies(r)? },
        "reps-sticky" => SchemeConfig::RepsSticky { entropies: entropies(r)? },
        "ethereal" => SchemeConfig::Ethereal(EtherealConfig {
            batch: option(r, info, "batch", Span::ANY)?,
            bad_for: option(r, info, "bad_for", Span::ANY)?,
        }),
        other => return Err(r.wrong("scheme", format!("{other} cannot be run; use another"))),
    })
}

/// An option with the default and meaning that the registry gives.
fn option<K: Kind>(
    r: &mut Reader<'_>,
    info: &SchemeInfo,
    key: &'static str,
    kind: K,
) -> Result<K::Out> {
    let (_, default, meaning) =
        info.options.iter().find(|(known, _, _)| *known == key).ok_or_else(|| {
            r.wrong(key, format!("{} does not list it; this is an error of Weft", info.name))
        })?;
    let default = match crate::parse::parse_bare(default) {
        Value::Table(_) => None,
        value => kind.read(&Item::new(value)).ok(),
    };
    r.get(key, kind, default, meaning)
}
