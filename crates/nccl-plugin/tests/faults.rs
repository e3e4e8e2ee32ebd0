//! What happens to jobs: strangers at the door, too few descriptors and ports, ranks that stand still or are
//! killed, and forks. Each rank is a process of its own.

#![expect(unsafe_code, reason = "limits, signals and forks, for want of anything for them in std")]

mod common;

use common::job::{Job, Rank, handle_of, pause, signal};
use common::{Pair, fill, is_filled};
use std::ffi::c_void;
use std::io::Write;
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::ptr::null_mut;
use std::time::{Duration, Instant};
use weft_comm::Handle;
use weft_comm::handle::Parts;
use weft_nccl_abi::{HANDLE_BYTES, NcclResult};
use weft_net_bench::BenchError;
use weft_net_bench::table::Net;

const ROOM: usize = 300_000;

/// So many messages around the ring, each checked.
fn exchange(rank: &Rank, pair: &mut Pair<'_>, messages: std::ops::Range<usize>) {
    let before = rank.after(rank.ranks - 1);
    for number in messages {
        let len = ROOM - number % 7;
        fill(&mut pair.out[..len], number + 1_000 * rank.rank);
        let receive = pair.receive(&[(0, len, 0)]);
        let send = pair.send(0, len, 0);
        pair.wait(send);
        assert_eq!(pair.wait(receive)[0] as usize, len);
        assert!(is_filled(&pair.into[..len], number + 1_000 * before), "message {number}");
    }
}

/// Knocks at a door and says something that is no hello, or nothing.
fn knock(door: SocketAddrV4, which: usize) -> Option<TcpStream> {
    let words: [&[u8]; 5] =
        [b"", b"GET / HTTP/1.1\r\n\r\n", &[0; 300], b"weftlane", b"\x16\x03\x01\x02\x00\x01"];
    let mut stranger = TcpStream::connect_timeout(&door.into(), Duration::from_secs(5)).ok()?;
    // It may have been turned away by now.
    let _ = stranger.write_all(words[which % words.len()]);
    Some(stranger)
}

#[test]
fn strangers_at_the_door_keep_nobody_out() {
    let job = Job { test: "strangers_at_the_door_keep_nobody_out", ranks: 4, ..Job::USUAL };
    job.run(|rank, net| {
        let (handle, listener) = net.listen(0).expect("it listens");
        let doors = rank.share(&handle);
        let door = Parts::decode(&Handle(handle_of(&doors[0]))).expect("a handle").address;
        // All at the door of rank 0, which takes in its neighbour meanwhile; they stay until the end.
        let mut strangers = Vec::new();
        if rank.rank == 1 {
            strangers.extend((0..500).map(|which| knock(door, which)));
        }
        rank.barrier();
        let begun = Instant::now();
        let mut pair = rank.ring(net, 1, ROOM);
        exchange(rank, &mut pair, 0..20);
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        // More come while messages are under way.
        std::thread::scope(|scope| {
            if rank.rank == 1 {
                scope.spawn(|| (0..100).for_each(|which| drop(knock(door, which))));
            }
            exchange(rank, &mut pair, 20..60);
        });
        // SAFETY: it is open.
        let entered = unsafe { net.accept(listener).expect("it accepts") };
        assert!(entered.is_null(), "a stranger has a channel");
        rank.barrier();
        let came = strangers.iter().flatten().count();
        assert!(rank.rank != 1 || came > 400, "{came} strangers are not many");
        pair.close();
        // SAFETY: it is open.
        unsafe { net.close_listen(listener).expect("it closes") };
    });
}

/// As `ulimit -n`.
fn limit_descriptors(count: u64) {
    let few = libc::rlimit { rlim_cur: count, rlim_max: count };
    // SAFETY: the limit is there during the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &few) }, 0);
}

/// What came of an attempt: halves, and an error.
type Attempt = (*mut c_void, *mut c_void, Option<BenchError>);

/// Connects and accepts until both are there, one fails, or for some seconds.
fn attempt(net: &Net, mut its: [u8; HANDLE_BYTES], listener: *mut c_void) -> Attempt {
    let mut send: *mut c_void = null_mut();
    let mut receive = send;
    let begun = Instant::now();
    while (send.is_null() || receive.is_null()) && begun.elapsed() < Duration::from_secs(3) {
        let sent = if send.is_null() { net.connect(0, &mut its) } else { Ok(send) };
        // SAFETY: the listener is open.
        let received =
            if receive.is_null() { unsafe { net.accept(listener) } } else { Ok(receive) };
        send = *sent.as_ref().unwrap_or(&send);
        receive = *received.as_ref().unwrap_or(&receive);
        if let Some(error) = sent.err().or(received.err()) {
            return (send, receive, Some(error));
        }
        pause(1);
    }
    (send, receive, None)
}

