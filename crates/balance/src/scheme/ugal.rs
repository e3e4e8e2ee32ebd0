//! UGAL-L: the switch at the source of a packet sends it over a random group of switches where the queue on its shortest path
//! is longer, by what each path is long (Singh 2005; in dragonflies Kim et al. 2008, section 4.1: with local queues); or
//! any switch of its group does (progressive adaptive routing: Jiang, Kim and Dally, ISCA 2009).
//!
//! So traffic that is spread already goes the short way, and what all wants one link goes round. Hosts spray, so that
//! the hash of each packet draws another group; a switch that is not the first sends it where its path says. In a
//! Clos, and within a group, there is no other path, and this is spraying.

use super::spray::RandomSpray;
use super::{PathUse, Scheme, SchemeInfo};
use crate::forward::{Hashed, PathStart, SwitchContext};
use crate::plan::{HostContext, Unsplit};
use crate::steer::FlowContext;
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

/// Shortest paths, and over random groups where these are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ugal {
    /// By so many bytes, times links, the shortest path may be fuller.
    pub bias: u64,
    /// Which switches decide.
    pub at: At,
}

/// Where packets may still be sent over another group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// At the first switch: UGAL-L.
    Source,
    /// At every switch of their own group, as long as they are on a shortest path: progressive adaptive routing.
    Group,
}

impl Scheme for Ugal {
    const INFO: SchemeInfo = SchemeInfo {
        name: "ugal",
        summary: "every packet by a shortest path, or over a random group where that queue is shorter",
        switches: "weigh the queue of a shortest path against that over a random group",
        source: "Singh (2005); Kim, Dally, Scott and Abts (ISCA 2008), UGAL-L",
        multipath: true,
        over_groups: true,
        paths: PathUse::AsPacketsFind,
        in_switch: true,
        weighs_detours: true,
        options: &[
            OptionInfo {
                key: "bias",
                default: "0B",
                kind: OptionKind::Size(0, u64::MAX),
                meaning: "what the queue of the shortest path, times its links, may be longer by; as a size",
            },
            OptionInfo {
                key: "at",
                default: "group",
                kind: OptionKind::Word(&["source", "group"]),
                meaning: "which switches decide: all of a packet's first \"group\" (progressive adaptive \
                          routing), or the first one, the \"source\" (UGAL-L), whose queues may be empty \
                          where a global link further on is full",
            },
        ],
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = RandomSpray;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<Ugal, OptionError> {
        let at = options.choice("at", &[("source", At::Source), ("group", At::Group)])?;
        Ok(Ugal { bias: options.size("bias")?, at })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, context: &FlowContext<'_>) -> RandomSpray {
        RandomSpray::new(context.flow, context.seed)
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
    fn weighs_again(&self) -> bool {
        self.at == At::Group
    }
    fn prefers_detour(&self, shortest: PathStart, detour: PathStart) -> bool {
        shortest.cost() > detour.cost().saturating_add(self.bias)
    }
}
