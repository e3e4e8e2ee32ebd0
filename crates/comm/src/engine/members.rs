//! The NICs of an endpoint: one, or several that are used as one.
//!
//! Each has an address, a listener and a planner of its own; channels, lanes and requests are the endpoint's.
//! A message is cut into a share for each NIC, by line rates, and a share goes over the paths of its NIC. A
//! lane outlives its connections, so one whose NIC is dead goes on from another. All have RDMA devices, or none.
//!
//! Invariant: a lane's connections leave from the NIC of its way, to the NIC that answers it there.

use super::lanes::Phase;
use super::planning::{LanePart, Planning};
use super::routes::{Key, LanePath};
use super::sending::Sending;
use super::{Engine, LISTENER};
use crate::handle::{MOST_NICS, Nic, Parts, SECRET};
use crate::{Backend, CommError, EndpointConfig, tcp};
use mio::net::TcpListener;
use mio::{Interest, Registry};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};
use weft_units::HostId;

/// How many there may be: numbers of subflows are of one each.
pub(super) const MOST_MEMBERS: u32 = MOST_NICS as u32;
/// A message is cut over NICs into shares of at least so many bytes, and into whole multiples of the other.
const LEAST_SHARE: u64 = 64 << 10;
const QUANTUM: u64 = 16 << 10;
/// A NIC over which nothing went gets no shares for so long.
const REST: Duration = Duration::from_secs(30);
/// A lane that was not welcomed so often leaves a NIC over which others are.
const PATHS: u32 = 2;

struct Member {
    address: Ipv4Addr,
    listener: TcpListener,
    port: u16,
    plane: Option<u8>,
    host: Option<u32>,
    /// Of all messages so much is its, where its peers can be reached.
    weight: f64,
    planning: Option<Planning>,
}

/// The NICs.
pub(super) struct Members(Vec<Member>);

/// What a NIC reaches of a peer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct End {
    /// Where the peer listens in that plane.
    pub(super) address: SocketAddrV4,
    /// Which host of the fabric it says that it is.
    pub(super) host: Option<u32>,
    /// The same, if a planner cuts what goes there.
    pub(super) dst: Option<HostId>,
    /// Whether the peer is in that plane.
    pub(super) reaches: bool,
    /// What went there, by weight.
    load: f64,
    /// When nothing got through, the last time.
    down: Option<Instant>,
    /// When the peer was last heard over it.
    pub(super) heard: Option<Instant>,
}

impl End {
    /// Whether nothing got through a short time ago.
    fn rests(&self, now: Instant) -> bool {
        self.down.is_some_and(|since| now - since < REST)
    }
}

/// What of a message is for one NIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) member: u8,
    /// Its first byte, and the one after its last.
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Whether these NICs can be used as one.
pub(crate) fn fit(configs: &[EndpointConfig]) -> Result<(), CommError> {
    let invalid = |what: String| Err(CommError::Invalid(what));
    let count = configs.len();
    if !(1..=MOST_NICS).contains(&count) {
        return invalid(format!("{count} NICs; use 1 to {MOST_NICS} as one"));
    }
    for (at, one) in configs.iter().enumerate().filter(|_| count > 1) {
        if configs[..at].iter().any(|other| other.address == one.address) {
            return invalid(format!("{}: its address {} is there twice", one.name, one.address));
        }
        let is_roce = |one: &EndpointConfig| matches!(one.backend, Backend::Roce { .. });
        if is_roce(one) != is_roce(&configs[0]) {
            let [tcp, roce] = if is_roce(one) { [&configs[0], one] } else { [one, &configs[0]] };
            return invalid(format!(
                "{} has an RDMA device and {} has none; use each by itself (NCCL_NET_MERGE_LEVEL=LOC), or \
                 TCP for both (WEFT_BACKEND=tcp)",
                roce.name, tcp.name
            ));
        }
    }
    Ok(())
}

