//! RDMA devices used as one, each a plane: bytes go by all of them, each byte once, and what dies with one goes
//! on over the others. Devices are in software (`devices`); a kernel's are in `tests/roce`.

#![expect(unsafe_code, reason = "buffers outlive their requests")]

mod common;
#[path = "../../verbs/tests/devices/mod.rs"]
mod devices;

use common::*;
use devices::{Fake, State, with_devices};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};
use weft_comm::{
    Backend, Buffer, CommError, Endpoint, EndpointConfig, GpuMemory, RecvChannel, Region,
    SendChannel,
};

/// Runs a test by its name in a process that has devices.
macro_rules! inside {
    ($test:ident) => {
        if !with_devices(stringify!($test), &[]) {
            return;
        }
    };
}

/// The NIC of a host in a plane, whose device has its number.
fn nic(plane: u8, last: u8) -> EndpointConfig {
    let (port, gid_index, or_tcp) = (1, None, false);
    EndpointConfig {
        name: format!("plane-{plane}-{last}"),
        address: Ipv4Addr::new(127, 0, plane, last),
        backend: Backend::Roce { device: format!("fake_{plane}"), port, gid_index, or_tcp },
        plane: Some(plane),
        line_bps: 100_000_000_000,
        ..config(last)
    }
}

/// The NICs of a host in these planes, as one.
fn host(planes: &[u8], last: u8) -> Endpoint {
    let configs = planes.iter().map(|plane| nic(*plane, last)).collect();
    Endpoint::open_merged(configs).expect("opens")
}

/// A host at the second device that those at others reach.
fn far() -> Endpoint {
    Endpoint::open(EndpointConfig { plane: None, ..nic(1, 2) }).expect("opens")
}

fn hosts(planes: &[u8]) -> (Endpoint, Endpoint) {
    (host(planes, 1), host(planes, 2))
}

/// What each of the devices writes while `work` goes on.
fn written(work: impl FnOnce()) -> [u64; 3] {
    let now = || [0, 1, 2].map(|device| Fake(device).written());
    let before = now();
    work();
    let after = now();
    std::array::from_fn(|device| after[device] - before[device])
}

const SIZES: [usize; 7] = [0, 1, 65_536, 131_071, 262_145, 1 << 20, 10_000_001];

fn exchange_all((sending, receiving): (&SendChannel, &RecvChannel)) {
    for len in SIZES {
        exchange(sending, receiving, &pattern(len as u64, len), len + 100);
    }
}

#[test]
fn every_device_carries_its_share() {
    inside!(every_device_carries_its_share);
    let (a, b) = hosts(&[0, 1]);
    a.keep_notes();
    let ((out, into), (back, there)) = (channel(&a, &b), channel(&b, &a));
    let all = SIZES.iter().sum::<usize>() as u64;
    for way in [(&out, &into), (&back, &there)] {
        let shares = written(|| exchange_all(way));
        assert_eq!(shares[0] + shares[1], all, "by the devices, each byte once");
        let share = shares[0] as f64 / all as f64;
        assert!((0.49..0.51).contains(&share), "{shares:?}");
    }
    let notes = exchange(&out, &into, &pattern(5, 1 << 20), 1 << 20);
    let of = |nic| notes.pieces.iter().filter(|it| it.nic == nic).map(|it| it.bytes).sum::<u64>();
    assert_eq!([of(0), of(1)], [512 << 10; 2]);
}

/// Keys of the right device, whichever NICs the other end has.
#[test]
fn ends_need_not_have_equally_many() {
    inside!(ends_need_not_have_equally_many);
    let (one, two, three) = (host(&[1], 1), host(&[0, 1], 2), host(&[2, 1, 0], 3));
    for (from, to, by) in [
        (&one, &two, [false, true, false]),
        (&two, &one, [false, true, false]),
        (&two, &three, [true, true, false]),
        (&three, &two, [true, true, false]),
    ] {
        let (sending, receiving) = channel(from, to);
        let shares = written(|| exchange_all((&sending, &receiving)));
        assert_eq!(shares.map(|bytes| bytes > 0), by, "{shares:?}");
    }
}

