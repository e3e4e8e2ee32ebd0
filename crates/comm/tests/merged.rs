//! Several NICs used as one: each carries its share, over the paths of its plan, and what dies with one
//! goes on over the others. Every byte comes once.

mod common;
#[path = "common/proxy.rs"]
mod proxy;

use common::*;
use proxy::{Fault, Proxy};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weft_comm::handle::Parts;
use weft_comm::{CommError, Endpoint, EndpointConfig, Handle, Statistics};

/// The NIC in a plane of a host that has one in each.
fn in_plane(plane: u8, last: u8, config: EndpointConfig) -> EndpointConfig {
    let mut config = config;
    config.address = Ipv4Addr::new(127, 0, plane, last);
    (config.name, config.plane) = (format!("plane-{plane}-{last}"), Some(plane));
    if let Some(plan) = &mut config.plan {
        plan.addresses = (1..=4).map(|last| Ipv4Addr::new(127, 0, plane, last)).collect();
    }
    config
}

/// A host with a NIC in each of some planes, as one.
fn merged(planes: &[u8], one: impl Fn() -> EndpointConfig, last: u8) -> Endpoint {
    let configs = planes.iter().map(|plane| in_plane(*plane, last, one())).collect();
    Endpoint::open_merged(configs).expect("opens")
}

/// Payload that was sent, by peer.
fn by_peer(statistics: &Statistics) -> BTreeMap<Ipv4Addr, u64> {
    let mut sums = BTreeMap::new();
    for path in &statistics.paths {
        *sums.entry(path.peer).or_default() += path.counts.bytes;
    }
    sums
}

fn sizes() -> impl Iterator<Item = usize> {
    [0, 1, 7, 65_536, 131_071, 262_145, 1 << 20, 10_000_001].into_iter()
}

#[test]
fn every_nic_carries_its_share() {
    let (a, b) = (merged(&[0, 1, 2], || config(1), 1), merged(&[0, 1, 2], || config(2), 2));
    a.keep_notes();
    let (sending, receiving) = channel(&a, &b);
    let mut noted = BTreeMap::new();
    for len in sizes() {
        let notes = exchange(&sending, &receiving, &pattern(len as u64, len), len + 100);
        for piece in notes.pieces {
            *noted.entry(Ipv4Addr::new(127, 0, piece.nic, 2)).or_default() += piece.bytes;
        }
    }
    let (all, peers) = (sizes().sum::<usize>() as f64, by_peer(&a.statistics()));
    assert_eq!(peers.len(), 3, "{peers:?}");
    assert_eq!(noted, peers, "notes say the same");
    for (peer, bytes) in &peers {
        let share = *bytes as f64 / all;
        assert!((0.32..0.35).contains(&share), "{peer}: {share}");
    }
    assert_eq!(b.statistics().received.iter().map(|(_, bytes)| bytes).sum::<u64>(), all as u64);
}

#[test]
fn each_plane_has_a_plan_of_its_own() {
    let planned = || planned(1, "ethereal", &[]);
    let to = || common::planned(3, "ethereal", &[]);
    let (a, b) = (merged(&[0, 1], planned, 1), merged(&[0, 1], to, 3));
    let (sending, receiving) = channel(&a, &b);
    for round in 0..4 {
        exchange(&sending, &receiving, &pattern(round, 8 << 20), 8 << 20);
    }
    // Four paths in each plane, with as much on each: a plane's paths have names of their own.
    let mut paths: BTreeMap<_, u64> = BTreeMap::new();
    for one in &a.statistics().paths {
        assert_eq!(one.host, Some(2));
        *paths.entry((one.peer, one.path.expect("planned"))).or_default() += one.counts.bytes;
    }
    assert_eq!(paths.len(), 8, "{paths:?}");
    assert!(paths.values().all(|bytes| *bytes == 4 << 20), "{paths:?}");
}

#[test]
fn one_nic_talks_with_several() {
    let (a, b) = (merged(&[1], || config(1), 1), merged(&[0, 1], || config(2), 2));
    let (sending, receiving) = channel(&a, &b);
    let (back, there) = channel(&b, &a);
    for len in sizes() {
        exchange(&sending, &receiving, &pattern(len as u64, len), len);
        exchange(&back, &there, &pattern(1 + len as u64, len), len);
    }
    let only = |peers: BTreeMap<Ipv4Addr, u64>| peers.into_keys().collect::<Vec<_>>();
    assert_eq!(only(by_peer(&a.statistics())), [Ipv4Addr::new(127, 0, 1, 2)]);
    assert_eq!(only(by_peer(&b.statistics())), [Ipv4Addr::new(127, 0, 1, 1)]);
}

#[test]
fn planes_that_do_not_meet_are_told() {
    let (a, b) = (merged(&[0, 1], || config(1), 1), merged(&[2], || config(2), 2));
    let (_listener, handle) = b.listen().expect("listens");
    let mut connecting = a.connect(&handle).expect("begins");
    let error = loop {
        match connecting.try_finish() {
            Ok(None) => std::thread::yield_now(),
            Ok(Some(_)) => panic!("there is no way"),
            Err(error) => break error,
        }
    };
    let CommError::Invalid(text) = error else { panic!("{error}") };
    assert!(text.contains("no NIC in a plane"), "{text}");
}

/// The handle, with another address for the second NIC.
fn with_second(handle: &Handle, address: SocketAddrV4) -> Handle {
    let mut parts = Parts::decode(handle).expect("a handle");
    parts.more[0].as_mut().expect("there is a second").address = address;
    parts.encode()
}

