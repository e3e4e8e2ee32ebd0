//! DRILL(d, m) (Ghorbani et al., SIGCOMM 2017): every packet looks at `d` hops by
//! chance and at the `m` best that the switch remembers, and takes the shortest queue.
//!
//! A forwarding engine of the paper remembers for each set of hops ([`Memory::Hops`]); here a
//! switch is one engine. The code behind ConWeave (SIGCOMM 2023), which ParaLet (2024) compares with,
//! remembers for each destination ([`Memory::Destination`]), and hashes acknowledgements, which
//! take part here as they do in the paper. Of equal queues the remembered one is taken. What the
//! paper does about asymmetric fabrics, to hash flows to groups of like paths first, is left out.

use super::{PathUse, Scheme, SchemeInfo};
use crate::forward::{Forward, Hops, Passing, SwitchContext};
use crate::plan::{HostContext, Unsplit};
use crate::steer::{Fixed, FlowContext};
use rustc_hash::FxHashMap;
use weft_units::{Draw, OptionError, OptionInfo, OptionKind, Options, Stream};

/// Some hops by chance and some remembered ones: the shortest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drill {
    /// How many different hops are drawn for a packet, "d". One at least.
    pub samples: u32,
    /// How many of the best are remembered, "m".
    pub memory: u32,
    /// Whether it remembers for each set of hops or for each destination.
    pub per: Memory,
}

/// What a switch remembers hops for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Each set of equal next hops.
    Hops,
    /// Each host that packets go to.
    Destination,
}

impl Scheme for Drill {
    const INFO: SchemeInfo = SchemeInfo {
        name: "drill",
        summary: "every packet the shortest queue of two hops that a switch draws and the last best",
        switches: "queue lengths",
        source: "DRILL (Ghorbani et al., SIGCOMM 2017)",
        multipath: true,
        in_switch: true,
        options: &[
            OptionInfo {
                key: "samples",
                default: "2",
                kind: OptionKind::Whole(1, 64),
                meaning: "hops that a switch draws for a packet, up to 64",
            },
            OptionInfo {
                key: "memory",
                default: "1",
                kind: OptionKind::Whole(0, 64),
                meaning: "best hops that it remembers and looks at too, up to 64",
            },
            OptionInfo {
                key: "memory_per",
                default: "hops",
                kind: OptionKind::Word(&["hops", "destination"]),
                meaning: "\"hops\": it remembers for each set of equal hops, as published; \
                          \"destination\": for each host, as in the code behind ConWeave",
            },
        ],
        paths: PathUse::AllAlike,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Fixed;
    type Switching = Box<LocalBest>;

    fn read(options: &mut Options<'_>) -> Result<Drill, OptionError> {
        Ok(Drill {
            samples: options.number("samples")?,
            memory: options.number("memory")?,
            per: options.choice(
                "memory_per",
                &[("hops", Memory::Hops), ("destination", Memory::Destination)],
            )?,
        })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, context: &SwitchContext) -> Box<LocalBest> {
        Box::new(LocalBest::new(*self, context))
    }
}

/// A switch under [`Drill`].
#[derive(Clone, Debug)]
pub struct LocalBest {
    scheme: Drill,
    stream: Stream,
    /// Never iterated.
    memory: FxHashMap<u32, Best>,
    /// The hops drawn for a packet, ascending.
    drawn: Vec<u32>,
    /// All that it looks at, with the bytes in their queues.
    looked_at: Vec<(u64, u32)>,
}

/// The best hops that were seen last, the very best first.
#[derive(Clone, Debug, Default)]
struct Best {
    hops: Vec<u32>,
    /// Of how many: a number of a hop means nothing among others.
    count: u32,
}

impl LocalBest {
    /// For one switch.
    pub fn new(scheme: Drill, context: &SwitchContext) -> LocalBest {
        let draw = Draw::new(context.seed, "drill");
        LocalBest {
            scheme,
            stream: draw.stream(u64::from(context.switch.0)),
            memory: FxHashMap::default(),
            drawn: Vec::new(),
            looked_at: Vec::new(),
        }
    }
}

/// A hop below `count` that is not among `drawn`, which are sorted; puts it there.
fn draw(stream: &mut Stream, drawn: &mut Vec<u32>, count: u32) -> u32 {
    let mut hop = stream.below(count - drawn.len() as u32);
    let mut at = 0;
    while at < drawn.len() && drawn[at] <= hop {
        (hop, at) = (hop + 1, at + 1);
    }
    drawn.insert(at, hop);
    hop
}

impl Forward for LocalBest {
    #[inline]
    fn choose<H: Hops>(&mut self, packet: &Passing, hops: &H) -> u32 {
        let count = hops.count();
        if count == 1 {
            return 0;
        }
        let LocalBest { scheme, stream, memory, drawn, looked_at } = self;
        let best = memory.entry(match scheme.per {
            Memory::Hops => hops.group(),
            Memory::Destination => packet.dst.0,
        });
        let best = best.or_default();
        if best.count != count {
            *best = Best { hops: Vec::new(), count };
        }
        drawn.clear();
        looked_at.clear();
        looked_at.extend(best.hops.iter().map(|hop| (hops.queued(*hop), *hop)));
        for _ in 0..scheme.samples.min(count) {
            let hop = draw(stream, drawn, count);
            if !best.hops.contains(&hop) {
                looked_at.push((hops.queued(hop), hop));
            }
        }
        // Stable: of equal ones those come first that were remembered, then as they were drawn.
        looked_at.sort_by_key(|(queued, _)| *queued);
        best.hops.clear();
        best.hops.extend(looked_at.iter().take(scheme.memory as usize).map(|(_, hop)| *hop));
        looked_at[0].1
    }
}
