//! Background traffic: what other tenants send while a workload runs.
//!
//! Messages arrive as a Poisson process at each host, as many as give the load that is asked for; sizes
//! are all equal, or of one of the distributions that the literature measures networks with, between whose
//! points sizes are uniform.

use crate::job::{Algorithms, Job};
use crate::trace::{Degrees, Node, Peer, RankGraph, Trace, Transfer, Work};
use crate::{Message, WorkloadError};
use std::collections::BTreeMap;
use weft_units::random::{Draw, Stream};
use weft_units::{HostId, Rate, Time};

/// What others send.
#[derive(Clone, Debug, PartialEq)]
pub struct Background {
    /// Who sends to whom.
    pub pattern: Toward,
    /// The share of a host's rate that its messages take, in the mean.
    pub load: f64,
    /// How long messages are.
    pub sizes: Sizes,
}

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    /// Each message to another host, drawn.
    Uniform,
    /// All of a host to the same other one, each host to another.
    Permutation,
    /// So many hosts at once to one, drawn each time.
    Incast(u32),
}

/// How long messages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All alike.
    Fixed(u64),
    /// A distribution: bytes, and the share in ten thousandths of messages that are no longer.
    Measured(&'static [(u64, u32)]),
}

/// Web search (Alizadeh et al., DCTCP, 2010), as HPCC's (2019) traffic generator has it.
pub const WEB_SEARCH: &[(u64, u32)] = &[
    (0, 0),
    (10_000, 1500),
    (20_000, 2000),
    (30_000, 3000),
    (50_000, 4000),
    (80_000, 5300),
    (200_000, 6000),
    (1_000_000, 7000),
    (2_000_000, 8000),
    (5_000_000, 9000),
    (10_000_000, 9700),
    (30_000_000, 10_000),
];

/// Data mining (Greenberg et al., VL2, 2009), as pFabric (2013) has it in packets of 1460 bytes.
pub const DATA_MINING: &[(u64, u32)] = &[
    (0, 0),
    (1_460, 5000),
    (2_920, 6000),
    (4_380, 7000),
    (10_220, 8000),
    (389_820, 9000),
    (3_076_220, 9500),
    (97_333_820, 9900),
    (973_333_820, 10_000),
];

/// Alibaba's distributed storage in 2019, as HPCC's traffic generator has it.
pub const STORAGE: &[(u64, u32)] = &[
    (0, 0),
    (4_000, 2293),
    (8_000, 6921),
    (16_000, 8061),
    (32_000, 9047),
    (64_000, 9353),
    (128_000, 9677),
    (256_000, 9753),
    (2_000_000, 10_000),
];

impl Sizes {
    /// The mean, in bytes.
    pub fn mean(self) -> f64 {
        match self {
            Sizes::Fixed(bytes) => bytes as f64,
            Sizes::Measured(points) => {
                let part = |pair: &[(u64, u32)]| {
                    let middle = (pair[0].0 + pair[1].0) as f64 / 2.0;
                    f64::from(pair[1].1 - pair[0].1) / 1e4 * middle
                };
                points.windows(2).map(part).sum()
            }
        }
    }
    fn draw(self, stream: &mut Stream) -> u64 {
        match self {
            Sizes::Fixed(bytes) => bytes,
            Sizes::Measured(points) => {
                let at = stream.unit() * 1e4;
                let above = points.partition_point(|(_, share)| f64::from(*share) <= at);
                let [low, high] =
                    [above - 1, above].map(|place| points[place.min(points.len() - 1)]);
                let within = (at - f64::from(low.1)) / f64::from((high.1 - low.1).max(1));
                ((low.0 as f64 + within * (high.0 - low.0) as f64) as u64).max(1)
            }
        }
    }
}

impl Background {
    /// How many messages `hosts` hosts with links of `line` send until `until`, nearly.
    pub fn count(&self, hosts: u32, line: Rate, until: Time) -> u64 {
        (self.each_second(line) * f64::from(hosts) * until.as_secs_f64()) as u64
    }
    /// Messages of a host in a second.
    fn each_second(&self, line: Rate) -> f64 {
        self.load * line.as_bps() as f64 / 8.0 / self.sizes.mean()
    }

    /// The messages of `hosts` with links of `line` until `until`, by time, then by host.
    ///
    /// # Errors
    /// If there are too few hosts: with the key and the mend.
    pub fn messages(
        &self,
        hosts: &[HostId],
        line: Rate,
        until: Time,
        seed: u64,
    ) -> Result<Vec<Message>, WorkloadError> {
        let least = match self.pattern {
            Toward::Incast(senders) => senders.saturating_add(1),
            _ => 2,
        };
        if (hosts.len() as u64) < u64::from(least) {
            let have = hosts.len();
            return Err(WorkloadError(match self.pattern {
                Toward::Incast(senders) => format!(
                    "senders: {senders} and a receiver are more than the {have} hosts that take part; use less, or more \
                     hosts"
                ),
                _ => format!("hosts: {have} are too few; give {least} at least"),
            }));
        }
        let mut all = match self.pattern {
            Toward::Incast(senders) => self.incasts(hosts, senders, line, until, seed),
            _ => self.each(hosts, line, until, seed),
        };
        all.sort_by_key(|message| (message.start, message.src));
        Ok(all)
    }