/// The second plane refuses from the start, or takes connections and says nothing.
#[test]
fn a_plane_that_is_dead_is_left() {
    for refuses in [true, false] {
        let (a, b) = (merged(&[0, 1], || config(1), 1), merged(&[0, 1], || config(2), 2));
        let (listener, handle) = b.listen().expect("listens");
        let hole = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = hole.local_addr().expect("bound").port();
        let kept = (!refuses).then_some(hole);
        let handle = with_second(&handle, SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
        let (sending, receiving) = connect(&a, &listener, &handle);
        for len in sizes() {
            exchange(&sending, &receiving, &pattern(len as u64, len), len);
        }
        let peers = by_peer(&a.statistics());
        let whole = peers.get(&Ipv4Addr::new(127, 0, 0, 2)).copied();
        assert_eq!(whole, Some(sizes().sum::<usize>() as u64), "refuses {refuses}: {peers:?}");
        drop(kept);
    }
}

/// The second plane dies while it carries bytes: connections stand still after so many, and new ones at once.
fn dies(stands_at: u64, messages: u64, len: usize) -> BTreeMap<Ipv4Addr, u64> {
    let two = |last| EndpointConfig { connections: 2, ..config(last) };
    let (a, b) = (merged(&[0, 1], || two(1), 1), merged(&[0, 1], || two(2), 2));
    let (listener, handle) = b.listen().expect("listens");
    let second = Parts::decode(&handle).expect("a handle").nics().nth(1).expect("a second");
    let there = Parts { address: second.address, ..Parts::decode(&handle).expect("a handle") };
    let dead = Arc::new(AtomicBool::new(false));
    let is_dead = dead.clone();
    let (proxy, by_proxy) = Proxy::before(&there.encode(), move |_| {
        let at = if is_dead.load(Ordering::SeqCst) { 0 } else { stands_at };
        Fault::Stall(at, Duration::from_secs(600))
    });
    let address = Parts::decode(&by_proxy).expect("a handle").address;
    let (sending, receiving) = connect(&a, &listener, &with_second(&handle, address));
    exchange(&sending, &receiving, &pattern(1, 4 << 20), 4 << 20);
    assert_eq!(proxy.done.load(Ordering::SeqCst), 0, "it lives so far");
    dead.store(true, Ordering::SeqCst);
    for round in 0..messages {
        exchange(&sending, &receiving, &pattern(round, len), len);
    }
    assert!(proxy.done.load(Ordering::SeqCst) > 0, "nothing stood still");
    by_peer(&a.statistics())
}

#[test]
fn a_plane_that_dies_is_left() {
    let peers = dies(3_000_000, 8, 16 << 20);
    assert!(peers[&Ipv4Addr::new(127, 0, 0, 2)] > 100 << 20, "{peers:?}");
}

/// Most lanes of the plane are idle meanwhile, and look as if they lived.
#[test]
fn a_plane_that_dies_is_left_by_short_messages() {
    let peers = dies(1_150_000, 16, 100_000);
    assert!(peers[&Ipv4Addr::new(127, 0, 0, 2)] > 2_900_000, "{peers:?}");
}

/// A channel's class goes both ways: that of the sockets here and of those that were taken in.
#[test]
fn a_channel_has_a_class_of_its_own() {
    let (a, b) = (open(1), open(2));
    let (listener, handle) = b.listen().expect("listens");
    assert!(a.connect_as(&handle, Some(64)).is_err());
    let mut connecting = a.connect_as(&handle, Some(46)).expect("begins");
    let (mut sending, mut receiving) = (None, None);
    while sending.is_none() || receiving.is_none() {
        sending = sending.or(connecting.try_finish().expect("connects"));
        receiving = receiving.or(listener.try_accept().expect("accepts"));
    }
    let (sending, receiving) = (sending.expect("there"), receiving.expect("there"));
    exchange(&sending, &receiving, &pattern(1, 100_000), 100_000);
    let (other, its) = connect(&a, &listener, &handle);
    exchange(&other, &its, &pattern(1, 100_000), 100_000);
    let seen = sockets_of([1, 2]);
    // Two ends of one or more connections each: 46 of the one channel, 26 of the other.
    let with = |dscp| seen.iter().filter(|it| **it == dscp).count();
    assert!(with(46) >= 2 && with(26) >= 2, "{seen:?}");
    assert_eq!(with(46) % 2, 0, "one end has another class: {seen:?}");
}

/// DSCP of the connected sockets of this process at 127.0.0.x.
fn sockets_of(lasts: [u8; 2]) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").expect("there").flatten() {
        let is_socket = std::fs::read_link(entry.path())
            .is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
        let number: Option<i32> = entry.file_name().to_string_lossy().parse().ok();
        let Some(number) = number.filter(|_| is_socket) else { continue };
        #[expect(unsafe_code, reason = "descriptors of this process, only looked at")]
        // SAFETY: it is a socket; if it is closed meanwhile, it answers with an error.
        let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
        let socket = socket2::SockRef::from(&borrowed);
        let ends = (socket.local_addr(), socket.peer_addr());
        let (Ok(local), Ok(peer)) = ends else { continue };
        let is_ours = |one: &socket2::SockAddr| {
            one.as_socket_ipv4().is_some_and(|it| {
                let [a, b, c, last] = it.ip().octets();
                [a, b, c] == [127, 0, 0] && lasts.contains(&last)
            })
        };
        if is_ours(&local) && is_ours(&peer) {
            found.extend(socket.tos_v4().map(|tos| tos >> 2));
        }
    }
    found
}