/// Channels are opened until descriptors are short. It is said at once, by name; those that are open go on.
#[test]
fn a_job_with_few_descriptors_says_so_and_keeps_what_it_has() {
    let test = "a_job_with_few_descriptors_says_so_and_keeps_what_it_has";
    let said = Job { test, ..Job::USUAL }.run(|rank, net| {
        limit_descriptors(64);
        let mut pairs = Vec::new();
        let mut failed = false;
        while !failed {
            let (handle, listener) = net.listen(0).expect("it listens");
            let its = handle_of(&rank.share(&handle)[rank.after(1)]);
            let (send, receive, error) = attempt(net, its, listener);
            let whole = !send.is_null() && !receive.is_null();
            failed = rank.share(&[u8::from(whole)]).contains(&vec![0]);
            // SAFETY: what is there is open, and closed here only.
            unsafe {
                net.close_listen(listener).expect("it closes");
                if failed {
                    if !send.is_null() {
                        net.close_send(send).expect("it closes");
                    }
                    if !receive.is_null() {
                        net.close_recv(receive).expect("it closes");
                    }
                } else {
                    pairs.push(Pair::of(net, (send, receive), ROOM));
                }
            }
            if let Some(BenchError::Plugin { result, .. }) = error {
                let known = [NcclResult::SYSTEM_ERROR, NcclResult::REMOTE_ERROR];
                assert!(known.contains(&result), "{result:?}");
            }
            assert!(pairs.len() < 64, "there is no end to what opens");
        }
        assert!(pairs.len() >= 3, "only {} channels", pairs.len());
        for pair in &mut pairs {
            exchange(rank, pair, 0..3);
        }
        rank.barrier();
        // Where the others are closed there is room for one.
        pairs.drain(1..).for_each(Pair::close);
        rank.barrier();
        pause(100);
        let mut pair = rank.ring(net, 1, ROOM);
        exchange(rank, &mut pair, 0..3);
        pair.close();
        pairs.into_iter().for_each(Pair::close);
    });
    let named = |said: &String| said.contains("EMFILE") && said.contains("ulimit -n");
    assert!(said.iter().any(named), "{said:?}");
}

/// Two ports that are free, one after the other.
fn two_ports() -> u16 {
    let free = |port| TcpListener::bind(("127.0.0.1", port));
    let found = (21_000..31_000).step_by(2).skip(std::process::id() as usize % 997);
    let both = |port: &u16| free(*port).is_ok() && free(*port + 1).is_ok();
    found.into_iter().find(both).expect("two ports")
}

/// A cluster whose only host is this machine, which has two ports.
fn cluster_of_two_ports(port: u16) -> std::path::PathBuf {
    let text = format!(
        r#"
        [fabric]
        topology = "leaf-spine"
        leaves = 2
        spines = 2
        hosts_per_leaf = 1
        link = "10Gbps"
        [cluster]
        protocol = "tcp"
        port = {port}
        ports = 2
        host = "h{{host}}"
        host_address = "10.{{leaf}}.0.{{place+2}}"
        host_interface = "lo"
        "#
    );
    let file = std::env::temp_dir().join(format!("weft-two-ports-{port}.toml"));
    std::fs::write(&file, text).expect("it is written");
    file
}

/// Runs `work` in processes of one host, which has two ports: the first one, and what each has said.
fn with_two_ports(
    test: &str,
    ranks: usize,
    work: impl FnOnce(&mut Rank, &Net),
) -> (u16, Vec<String>) {
    let port = two_ports();
    let file = cluster_of_two_ports(port);
    let variables = [("WEFT_CONFIG", file.to_str().expect("text")), ("WEFT_HOST", "h0")];
    let said = Job { test, ranks, variables: &variables, ..Job::USUAL }.run(work);
    std::fs::remove_file(file).expect("it is ours");
    (port, said)
}

/// Processes of a host share its ports: two have one each, however many channels they open.
#[test]
fn two_ports_are_for_two_processes() {
    with_two_ports("two_ports_are_for_two_processes", 2, |rank, net| {
        let mut pairs: Vec<_> = (0..20).map(|_| rank.ring(net, 1, ROOM)).collect();
        let (handle, listener) = net.listen(0).expect("it listens");
        let door =
            |said: Vec<u8>| Parts::decode(&Handle(handle_of(&said))).expect("a handle").address;
        let mut ports: Vec<_> =
            rank.share(&handle).into_iter().map(|said| door(said).port()).collect();
        ports.dedup();
        assert_eq!(ports.len(), 2, "{ports:?}");
        pairs.iter_mut().for_each(|pair| exchange(rank, pair, 0..2));
        pairs.into_iter().for_each(Pair::close);
        // SAFETY: it is open.
        unsafe { net.close_listen(listener).expect("it closes") };
    });
}

