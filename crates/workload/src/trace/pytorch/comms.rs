//! Communications as PyTorch names them, and what a rank does in each.
//!
//! An `all_to_allv` becomes a message for each pair of ranks, as its splits say. The `rank` that execution traces
//! give is a place in the group: the root's, or the other rank's.

use crate::WorkloadError;
use crate::collective::Operation;
use crate::trace::groups::listed;
use crate::trace::{Action, Collective, Group, Membership, Peer, Remark, Size, Transfer, Work};
use std::collections::BTreeMap;
use weft_units::options::quoted;

/// A communication as a file tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Comm {
    /// `allreduce` and so on.
    pub(super) name: String,
    /// Elements of what goes in, and of what comes out.
    pub(super) elements: [u64; 2],
    /// Bytes of an element.
    pub(super) width: u64,
    /// What goes to, and comes from, each rank of an `all_to_allv`.
    pub(super) splits: [Vec<u64>; 2],
    /// Whether the file says only the first of them.
    pub(super) is_cut: bool,
    /// The name of its group, and the ranks in it; no ranks are all of them.
    pub(super) group: (String, Vec<u32>),
    /// How many ranks the group has.
    pub(super) size: Option<u32>,
    /// A place in the group: of the root or of the other rank.
    pub(super) place: Option<u32>,
    /// The other rank of a send or receive, by its number in the job.
    pub(super) peer: Option<u32>,
    /// Which of the group's communications it is.
    pub(super) sequence: Option<u64>,
}

impl Comm {
    /// Whether it only waits for another one.
    pub(super) fn is_wait(&self) -> bool {
        self.name == "wait"
    }
    /// Whether this, a wait, may be for `other`: every group numbers its own. Files that do not tell
    /// group or number leave it open.
    pub(super) fn awaits(&self, other: &Comm) -> bool {
        let (own, theirs) = (&self.group.0, &other.group.0);
        let is_one_group = own.is_empty() || theirs.is_empty() || own == theirs;
        is_one_group && (self.sequence.is_none() || self.sequence == other.sequence)
    }
    /// Takes from `other` what is not known here.
    pub(super) fn complete(&mut self, other: &Comm) {
        if self.name.is_empty() {
            *self = other.clone();
        }
        self.place = self.place.or(other.place);
        self.peer = self.peer.or(other.peer);
        self.sequence = self.sequence.or(other.sequence);
        if self.group.1.is_empty() {
            self.group.1.clone_from(&other.group.1);
        }
        if self.is_cut && !other.splits[0].is_empty() {
            self.splits.clone_from(&other.splits);
            self.is_cut = false;
        }
    }
}

/// Bytes of an element of this type, as PyTorch calls it.
pub(super) fn width(kind: &str) -> Option<u64> {
    let kind = kind.trim_start_matches("c10::").to_ascii_lowercase();
    Some(match kind.as_str() {
        "byte" | "char" | "bool" | "int8" | "uint8" | "unsigned char" | "signed char" => 1,
        _ if kind.starts_with("float8") => 1,
        "half" | "bfloat16" | "short" | "int16" | "uint16" => 2,
        "float" | "int" | "int32" | "uint32" | "complexhalf" => 4,
        "double" | "long" | "long int" | "int64" | "uint64" | "complexfloat" => 8,
        "complexdouble" => 16,
        _ => return None,
    })
}

/// What communications become, the same numbers of groups at all ranks.
#[derive(Debug, Default)]
pub(super) struct Lowering {
    groups: BTreeMap<(String, Vec<u32>), u32>,
    /// How many ranks a group has of which no file tells them.
    sizes: BTreeMap<u32, u32>,
    /// How many `all_to_allv` a rank had in a group.
    exchanges: BTreeMap<(u32, u32), u64>,
    /// The largest rank that was named, and one more.
    ranks: u32,
    /// Broadcasts and reductions whose root no file tells.
    rootless: u64,
    /// Waits that do not say for what.
    guessed: u64,
}

impl Lowering {
    /// What `rank` does in a communication, all at once.
    ///
    /// # Errors
    /// What is missing or makes no sense, with the mend.
    pub(super) fn works(&mut self, rank: u32, comm: &Comm) -> Result<Vec<Work>, String> {
        let group = self.group(comm);
        let bytes = |elements: u64| {
            let bytes = elements.checked_mul(comm.width);
            bytes.ok_or_else(|| format!("{} moves more than 2^64 bytes; correct it", comm.name))
        };
        let [taken, given] = [bytes(comm.elements[0])?, bytes(comm.elements[1])?];
        let own = comm.name.trim_start_matches("nccl:").trim_start_matches('_');
        let (operation, size) = match own {
            "allreduce" | "allreduce_coalesced" | "all_reduce" => {
                (Operation::AllReduce, Size::Whole(taken))
            }
            "broadcast" => (Operation::Broadcast, Size::Whole(taken.max(given))),
            "reduce" => (Operation::Reduce, Size::Whole(taken)),
            "barrier" => {
                return Ok(vec![self.collective(comm, Action::Barrier, Size::Whole(0), group)]);
            }
            "send" | "recv" => {
                return self.transfer(rank, comm, group, taken.max(given)).map(|one| vec![one]);
            }
            "all_to_allv" | "alltoallv" if comm.is_cut => {
                let what =
                    "all_to_allv with its splits cut after 30 ranks, without an execution_trace";
                return Ok(vec![Work::Unsupported(what.into())]);
            }
            "all_to_allv" | "alltoallv"
                if !comm.splits[0].is_empty() || !comm.splits[1].is_empty() =>
            {
                return self.exchange(rank, comm, group);
            }
            _ if own.starts_with("allgather") || own.starts_with("all_gather") => {
                (Operation::AllGather, Size::Shard(taken))
            }
            _ if own.starts_with("reduce_scatter") => {
                (Operation::ReduceScatter, Size::Whole(taken))
            }
            _ if own.starts_with("all_to_all") || own.starts_with("alltoall") => {
                (Operation::AllToAll, Size::Whole(taken))
            }
            other => {
                return Ok(vec![Work::Unsupported(
                    format!("communication {}", quoted(other)).into(),
                )]);
            }
        };
        Ok(vec![self.collective(comm, Action::Operation(operation), size, group)])
    }

