//! `[run]`: when a run is over.

use crate::error::ExperimentError;
use crate::kind::{OneOf, Span};
use crate::measure::Completion;
use crate::reader::Reader;
use weft_units::Time;

/// What `[run]` says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunSection {
    pub(crate) completion: Completion,
    pub(crate) stall_after: Time,
}

/// Reads `[run]` for a transport with time-out `rto`.
pub(crate) fn read(r: &mut Reader<'_>, rto: Time) -> Result<RunSection, ExperimentError> {
    let meaning = "give up after this much simulated time without a new byte";
    let usual = Time::ms(900).max(rto * 4);
    let stall_after = r.get("stall_after", Span::SOME, Some(usual), meaning)?;
    if stall_after <= rto {
        let what = format!(
            "{stall_after} is not above transport.rto ({rto}), so that any loss would count as a \
             stall; raise it"
        );
        return Err(r.wrong("stall_after", what));
    }
    let words = ["received", "acknowledged"];
    let meaning = "a message is complete when its receiver has the last byte, or when its sender \
                   has the last acknowledgement";
    let completion = r.get("completion", OneOf(&words), Some(0), meaning)?;
    let completion = [Completion::Received, Completion::Acknowledged][completion];
    Ok(RunSection { completion, stall_after })
}
