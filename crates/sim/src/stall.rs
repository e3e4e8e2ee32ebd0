//! A run that stalled, in words: since when, which links are down, which messages are not done and
//! how often their bytes were sent, and who waits for what.
//!
//! Invariant: what is told depends on the run alone, and not on how it is cut.

use crate::config::{JobConfig, RunConfig};
use crate::engine::Engine;
use crate::halt::{Silence, Stall};
use crate::outcome::Totals;
use crate::partition::SendingId;
use crate::world::World;
use weft_units::{MessageId, Time, about_bytes, about_time};
use weft_workload::job::{Awaited, Wait};

/// Which messages or ranks of a run that stalled are not done, and what they wait for; the
/// first few.
pub(crate) fn diagnose<Q, P>(
    world: &World,
    partitions: &[Engine<Q, P>],
    silence: Silence,
    totals: Totals,
) -> Stall {
    let job = world.config.job.as_ref();
    let mut lines = job.map(|job| waiting_ranks(job, partitions)).unwrap_or_default();
    lines.extend(open_messages(world, partitions));
    Stall::new(world.config, silence, &lines, totals)
}

impl Stall {
    /// Of a run that counted `totals`; `lines`: what waits for what.
    pub fn new(
        config: &RunConfig<'_>,
        silence: Silence,
        lines: &[String],
        totals: Totals,
    ) -> Stall {
        let Silence { since, now, packets } = silence;
        let (since, at) = (about_time(since), about_time(now));
        let what = match packets {
            None => format!("nothing delivered since {since} (now {at})"),
            Some(packets) => format!(
                "no message has got nearer to its end since {since}, while {packets} data packets \
                 were sent (now {at})"
            ),
        };
        let down = down_links(config, now).map(|links| format!("; {links}")).unwrap_or_default();
        let text = format!("{what}{down}: {}", lines.join("; "));
        Stall { text, totals: Totals { events: 0, ..totals } }
    }
}

impl RunConfig<'_> {
    /// What messages call the message between two ranks, or one of the workload.
    pub fn message_name(&self, message: MessageId, ranks: Option<(u32, u32)>) -> String {
        match (&self.job, ranks) {
            (Some(job), Some((src, dst))) => {
                format!("message {} -> {}", rank_name(job, src), rank_name(job, dst))
            }
            _ => {
                let one = &self.workload.messages()[message];
                format!("message {} (host-{} -> host-{})", message.0, one.src.0, one.dst.0)
            }
        }
    }
}

/// A message that is not done.
struct Open<'e, 'a, Q, P> {
    /// The partition of its sender.
    partition: &'e Engine<'a, Q, P>,
    id: SendingId,
    message: MessageId,
}

/// Messages that are not done, in words: of patterns the first few; of ranks those of which most
/// was sent again.
fn open_messages<Q, P>(world: &World, partitions: &[Engine<Q, P>]) -> Vec<String> {
    const SHOWN: usize = 4;
    let mut open = Vec::new();
    for partition in partitions {
        let messages = partition.messages.open();
        open.extend(messages.map(|(id, sending)| Open { partition, id, message: sending.message }));
    }
    let first = |open: &Open<Q, P>| match world.config.job.is_some() {
        true => (u32::MAX - open.sent_again(), open.message),
        false => (0, open.message),
    };
    open.sort_by_key(first);
    let mut lines: Vec<_> =
        open.iter().take(SHOWN).map(|one| one.tell(world, partitions)).collect();
    let rest = open.len().saturating_sub(SHOWN);
    lines.extend((rest > 0).then(|| format!("and {rest} more")));
    lines
}

impl<Q, P> Open<'_, '_, Q, P> {
    /// Data packets of it that left more than once.
    fn sent_again(&self) -> u32 {
        self.partition.messages.sending(self.id).result().retransmits
    }

    fn tell(&self, world: &World, partitions: &[Engine<Q, P>]) -> String {
        let (config, message) = (world.config, self.message);
        let ranks = self.partition.jobs.as_ref().map(|jobs| jobs.ends(self.id));
        let name = config.message_name(message, ranks);
        let dst = match (&config.job, ranks) {
            (Some(job), Some((_, dst))) => job.hosts[dst as usize],
            _ => config.workload.messages()[message].dst,
        };
        let receiver = &partitions[usize::from(world.partitioning.hosts[dst].partition)];
        match self.partition.messages.sending(self.id).unmet() {
            0 => format!("{name} {}", self.missing(receiver, config.packet.mtu)),
            unmet => format!("{name} waits for {unmet} dependencies"),
        }
    }

