//! Senders and receivers over a network in memory that delays, drops, repeats and reorders, and
//! whose paths die: every byte arrives once, and trouble moves flows as the scheme says.

use std::collections::BTreeMap;
use std::sync::Arc;
use weft_balance::plan::Route;
use weft_balance::scheme::{BalanceConfig, SchemeConfig};
use weft_fabric::{Clos, Fabric, Link};
use weft_net::flow::FlowConfig;
use weft_net::pattern::{Checked, Pattern};
use weft_net::ports::Ports;
use weft_net::receiver::Receiver;
use weft_net::sender::{Given, Sender, SenderConfig};
use weft_net::wire::{ANSWER, DATA_HEADER, Datagram};
use weft_transport::{CongestionConfig, RecoveryConfig, SwiftConfig, TransportConfig};
use weft_trial::prelude::*;
use weft_units::{Draw, HostId, MessageId, Rate, Stream, Time};

const MTU: u32 = 1_000;
const UPLINKS: u32 = 4;

fn fabric() -> Arc<Fabric> {
    let link = Link { rate: Rate::bps(100_000_000), delay: Time::us(1) };
    Arc::new(Fabric::build(&Clos::leaf_spine(2, UPLINKS, 2, link)).unwrap())
}

/// With a window that keeps some 60 ms of queue, and a time-out of 50 ms.
fn transport(recovery: RecoveryConfig) -> TransportConfig {
    let (mtu, base_target) = (u64::from(MTU), Time::ms(60));
    let congestion = CongestionConfig::Swift(SwiftConfig {
        base_target,
        min_window: mtu / 16,
        ..SwiftConfig::with_windows(mtu, 32 * mtu)
    });
    TransportConfig { congestion, recovery, rto: Time::ms(50), backs_off: false }
}

fn tcp() -> RecoveryConfig {
    RecoveryConfig::read("tcp", &[("sack", "true"), ("min_rto", "50ms")]).unwrap()
}

/// What single paths have on a test bed, and what several have.
fn natural(scheme: &str) -> RecoveryConfig {
    match SchemeConfig::read(scheme, &[]).unwrap().is_multipath() {
        true => RecoveryConfig::SELECTIVE_REPEAT,
        false => tcp(),
    }
}

fn sender(scheme: &str, options: &[(&str, &str)], host: u32, seed: u64) -> Sender {
    sender_with(scheme, options, host, seed, natural(scheme))
}

fn sender_with(
    scheme: &str,
    options: &[(&str, &str)],
    host: u32,
    seed: u64,
    recovery: RecoveryConfig,
) -> Sender {
    let scheme = SchemeConfig::read(scheme, options).unwrap();
    let info = scheme.info();
    let balance = BalanceConfig {
        start_jitter: info.start_jitter,
        random_position: info.random_position,
        bdp: 100_000,
        scheme,
    };
    let flow = FlowConfig { mtu: MTU, transport: transport(recovery) };
    let known = Arc::default();
    Sender::new(SenderConfig { host: HostId(host), fabric: fabric(), known, balance, seed, flow })
}

/// How bad the network is.
#[derive(Clone, Copy, Debug, Default)]
struct Weather {
    /// Of a hundred packets.
    lost: u32,
    repeated: u32,
    /// Answers of a process that waits for a core.
    held: u32,
    /// Up to so much later than the others, in microseconds.
    late: u32,
    /// An uplink that drops all data from then on.
    dead: Option<(u32, Time)>,
}

/// One sender, one receiver.
struct Net {
    sender: Sender,
    receiver: Receiver,
    checked: Checked,
    weather: Weather,
    dice: Stream,
    now: Time,
    /// Port and bytes of what is on its way, by arrival.
    wire: BTreeMap<(Time, u64), (u16, Vec<u8>)>,
    count: u64,
}