/// Under a planner: four paths in each plane, a lane and a queue pair each.
#[test]
fn each_plane_has_a_plan_of_its_own() {
    inside!(each_plane_has_a_plan_of_its_own);
    let in_plane = |plane: u8, last| {
        let mut plan = planned(last, "ethereal", &[]).plan.expect("it is planned");
        plan.addresses = (1..=4).map(|last| Ipv4Addr::new(127, 0, plane, last)).collect();
        EndpointConfig { plan: Some(plan), ..nic(plane, last) }
    };
    let open = |last| {
        let both = [0, 1].map(|plane| in_plane(plane, last));
        Endpoint::open_merged(both.to_vec()).expect("opens")
    };
    let (a, b) = (open(1), open(3));
    let (sending, receiving) = channel(&a, &b);
    exchange(&sending, &receiving, &pattern(1, 8 << 20), 8 << 20);
    let paths = a.statistics().paths;
    let used: Vec<u64> = paths.iter().map(|path| path.counts.bytes).filter(|it| *it > 0).collect();
    assert_eq!(used, [1 << 20; 8], "{paths:?}");
}

/// A port that says so, one that does not, and one that takes nothing: connections are answered all the while.
#[test]
fn a_device_whose_port_dies_is_left() {
    inside!(a_device_whose_port_dies_is_left);
    for state in [State::Down, State::Silent, State::Faulty] {
        let (a, b) = hosts(&[0, 1]);
        let (sending, receiving) = channel(&a, &b);
        exchange_all((&sending, &receiving));
        Fake(1).set(state);
        let begun = Instant::now();
        let shares = written(|| {
            for round in 0..8 {
                exchange(&sending, &receiving, &pattern(round, 4 << 20), 4 << 20);
            }
        });
        assert_eq!(shares[1], 0, "{state:?}");
        assert!(shares[0] >= 32 << 20, "{state:?}: {shares:?}");
        // A few time-outs of 0.4 s, once: not for each message.
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(4), "{state:?}: {took:?}");
        // So does a channel that begins now.
        let (late, its) = channel(&a, &b);
        exchange_all((&late, &its));
        Fake(1).set(State::Up);
    }
}

/// As some drivers do where a link is gone for a moment: one failure, and not one of each lane.
#[test]
fn queue_pairs_may_fail_all_at_once() {
    inside!(queue_pairs_may_fail_all_at_once);
    let many = |last| EndpointConfig { connections: 16, ..nic(0, last) };
    let [a, b] = [1, 2].map(|last| Endpoint::open(many(last)).expect("opens"));
    let (sending, receiving) = channel(&a, &b);
    for _ in 0..3 {
        exchange_all((&sending, &receiving));
        Fake(0).fail_pairs();
    }
    exchange_all((&sending, &receiving));
}

/// As where they are taken from an interface, and given back.
#[test]
fn addresses_may_stand_elsewhere_after_a_while() {
    inside!(addresses_may_stand_elsewhere_after_a_while);
    let (a, b) = hosts(&[0]);
    let (sending, receiving) = channel(&a, &b);
    exchange_all((&sending, &receiving));
    Fake(0).move_addresses(5);
    Fake(0).fail_pairs();
    exchange_all((&sending, &receiving));
}

/// In the middle of messages, and from either end: what was written by it comes again by the other.
#[test]
fn a_port_may_die_at_any_time() {
    inside!(a_port_may_die_at_any_time);
    let (a, b) = hosts(&[0, 1]);
    let (sending, receiving) = channel(&a, &b);
    for round in 0..4_u64 {
        let dies = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(300 * round));
            Fake((round % 2) as u8).set(State::Down);
        });
        exchange(&sending, &receiving, &pattern(round, 24 << 20), 24 << 20);
        dies.join().expect("it is set");
        Fake((round % 2) as u8).set(State::Up);
    }
}

