//! Which experts each token takes, and how many tokens therefore go from whom to whom.
//!
//! Popularity stands for the router: nodes are drawn one after the other without putting back, each with
//! the popularity of its experts together, then experts of these nodes in the same way (which is what the
//! largest of scores with Gumbel noise come to). DeepSeek-V3's router takes nodes by the sum of their best
//! scores instead.

use super::{Experts, Popularity, Way};
use weft_units::random::{Draw, Stream};

/// How many tokens go from whom to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tokens {
    ranks: u32,
    nodes: u32,
    /// From each rank to each: in normal mode tokens that take some of its experts, else choices of them.
    pairs: Vec<u32>,
    /// From each rank to each node: tokens that take some expert there.
    to_nodes: Vec<u32>,
}

impl Tokens {
    pub(super) fn pair(&self, src: u32, dst: u32) -> u32 {
        self.pairs[src as usize * self.ranks as usize + dst as usize]
    }
    pub(super) fn to_node(&self, src: u32, node: u32) -> u32 {
        self.to_nodes[src as usize * self.nodes as usize + node as usize]
    }

    /// What the tokens of `ranks` ranks take, `per_node` of whom are a node.
    pub(super) fn draw(
        experts: &Experts,
        ranks: u32,
        per_node: u32,
        (seed, layer): (u64, u32),
    ) -> Tokens {
        let nodes = ranks / per_node;
        let router = Router::new(experts, nodes, (seed, layer));
        let (each, limit) = (experts.count / ranks, experts.nodes(nodes));
        let (mut pairs, mut to_nodes) = (Vec::new(), Vec::new());
        let draw = Draw::new(seed, "token-experts");
        let mut taken = Vec::new();
        for rank in 0..ranks {
            let mut stream = draw.stream(u64::from(layer) << 32 | u64::from(rank));
            let mut to_ranks = vec![0; ranks as usize];
            let mut of_nodes = vec![0; nodes as usize];
            for _ in 0..experts.tokens {
                router.take(&mut stream, (limit, experts.top_k), &mut taken);
                let mut last = None;
                for expert in &taken {
                    let rank = expert / each;
                    let is_first = last.is_none_or(|last| last / each != rank);
                    if is_first || experts.way == Way::LowLatency {
                        to_ranks[rank as usize] += 1;
                    }
                    let node = rank / per_node;
                    of_nodes[node as usize] +=
                        u32::from(last.is_none_or(|last| last / each / per_node != node));
                    last = Some(*expert);
                }
            }
            pairs.append(&mut to_ranks);
            to_nodes.append(&mut of_nodes);
        }
        Tokens { ranks, nodes, pairs, to_nodes }
    }
}

/// What draws.
struct Router {
    /// The popularity of all experts before each, and of all.
    sums: Vec<f64>,
    /// Experts of a node.
    of_node: u32,
}

/// So often something is drawn again that has been taken, before the others are weighed anew.
const TRIES: u32 = 16;

impl Router {
    fn new(experts: &Experts, nodes: u32, (seed, layer): (u64, u32)) -> Router {
        let shares = match &experts.popularity {
            Popularity::Shares(shares) => shares.clone(),
            Popularity::Zipf(exponent) => {
                let share = |j: u32| libm::pow(f64::from(j), -exponent);
                let mut shares: Vec<f64> = (1..=experts.count).map(share).collect();
                Draw::new(seed, "popular-experts").stream(layer.into()).shuffle(&mut shares);
                shares
            }
        };
        let mut sums = vec![0.0];
        sums.extend(shares.iter().scan(0.0, |sum, share| {
            *sum += share;
            Some(*sum)
        }));
        Router { sums, of_node: experts.count / nodes }
    }

    /// Puts into `taken`, in their order, the experts of a token, `count` of them on `limit` nodes.
    fn take(&self, stream: &mut Stream, (limit, count): (u32, u32), taken: &mut Vec<u32>) {
        let nodes = (self.sums.len() as u32 - 1) / self.of_node;
        taken.clear();
        if limit == nodes {
            let all = [(0, self.sums.len() as u32 - 1)];
            return self.several(stream, count, &all, 1, taken);
        }
        let mut chosen = Vec::with_capacity(limit as usize);
        let all = [(0, nodes)];
        self.several(stream, limit, &all, self.of_node, &mut chosen);
        let ranges: Vec<(u32, u32)> =
            chosen.iter().map(|node| (node * self.of_node, (node + 1) * self.of_node)).collect();
        self.several(stream, count, &ranges, 1, taken);
    }

    /// `count` different ones of what lies in `ranges`, each of which is so many experts `wide`; in order.
    fn several(
        &self,
        stream: &mut Stream,
        count: u32,
        ranges: &[(u32, u32)],
        wide: u32,
        taken: &mut Vec<u32>,
    ) {
        let sum = |at: u32| self.sums[(at * wide) as usize];
        let all: f64 = ranges.iter().map(|(from, to)| sum(*to) - sum(*from)).sum();
        for _ in 0..count {
            let fresh = (0..TRIES).find_map(|_| {
                let one = Self::at(stream.unit() * all, ranges, sum)?;
                (!taken.contains(&one)).then_some(one)
            });
            let one = fresh.unwrap_or_else(|| {
                let mut left = ranges
                    .iter()
                    .flat_map(|(from, to)| *from..*to)
                    .filter(|one| !taken.contains(one));
                let weight = |one: u32| sum(one + 1) - sum(one);
                let rest: f64 = left.clone().map(weight).sum();
                let mut at = stream.unit() * rest;
                let first = left.clone().next().expect("there are as many");
                // Those that nobody likes are taken in their order.
                left.find(|one| {
                    at -= weight(*one);
                    at < 0.0
                })
                .unwrap_or(first)
            });
            taken.push(one);
        }
        taken.sort_unstable();
    }

    /// The one that lies `at` so much popularity from the first of them.
    fn at(mut at: f64, ranges: &[(u32, u32)], sum: impl Fn(u32) -> f64) -> Option<u32> {
        for (from, to) in ranges {
            let all = sum(*to) - sum(*from);
            if at < all {
                let wanted = sum(*from) + at;
                let (mut low, mut high) = (*from, *to - 1);
                while low < high {
                    let middle = low + (high - low) / 2;
                    if sum(middle + 1) > wanted { high = middle } else { low = middle + 1 }
                }
                return Some(low);
            }
            at -= all;
        }
        None
    }
}
