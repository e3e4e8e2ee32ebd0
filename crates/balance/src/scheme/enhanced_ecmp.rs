//! Enhanced ECMP: connections of several queue pairs, and switches that hash their numbers too
//! (Gangidi et al., SIGCOMM 2024; CTCCL 2025, section 2.2).
//!
//! To a switch that hashes the destination's queue pair, the queue pairs of a connection are as
//! many flows. The same comes out of NCCL with several queue pairs a connection, whose source
//! ports follow from the numbers of queue pairs, over plain ECMP. Nobody reacts to failures.

use super::connections::{Connections, Sharing, connection_draw};
use super::{Scheme, SchemeInfo};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{HostContext, Plan, Post, QueuePairId, Subflow};
use crate::steer::{Fixed, FlowContext};
use weft_fabric::Fabric;
use weft_units::{Draw, HostId, OptionError, Options, Time};

/// Several queue pairs a connection, hashed each by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnhancedEcmp {
    /// How messages use them.
    pub sharing: Sharing,
}

impl Scheme for EnhancedEcmp {
    const INFO: SchemeInfo = SchemeInfo {
        name: "e-ecmp",
        summary: "connections of several queue pairs, and switches hash each of them by itself",
        switches: "hash the queue pair",
        source: "Meta's E-ECMP (Gangidi et al., SIGCOMM 2024); NCCL",
        numbered: Some("queue_pairs"),
        persistent: true,
        options: &[Sharing::QUEUE_PAIRS, Sharing::SPLIT, Sharing::CHUNK],
        ..SchemeInfo::PLAIN
    };
    type Planner = Box<HashedConnections>;
    type Steering = Fixed;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<EnhancedEcmp, OptionError> {
        Ok(EnhancedEcmp { sharing: Sharing::read(options)? })
    }
    fn number(&self) -> Option<u32> {
        Some(self.sharing.queue_pairs)
    }
    fn planner(&self, context: &HostContext) -> Box<HashedConnections> {
        let ports = Draw::new(context.seed, "connection-port");
        let connections = Connections::new(self.sharing, context);
        Box::new(HashedConnections { host: context.host, ports, connections })
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// The connections of one host.
#[derive(Clone, Debug)]
pub struct HashedConnections {
    host: HostId,
    ports: Draw,
    connections: Connections,
}

impl Plan for HashedConnections {
    fn post(&mut self, now: Time, post: Post, _: &Fabric, out: &mut Vec<Subflow>) {
        let pair = connection_draw(self.ports, self.host, &post);
        let port = |number: u32| ((pair >> 48) as u16).wrapping_add(number as u16);
        self.connections.post(now, post, port, out);
    }
    fn next(&mut self, _: Time, queue_pair: QueuePairId, _: &Fabric) -> Option<Subflow> {
        self.connections.next(queue_pair)
    }
}