impl Net {
    fn new(sender: Sender, receiver: u32, weather: Weather, seed: u64) -> Net {
        let recovery = sender.recovery();
        let dice = Draw::new(seed, "weather").stream(0);
        let (checked, now, wire) = (Checked::default(), Time::ZERO, BTreeMap::new());
        let receiver = Receiver::new(HostId(receiver), recovery);
        Net { sender, receiver, checked, weather, dice, now, wire, count: 0 }
    }
    fn roll(&mut self, of: u32) -> bool {
        self.dice.below(100) < of
    }
    fn launch(&mut self, port: u16, bytes: &[u8], wait: Time) {
        let uplink = Ports::new(UPLINKS).uplink(port);
        let is_data = bytes.len() > ANSWER;
        let dead = self
            .weather
            .dead
            .filter(|(link, at)| is_data && uplink == Some(*link) && self.now >= *at);
        if dead.is_some() || self.roll(self.weather.lost) {
            return;
        }
        for _ in 0..1 + u32::from(self.roll(self.weather.repeated)) {
            let late = self.dice.below(self.weather.late + 1);
            let at = self.now + wait + Time::us(100 + u64::from(late));
            self.count += 1;
            self.wire.insert((at, self.count), (port, bytes.to_vec()));
        }
    }
    /// Until all is answered, or for `limit`.
    fn run(&mut self, limit: Time) {
        let mut buffer = vec![0; DATA_HEADER + MTU as usize];
        while self.now < limit {
            self.sender.handle_time(self.now);
            while let Some(out) = self.sender.poll_transmit(self.now, &Pattern, &mut buffer) {
                let bytes = buffer[..out.len].to_vec();
                self.launch(out.port, &bytes, Time::ZERO);
            }
            let next = self.wire.keys().next().map(|(at, _)| *at);
            let due = [next, self.sender.poll_deadline()].into_iter().flatten().min();
            let Some(due) = due else { return };
            self.now = self.now.max(due);
            while let Some(entry) = self.wire.first_entry().filter(|one| one.key().0 <= self.now) {
                let (port, bytes) = entry.remove();
                self.arrive(port, &bytes);
            }
        }
    }
    fn arrive(&mut self, port: u16, bytes: &[u8]) {
        match Datagram::decode(bytes).unwrap() {
            Datagram::Answer(answer) => self.sender.handle_answer(self.now, &answer),
            Datagram::Data(data, payload) => {
                self.receiver.handle_data(self.now, port, &data, payload, &mut self.checked);
                let wait = if self.roll(self.weather.held) { Time::ms(5) } else { Time::ZERO };
                while let Some(reply) = self.receiver.poll_reply() {
                    self.launch(reply.answer.port, &reply.answer.encode(), wait);
                }
            }
        }
    }
    fn check(&self, sizes: &[u64]) -> Result<(), TestCaseError> {
        let total: u64 = sizes.iter().sum();
        prop_assert_eq!((self.checked.right, self.checked.wrong), (total, 0));
        prop_assert_eq!(self.receiver.received.overlapping, 0);
        prop_assert_eq!(self.receiver.received.messages.len(), sizes.len());
        prop_assert_eq!(self.sender.sent.messages.len(), sizes.len());
        let ports = self.sender.sent.by_port.values();
        prop_assert_eq!(ports.map(|count| count.bytes).sum::<u64>(), total);
        Ok(())
    }
}

const SCHEMES: [(&str, &[(&str, &str)]); 6] = [
    ("ecmp", &[]),
    ("ethereal", &[]),
    ("ethereal", &[("nack", "stay"), ("unit", "packet")]),
    ("dnlb-8", &[]),
    ("spray", &[]),
    ("twill", TWILL),
];

/// As hosts run it.
const TWILL: &[(&str, &str)] = &[("chunk", "8KB")];

trials! {
    #![cases(120)]
    fn every_byte_arrives_once(
        scheme in 0..SCHEMES.len(),
        recovery in 0usize..4,
        sizes in prop::collection::vec(1u64..40_000, 1..6),
        (lost, repeated, held, late) in (0u32..30, 0u32..20, 0u32..50, 0u32..2_000),
        dead in prop::option::of((0..UPLINKS, 0u64..20)),
        seed in 0u64..1_000,
    ) {
        let (name, options) = SCHEMES[scheme];
        // ECMP never moves: a dead path would be the end of its flows.
        let dead = dead.filter(|_| name != "ecmp").map(|(link, ms)| (link, Time::ms(ms)));
        let weather = Weather { lost, repeated, held, late, dead };
        let recovery = match recovery {
            0 => RecoveryConfig::GO_BACK_N,
            1 => RecoveryConfig::SELECTIVE_REPEAT,
            2 => tcp(),
            _ => natural(name),
        };
        let mut net = Net::new(sender_with(name, options, 0, seed, recovery), 2, weather, seed);
        for (message, bytes) in (0..).zip(&sizes) {
            net.sender.post(Time::ZERO, MessageId(message), HostId(2), *bytes);
        }
        net.run(Time::secs(600));
        net.check(&sizes)?;
    }
}

#[test]
fn a_quiet_network_needs_nothing_twice() {
    for (name, options) in SCHEMES {
        let mut net = Net::new(sender(name, options, 0, 1), 2, Weather::default(), 1);
        for message in 0..4 {
            net.sender.post(Time::ZERO, MessageId(message), HostId(2), 100_500);
        }
        net.run(Time::secs(60));
        net.check(&[100_500; 4]).unwrap();
        let sent = &net.sender.sent;
        assert_eq!((sent.lost, sent.time_outs, sent.remaps.len()), (0, 0, 0), "{name}");
        assert!(sent.by_port.values().all(|count| count.again_packets == 0), "{name}");
        assert_eq!(net.receiver.received.repeated, 0, "{name}");
    }
}

