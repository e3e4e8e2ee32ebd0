//! Which ranks belong together: listed one by one, or given by the degrees of parallelism.
//!
//! Ranks are numbered as Megatron does: tensor-parallel ranks are consecutive, then come the
//! data-parallel ones, of which expert-parallel ones are consecutive blocks, and so are those that share
//! a sequence (context-parallel ones), and pipeline stages are farthest apart. With degrees t, d, p: rank = tensor + t (data + d stage). SimAI
//! arranges its groups the same way as long as there is one pipeline stage. ASTRA-sim's `HYBRID_MODEL_DATA`
//! has the two the other way round: rank = data + d (tensor + t stage).
//!
//! Invariant: the instances of a group that follows from degrees partition the ranks, those of
//! [`Membership::Ends`] the ranks of the first and the last stage.

use crate::WorkloadError;
use crate::collective::Servers;

/// Degrees of parallelism; what remains of the ranks is data-parallel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Degrees {
    /// Ranks that share a layer's tensors.
    pub tensor: u32,
    /// Data-parallel ranks that share the experts.
    pub expert: u32,
    /// Data-parallel ranks that share a sequence.
    pub context: u32,
    /// Pipeline stages.
    pub pipeline: u32,
}

/// Which ranks a group has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Membership {
    /// All ranks of the trace.
    World,
    /// Ranks that share tensors.
    Tensor,
    /// Ranks that hold the same part of the model.
    Data,
    /// Ranks that share tensors, where data-parallel ones are consecutive.
    TensorAcross,
    /// Ranks that hold the same part of the model and are consecutive.
    DataWithin,
    /// Ranks that share experts.
    Expert,
    /// Ranks that share a sequence.
    Context,
    /// Ranks that hold the same experts.
    ExpertData,
    /// Ranks that follow each other in a pipeline.
    Pipeline,
    /// The first and the last rank of a pipeline.
    Ends,
    /// The ranks that are listed.
    Listed(Vec<u32>),
}

/// A group that collectives name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// As the file calls it.
    pub name: String,
    /// Whom it has.
    pub members: Membership,
}

/// The ranks of one instance of a group, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members<'a> {
    /// `count` ranks from `first` on, `stride` apart.
    Strided {
        /// The first rank.
        first: u32,
        /// From one to the next.
        stride: u32,
        /// How many there are.
        count: u32,
    },
    /// The ranks that are listed.
    Listed(&'a [u32]),
}

impl Degrees {
    /// All ranks are data-parallel.
    pub const NONE: Degrees = Degrees { tensor: 1, expert: 1, context: 1, pipeline: 1 };

    /// How many data-parallel ranks there are among `ranks`; rounded down
    /// where the degrees do not divide them.
    pub fn data(&self, ranks: u32) -> u32 {
        let others = u64::from(self.tensor) * u64::from(self.pipeline);
        u64::from(ranks).checked_div(others).unwrap_or(0) as u32
    }

    /// First and last rank of the pipeline of `rank`, which must be one of them; a stage has
    /// `stage` ranks.
    fn ends(&self, rank: u32, stage: u32) -> Option<Members<'static>> {
        let last = self.pipeline.checked_sub(1)?;
        let place = rank.checked_div(stage)?;
        let stride = stage.checked_mul(last.max(1))?;
        let members = Members::Strided { first: rank % stage, stride, count: self.pipeline.min(2) };
        (place == 0 || place == last).then_some(members)
    }

    /// Whether `ranks` ranks can be arranged this way; if not, what is wrong, with the mend.
    pub(crate) fn check(&self, ranks: u32) -> Result<(), String> {
        let Degrees { tensor, expert, context, pipeline } = *self;
        if [ranks, tensor, expert, context, pipeline].contains(&0) {
            return Err("ranks and degrees of parallelism must be at least 1".into());
        }
        let others = u64::from(tensor) * u64::from(pipeline);
        if !u64::from(ranks).is_multiple_of(others) {
            return Err(format!(
                "{ranks} ranks cannot be arranged with {tensor} tensor-parallel ranks and \
                 {pipeline} pipeline stages; use a multiple of {others}"
            ));
        }
        let data = self.data(ranks);
        if !data.is_multiple_of(context) {
            return Err(format!(
                "{data} data-parallel ranks cannot be cut into {context} that share a sequence; use a \
                 multiple of {} ranks",
                others * u64::from(context)
            ));
        }
        match data.is_multiple_of(expert) {
            true => Ok(()),
            false => Err(format!(
                "{data} data-parallel ranks cannot be shared by {expert} expert-parallel ones; \
                 use a multiple of {} ranks",
                others * u64::from(expert)
            )),
        }
    }
}