    fn collective(&mut self, comm: &Comm, action: Action, size: Size, group: u32) -> Work {
        let is_rooted =
            matches!(action, Action::Operation(Operation::Broadcast | Operation::Reduce));
        self.rootless += u64::from(is_rooted && comm.place.is_none());
        let root = comm.place.filter(|_| is_rooted).unwrap_or(0);
        Work::Collective(Collective { action, size, group, root, turn: 0 })
    }

    fn transfer(&mut self, rank: u32, comm: &Comm, group: u32, bytes: u64) -> Result<Work, String> {
        let of_place = comm.place.and_then(|place| member(comm, place));
        let peer = comm.peer.or(of_place).filter(|peer| *peer != rank).ok_or_else(|| {
            format!(
                "{} does not say with which rank; give the execution trace of the same step",
                comm.name
            )
        })?;
        self.ranks = self.ranks.max(peer.saturating_add(1));
        let one = Transfer { peer: Peer::Rank(peer), bytes, tag: u64::from(group) << 32, turn: 0 };
        Ok(if comm.name == "send" { Work::Send(one) } else { Work::Receive(one) })
    }

    /// A message for each pair of ranks that has something to send.
    fn exchange(&mut self, rank: u32, comm: &Comm, group: u32) -> Result<Vec<Work>, String> {
        let count = self.exchanges.entry((rank, group)).or_default();
        let tag = u64::from(group) << 32 | 1 << 31 | *count;
        *count += 1;
        let mut works = Vec::new();
        for (way, splits) in comm.splits.iter().enumerate() {
            let all: u64 = splits.iter().fold(0, |sum, one| sum.saturating_add(*one));
            // Splits count rows, of which each has as many elements.
            let row = comm.elements[way].checked_div(all).unwrap_or(0);
            for (place, rows) in (0u32..).zip(splits) {
                let bytes =
                    rows.checked_mul(row).and_then(|elements| elements.checked_mul(comm.width));
                let bytes = bytes.ok_or("its splits are more than 2^64 bytes; correct them")?;
                let peer = member(comm, place).ok_or_else(|| {
                    format!(
                        "its splits are for more than the {} ranks of its group; correct them",
                        comm.group.1.len()
                    )
                })?;
                self.ranks = self.ranks.max(peer.saturating_add(1));
                if bytes > 0 && peer != rank {
                    let one = Transfer { peer: Peer::Rank(peer), bytes, tag, turn: 0 };
                    works.push(if way == 0 { Work::Send(one) } else { Work::Receive(one) });
                }
            }
        }
        Ok(works)
    }

    /// The number of its group.
    fn group(&mut self, comm: &Comm) -> u32 {
        let last = comm.group.1.iter().max().map_or(0, |rank| rank.saturating_add(1));
        let all = if comm.group.1.is_empty() { comm.size.unwrap_or(0) } else { 0 };
        self.ranks = self.ranks.max(last).max(all);
        let next = self.groups.len() as u32;
        let number = *self.groups.entry(comm.group.clone()).or_insert(next);
        if let (true, Some(size)) = (comm.group.1.is_empty(), comm.size) {
            self.sizes.insert(number, size);
        }
        number
    }

    /// Notes a wait that does not say for what.
    pub(super) fn guess(&mut self) {
        self.guessed += 1;
    }

    /// One more than the largest rank that is named.
    pub(super) fn largest(&self) -> u32 {
        self.ranks
    }

    /// All groups, those of all `world` ranks as such.
    ///
    /// # Errors
    /// If one names a rank twice, or has some ranks and no file says which.
    pub(super) fn groups(&self, name: &str, world: u32) -> Result<Vec<Group>, WorkloadError> {
        let mut groups = vec![Group::of(Membership::World); self.groups.len()];
        for ((own, ranks), number) in &self.groups {
            if let Some(size) = self.sizes.get(number).filter(|size| **size < world) {
                return Err(WorkloadError(format!(
                    "{name}: group {own:?} has {size} of {world} ranks, and nothing says which; record it with \
                     distributedInfo, or give the execution trace of the same step"
                )));
            }
            let members = match ranks.is_empty() || ranks.iter().copied().eq(0..world) {
                true => Membership::World,
                false => listed(&format!("{name}: group {own:?}"), ranks.clone())?,
            };
            let shown = if own.is_empty() { members.name().to_owned() } else { own.clone() };
            groups[*number as usize] = Group { name: shown, members };
        }
        if groups.is_empty() {
            groups.push(Group::of(Membership::World));
        }
        Ok(groups)
    }

    /// What was taken otherwise than written.
    pub(super) fn remarks(&self) -> Vec<Remark> {
        let all = [
            (
                self.rootless,
                "broadcasts and reductions without a root; the first rank of the group is taken",
            ),
            (
                self.guessed,
                "waits do not say for what; each is taken for the next communication in order",
            ),
        ];
        let told = all.into_iter().filter(|(count, _)| *count > 0);
        told.map(|(count, what)| Remark { what: what.into(), count }).collect()
    }
}

/// The rank at a place of the communication's group.
fn member(comm: &Comm, place: u32) -> Option<u32> {
    match comm.group.1.is_empty() {
        true => Some(place),
        false => comm.group.1.get(place as usize).copied(),
    }
}