/// Whether the system has this congestion control for NIC `name`.
fn is_there(name: &str, congestion: &str) -> Result<(), CommError> {
    tcp::try_congestion(congestion).map_err(|error| {
        CommError::Invalid(format!(
            "{name}: TCP congestion control {congestion}: {error}; use one of sysctl \
             net.ipv4.tcp_allowed_congestion_control"
        ))
    })
}

impl Members {
    /// Listens at all of them. What they have in common is as the first says.
    pub(super) fn open(configs: &[EndpointConfig]) -> Result<(Members, EndpointConfig), CommError> {
        fit(configs)?;
        let names: Vec<_> = configs.iter().map(|one| one.name.as_str()).collect();
        let name = names.join("+");
        let rated = configs.iter().all(|one| one.line_bps > 0);
        let all = configs.iter().zip(0..).map(|(config, number)| {
            let EndpointConfig { name, address, listen, dscp, plane, plan, .. } = config;
            let congestion = config.congestion.as_deref();
            congestion.map_or(Ok(()), |congestion| is_there(name, congestion))?;
            if *dscp > 63 {
                return Err(CommError::Invalid(format!("{name}: DSCP {dscp}; it is 0 to 63")));
            }
            let (first, last) = (listen.start(), listen.end());
            let place = format!("{name}: {address}, TCP ports {first} to {last}");
            let planning = Planning::new(config, number)?;
            // Peers choose among its addresses: with them their path.
            let by_path = plan.as_ref().is_some_and(|plan| !plan.path_addresses.is_empty());
            let at = if by_path { Ipv4Addr::UNSPECIFIED } else { *address };
            let listener =
                tcp::listen(at, listen, tcp::Traits { dscp: *dscp, pace: None, congestion });
            let listener = listener.map_err(|error| CommError::system(place, &error))?;
            let port = listener.local_addr().map(|local| local.port());
            Ok(Member {
                address: *address,
                port: port.map_err(|error| CommError::system(name, &error))?,
                listener,
                plane: *plane,
                host: plan.as_ref().map(|plan| plan.host.0),
                weight: if rated { config.line_bps as f64 } else { 1.0 },
                planning,
            })
        });
        let members = Members(all.collect::<Result<_, _>>()?);
        Ok((members, EndpointConfig { name, ..configs[0].clone() }))
    }

    /// Has all listeners watched.
    pub(super) fn watch(&mut self, registry: &Registry) -> io::Result<()> {
        let mut all = self.0.iter_mut();
        all.try_for_each(|it| registry.register(&mut it.listener, LISTENER, Interest::READABLE))
    }

