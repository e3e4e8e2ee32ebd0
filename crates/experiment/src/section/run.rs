//! `[run]`: when a run is over, and how closely it is simulated.

use crate::completion::Completion;
use crate::error::ExperimentError;
use crate::fidelity::Fidelity;
use crate::kind::{Integer, OneOf, Or, Span};
use crate::reader::{Asked, Reader, keys_asked_by};
use weft_units::Time;

/// What `[run]` says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunSection {
    pub(crate) completion: Completion,
    pub(crate) stall_after: Option<Time>,
    pub(crate) stall_packets: u64,
    pub(crate) fidelity: Fidelity,
}

/// For how long a run may stand still whose time-outs are `rto`, and grow to so many times that.
pub(crate) fn patience(rto: Time, growth: u64) -> Time {
    Time::ms(900).max(Time(rto.0.saturating_mul(4 * growth)))
}

/// All its keys.
pub(crate) fn keys() -> Vec<Asked> {
    keys_asked_by("run", |r| read(r, None, 1 << 20, None))
}

/// Reads `[run]` for a transport with time-out `rto`, if it is fixed; by default `packets` may be
/// sent in vain. `unfit` says why rates do not tell, if they do not.
pub(crate) fn read(
    r: &mut Reader<'_>,
    rto: Option<Time>,
    packets: u64,
    unfit: Option<&str>,
) -> Result<RunSection, ExperimentError> {
    let meaning = "give up after this much simulated time without a new byte; \"auto\": 900ms, or \
                   some time-outs where these are long";
    let usual = rto.map(|rto| patience(rto, 1));
    let stall_after = r.get("stall_after", Or(Span::SOME, "auto"), Some(usual), meaning)?;
    if let (Some(stall_after), Some(rto)) = (stall_after, rto)
        && stall_after <= rto
    {
        let what = format!(
            "{stall_after} is not above transport.rto ({rto}), so that any loss would count as a \
             stall; raise it"
        );
        return Err(r.wrong("stall_after", what));
    }
    let meaning = "give up after so many data packets, of all hosts together, without a new byte; \
                   the default grows by 4096 or more a host";
    let usual = u32::try_from(packets).unwrap_or(u32::MAX).min(i32::MAX as u32);
    let stall_packets =
        u64::from(r.get("stall_packets", Integer::from(1), Some(usual), meaning)?);
    let words = ["received", "acknowledged"];
    let meaning = "a message is complete when its receiver has the last byte, or when its sender \
                   has the last acknowledgement";
    let completion = r.get("completion", OneOf(&words), Some(0), meaning)?;
    let completion = [Completion::Received, Completion::Acknowledged][completion];
    let words: Vec<&str> = Fidelity::ALL.iter().map(|one| one.name()).collect();
    let meaning = "what is simulated: every packet; packets only where hosts are in each other's way; \
                   or the rates of flows";
    let fidelity = Fidelity::ALL[r.get("fidelity", OneOf(&words), Some(0), meaning)?];
    if let (Fidelity::Fluid, Some(unfit)) = (fidelity, unfit) {
        return Err(r.wrong("fidelity", format!("\"fluid\" cannot tell: {unfit}; use \"packet\"")));
    }
    Ok(RunSection { completion, stall_after, stall_packets, fidelity })
}
