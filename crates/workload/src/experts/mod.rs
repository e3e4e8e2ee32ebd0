//! Tokens on their way to the experts of a mixture of experts, and back: dispatch and combine.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Experts`] | how many tokens and experts, who takes whom, in what they travel |
//! | `routing` | which experts each token takes, drawn: how many tokens go from whom to whom |
//! | `exchange` | who sends what to whom in which order |
//!
//! Experts lie equally many on each rank, in order. A token takes `top_k` different ones; with a
//! `node_limit` first that many nodes, then experts of these (DeepSeek-V3 2024, section 2.1.2).
//!
//! Two ways to carry them, as DeepEP has them:
//!
//! - `normal`: a token goes to a node once, whatever it takes there, to the GPU of the same place as its
//!   own; that one forwards it to the GPUs of its experts, once to each. Combine is the way back: the GPU of
//!   the same place adds up what those of its node have for a token, and sends it home once.
//! - `low-latency`: a token goes straight to each of its experts, once for each.
//!
//! What tokens weigh: FP8 numbers with a 32-bit scale for each 128 of them, or BF16. What is not counted:
//! indices and weights of a token, some ten bytes.

mod exchange;
mod routing;

pub use exchange::Exchange;

use crate::WorkloadError;
use routing::Tokens;
use std::sync::Arc;
use weft_units::options::ResolvedOptions;
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

/// What tokens travel in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// 8 bits, and a scale of 32 bits for each 128 of them.
    Fp8,
    /// 16 bits.
    Bf16,
}

/// How tokens get to other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Once to each node, forwarded there.
    Normal,
    /// Straight to each expert.
    LowLatency,
}

/// How popular experts are.
#[derive(Clone, Debug, PartialEq)]
pub enum Popularity {
    /// The j-th most popular in proportion to 1 / j^this (Zipf); the seed says which that is.
    Zipf(f64),
    /// In proportion to these, one for each expert.
    Shares(Vec<f64>),
}

/// Tokens, experts, and what brings them together.
#[derive(Clone, Debug, PartialEq)]
pub struct Experts {
    /// Tokens of a rank.
    pub tokens: u32,
    /// Numbers of a token.
    pub hidden: u32,
    /// Experts of all ranks.
    pub count: u32,
    /// Experts that a token takes.
    pub top_k: u32,
    /// Nodes at most among which it takes them; `None`: all.
    pub node_limit: Option<u32>,
    /// Whom tokens prefer.
    pub popularity: Popularity,
    /// How they get there.
    pub way: Way,
    /// Into how many messages what goes from one rank to another is cut, each of which is forwarded as it comes.
    pub chunks: u32,
    /// What is dispatched.
    pub dispatch: Numbers,
    /// What is combined.
    pub combine: Numbers,
}

/// All options, for the catalogue. The defaults are those of DeepSeek-V3's training, as DeepEP measures it.
pub const EXPERT_OPTIONS: &[OptionInfo] = &[
    option("tokens", "4096", OptionKind::Whole(1, MOST), "tokens of a rank"),
    option("hidden", "7168", OptionKind::Whole(1, MOST), "numbers that stand for a token"),
    option(
        "experts",
        "256",
        OptionKind::Whole(1, MOST),
        "experts of all ranks, equally many on each",
    ),
    option("top_k", "8", OptionKind::Whole(1, 1024), "how many of them a token takes"),
    option(
        "node_limit",
        "4",
        OptionKind::Whole(1, MOST),
        "a token takes experts on so many nodes at most",
    ),
    option(
        "skew",
        "0",
        OptionKind::Number(0.0, MOST_SKEW),
        "the j-th most popular expert gets tokens by 1 / j^skew (Zipf)",
    ),
    option(
        "shares",
        "by skew",
        OptionKind::Numbers(0.0, f64::INFINITY),
        "or how popular each expert is: a number for each, with spaces",
    ),
    option(
        "mode",
        "normal",
        OptionKind::Word(&["normal", "low-latency"]),
        "normal: once to each node, forwarded there; low-latency: straight",
    ),
    option(
        "chunks",
        "8",
        OptionKind::Whole(1, MOST_CHUNKS),
        "in normal mode: messages from a GPU to a node, each forwarded as it comes",
    ),
    option(
        "dispatch",
        "fp8",
        OptionKind::Word(&["fp8", "bf16"]),
        "what tokens travel in to their experts: fp8, with scales, or bf16",
    ),
    option("combine", "bf16", OptionKind::Word(&["fp8", "bf16"]), "and back"),
];

const fn option(
    key: &'static str,
    default: &'static str,
    kind: OptionKind,
    meaning: &'static str,
) -> OptionInfo {
    OptionInfo { key, default, kind, meaning }
}