    /// What handles say of them.
    pub(super) fn parts(&self, roce: bool) -> Parts {
        let nic = |it: &Member| {
            let address = SocketAddrV4::new(it.address, it.port);
            Nic { address, host: it.host, plane: it.plane }
        };
        let Nic { address, host, plane } = nic(&self.0[0]);
        let mut more = [None; MOST_NICS - 1];
        more.iter_mut().zip(&self.0[1..]).for_each(|(place, it)| *place = Some(nic(it)));
        Parts { address, listener: 0, host, secret: [0; SECRET], roce, plane, more }
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
    pub(super) fn listener(&self, number: usize) -> &TcpListener {
        &self.0[number].listener
    }
    pub(super) fn listeners(&self) -> impl Iterator<Item = &TcpListener> {
        self.0.iter().map(|it| &it.listener)
    }
    pub(super) fn address(&self, member: u8) -> Ipv4Addr {
        self.0[usize::from(member)].address
    }
    /// Whether one of them has this address.
    pub(super) fn is_here(&self, address: Ipv4Addr) -> bool {
        self.0.iter().any(|it| it.address == address)
    }
    pub(super) fn plannings(&mut self) -> impl Iterator<Item = &mut Planning> {
        self.0.iter_mut().filter_map(|it| it.planning.as_mut())
    }
    pub(super) fn planning(&mut self, member: u8) -> Option<&mut Planning> {
        self.0[usize::from(member)].planning.as_mut()
    }
    /// The planner that has cut this subflow.
    pub(super) fn planning_of(&mut self, subflow: u32) -> Option<&mut Planning> {
        self.0.get_mut((subflow % MOST_MEMBERS) as usize)?.planning.as_mut()
    }
    /// As [`Planning::poll`], of the first that has something.
    pub(super) fn poll(&mut self, now: Instant) -> Option<LanePart> {
        self.plannings().find_map(|planning| planning.poll(now))
    }
    /// As [`Planning::poll_lost`], of the first that has something.
    pub(super) fn poll_lost(&mut self, now: Instant) -> Option<(u32, u32, Key, LanePath)> {
        self.plannings().find_map(|planning| planning.poll_lost(now))
    }
    /// A subflow has timed out. Its way from now on, if it has another.
    pub(super) fn on_loss(&mut self, now: Instant, subflow: u32) -> Option<(Key, LanePath)> {
        self.planning_of(subflow)?.on_loss(now, subflow)
    }

    /// As [`Planning::may_part`].
    pub(super) fn may_part(&mut self, subflow: u32) -> bool {
        self.planning_of(subflow).is_some_and(|planning| planning.may_part(subflow))
    }

    /// What each reaches of the peer: what is in its own plane, or where planes are not told apart, as many
    /// as there are, in order.
    pub(super) fn ends(&self, to: &Parts) -> Vec<End> {
        let theirs: Vec<Nic> = to.nics().collect();
        let end = |(at, it): (usize, &Member)| {
            let same = |nic: &&Nic| nic.plane == it.plane || nic.plane.is_none();
            let found = match it.plane {
                Some(_) => theirs.iter().find(same),
                None => Some(&theirs[at % theirs.len()]),
            };
            let Nic { address, host, .. } = *found.unwrap_or(&theirs[0]);
            let routes = it.planning.as_ref().filter(|_| found.is_some());
            let dst = routes.and_then(|it| it.routes.find(host, *address.ip()));
            let (reaches, down, heard) = (found.is_some(), None, None);
            End { address, host, dst, reaches, load: 0.0, down, heard }
        };
        self.0.iter().enumerate().map(end).collect()
    }

    /// Whether the planner of one of them watches over chunks.
    pub(super) fn watches(&self, ends: &[End]) -> bool {
        let plannings = self.0.iter().map(|it| it.planning.as_ref());
        plannings.zip(ends).any(|(it, end)| it.is_some_and(|it| it.watches) && end.dst.is_some())
    }

    /// Messages of so many bytes go whole to one NIC.
    pub(super) fn whole(&self, ends: &[End]) -> u64 {
        if ends.len() == 1 { u64::MAX } else { 2 * LEAST_SHARE - 1 }
    }

    /// The shares of a message for the NICs that reach its receiver.
    pub(super) fn shares(
        &self,
        ends: &mut [End],
        bytes: u64,
        now: Instant,
    ) -> impl Iterator<Item = Share> + use<> {
        let mut shares = [Share::default(); MOST_NICS];
        shares[0].end = bytes;
        let count = if ends.len() == 1 { 1 } else { self.cut(ends, bytes, now, &mut shares) };
        shares.into_iter().take(count)
    }

    /// Writes down the shares, and says how many they are.
    fn cut(
        &self,
        ends: &mut [End],
        bytes: u64,
        now: Instant,
        shares: &mut [Share; MOST_NICS],
    ) -> usize {
        let mut able: Vec<usize> =
            (0..ends.len()).filter(|at| ends[*at].reaches && !ends[*at].rests(now)).collect();
        if able.is_empty() {
            able = (0..ends.len()).filter(|at| ends[*at].reaches).collect();
        }
        let top = able.iter().map(|at| ends[*at].load).fold(0.0, f64::max);
        // Whoever could not carry anything has nothing to catch up with.
        (0..ends.len()).filter(|at| !able.contains(at)).for_each(|at| ends[at].load = top);
        able.sort_by(|one, other| ends[*one].load.total_cmp(&ends[*other].load));
        able.truncate((bytes / LEAST_SHARE).max(1) as usize);
        let whole: f64 = able.iter().map(|at| self.0[*at].weight).sum();
        let (mut start, mut so_far, mut count) = (0, 0.0, 0);
        for (left, at) in able.iter().enumerate().map(|(index, at)| (able.len() - 1 - index, *at)) {
            so_far += self.0[at].weight;
            let quanta = (bytes as f64 * so_far / whole / QUANTUM as f64).round() as u64;
            let end = if left == 0 { bytes } else { (quanta * QUANTUM).clamp(start, bytes) };
            if end > start || able.len() == 1 {
                shares[count] = Share { member: at as u8, start, end };
                count += 1;
                ends[at].load += (end - start) as f64 / self.0[at].weight;
            }
            start = end;
        }
        count
    }
}

impl Sending {
    /// Whether the peer was heard over this NIC since then. Lanes that are idle are no sign of life.
    fn is_heard(&self, member: u8, since: Instant) -> bool {
        self.ends[usize::from(member)].heard.is_some_and(|at| at >= since)
    }