    fn each(&self, hosts: &[HostId], line: Rate, until: Time, seed: u64) -> Vec<Message> {
        let count = hosts.len() as u32;
        // Round a circle of all hosts: a permutation of one cycle.
        let mut circle: Vec<u32> = (0..count).collect();
        Draw::new(seed, "background-permutation").stream(0).shuffle(&mut circle);
        let mut place = vec![0; hosts.len()];
        for (at, host) in (0..).zip(&circle) {
            place[*host as usize] = at;
        }
        let draw = Draw::new(seed, "background");
        let mut all = Vec::new();
        for own in 0..count {
            let mut stream = draw.stream(hosts[own as usize].0.into());
            let mut at = 0.0;
            while let Some(start) = next(&mut at, &mut stream, self.each_second(line), until) {
                let to = match self.pattern {
                    Toward::Permutation => circle[(place[own as usize] as usize + 1) % hosts.len()],
                    _ => (own + 1 + stream.below(count - 1)) % count,
                };
                let (src, dst) = (hosts[own as usize], hosts[to as usize]);
                all.push(Message { src, dst, bytes: self.sizes.draw(&mut stream), start });
            }
        }
        all
    }

    fn incasts(
        &self,
        hosts: &[HostId],
        senders: u32,
        line: Rate,
        until: Time,
        seed: u64,
    ) -> Vec<Message> {
        let mut stream = Draw::new(seed, "background-incast").stream(0);
        let each_second = self.each_second(line) * hosts.len() as f64 / f64::from(senders);
        let (mut at, mut all) = (0.0, Vec::new());
        let mut order: Vec<HostId> = hosts.to_vec();
        while let Some(start) = next(&mut at, &mut stream, each_second, until) {
            // The first ones of a shuffle that has only just begun.
            for place in 0..=senders as usize {
                let other = place + stream.below((order.len() - place) as u32) as usize;
                order.swap(place, other);
            }
            for src in &order[1..=senders as usize] {
                let bytes = self.sizes.draw(&mut stream);
                all.push(Message { src: *src, dst: order[0], bytes, start });
            }
        }
        all
    }
}

/// The next arrival of a Poisson process, after `at` seconds; `None`: it is later than `until`.
fn next(at: &mut f64, stream: &mut Stream, each_second: f64, until: Time) -> Option<Time> {
    if each_second <= 0.0 {
        return None;
    }
    *at += -libm::log(1.0 - stream.unit()) / each_second;
    let time = *at * 1e12;
    (time < until.0 as f64).then_some(Time(time as u64))
}

/// The same as a job: a rank for each host that has some, in the order of hosts; each message is posted at
/// its time. Returns the hosts of the ranks as well.
///
/// # Errors
/// Never, for what [`Background::messages`] gives.
pub fn as_job(messages: &[Message]) -> Result<(Job, Vec<HostId>), WorkloadError> {
    let mut graphs: BTreeMap<HostId, RankGraph> = BTreeMap::new();
    for message in messages {
        for host in [message.src, message.dst] {
            graphs.entry(host).or_insert_with(|| RankGraph::new("background"));
        }
    }
    let hosts: Vec<HostId> = graphs.keys().copied().collect();
    let rank = |host: &HostId| hosts.binary_search(host).expect("it has messages") as u32;
    for message in messages {
        let mut push = |at: &HostId, peer: &HostId, start, work: fn(Transfer) -> Work| {
            let graph = graphs.get_mut(at).expect("it has messages");
            let id = graph.nodes().len() as u64;
            let peer = Peer::Rank(rank(peer));
            let work = work(Transfer { peer, bytes: message.bytes, tag: 0, turn: 0 });
            graph.push(Node { id, name: "".into(), work, start }, &[]);
        };
        push(&message.src, &message.dst, message.start, Work::Send);
        push(&message.dst, &message.src, Time::ZERO, Work::Receive);
    }
    let mut graphs: Vec<RankGraph> = graphs.into_values().collect();
    for graph in &mut graphs {
        graph.number_turns();
    }
    let trace = Trace {
        name: "background".into(),
        ranks: Some(hosts.len() as u32),
        graphs,
        shared: false,
        groups: Vec::new(),
        degrees: Degrees::NONE,
        exchanges: Vec::new(),
        carried: Vec::new(),
        remarks: Vec::new(),
    };
    Ok((Job::new(trace, Algorithms::usual())?, hosts))
}