#[test]
fn pinned_subflows_load_all_uplinks_alike() {
    let mut net = Net::new(sender("ethereal", &[], 0, 1), 2, Weather::default(), 1);
    for message in 0..3 {
        net.sender.post(Time::ZERO, MessageId(message), HostId(2), 80_000);
    }
    net.run(Time::secs(60));
    let mut by_uplink = [0; UPLINKS as usize];
    for (port, count) in &net.sender.sent.by_port {
        by_uplink[Ports::new(UPLINKS).uplink(*port).unwrap() as usize] += count.bytes;
    }
    assert_eq!(by_uplink, [60_000; 4]);
}

#[test]
fn a_dead_path_is_left_after_a_time_out_and_the_stop_is_reported() {
    let dead = Some((1, Time::ms(2)));
    let weather = Weather { dead, ..Weather::default() };
    let mut net = Net::new(sender("ethereal", &[], 0, 1), 2, weather, 1);
    for message in 0..4 {
        net.sender.post(Time::ZERO, MessageId(message), HostId(2), 500_000);
    }
    net.run(Time::secs(60));
    net.check(&[500_000; 4]).unwrap();
    let sent = &net.sender.sent;
    // One message a path: one flow times out, moves, and goes on.
    assert_eq!((sent.time_outs, sent.remaps.len(), sent.recoveries.len()), (1, 1, 1));
    let stop = sent.recoveries[0];
    let lasted = stop.since.until(stop.until);
    assert!((Time::ms(50)..Time::ms(60)).contains(&lasted), "{lasted}");
}

/// The chunks on it time out one by one, long before the transport would, and the path is left alone.
#[test]
fn a_chunk_that_never_comes_back_goes_again_by_another_path() {
    let dead = Some((1, Time::us(500)));
    let weather = Weather { dead, ..Weather::default() };
    let recovery = RecoveryConfig::SELECTIVE_REPEAT;
    let mut net = Net::new(sender_with("twill", TWILL, 0, 1, recovery), 2, weather, 1);
    for message in 0..4 {
        net.sender.post(Time::ZERO, MessageId(message), HostId(2), 500_000);
    }
    net.run(Time::secs(60));
    net.check(&[500_000; 4]).unwrap();
    let sent = &net.sender.sent;
    assert!(!sent.remaps.is_empty() && sent.remaps.len() < 40, "{}", sent.remaps.len());
    let mut by_uplink = [0; UPLINKS as usize];
    for (port, count) in &sent.by_port {
        by_uplink[Ports::new(UPLINKS).uplink(*port).unwrap() as usize] += count.bytes;
    }
    let least = [0, 2, 3].map(|uplink| by_uplink[uplink]).into_iter().min().unwrap();
    assert!(by_uplink[1] < least, "{by_uplink:?}");
}

#[test]
fn a_nack_moves_a_flow_before_any_time_out() {
    let weather = Weather { lost: 1, ..Weather::default() };
    let sender = sender_with("ethereal", &[], 0, 1, RecoveryConfig::GO_BACK_N);
    let mut net = Net::new(sender, 2, weather, 1);
    net.sender.post(Time::ZERO, MessageId(0), HostId(2), 400_000);
    net.run(Time::secs(60));
    net.check(&[400_000]).unwrap();
    let sent = &net.sender.sent;
    assert!(sent.gaps > 0 && sent.time_outs == 0, "{} and {}", sent.gaps, sent.time_outs);
    assert!(!sent.remaps.is_empty());
}

#[test]
fn a_gap_has_only_the_hole_sent_again() {
    let weather = Weather { lost: 1, ..Weather::default() };
    let mut net = Net::new(sender("ecmp", &[], 0, 1), 2, weather, 2);
    net.sender.post(Time::ZERO, MessageId(0), HostId(2), 400_000);
    net.run(Time::secs(60));
    net.check(&[400_000]).unwrap();
    let sent = &net.sender.sent;
    let again: u64 = sent.by_port.values().map(|count| count.again_packets).sum();
    assert!(sent.gaps > 0 && sent.time_outs == 0, "{} and {}", sent.gaps, sent.time_outs);
    assert_eq!((again, net.receiver.received.repeated), (sent.lost, 0));
}

#[test]
fn a_plan_made_elsewhere_is_followed() {
    let mut net = Net::new(sender("ethereal", &[], 0, 1), 2, Weather::default(), 1);
    let fabric = fabric();
    let paths = fabric.path_set(HostId(0), HostId(2));
    let given = [(0, 7_001), (3, 12_500), (3, 1)].map(|(path, bytes)| Given {
        bytes,
        route: Route::Pinned(paths.get(path)),
        port: (path == 0).then_some(50_001),
    });
    net.sender.post_given(Time::ZERO, MessageId(5), HostId(2), &given);
    net.run(Time::secs(60));
    net.check(&[19_502]).unwrap();
    let by_uplink: Vec<_> = net.sender.sent.by_port.iter().collect();
    let uplinks: Vec<_> = by_uplink
        .iter()
        .map(|(port, count)| (Ports::new(UPLINKS).uplink(**port).unwrap(), count.bytes))
        .collect();
    assert_eq!(uplinks, [(0, 7_001), (3, 12_501)]);
    assert_eq!(*by_uplink[0].0, 50_001);
}