impl Membership {
    /// What it is called where the file has no name for it.
    pub fn name(&self) -> &'static str {
        match self {
            Membership::World => "all",
            Membership::Tensor => "tensor",
            Membership::Data => "data",
            Membership::TensorAcross => "tensor-across",
            Membership::DataWithin => "data-within",
            Membership::Expert => "expert",
            Membership::Context => "context",
            Membership::ExpertData => "expert-data",
            Membership::Pipeline => "pipeline",
            Membership::Ends => "ends",
            Membership::Listed(_) => "listed",
        }
    }
}

impl Group {
    /// The group of this membership, by its name.
    pub(crate) fn of(members: Membership) -> Group {
        Group { name: members.name().into(), members }
    }

    pub(super) fn size(&self, degrees: &Degrees, ranks: Option<u32>) -> Option<u32> {
        match &self.members {
            Membership::World => ranks,
            Membership::Tensor | Membership::TensorAcross => Some(degrees.tensor),
            Membership::Expert => Some(degrees.expert),
            Membership::Context => Some(degrees.context),
            Membership::Pipeline => Some(degrees.pipeline),
            Membership::Ends => Some(degrees.pipeline.min(2)),
            Membership::Data | Membership::DataWithin => Some(degrees.data(ranks?)),
            Membership::ExpertData => degrees.data(ranks?).checked_div(degrees.expert),
            Membership::Listed(list) => u32::try_from(list.len()).ok(),
        }
    }

    /// The instance that `rank`, one of `ranks`, is in. The degrees divide `ranks`.
    pub(super) fn members(&self, degrees: &Degrees, rank: u32, ranks: u32) -> Option<Members<'_>> {
        let count = match &self.members {
            Membership::Listed(list) => {
                return list.contains(&rank).then_some(Members::Listed(list));
            }
            _ => self.size(degrees, Some(ranks))?,
        };
        let stride = match &self.members {
            Membership::World | Membership::Tensor | Membership::DataWithin => 1,
            Membership::TensorAcross => degrees.data(ranks),
            Membership::Data | Membership::Expert | Membership::Context => degrees.tensor,
            Membership::ExpertData => degrees.tensor.checked_mul(degrees.expert)?,
            _ => degrees.tensor.checked_mul(degrees.data(ranks))?,
        };
        if self.members == Membership::Ends {
            return degrees.ends(rank, stride);
        }
        // How far into its instance the rank is.
        let place = rank.checked_div(stride)?.checked_rem(count)?;
        Some(Members::Strided { first: rank - place * stride, stride, count })
    }
}

impl Members<'_> {
    /// How many there are.
    pub fn len(&self) -> u32 {
        match self {
            Members::Strided { count, .. } => *count,
            Members::Listed(list) => list.len() as u32,
        }
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The member at this place, from 0.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn rank(&self, place: u32) -> u32 {
        match self {
            Members::Strided { first, stride, count } => {
                assert!(place < *count, "no member {place} of {count}");
                first + place * stride
            }
            Members::Listed(list) => list[place as usize],
        }
    }
    /// How they fill servers of so many GPUs and NICs, the first of which has ranks 0, 1, ...; a
    /// server each, unless the same number of consecutive members is in each of theirs.
    pub(crate) fn servers(&self, servers: Servers) -> Servers {
        let Members::Strided { first, stride, count } = *self else { return Servers::EACH };
        let gpus = servers.ranks;
        if stride == 0 || !gpus.is_multiple_of(stride) || first % gpus >= stride {
            return Servers::EACH;
        }
        let ranks = gpus / stride;
        match count.is_multiple_of(ranks) {
            true => Servers { ranks, nics: servers.nics.min(ranks) },
            false => Servers::EACH,
        }
    }
    /// The place of `rank` among them; `None` if it is not one of them.
    pub fn place(&self, rank: u32) -> Option<u32> {
        match self {
            Members::Strided { first, stride, count } => {
                let ahead = rank.checked_sub(*first)?;
                let place = ahead.checked_div(*stride)?;
                (ahead.is_multiple_of(*stride) && place < *count).then_some(place)
            }
            Members::Listed(list) => {
                list.iter().position(|member| *member == rank).map(|place| place as u32)
            }
        }
    }
    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len()).map(|place| self.rank(place))
    }
}

/// The ranks of a listed group, checked to be a group.
///
/// # Errors
/// If it is empty or names a rank twice; `what` is what the error calls it.
pub(super) fn listed(what: &str, ranks: Vec<u32>) -> Result<Membership, WorkloadError> {
    let mut sorted = ranks.clone();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let twice = pair[0];
        return Err(WorkloadError(format!("{what}: names rank {twice} twice; name it once")));
    }
    match ranks.is_empty() {
        true => Err(WorkloadError(format!("{what}: has no ranks; list them or remove it"))),
        false => Ok(Membership::Listed(ranks)),
    }
}