    /// How much of it has not arrived, and how much of it was sent again.
    fn missing(&self, receiver: &Engine<Q, P>, mtu: u32) -> String {
        let sending = self.partition.messages.sending(self.id);
        let stuck = self.partition.nics.senders().iter().filter(|flow| flow.is_open_of(self.id));
        let halves = receiver.nics.receivers().iter().flatten();
        let halves = halves.filter(|flow| flow.message == sending.receiving);
        let here: u64 = halves.map(|flow| flow.bytes_of_open_subflow(mtu)).sum();
        let missing = receiver.messages.receiving(sending.receiving).bytes_missing() - here;
        let again = u64::from(self.sent_again());
        let symbols = stuck.clone().map(|flow| flow.symbols_beyond()).sum::<u64>();
        let times = |packets: u64| 1.0 + (packets * u64::from(mtu)) as f64 / sending.bytes as f64;
        let sent = match (again, symbols) {
            (0, 0) => String::new(),
            (0, more) => format!(", {more} symbols sent beyond those that it needs"),
            (again, _) => {
                let packets = counted(again, "packet");
                format!(", {packets} sent again ({:.1} times its bytes in all)", times(again))
            }
        };
        let (bytes, pairs) = (sending.bytes, counted(stuck.count() as u64, "queue pair"));
        format!("misses {missing} of {bytes} bytes on {pairs}{sent}")
    }
}

/// One of them, or several.
fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn rank_name(job: &JobConfig, rank: u32) -> String {
    format!("rank {rank} (host-{})", job.hosts[rank as usize].0)
}

/// The links that are down at `now`; the first few.
fn down_links(config: &RunConfig<'_>, now: Time) -> Option<String> {
    const SHOWN: usize = 4;
    let links = config.failures.down_links(config.fabric, now);
    let shown = links[..links.len().min(SHOWN)].join(", ");
    match links.len() {
        0 => None,
        1 => Some(format!("link {shown} is down")),
        many if many <= SHOWN => Some(format!("links {shown} are down")),
        many => Some(format!("links {shown} and {} more are down", many - SHOWN)),
    }
}

/// What keeps ranks waiting; the first few of them.
fn waiting_ranks<Q, P>(job: &JobConfig, partitions: &[Engine<Q, P>]) -> Vec<String> {
    const SHOWN: usize = 4;
    let jobs = partitions.iter().filter_map(|partition| partition.jobs.as_ref());
    let mut stuck: Vec<(u32, Vec<Wait>)> = jobs.flat_map(|jobs| jobs.waits()).collect();
    stuck.sort_unstable();
    let told = stuck.iter().take(SHOWN).map(|(rank, waits)| waiting(job, *rank, waits));
    let mut lines: Vec<String> = told.collect();
    let rest = stuck.len().saturating_sub(SHOWN);
    lines.extend((rest > 0).then(|| format!("and {rest} more ranks")));
    lines
}

/// One rank and what it waits for; the first few things.
fn waiting(job: &JobConfig, rank: u32, waits: &[Wait]) -> String {
    const SHOWN: usize = 2;
    let name = |rank: u32| rank_name(job, rank);
    let one = |Wait { within, peer, what }: &Wait| {
        let peer = name(*peer);
        match what {
            Awaited::Message(bytes) => {
                format!("{} of {within} from {peer}", about_bytes(*bytes))
            }
            Awaited::Acknowledgement(bytes) => {
                format!("{peer} to acknowledge {} of {within}", about_bytes(*bytes))
            }
            Awaited::Switches(bytes) => {
                format!(
                    "switches and all ranks to be through with {} of {within}",
                    about_bytes(*bytes)
                )
            }
        }
    };
    let shown: Vec<String> = waits.iter().take(SHOWN).map(one).collect();
    let more = match waits.len().saturating_sub(SHOWN) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    format!("{} waits for {}{more}", name(rank), shown.join(" and "))
}