/// A third is told which range is too small.
#[test]
fn a_process_too_many_for_the_ports_is_told_so() {
    let (port, said) =
        with_two_ports("a_process_too_many_for_the_ports_is_told_so", 3, |rank, net| {
            if rank.rank < 2 {
                net.listen(0).expect("there is a port for it");
            }
            rank.barrier();
            if rank.rank == 2 {
                let error = net.listen(0).expect_err("no port is left");
                let BenchError::Plugin { result, .. } = error else { panic!("{error}") };
                assert_eq!(result, NcclResult::SYSTEM_ERROR);
            }
            rank.barrier();
        });
    assert!(said[2].contains(&format!("TCP ports {port} to {}", port + 1)), "{}", said[2]);
}

/// Longer than a path may be silent, and shorter than a peer may: the job goes on.
#[test]
fn a_rank_that_stands_still_for_a_while_is_waited_for() {
    let test = "a_rank_that_stands_still_for_a_while_is_waited_for";
    let variables = [("WEFT_PATH_TIMEOUT", "300ms"), ("WEFT_GIVE_UP", "20s")];
    Job { test, ranks: 4, variables: &variables, ..Job::USUAL }.run(|rank, net| {
        let mut pair = rank.ring(net, 1, ROOM);
        let its = rank.processes()[1];
        exchange(rank, &mut pair, 0..20);
        if rank.rank == 0 {
            suspend(&[its], 1_500);
        }
        exchange(rank, &mut pair, 20..1_000);
        rank.barrier();
        pair.close();
    });
}

/// Longer than a peer may be silent: its engine answers for it, though nobody there asks for anything.
#[test]
fn a_rank_that_computes_is_waited_for() {
    let test = "a_rank_that_computes_is_waited_for";
    let variables = [("WEFT_PATH_TIMEOUT", "300ms"), ("WEFT_GIVE_UP", "1500ms")];
    Job { test, variables: &variables, ..Job::USUAL }.run(|rank, net| {
        let mut pair = rank.ring(net, 1, ROOM);
        if rank.rank == 1 {
            pause(2_500);
        }
        exchange(rank, &mut pair, 0..3);
        rank.barrier();
        pair.close();
    });
}

/// All stand still for longer than a peer may, as a job that a scheduler suspends: nobody is blamed for it.
#[test]
fn a_job_that_is_suspended_goes_on() {
    let test = "a_job_that_is_suspended_goes_on";
    let variables = [("WEFT_PATH_TIMEOUT", "300ms"), ("WEFT_GIVE_UP", "2s")];
    Job { test, variables: &variables, ..Job::USUAL }.run(|rank, net| {
        let mut pair = rank.ring(net, 1, ROOM);
        let all = rank.processes();
        if rank.rank == 0 {
            suspend(&all, 3_000);
        }
        exchange(rank, &mut pair, 0..2_000);
        rank.barrier();
        pair.close();
    });
}

/// A process that stops these soon, and lets them go on after so long.
fn suspend(processes: &[i32], milliseconds: u32) {
    // SAFETY: the child sends signals, waits, and ends without a word to anybody.
    if unsafe { libc::fork() } == 0 {
        // SAFETY: as above; they take numbers.
        unsafe {
            libc::usleep(50_000);
            for process in processes {
                libc::kill(*process, libc::SIGSTOP);
            }
            libc::usleep(1_000 * milliseconds);
            for process in processes {
                libc::kill(*process, libc::SIGCONT);
            }
            libc::_exit(0);
        }
    }
}

