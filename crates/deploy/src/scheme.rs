//! The scheme on a host, with the defaults that differ from a simulator's.

use crate::DeployError;
use crate::source::{PlannedScheme, Source};
use crate::variables::Given;
use weft_balance::enforce::Enforce;
use weft_balance::scheme::platform::Platform;
use weft_balance::scheme::{
    BalanceConfig, Ecmp, Ethereal, Hpn, Scheme, SchemeConfig, SchemeInfo, Twill,
};
use weft_units::Time;

/// An option whose default is another on real hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Different {
    /// The option.
    pub key: &'static str,
    /// Its default on hosts.
    pub default: &'static str,
    /// Why it differs.
    pub reason: &'static str,
}

/// All of them, for every scheme that has such an option.
pub const DIFFERENT: &[Different] = &[
    Different {
        key: "enforce",
        default: "segments",
        reason: "switches as they are, which weft switch-config has told segments of source ports",
    },
    Different {
        key: "batch",
        default: "20us",
        reason: "a process posts the sends of a step one after the other, about a microsecond \
                 each; the simulator posts them at one instant, and 100ns is for that",
    },
    Different {
        key: "unit",
        default: "packet",
        reason: "a subflow costs a frame of its own; parts of a few bytes are not worth one",
    },
    Different {
        key: "bad_for",
        default: "30s",
        reason: "a cable that is dead stays so for minutes, and each new try costs a path \
                 time-out (1s); 100ms is for failures within a run of milliseconds",
    },
    Different { key: "dead_for", default: "30s", reason: "as bad_for" },
    Different {
        key: OF_WATCHED,
        default: "BDP / 32, at least 32KiB",
        reason: "of twill: at 10Gbps 1/32 of a bandwidth-delay product (of 100us) is 4 KB, and each \
                 chunk costs a frame, a write and an answer",
    },
    Different {
        key: OF_PORT_POLICY,
        default: "uplinks of the leaf",
        reason: "of dnlb: the fewest that are in balance whichever NICs are busy (equation 4 of \
                 CTCCL (2025), and what it leaves out)",
    },
];

/// Other schemes have options of these names too.
const OF_PORT_POLICY: &str = "queue_pairs";
const OF_WATCHED: &str = "chunk";

/// The least payload of a chunk, in bytes.
const LEAST_CHUNK: u64 = 32 << 10;

/// How long a round trip over an idle network takes, for the bandwidth-delay product that chunks and ParaLet's
/// flowlets are measured in: some switches and two kernels.
const ROUND_TRIP_S: f64 = 100e-6;

/// The scheme where no file says which paths there are.
pub(crate) const UNPLANNED: &str = Ecmp::INFO.name;

/// What hosts of `source` balance with; `uplinks` are those of the leaf, `line_bps` is the NIC's rate.
/// `found`: ports come from a table.
pub(crate) fn read(
    given: &Given,
    source: &Source,
    uplinks: u32,
    line_bps: u64,
    found: bool,
) -> Result<BalanceConfig, DeployError> {
    let planned = source.plan.as_ref();
    let name = given.scheme.as_deref().or(planned.map(|plan| plan.scheme.as_str()));
    let name = name.unwrap_or(Ethereal::INFO.name);
    let from = |key: &str| match given.scheme {
        Some(_) if key == "scheme" => "WEFT_SCHEME".to_owned(),
        _ if given.options.iter().any(|(known, _)| known == key) => "WEFT_OPTIONS".to_owned(),
        _ => source.file.clone(),
    };
    let info = SchemeInfo::find(name)
        .map_err(|error| DeployError(format!("{}: {}", from("scheme"), error.what)))?;
    if let Some(what) = info.needs_beyond(Platform::Sockets) {
        return Err(DeployError(format!(
            "{}: {name} needs what hosts and switches as they are do not do ({what}); use one of {}",
            from("scheme"),
            Platform::Sockets.schemes()
        )));
    }
    let bdp = (line_bps as f64 / 8.0 * ROUND_TRIP_S) as u64;
    let mut options = usual(info, name, uplinks, bdp);
    if found && options.iter().any(|(key, _)| key == Enforce::OPTION.key) {
        set(&mut options, Enforce::OPTION.key, Enforce::Discovered.name());
    }
    let planned = planned.filter(|plan| plan.scheme == name);
    for (key, text) in planned.into_iter().flat_map(|plan| chosen(plan, info)) {
        set(&mut options, key, text);
    }
    for (key, text) in &given.options {
        set(&mut options, key, text);
    }
    let pairs: Vec<(&str, &str)> = options.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let scheme = SchemeConfig::read(name, &pairs)
        .map_err(|error| DeployError(format!("{}: {error}", from(&error.key))))?;
    if scheme.enforce() == Some(Enforce::Discovered) && !found {
        return Err(DeployError(format!(
            "{}: enforce = \"discovered\": no table of ports is named; set WEFT_PATHS to what weft \
             discover -o has written",
            from(Enforce::OPTION.key)
        )));
    }
    Ok(config(scheme, bdp))
}

/// What hosts balance with whose paths nobody could find out: each message goes to the connection that
/// has the fewest bytes outstanding, of so many which switches hash.
pub(crate) fn without_paths(connections: u32) -> BalanceConfig {
    let connections = connections.to_string();
    let options = [("connections", connections.as_str()), ("paths", "hashed")];
    let scheme = SchemeConfig::read(Hpn::INFO.name, &options).expect("its own options");
    config(scheme, 0)
}

fn config(scheme: SchemeConfig, bdp: u64) -> BalanceConfig {
    // Processes are no more in step than that: nothing has to be spread further.
    let start_jitter = Time::ZERO;
    BalanceConfig { scheme, start_jitter, random_position: false, bdp }
}

/// The defaults on hosts that differ from the scheme's own.
fn usual(info: &SchemeInfo, name: &str, uplinks: u32, bdp: u64) -> Vec<(String, String)> {
    let has = |key: &str| info.options.iter().any(|option| option.key == key);
    let mut options: Vec<(String, String)> = DIFFERENT
        .iter()
        .filter(|one| ![OF_PORT_POLICY, OF_WATCHED].contains(&one.key) && has(one.key))
        .map(|one| (one.key.to_owned(), one.default.to_owned()))
        .collect();
    if info.watches && has(OF_WATCHED) {
        let chunk = Twill::usual_chunk(bdp).max(LEAST_CHUNK);
        options.push((OF_WATCHED.to_owned(), format!("{chunk}B")));
    }
    if info.port_policy && name == info.name && uplinks > 0 {
        options.push((OF_PORT_POLICY.to_owned(), uplinks.min(128).to_string()));
    }
    options
}

/// The options of a plan that somebody chose. A plan has all of them written out; those that differ
/// on hosts and are as the simulator has them are no choice.
fn chosen<'a>(
    plan: &'a PlannedScheme,
    info: &'static SchemeInfo,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let published = |key: &str| info.options.iter().find(|option| option.key == key);
    plan.options.iter().map(|(key, text)| (key.as_str(), text.as_str())).filter(
        move |(key, text)| match published(key) {
            // Of every scheme, and of the simulator's NIC alone.
            None => false,
            Some(option) => {
                let differs = DIFFERENT.iter().any(|one| one.key == *key);
                !(differs && option.default == *text)
            }
        },
    )
}

fn set(options: &mut Vec<(String, String)>, key: &str, text: &str) {
    match options.iter_mut().find(|(known, _)| known == key) {
        Some((_, old)) => text.clone_into(old),
        None => options.push((key.to_owned(), text.to_owned())),
    }
}
