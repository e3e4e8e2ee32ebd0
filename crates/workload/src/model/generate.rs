//! From a training to its trace: what is refused, then a graph for each stage.

use super::sizes::TrainingSizes;
use super::training::{Ground, LONGEST, Pace, Routing, Training};
use super::{refuse, stage};
use crate::WorkloadError;
use crate::experts::{Exchange, Experts, Popularity};
use crate::trace::Trace;

/// Layers beyond have the tokens of earlier ones, for the time that drawing takes.
pub(super) const MOST_EXCHANGES: u32 = 8;

impl Training {
    /// One iteration on `ranks` ranks: a graph for each stage, in the order of stages.
    ///
    /// # Errors
    /// If there can be no such model, if it cannot be cut as the degrees say, or if the batch
    /// cannot be cut into micro-batches: with the key and the mend.
    pub fn generate(&self, ranks: u32) -> Result<Trace, WorkloadError> {
        self.generate_on(ranks, Ground::EACH)
    }
    /// The same on nodes of several GPUs, with the tokens' choices drawn.
    ///
    /// # Errors
    /// As [`Training::generate`].
    pub fn generate_on(&self, ranks: u32, ground: Ground) -> Result<Trace, WorkloadError> {
        let mut plan = self.plan(ranks)?;
        plan.exchanges = self.exchanges(&plan, ground)?;
        let stages = 0..self.degrees.pipeline;
        Ok(Trace {
            name: self.name.clone(),
            ranks: Some(ranks),
            graphs: stages.map(|stage| stage::graph(&plan, stage)).collect(),
            shared: false,
            groups: stage::groups(),
            degrees: self.degrees,
            exchanges: plan.exchanges,
            carried: Vec::new(),
            remarks: Vec::new(),
        })
    }

    /// What goes to experts and back: one exchange for each layer, up to [`MOST_EXCHANGES`].
    fn exchanges(
        &self,
        plan: &TrainingSizes<'_>,
        ground: Ground,
    ) -> Result<Vec<Exchange>, WorkloadError> {
        let (Some(routing), Some(own)) = (self.routing, self.model.experts) else {
            return match self.routing {
                Some(_) => {
                    refuse("expert_mode", "the model has no experts; give it some, or remove it")
                }
                None => Ok(Vec::new()),
            };
        };
        let group = self.degrees.expert;
        if group == 1 {
            return Ok(Vec::new());
        }
        let Routing { way, skew, node_limit, chunks, dispatch, combine } = routing;
        let tokens = u32::try_from(plan.tokens_of_rank()).unwrap_or(u32::MAX);
        let experts = Experts {
            tokens,
            hidden: self.model.hidden,
            count: own.count,
            top_k: own.top_k,
            node_limit,
            popularity: Popularity::Zipf(skew),
            way,
            chunks,
            dispatch,
            combine,
        };
        // Ranks of a group that share a node: none where they do not fill nodes.
        let within = ground.gpus / self.degrees.tensor;
        let fills = ground.gpus.is_multiple_of(self.degrees.tensor) && within > 0;
        let per_node = match fills {
            true if group.is_multiple_of(within) => within,
            true if within.is_multiple_of(group) => group,
            _ => 1,
        };
        let layers = 0..self.model.layers.min(MOST_EXCHANGES);
        let exchanges = layers.map(|layer| experts.exchange(group, per_node, (ground.seed, layer)));
        let keyed = |WorkloadError(what): WorkloadError| {
            // Tokens follow from the samples.
            WorkloadError(what.replace("tokens: ", "micro_batch: "))
        };
        exchanges.collect::<Result<_, _>>().map_err(keyed)
    }

    /// All that was wrong is refused here; what follows cannot fail.
    fn plan(&self, ranks: u32) -> Result<TrainingSizes<'_>, WorkloadError> {
        self.model.check()?;
        if let Err(what) = self.degrees.check(ranks) {
            return refuse("ranks", what);
        }
        self.check_split()?;
        self.check_experts()?;
        let micro_batches = self.micro_batches(self.degrees.data(ranks) / self.degrees.context)?;
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