/// The words for what tokens travel in.
pub(crate) const NUMBERS: [(&str, Numbers); 2] = [("fp8", Numbers::Fp8), ("bf16", Numbers::Bf16)];
/// Beyond, one expert has them all.
pub(crate) const MOST_SKEW: f64 = 4.0;
/// More messages of a rank at once are no use.
pub(crate) const MOST_CHUNKS: u32 = 1024;
/// Counts beyond it are mistakes.
const MOST: u32 = 1 << 20;
/// More choices of an expert take many seconds.
const MOST_CHOICES: u64 = 1 << 30;
/// More pairs of ranks take gigabytes.
const MOST_RANKS: u32 = 1 << 13;

impl Way {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Way::Normal => "normal",
            Way::LowLatency => "low-latency",
        }
    }
}

impl Numbers {
    /// Bytes of a token of so many numbers.
    pub fn bytes(self, hidden: u32) -> u64 {
        let hidden = u64::from(hidden);
        match self {
            Numbers::Fp8 => hidden + 4 * hidden.div_ceil(128),
            Numbers::Bf16 => 2 * hidden,
        }
    }
}

impl Experts {
    /// What options tell, as an experiment file writes them, and all of them as they were understood.
    ///
    /// # Errors
    /// If an option is unknown, or a value is not what it takes.
    pub fn resolve(given: &[(&str, &str)]) -> Result<(Experts, ResolvedOptions), OptionError> {
        let mut options = Options::new("moe", EXPERT_OPTIONS, given)?;
        let modes = [("normal", Way::Normal), ("low-latency", Way::LowLatency)];
        let way = options.choice("mode", &modes)?;
        let popularity = match options.numbers_if_given("shares")? {
            Some(_) if options.has("skew") => {
                return Err(OptionError::new("shares", "stands beside skew; remove one of them"));
            }
            Some(shares) => Popularity::Shares(shares),
            None => Popularity::Zipf(options.fraction("skew")?),
        };
        let experts = Experts {
            tokens: options.number("tokens")?,
            hidden: options.number("hidden")?,
            count: options.number("experts")?,
            top_k: options.number("top_k")?,
            node_limit: Some(options.number("node_limit")?),
            popularity,
            way,
            chunks: match way {
                Way::Normal => options.number("chunks")?,
                Way::LowLatency => 1,
            },
            dispatch: options.choice("dispatch", &NUMBERS)?,
            combine: options.choice("combine", &NUMBERS)?,
        };
        Ok((experts, options.resolve()?))
    }

    /// What `ranks` ranks exchange, of which `per_node` follow each other in a node; the tokens' choices are
    /// drawn from `seed`, for each `layer` anew.
    ///
    /// # Errors
    /// If the ranks fill no nodes, or the experts cannot be shared equally or are too few to take: with the
    /// key and the mend.
    pub fn exchange(
        &self,
        ranks: u32,
        per_node: u32,
        (seed, layer): (u64, u32),
    ) -> Result<Exchange, WorkloadError> {
        self.check(ranks, per_node)?;
        let (tokens, way) = (Tokens::draw(self, ranks, per_node, (seed, layer)), self.way);
        let bytes = [self.dispatch, self.combine].map(|numbers| numbers.bytes(self.hidden));
        let taken = u64::from(self.tokens) * u64::from(self.top_k);
        Ok(Exchange {
            ranks,
            per_node,
            way,
            chunks: self.chunks,
            bytes,
            taken,
            tokens: Arc::new(tokens),
        })
    }

    fn check(&self, ranks: u32, per_node: u32) -> Result<(), WorkloadError> {
        let error = |what: String| Err(WorkloadError(what));
        let Experts { count, top_k, .. } = *self;
        if ranks > MOST_RANKS {
            return error(format!(
                "ranks: {ranks} are more than {MOST_RANKS}; use fewer, in groups"
            ));
        }
        if !ranks.is_multiple_of(per_node) {
            return error(format!(
                "gpus_per_node: {ranks} ranks do not fill nodes of {per_node}; use a divisor"
            ));
        }
        if !count.is_multiple_of(ranks) {
            return error(format!(
                "experts: {count} cannot lie equally many on {ranks} ranks; use a multiple of {ranks}"
            ));
        }
        let within = self.nodes(ranks / per_node) * (count / (ranks / per_node));
        if top_k > within {
            return error(format!(
                "top_k: a token cannot take {top_k} of the {within} experts that it may; use fewer, or \
                 more nodes (node_limit)"
            ));
        }
        if let Popularity::Shares(shares) = &self.popularity {
            if shares.len() != count as usize {
                let told = shares.len();
                return error(format!(
                    "shares: {told} numbers for {count} experts; give one for each"
                ));
            }
            let total: f64 = shares.iter().sum();
            if total == 0.0 || !total.is_finite() {
                return error(format!(
                    "shares: add up to {total}; give numbers of which the sum is above 0 and finite"
                ));
            }
        }
        let choices = u64::from(ranks) * u64::from(self.tokens) * u64::from(top_k);
        match choices > MOST_CHOICES {
            true => error(format!("tokens: {choices} choices of experts are too many; use fewer")),
            false => Ok(()),
        }
    }

    /// Nodes that a token may go to, of so many.
    fn nodes(&self, nodes: u32) -> u32 {
        self.node_limit.map_or(nodes, |limit| limit.min(nodes))
    }
}