#[test]
fn a_device_that_is_gone_is_left() {
    inside!(a_device_that_is_gone_is_left);
    let (a, b) = hosts(&[0, 1]);
    let (sending, receiving) = channel(&a, &b);
    exchange_all((&sending, &receiving));
    Fake(0).set(State::Gone);
    let shares = written(|| exchange_all((&sending, &receiving)));
    assert_eq!((shares[0], shares[1]), (0, SIZES.iter().sum::<usize>() as u64));
    let (late, its) = channel(&b, &a);
    exchange_all((&late, &its));
    let mut some = pattern(1, 100_000);
    // SAFETY: the buffer outlives the region.
    let region = unsafe { a.register(some.as_mut_ptr(), some.len()) };
    drop(region.expect("the other knows it"));
    // Without any device there is no way.
    Fake(1).set(State::Gone);
    let sent = take(|| send(&sending, &some, 0));
    let error = wait(&sent).expect_err("nothing gets through").to_string();
    assert!(error.contains("fake_1"), "{error}");
    // Nor is there one over TCP, which nobody has allowed.
    let (_listener, handle) = b.listen().expect("it listens on");
    let mut connecting = a.connect(&handle).expect("begins to connect");
    let end = Instant::now() + LIMIT;
    let error = loop {
        match connecting.try_finish() {
            Ok(none) => assert!(none.is_none() && Instant::now() < end, "{none:?}"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("the RDMA device has failed"), "{error}");
}

/// Its device takes what is sent: nothing is wrong with the paths.
#[test]
fn a_receiver_that_stands_still_is_waited_for() {
    inside!(a_receiver_that_stands_still_is_waited_for);
    // Its connections answer here, which would be suspicious after a quarter of that.
    let patient = EndpointConfig { give_up: Duration::from_secs(30), ..nic(0, 1) };
    let (a, b) = (Endpoint::open(patient).expect("opens"), far());
    let (sending, receiving) = channel(&a, &b);
    exchange_all((&sending, &receiving));
    let (bytes, mut room) = (pattern(1, 1 << 20), vec![0; 1 << 20]);
    let received = take(|| receive(&receiving, &mut [(&mut room, 0)]));
    Fake(1).stand_still(true);
    let sent = take(|| send(&sending, &bytes, 0));
    // Several times the time-out of a path.
    std::thread::sleep(Duration::from_millis(1_500));
    Fake(1).stand_still(false);
    wait(&received).expect("received");
    wait(&sent).expect("sent");
    assert!(room == bytes);
    let paths = a.statistics().paths;
    let lost = paths.iter().map(|it| it.counts.time_outs + it.counts.reconnects).sum::<u64>();
    assert_eq!(lost, 0, "{paths:?}");
}

/// Memory is known to all devices or to none.
#[test]
fn memory_that_one_device_refuses_is_known_to_none() {
    inside!(memory_that_one_device_refuses_is_known_to_none);
    let (a, b) = hosts(&[0, 1]);
    let (sending, receiving) = channel(&a, &b);
    exchange_all((&sending, &receiving));
    let mut memory = pattern(1, 1 << 20);
    // SAFETY: the memory outlives its regions.
    let mut register = || unsafe { a.register(memory.as_mut_ptr(), memory.len()) };
    Fake(1).refuse_memory(true);
    // What requests have left there goes with the first refusal.
    register().expect_err("it refuses");
    let before = [0, 1].map(|device| Fake(device).regions());
    let error = register().expect_err("it refuses").to_string();
    assert!(error.contains("fake_1") && error.contains("ulimit -l"), "{error}");
    assert_eq!([0, 1].map(|device| Fake(device).regions()), before, "the first is undone");
    Fake(1).refuse_memory(false);
    let region = register().expect("it is taken");
    assert_eq!([0, 1].map(|device| Fake(device).regions()), before.map(|count| count + 1));
    drop(region);
    assert_eq!([0, 1].map(|device| Fake(device).regions()), before);
    exchange_all((&sending, &receiving));
}

#[test]
fn whoever_receives_from_a_broken_device_is_told() {
    inside!(whoever_receives_from_a_broken_device_is_told);
    let (a, b) = (host(&[0], 1), far());
    let (sending, receiving) = channel(&a, &b);
    exchange_all((&sending, &receiving));
    // So long that no lane is left.
    let (bytes, mut room) = (pattern(1, 16 << 20), vec![0; 16 << 20]);
    let received = take(|| receive(&receiving, &mut [(&mut room, 0)]));
    Fake(0).set(State::Faulty);
    let sent = take(|| send(&sending, &bytes, 0));
    let error = wait(&sent).expect_err("it takes nothing").to_string();
    assert!(error.contains("fake_0") || error.contains("RDMA"), "{error}");
    let begun = Instant::now();
    let error = wait(&received).expect_err("nothing comes").to_string();
    assert!(error.contains("127.0.0.1: the peer has failed"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

/// Pinning takes its time, of which messages must not know.
#[test]
fn messages_go_on_while_memory_is_registered() {
    inside!(messages_go_on_while_memory_is_registered);
    let (a, b) = (host(&[0], 1), far());
    let (sending, receiving) = channel(&a, &b);
    let (mut bytes, mut other) = (pattern(1, 1 << 20), pattern(2, 1 << 20));
    // SAFETY: both outlive their regions.
    let known = unsafe { a.register(bytes.as_mut_ptr(), bytes.len()) }.expect("registered");
    exchange_all((&sending, &receiving));
    Fake(0).register_in(Duration::from_secs(1));
    std::thread::scope(|scope| {
        let a = &a;
        // SAFETY: as above.
        let slow =
            scope.spawn(move || unsafe { a.register(other.as_mut_ptr(), 1 << 20).map(drop) });
        std::thread::sleep(Duration::from_millis(100));
        exchange(&sending, &receiving, &bytes, 1 << 20);
        assert!(!slow.is_finished(), "it was waited for");
        slow.join().expect("no panic").expect("registered");
    });
    drop(known);
}

/// Hundreds of queue pairs, a few milliseconds each, take longer than a path may be silent.
#[test]
fn no_path_is_blamed_for_queue_pairs_that_take_their_time() {
    inside!(no_path_is_blamed_for_queue_pairs_that_take_their_time);
    let open = |config| {
        let give_up = Duration::from_secs(40);
        Endpoint::open(EndpointConfig { connections: 16, give_up, ..config }).expect("opens")
    };
    let (a, b) = (open(nic(0, 1)), open(EndpointConfig { plane: None, ..nic(1, 2) }));
    for (ours, theirs) in [(3, 1), (1, 4)] {
        let channels: Vec<_> = (0..64).map(|_| channel(&a, &b)).collect();
        Fake(0).register_in(Duration::from_millis(ours));
        Fake(1).register_in(Duration::from_millis(theirs));
        let bytes = pattern(1, 2 << 20);
        let mut rooms = vec![vec![0; bytes.len()]; channels.len()];
        let all = channels.iter().zip(&mut rooms).flat_map(|((sending, receiving), room)| {
            let received = take(|| receive(receiving, &mut [(room, 0)]));
            [received, take(|| send(sending, &bytes, 0))]
        });
        let all: Vec<_> = all.collect();
        for one in &all {
            wait(one).expect("it is over");
        }
        assert!(rooms.iter().all(|room| *room == bytes));
        (0..2).for_each(|device| Fake(device).register_in(Duration::ZERO));
    }
    let paths = a.statistics().paths;
    assert_eq!(paths.iter().map(|it| it.counts.time_outs).sum::<u64>(), 0);
}

/// Whichever side it is, it says why.
#[test]
fn a_device_that_refuses_queue_pairs_is_named() {
    inside!(a_device_that_refuses_queue_pairs_is_named);
    for refuses in [0, 1] {
        let (a, b) = (host(&[0], 1), far());
        let (listener, handle) = b.listen().expect("listens");
        Fake(refuses).refuse_memory(true);
        let mut connecting = a.connect(&handle).expect("begins to connect");
        let mut accepted = None;
        let begun = Instant::now();
        let (mut sender, mut receiver) = (None, None);
        // The sender is told, and at the receiver whoever wants something.
        while sender.is_none() || refuses == 1 && receiver.is_none() {
            accepted = accepted.or_else(|| listener.try_accept().expect("it may come"));
            sender = sender.or_else(|| connecting.try_finish().err());
            receiver = accepted.as_ref().and_then(|it| receive(it, &mut [(&mut [], 0)]).err());
            assert!(begun.elapsed() < Duration::from_secs(6), "{sender:?}, {receiver:?}");
        }
        Fake(refuses).refuse_memory(false);
        let named = if refuses == 0 { sender } else { receiver };
        let named = named.expect("it has failed").to_string();
        let device = format!("fake_{refuses}");
        assert!(named.contains(&device) && named.contains("ulimit -l"), "{named}");
    }
}

/// One of them is not there: TCP over both, if that will do.
#[test]
fn without_one_device_all_goes_over_tcp() {
    inside!(without_one_device_all_goes_over_tcp);
    let lacks = |last: u8, or_tcp| {
        let backend = |device: &str| Backend::Roce {
            device: device.into(),
            port: 1,
            gid_index: None,
            or_tcp,
        };
        let first = EndpointConfig { backend: backend("fake_0"), ..nic(0, last) };
        vec![first, EndpointConfig { backend: backend("fake_9"), ..nic(1, last) }]
    };
    let Err(CommError::System(error)) = Endpoint::open_merged(lacks(1, false)) else {
        panic!("it opens")
    };
    assert!(error.starts_with("plane-1-1: there is no RDMA device fake_9"), "{error}");
    let open = |last| Endpoint::open_merged(lacks(last, true)).expect("TCP will do");
    let (a, b) = (open(1), open(2));
    assert!(a.notice().is_some_and(|it| it.contains("fake_9") && it.ends_with("using TCP")));
    let (sending, receiving) = channel(&a, &b);
    assert_eq!(written(|| exchange_all((&sending, &receiving))), [0; 3]);
}

/// What stands for memory of a GPU: a file that devices write behind, at an address where nothing is.
struct Gpu {
    file: OwnedFd,
    start: usize,
}

const ROOM: usize = 4 << 20;

impl Gpu {
    fn new(start: usize) -> Gpu {
        // SAFETY: a new file, which is ours.
        let file = unsafe {
            let file = libc::memfd_create(c"gpu".as_ptr(), 0);
            assert!(file >= 0 && libc::ftruncate(file, ROOM as i64) == 0);
            OwnedFd::from_raw_fd(file)
        };
        Gpu { file, start }
    }

    fn memory(&self) -> GpuMemory<'_> {
        GpuMemory { start: self.start, len: ROOM, dma_buf: Some((self.file.as_fd(), 0)) }
    }

    fn file(&self) -> std::fs::File {
        self.file.try_clone().expect("a descriptor").into()
    }

    fn write(&self, bytes: &[u8]) {
        use std::os::unix::fs::FileExt;
        self.file().write_all_at(bytes, 0).expect("written");
    }

    fn read(&self) -> Vec<u8> {
        use std::os::unix::fs::FileExt;
        let mut bytes = vec![0; ROOM];
        self.file().read_exact_at(&mut bytes, 0).expect("read");
        bytes
    }
}

/// A message from one to the other, which is flushed and then there.
fn flushed(
    (sending, from): (&SendChannel, (&Gpu, &Region)),
    (receiving, to): (&RecvChannel, (&Gpu, &Region)),
    seed: u64,
) {
    let bytes = pattern(seed, ROOM);
    from.0.write(&bytes);
    let start = |gpu: &Gpu| std::ptr::without_provenance_mut::<u8>(gpu.start);
    let into = Buffer { start: start(to.0), len: ROOM, tag: 0, region: Some(to.1) };
    // SAFETY: nobody but the devices looks at either.
    let (received, sent) = unsafe {
        (
            take(|| receiving.irecv(&[into])),
            take(|| sending.isend(start(from.0), ROOM, 0, Some(from.1))),
        )
    };
    wait(&sent).expect("sent");
    wait(&received).expect("received");
    assert!(to.0.read() != bytes, "it is there before");
    let flush = take(|| receiving.flush(to.1, to.0.start));
    wait(&flush).expect("flushed");
    assert!(to.0.read() == bytes, "a device has not flushed what it wrote");
}

/// Each device flushes what it has written; one that is dead, and has written nothing, is not asked.
#[test]
fn those_that_received_are_flushed() {
    inside!(those_that_received_are_flushed);
    let (a, b) = hosts(&[0, 1]);
    let (sending, receiving) = channel(&a, &b);
    let (from, to) = (Gpu::new(0x5000_0000_0000), Gpu::new(0x6000_0000_0000));
    // SAFETY: both stay until their regions are gone.
    let [sends, receives] =
        unsafe { [sending.register_gpu(from.memory()), receiving.register_gpu(to.memory())] };
    let (sends, receives) = (sends.expect("registered"), receives.expect("registered"));
    let reads = || [0, 1].map(|device| Fake(device).reads());
    let ends = ((&sending, (&from, &sends)), (&receiving, (&to, &receives)));
    flushed(ends.0, ends.1, 1);
    assert_eq!(reads(), [1, 1]);
    // Before Linux 5.12 children that are forked have none of the pages that a device writes.
    assert_eq!([0, 1].map(|device| Fake(device).ragged()), [0, 0], "they are ours alone");
    Fake(1).set(State::Down);
    // What it may have written before it died is asked for once more, and that read may fail.
    exchange(&sending, &receiving, &pattern(2, 100), 100);
    let before = reads();
    for seed in 3..6 {
        flushed(ends.0, ends.1, seed);
    }
    let after = reads();
    assert_eq!([after[0] - before[0], after[1] - before[1]], [3, 0]);
    drop((sends, receives));
    // SAFETY: as above.
    let refused = unsafe {
        Fake(1).refuse_memory(true);
        sending.register_gpu(from.memory()).expect_err("it refuses");
        let known = Fake(0).regions();
        let refused = sending.register_gpu(from.memory());
        assert_eq!(Fake(0).regions(), known, "the first is undone");
        refused
    };
    assert!(refused.expect_err("it refuses").to_string().contains("fake_1"));
}
