//! The congestion controls of `[transport]`: their options stay with the controls, this reads whatever the
//! registry lists; and the keys of the fixed rate, which follows from fabric and workload.

use super::options;
use crate::error::ExperimentError;
use crate::kind::{Number, OneOf, Or, Speed};
use crate::pace::{Base, PaceConfig};
use crate::reader::{Asked, Reader, keys_asked_by};
use weft_transport::{CONGESTION_CONTROLS, CongestionConfig, CongestionInfo, PathScale};

type Result<T> = std::result::Result<T, ExperimentError>;

/// How much and how fast queue pairs send.
#[derive(Clone, Debug)]
pub(crate) struct Sending {
    pub(crate) congestion: CongestionConfig,
    pub(crate) pace: PaceConfig,
}

/// Reads `congestion`, which is `usual` unless it says otherwise, and the keys of what it says.
pub(crate) fn read(r: &mut Reader<'_>, usual: &str, path: &PathScale) -> Result<Sending> {
    let names: Vec<&str> = CONGESTION_CONTROLS.iter().map(|info| info.name).collect();
    let usual = names.iter().position(|name| *name == usual);
    let taken = r.get("congestion", OneOf(&names), usual, "how much and how fast")?;
    let info = &CONGESTION_CONTROLS[taken];
    for other in CONGESTION_CONTROLS.iter().filter(|other| other.name != info.name) {
        let keys = keys(other).into_iter().map(|asked| asked.key);
        r.others("congestion", info.name, other.name, keys);
    }
    read_chosen(r, info, path)
}

fn read_chosen(
    r: &mut Reader<'_>,
    info: &'static CongestionInfo,
    path: &PathScale,
) -> Result<Sending> {
    let congestion =
        options::read(r, info.options, |given| CongestionConfig::resolve(info.name, given, path))?;
    let pace = match congestion {
        CongestionConfig::FixedRate(_) => read_pace(r)?,
        _ => PaceConfig::NONE,
    };
    Ok(Sending { congestion, pace })
}

/// The keys of a control.
pub(crate) fn keys(info: &'static CongestionInfo) -> Vec<Asked> {
    let path = PathScale {
        bdp: 1,
        line: weft_units::Rate::gbps(100),
        round_trip: weft_units::Time::us(1),
        oversubscribed: false,
    };
    keys_asked_by("transport", |r| read_chosen(r, info, &path))
}

const SHARE: Number = Number { min: 0.0, max: 1.0 };

/// The keys of the fixed rate.
fn read_pace(r: &mut Reader<'_>) -> Result<PaceConfig> {
    let base = r.get(
        "rate",
        Or(Or(Speed, "fair"), "line"),
        Some(None),
        "of a flow, headers included; \"line\": the NIC's own; \"fair\": its share of the fabric, \
         computed from topology and workload",
    )?;
    let base = match base {
        None => Base::Line,
        Some(None) => Base::Fair,
        Some(Some(rate)) => Base::Fixed(rate),
    };
    let coefficient = r.get(
        "rate_coefficient",
        Number { min: 0.001, max: 100.0 },
        Some(1.0),
        "flows send at this times that rate",
    )?;
    let start_gaps = r.get(
        "start_gaps",
        Number { min: 0.0, max: 1_000.0 },
        Some(0.0),
        "every flow starts later by up to so many of its packet gaps, at random",
    )?;
    let gap_jitter = r.get(
        "gap_jitter",
        SHARE,
        Some(0.0),
        "every gap between packets is longer by up to this share of it, at random",
    )?;
    r.gone("desynchronise", "after a NACK the next gap is always random");
    Ok(PaceConfig { is_paced: true, base, coefficient, start_gaps, gap_jitter, ..PaceConfig::NONE })
}
