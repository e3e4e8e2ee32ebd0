//! `[stragglers]`: GPUs that are slower than others, and ranks that come late.

use crate::error::ExperimentError;
use crate::kind::{Integer, Number, OneOf, Span, Wholes};
use crate::reader::{Asked, Reader, keys_asked_by};
use weft_units::Time;
use weft_workload::Stragglers;
use weft_workload::stragglers::{Delays, Slow, Speed};

type Result<T> = std::result::Result<T, ExperimentError>;

/// What the section is called.
pub(crate) const NAME: &str = "stragglers";
/// What it is about, for lists.
pub(crate) const SUMMARY: &str = "GPUs that compute more slowly than others, and ranks that come \
                                  late; keys of a section of its own, for any workload";
/// Where its defaults come from.
pub(crate) const SOURCE: &str =
    "MegaScale (2024), section 6.3: one machine in 200 takes 10 % longer";

/// Which GPUs are slow: one of these.
const SLOW: [&str; 3] = ["share", "count", "ranks"];
const SHARE: Number = Number { min: 0.0, max: 1.0 };

/// Reads `[stragglers]`.
pub(crate) fn read(r: &mut Reader<'_>) -> Result<Stragglers> {
    let slow = slow(r)?;
    let factor = Number { min: 0.01, max: 1_000.0 };
    let meaning = "how many times as long slow GPUs take over a computation";
    let factor = r.get("factor", factor, Some(1.1), meaning)?;
    let chosen = SLOW.iter().any(|key| r.has(key));
    if r.has("factor") && !chosen && !r.is_rehearsal() {
        let what =
            "is that of slow GPUs, and there are none; set share, count or ranks, or remove it";
        return Err(r.wrong("factor", what));
    }
    let speed = speed(r)?;
    let jitter = Number { min: 0.0, max: 100.0 };
    let meaning = "every computation takes longer by up to this share of it, at random";
    let jitter = r.get("jitter", jitter, Some(0.0), meaning)?;
    let meaning = "where nothing is computed: how late ranks are for a collective, hosts of a pattern \
                   for their messages, in the mean; slow ones as many times later";
    let start_delay = r.get("start_delay", Span::ANY, Some(Time::ZERO), meaning)?;
    let names = ["fixed", "uniform", "exponential"];
    let meaning = "how start delays are distributed about their mean";
    let delays = r.get("start_distribution", OneOf(&names), Some(2), meaning)?;
    let delays = [Delays::Fixed, Delays::Uniform, Delays::Exponential][delays];
    Ok(Stragglers { slow, factor, speed, jitter, start_delay, delays })
}

/// Which GPUs are slow, in one of three ways.
fn slow(r: &mut Reader<'_>) -> Result<Slow> {
    let share = r.get("share", SHARE, Some(0.0), "the share of GPUs that are slow, drawn")?;
    let most = Integer { min: 0, max: 1 << 20 };
    let count = r.get("count", most, Some(0), "or how many are")?;
    let meaning = "or which, by rank, numbered through all jobs (of patterns: hosts)";
    let ranks = r.get("ranks", Wholes, Some(Vec::new()), meaning)?;
    let given = SLOW.iter().zip([share > 0.0, count > 0, !ranks.is_empty()]);
    let mut given = given.filter(|(_, is_given)| *is_given);
    if let (Some((one, _)), Some((other, _))) = (given.next(), given.next())
        && !r.is_rehearsal()
    {
        return Err(r.wrong(other, format!("stands beside {one}; remove one of them")));
    }
    let mut sorted = ranks.clone();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(r.wrong("ranks", format!("lists {} twice; list it once", pair[0])));
    }
    Ok(match (ranks.is_empty(), count) {
        (false, _) => Slow::Ranks(ranks),
        (_, 0) => Slow::Share(share),
        (_, count) => Slow::Count(count),
    })
}

fn speed(r: &mut Reader<'_>) -> Result<Speed> {
    let names = ["equal", "normal", "lognormal", "uniform"];
    let meaning = "how the speeds of GPUs are distributed, each drawn once a run";
    let taken = r.get("speed", OneOf(&names), Some(0), meaning)?;
    if taken == 0 && !r.is_rehearsal() {
        let what = "needs a distribution; set speed = \"normal\", or remove it";
        r.beside("speed", what, std::iter::once("spread".to_owned()));
        return Ok(Speed::Equal);
    }
    let meaning = "of their speeds, with 1 in the middle: the standard deviation (of the logarithm, if \
                   lognormal); if uniform, how far up and down";
    // A GPU keeps a tenth of its speed at three standard deviations.
    let most = [0.3, 0.3, 2.0, 0.9][taken];
    let spread = r.get("spread", Number { min: 0.0, max: most }, Some(0.05), meaning)?;
    Ok([Speed::Equal, Speed::Normal(spread), Speed::Lognormal(spread), Speed::Uniform(spread)]
        [taken])
}

/// All its keys.
pub(crate) fn keys() -> Vec<Asked> {
    keys_asked_by(NAME, read)
}
