//! From a training to its trace: what is refused, then a graph for each stage.

use super::sizes::TrainingSizes;
use super::training::{LONGEST, Pace, Training};
use super::{refuse, stage};
use crate::WorkloadError;
use crate::trace::Trace;

impl Training {
    /// One iteration on `ranks` ranks: a graph for each stage, in the order of stages.
    ///
    /// # Errors
    /// If there can be no such model, if it cannot be cut as the degrees say, or if the batch
    /// cannot be cut into micro-batches: with the key and the mend.
    pub fn generate(&self, ranks: u32) -> Result<Trace, WorkloadError> {
        let plan = self.plan(ranks)?;
        let stages = 0..self.degrees.pipeline;
        Ok(Trace {
            name: self.name.clone(),
            ranks: Some(ranks),
            graphs: stages.map(|stage| stage::graph(&plan, stage)).collect(),
            shared: false,
            groups: stage::groups(),
            degrees: self.degrees,
            remarks: Vec::new(),
        })
    }

    /// All that was wrong is refused here; what follows cannot fail.
    fn plan(&self, ranks: u32) -> Result<TrainingSizes<'_>, WorkloadError> {
        self.model.check()?;
        if let Err(what) = self.degrees.check(ranks) {
            return refuse("ranks", what);
        }
        self.check_split()?;
        self.check_experts()?;
        let micro_batches = self.micro_batches(self.degrees.data(ranks))?;
        self.check_pace()?;
        let plan = TrainingSizes::new(self, ranks, micro_batches);
        if plan.largest() > 1 << 60 {
            let what =
                "a micro-batch of more than 2^60 bytes between two layers; use a smaller one";
            return refuse("micro_batch", what);
        }
        if plan.longest() <= LONGEST {
            return Ok(plan);
        }
        let what = format!("a step of a layer takes more than {LONGEST}");
        match self.pace {
            Pace::Operations { peak, .. } => {
                let mend = "use more, such as 312e12, or smaller layers";
                refuse("peak", format!("{what} at {peak} operations a second; {mend}"))
            }
            Pace::Given { .. } => refuse("forward", format!("{what}; use less")),
        }
    }
}