/// All have a channel with each other, and something under way on each. Something happens to rank 1 then:
/// who waits for it is told within `seconds`, in the words `told`, and nobody else is touched.
fn a_rank_is_lost(
    test: &str,
    ranks: usize,
    variables: &[(&str, &str)],
    by: i32,
    (seconds, told): (std::ops::Range<f64>, &str),
) {
    let job = Job { test, ranks, variables, killed: &[1], ..Job::USUAL };
    let said = job.run(|rank, net| {
        let mut pairs: Vec<_> =
            (1..rank.ranks).map(|places| rank.ring(net, places, ROOM)).collect();
        let its = rank.processes()[1];
        for pair in &mut pairs {
            let (receive, send) = (pair.receive(&[(0, ROOM, 0)]), pair.send(0, ROOM, 0));
            pair.wait(send);
            pair.wait(receive);
        }
        rank.barrier();
        if rank.rank == 1 {
            loop {
                pause(1_000);
            }
        }
        let under_way: Vec<_> = pairs
            .iter_mut()
            .map(|pair| (pair.receive(&[(0, ROOM, 0)]), pair.send(0, ROOM, 0)))
            .collect();
        if rank.rank == 0 {
            signal(its, by);
        }
        let begun = Instant::now();
        for (at, (pair, (receive, send))) in pairs.iter().zip(under_way).enumerate() {
            let (to, from) = (rank.after(at + 1), rank.after(rank.ranks - at - 1));
            for (peer, request) in [(from, receive), (to, send)] {
                match pair.outcome(request) {
                    // Before it happens, rank 1 may have taken what it has no buffer for.
                    Ok(_) => assert!((peer, request) != (1, receive), "rank 1 sends nothing"),
                    Err(BenchError::Plugin { result, .. }) => {
                        assert_eq!((peer, result), (1, NcclResult::REMOTE_ERROR));
                        let took = begun.elapsed().as_secs_f64();
                        assert!(seconds.contains(&took), "{took} s");
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
        pairs.into_iter().for_each(Pair::close);
    });
    for (rank, said) in said.iter().enumerate().filter(|(rank, _)| *rank != 1) {
        assert!(said.contains("127.0.0.1") && said.contains(told), "rank {rank}: {said}");
    }
}

#[test]
fn a_rank_that_stands_still_for_ever_is_given_up() {
    let test = "a_rank_that_stands_still_for_ever_is_given_up";
    let variables = [("WEFT_PATH_TIMEOUT", "300ms"), ("WEFT_GIVE_UP", "1s")];
    a_rank_is_lost(test, 4, &variables, libc::SIGSTOP, (0.8..10.0, "has not said a word"));
}

/// The same where its system has taken the beginning of a message, and has no room for more.
#[test]
fn a_rank_that_stands_still_in_the_middle_of_a_message_is_given_up() {
    const LARGE: usize = 64 << 20;
    let test = "a_rank_that_stands_still_in_the_middle_of_a_message_is_given_up";
    let variables = [("WEFT_PATH_TIMEOUT", "300ms"), ("WEFT_GIVE_UP", "1s")];
    Job { test, variables: &variables, killed: &[1], ..Job::USUAL }.run(|rank, net| {
        let mut pair = rank.ring(net, 1, LARGE);
        let its = rank.processes()[1];
        if rank.rank == 1 {
            pair.receive(&[(0, LARGE, 0)]);
        }
        rank.barrier();
        // What rank 1 has room for is known.
        pause(50);
        if rank.rank == 1 {
            loop {
                pause(1_000);
            }
        }
        signal(its, libc::SIGSTOP);
        let begun = Instant::now();
        let send = pair.send(0, LARGE, 0);
        pair.outcome(send).expect_err("nobody takes it");
        let took = begun.elapsed().as_secs_f64();
        assert!((0.8..10.0).contains(&took), "{took} s");
        pair.close();
    });
}

/// Long before anything that is silent would be given up.
#[test]
fn a_rank_that_is_killed_is_noticed_by_all() {
    let test = "a_rank_that_is_killed_is_noticed_by_all";
    for ranks in [2, 4] {
        a_rank_is_lost(test, ranks, &[], libc::SIGKILL, (0.0..5.0, "is gone"));
    }
}

/// A child that does nothing for a while; its process.
fn forked(milliseconds: u32) -> i32 {
    // SAFETY: the child only waits, and ends without a word to anybody.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: they take numbers.
        unsafe {
            libc::usleep(1_000 * milliseconds);
            libc::_exit(0);
        }
    }
    child
}

/// As workers that load data are: some end while messages are under way, one outlives the job.
#[test]
fn forks_under_way_change_nothing() {
    let test = "forks_under_way_change_nothing";
    for ranks in [2, 4] {
        Job { test, ranks, ..Job::USUAL }.run(|rank, net| {
            let mut pair = rank.ring(net, 1, ROOM);
            let long = forked(5_000);
            let mut children = Vec::new();
            for round in 0..10 {
                // In the middle: its buffers are posted, and what comes is not there yet.
                let len = ROOM - round;
                fill(&mut pair.out[..len], round + 1_000 * rank.rank);
                let receive = pair.receive(&[(0, len, 0)]);
                children.push(forked(50));
                let send = pair.send(0, len, 0);
                children.push(forked(1));
                pair.wait(send);
                assert_eq!(pair.wait(receive)[0] as usize, len);
                let before = rank.after(rank.ranks - 1);
                assert!(is_filled(&pair.into[..len], round + 1_000 * before), "round {round}");
            }
            for child in children {
                let mut status = -1;
                // SAFETY: the child is ours, and the place is one number.
                unsafe { libc::waitpid(child, &mut status, 0) };
                assert_eq!(status, 0, "a child of {child}");
            }
            let receive = pair.receive(&[(0, 8, 0)]);
            rank.barrier();
            let begun = Instant::now();
            if rank.rank != 0 {
                // Whose neighbour has closed hears of it, then whose neighbour has.
                pair.outcome(receive).expect_err("rank 0 has closed it, or the one before");
            }
            pair.close();
            // A child's copy of the sockets keeps no channel open.
            assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
            signal(long, libc::SIGKILL);
        });
    }
}