    /// The NIC that a lane goes on from where nothing of `member` gets through: best one that has not
    /// failed, and over which something gets through.
    fn other_member(&self, member: u8, now: Instant, since: Instant) -> Option<u8> {
        let count = self.ends.len() as u8;
        let after = (1..count).map(|step| (member + step) % count);
        let others = after.filter(|at| self.ends[usize::from(*at)].reaches);
        others.min_by_key(|at| (self.ends[usize::from(*at)].rests(now), !self.is_heard(*at, since)))
    }
}

impl Engine {
    /// A connection of `lane` was not welcomed, or nothing comes back. If nothing has come over its NIC
    /// since it has had trouble, or it has had it on several paths, and there is another NIC, it goes
    /// on from there. Whether it does.
    pub(super) fn leave_member(&mut self, number: u32, lane: u16) -> bool {
        let Some(sending) = self.sending.get(number) else { return false };
        let this = &sending.lanes[usize::from(lane)];
        let member = this.way.member;
        let since = this.lacks.unwrap_or(this.since);
        let is_heard = sending.is_heard(member, since);
        // A welcome comes over a connection: it does not say that queue pairs get through.
        let is_live = this.phase == Phase::Live;
        let paths = if is_live { this.losses + 1 } else { this.failures };
        if is_live && !sending.roce || (is_live || is_heard) && paths < PATHS {
            return false;
        }
        let Some(other) = sending.other_member(member, self.now, since) else { return false };
        let (place, host) = (sending.place(lane), sending.host(lane));
        let (_, way) = self.first_way(number, other);
        let Some(sending) = self.sending.get_mut(number) else { return false };
        if !is_heard {
            sending.ends[usize::from(member)].down = Some(self.now);
        }
        sending.lanes[usize::from(lane)].way = way;
        self.counts.at(place, host).re_routes += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Checksum;

    fn config(last: u8, gbps: u64) -> EndpointConfig {
        EndpointConfig {
            name: format!("nic{last}"),
            address: Ipv4Addr::new(127, 0, 9, last),
            listen: 0..=0,
            dscp: 0,
            backend: Backend::Tcp,
            plan: None,
            connections: 1,
            path_time_out: Duration::from_secs(1),
            give_up: Duration::from_secs(30),
            checksum: Checksum::None,
            encrypt: false,
            congestion: None,
            job_key: std::sync::Arc::default(),
            line_bps: gbps * 1_000_000_000,
            plane: None,
        }
    }

    fn opened(configs: &[EndpointConfig]) -> (Members, Vec<End>) {
        let (members, _) = Members::open(configs).expect("loopback is there");
        let ends = members.ends(&members.parts(false));
        (members, ends)
    }

    fn bytes_by_member(members: &Members, ends: &mut [End], bytes: u64, now: Instant) -> Vec<u64> {
        let mut sums = vec![0; ends.len()];
        let mut next = 0;
        for Share { member, start, end } in members.shares(ends, bytes, now) {
            assert_eq!(start, next, "shares follow each other");
            sums[usize::from(member)] += end - start;
            next = end;
        }
        assert_eq!(next, bytes, "all of it");
        sums
    }

    #[test]
    fn messages_are_cut_by_line_rates() {
        let (members, mut ends) = opened(&[config(2, 100), config(3, 300)]);
        let now = Instant::now();
        let cut = bytes_by_member(&members, &mut ends, 4 << 20, now);
        assert_eq!(cut, [1 << 20, 3 << 20]);
        // Short ones go whole, and are even in the end.
        let mut sums = [0, 0];
        for _ in 0..400 {
            let cut = bytes_by_member(&members, &mut ends, 1_000, now);
            assert!(cut.contains(&0));
            sums = [sums[0] + cut[0], sums[1] + cut[1]];
        }
        assert_eq!(sums, [100_000, 300_000]);
        assert_eq!(members.shares(&mut ends, 0, now).count(), 1);
    }

    #[test]
    fn a_nic_that_is_down_rests_and_has_nothing_to_catch_up_with() {
        let (members, mut ends) = opened(&[config(4, 0), config(5, 100)]);
        let now = Instant::now();
        ends[1].down = Some(now);
        for _ in 0..4 {
            assert_eq!(bytes_by_member(&members, &mut ends, 1 << 20, now), [1 << 20, 0]);
        }
        let later = now + REST;
        let cut = bytes_by_member(&members, &mut ends, 1 << 20, later);
        assert_eq!(cut, [512 << 10, 512 << 10], "one has no known rate: all are alike");
    }

    #[test]
    fn planes_meet_only_themselves() {
        let in_plane = |last, plane| EndpointConfig { plane: Some(plane), ..config(last, 1) };
        let (here, _) = opened(&[in_plane(6, 0), in_plane(7, 1)]);
        let (there, _) = opened(&[in_plane(8, 1), in_plane(9, 2)]);
        let ends = here.ends(&there.parts(false));
        assert_eq!([ends[0].reaches, ends[1].reaches], [false, true]);
        assert_eq!(*ends[1].address.ip(), Ipv4Addr::new(127, 0, 9, 8));
        // Without planes, in order and going round.
        let (three, _) = opened(&[config(10, 1), config(11, 1), config(12, 1)]);
        let (two, _) = opened(&[config(13, 1), config(14, 1)]);
        let last = |end: &End| end.address.ip().octets()[3];
        let ends: Vec<u8> = three.ends(&two.parts(false)).iter().map(last).collect();
        assert_eq!(ends, [13, 14, 13]);
    }

    #[test]
    fn what_cannot_be_one_is_refused() {
        let said = |configs: &[EndpointConfig]| match Members::open(configs) {
            Err(CommError::Invalid(text)) => text,
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("it was taken"),
        };
        assert!(said(&[]).contains("0 NICs"));
        assert!(said(&[config(15, 1), config(15, 1)]).contains("twice"));
        let device = "rxe0".to_owned();
        let backend = Backend::Roce { device, port: 1, gid_index: None, or_tcp: true };
        let roce = EndpointConfig { backend, ..config(16, 1) };
        let both = [config(15, 1), roce];
        assert!(said(&both).contains("nic16 has an RDMA device and nic15 has none"));
        let [tcp, roce] = both;
        assert!(said(&[roce, tcp]).contains("nic16 has an RDMA device and nic15 has none"));
    }
}
