//! `[background]`: what other tenants send while the workload runs.

use crate::error::ExperimentError;
use crate::kind::{Integer, Number, OneOf, Or, Size, Span, Wholes};
use crate::reader::{Asked, Reader, keys_asked_by};
use weft_fabric::Fabric;
use weft_units::Time;
use weft_workload::Background;
use weft_workload::background::{DATA_MINING, STORAGE, Sizes, Toward, WEB_SEARCH};

type Result<T> = std::result::Result<T, ExperimentError>;

/// What the section is called.
pub(crate) const NAME: &str = "background";
/// What it is about, for lists.
pub(crate) const SUMMARY: &str = "what other tenants send meanwhile, as a Poisson process; keys of a section \
                                  of its own, for any workload";
/// Where its sizes come from.
pub(crate) const SOURCE: &str = "DCTCP (2010), VL2 (2009) and Alibaba's storage, as pFabric (2013) and HPCC (2019) \
                                 generate them";

/// What `[background]` says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BackgroundSection {
    pub(crate) traffic: Background,
    pub(crate) hosts: Where,
    /// Until when; `None`: some times as long as the workload takes at least.
    pub(crate) duration: Option<Time>,
}

/// Which hosts take part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Where {
    /// All.
    All,
    /// Those that have no part in the workload.
    Idle,
    /// These.
    Listed(Vec<u32>),
}

const SIZES: [(&str, &[(u64, u32)]); 3] =
    [("web-search", WEB_SEARCH), ("data-mining", DATA_MINING), ("storage", STORAGE)];

/// Reads `[background]`.
pub(crate) fn read(r: &mut Reader<'_>, fabric: Option<&Fabric>) -> Result<BackgroundSection> {
    let load = Number { min: 0.0, max: 1.0 };
    let meaning = "the share of a host's link that its background messages take, in the mean";
    let load = r.get("load", load, Some(0.3), meaning)?;
    let names = ["uniform", "permutation", "incast"];
    let meaning = "who sends to whom: to a host that is drawn each time, always to the same one, or \
                   several at once to one";
    let pattern = r.get("pattern", OneOf(&names), Some(0), meaning)?;
    let pattern = match pattern {
        0 => Toward::Uniform,
        1 => Toward::Permutation,
        _ => {
            let most = Integer { min: 1, max: 1 << 16 };
            Toward::Incast(r.get("senders", most, Some(8), "of an incast: how many at once")?)
        }
    };
    if r.is_rehearsal() {
        r.get("senders", Integer::from(1), Some(8), "of an incast: how many at once")?;
    } else if !matches!(pattern, Toward::Incast(_)) {
        let what = "belongs to pattern = \"incast\"; remove it";
        r.beside("pattern", what, std::iter::once("senders".to_owned()));
    }
    let names = SIZES.map(|(name, _)| name);
    let meaning = "of a message: a size, or the distribution web-search, data-mining or storage";
    let sizes = r.get("size", SizeOr(&names), Some(Err(0)), meaning)?;
    let sizes = match sizes {
        Ok(bytes) => Sizes::Fixed(bytes),
        Err(taken) => Sizes::Measured(SIZES[taken].1),
    };
    let meaning =
        "which take part: all, idle (those with no part in the workload), or a list of numbers";
    let hosts = r.get("hosts", Or(Or(Wholes, "idle"), "all"), Some(None), meaning)?;
    let hosts = match hosts {
        None => Where::All,
        Some(None) => Where::Idle,
        Some(Some(listed)) => Where::Listed(listed),
    };
    if let (Where::Listed(listed), Some(fabric)) = (&hosts, fabric) {
        check(listed, fabric).map_err(|what| r.wrong("hosts", what))?;
    }
    let meaning =
        "until when messages are posted; auto: four times as long as the workload takes at least";
    let duration = r.get("duration", Or(Span::SOME, "auto"), Some(None), meaning)?;
    let traffic = Background { pattern, load, sizes };
    Ok(BackgroundSection { traffic, hosts, duration })
}

fn check(listed: &[u32], fabric: &Fabric) -> std::result::Result<(), String> {
    if let Some(host) = listed.iter().find(|host| **host >= fabric.hosts()) {
        return Err(format!("there is no host {host}; use 0 to {}", fabric.hosts() - 1));
    }
    let mut sorted = listed.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("lists {} twice; list it once", pair[0])),
        None => Ok(()),
    }
}

/// A size, or one of some names.
struct SizeOr<'a>(&'a [&'a str]);

impl crate::kind::Kind for SizeOr<'_> {
    type Out = std::result::Result<u64, usize>;
    fn read(&self, item: &crate::value::Item) -> std::result::Result<Self::Out, String> {
        let name =
            item.value.as_text().and_then(|text| self.0.iter().position(|name| *name == text));
        match name {
            Some(taken) => Ok(Err(taken)),
            None => Size::SOME
                .read(item)
                .map(Ok)
                .map_err(|what| format!("{what}, or one of {}", self.0.join(", "))),
        }
    }
    fn write(&self, value: &Self::Out) -> crate::value::Value {
        match value {
            Ok(bytes) => Size::SOME.write(bytes),
            Err(taken) => self.0[*taken].into(),
        }
    }
    fn example(&self) -> crate::value::Value {
        self.0[0].into()
    }
    fn describe(&self) -> String {
        format!("{}, or one of {}", Size::SOME.describe(), self.0.join(", "))
    }
}

/// All its keys.
pub(crate) fn keys() -> Vec<Asked> {
    keys_asked_by(NAME, |r| read(r, None))
}
