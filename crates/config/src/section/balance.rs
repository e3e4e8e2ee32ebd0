//! `[balance]`: the scheme and its options.
//!
//! The options of schemes stay with the schemes: this reads whatever the registry lists.

use super::options;
use crate::kind::{Flag, Kind, OneOf, Span};
use crate::reader::{Asked, Reader, keys_asked_by};
use crate::value::{Item, Value};
use crate::{ExperimentError, Origin};
use weft_balance::enforce::{Enforce, HashFunction, Hashing, PortRange, Ports};
use weft_balance::scheme::{BalanceConfig, SCHEMES, SchemeConfig, SchemeInfo};
use weft_fabric::Fabric;
use weft_fabric::SwitchConfig;
use weft_units::options::WORD;

type Result<T> = std::result::Result<T, ExperimentError>;

/// Reads `[balance]`. `bdp`: bytes that a flow may send before feedback can be expected.
pub fn read(r: &mut Reader<'_>, fabric: &Fabric, bdp: u64) -> Result<BalanceConfig> {
    let name = r.get("scheme", SchemeName, None, "the load balancer")?;
    let info = SchemeInfo::find(&name).map_err(|error| r.wrong("scheme", error.what))?;
    for other in SCHEMES.iter().filter(|other| other.name != info.name) {
        let keys = other.options.iter().map(|option| option.key.to_owned());
        r.others("scheme", info.name, other.name, keys);
    }
    let config = read_chosen(r, info, &name, bdp)?;
    r.record("scheme", config.scheme.name());
    if !r.is_rehearsal() {
        config.scheme.fits(fabric).map_err(|error| {
            let mend = "change the fabric or the scheme";
            r.wrong("scheme", format!("{} cannot run here: {error}; {mend}", info.name))
        })?;
    }
    Ok(config)
}

/// Whether a scheme can do with the switches' hash.
///
/// # Errors
/// If its hosts would have to know the hash and do not, if that leaves paths without a port, or if
/// its leaves tell flows apart by a number that packets do not carry under this hash.
pub fn check_hash(scheme: &SchemeConfig, fabric: &Fabric, switch: &SwitchConfig) -> Result<()> {
    // Which paths have ports hardly depends on the seed: that changes all hashes by a constant.
    let (seed, same_salt) = (0, switch.same_salt);
    let hashing = switch.hash.map(|function| Hashing { function, seed, same_salt });
    let wrong =
        |what: String| Err(ExperimentError::new("fabric.switch.hash", Origin::Unknown, what));
    let name = scheme.name();
    match hashing {
        Some(_) if !scheme.info().tor.is_none() => wrong(format!(
            "under {name} leaves tell flows apart by a number of their own; use \"weft\""
        )),
        None if scheme.enforce() == Some(Enforce::Hash) => {
            let known = HashFunction::NAMED.map(|(name, _)| name).join(", ");
            wrong(format!(
                "with balance.enforce = \"hash\" hosts must know what switches do with addresses and \
                 ports; use one of {known}"
            ))
        }
        Some(hashing) if scheme.enforce() == Some(Enforce::Hash) => {
            let ports = Ports::Hash(PortRange::ROCE, hashing);
            ports.check(fabric).or_else(|error| wrong(format!("{name} cannot run here: {error}")))
        }
        _ => Ok(()),
    }
}

/// The scheme's own keys, and those that any scheme may have.
fn read_chosen(
    r: &mut Reader<'_>,
    info: &SchemeInfo,
    name: &str,
    bdp: u64,
) -> Result<BalanceConfig> {
    let scheme = options::read(r, info.options, |given| SchemeConfig::resolve(name, given))?;
    let start_jitter = r.get(
        "start_jitter",
        Span::ANY,
        Some(info.start_jitter),
        "every flow starts after a random delay below this",
    )?;
    let random_position = r.get(
        "random_position",
        Flag,
        Some(info.random_position),
        "a flow enters its NIC's list of queue pairs at a random position",
    )?;
    Ok(BalanceConfig { scheme, start_jitter, random_position, bdp })
}

/// The keys of `[balance]`, with those of its first scheme.
pub fn section_keys() -> Vec<Asked> {
    keys_asked_by("balance", |r| read(r, &super::smallest_fabric(), 1))
}

/// The keys of `[balance]` beside `scheme`.
pub fn keys(info: &SchemeInfo) -> Vec<Asked> {
    keys_asked_by("balance", |r| read_chosen(r, info, info.name, 1))
}

/// The name of a scheme, some with a number at the end: `subflows-8`.
struct SchemeName;

impl Kind for SchemeName {
    type Out = String;
    fn read(&self, item: &Item) -> std::result::Result<String, String> {
        let spellings: Vec<String> = SCHEMES.iter().map(SchemeInfo::spelling).collect();
        let known: Vec<&str> = spellings.iter().map(String::as_str).collect();
        match &item.value {
            Value::Text(name) if SchemeInfo::find(name).is_ok() => Ok(name.clone()),
            _ => {
                let info = &SCHEMES[OneOf(&known).read(item)?];
                let (spelt, name) = (info.spelling(), info.name);
                Err(format!("{spelt:?}: N stands for a number; write one such as \"{name}-8\""))
            }
        }
    }
    fn write(&self, value: &String) -> Value {
        value.as_str().into()
    }
    fn example(&self) -> Value {
        SCHEMES[0].name.into()
    }
    fn describe(&self) -> String {
        WORD.to_owned()
    }
    fn words(&self) -> Vec<String> {
        SCHEMES.iter().map(SchemeInfo::spelling).collect()
    }
}
