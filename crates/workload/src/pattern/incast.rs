//! Many hosts send to one.

use super::{PatternInfo, Scope};
use crate::{Workload, WorkloadError};
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "incast",
    summary: "`senders` hosts send `size` each to one receiver at once",
    source: "Ethereal (2024), section 2.1: one step of a repetitive incast",
    options: &[
        OptionInfo {
            key: "senders",
            default: "all others",
            kind: OptionKind::Whole(0, u32::MAX),
            meaning: "how many send: the hosts that follow the receiver",
        },
        OptionInfo {
            key: "receiver",
            default: "0",
            kind: OptionKind::Whole(0, u32::MAX),
            meaning: "the host that receives",
        },
    ],
};

/// One message from each of the hosts that follow the receiver, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incast {
    /// How many send; `None` stands for all hosts but the receiver.
    pub senders: Option<u32>,
    /// The host that all send to, by its number.
    pub receiver: u32,
}

impl Incast {
    pub(super) fn read(options: &mut Options<'_>) -> Result<Incast, OptionError> {
        let receiver = options.number("receiver")?;
        Ok(Incast { senders: options.number_if_given("senders")?, receiver })
    }

    /// How many messages there are at most on `scope`, and the option that makes them many.
    pub(super) fn messages(&self, scope: &Scope) -> (u64, &'static str) {
        (u64::from(self.senders.unwrap_or(scope.hosts.saturating_sub(1))), "senders")
    }

    /// The messages, from `receiver + 1` on, counting on from host zero at the end.
    ///
    /// # Errors
    /// If the receiver is not a host, the senders are none or more than the other hosts, or the
    /// scope holds fewer than two hosts or no bytes.
    pub fn generate(&self, scope: &Scope) -> Result<Workload, WorkloadError> {
        let others = scope.hosts.saturating_sub(1);
        let senders = self.senders.unwrap_or(others);
        let mut workload = scope.workload(self.messages(scope))?;
        if self.receiver >= scope.hosts {
            return Err(WorkloadError(format!(
                "receiver: host {} does not exist; hosts are 0 to {others}",
                self.receiver
            )));
        }
        if !(1..=others).contains(&senders) {
            return Err(WorkloadError(format!(
                "senders: {senders} is not between 1 and the {others} hosts beside the receiver; \
                 change it or the number of hosts"
            )));
        }
        for distance in 1..=senders {
            scope.send(&mut workload, scope.ahead(self.receiver, distance), self.receiver);
        }
        Ok(workload)
    }
}
