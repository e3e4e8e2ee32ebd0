//! Groups of ranks in one process, over sockets of this machine.

#![expect(unsafe_code, reason = "buffers are handed over by address")]

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weft_comm::{Backend, Checksum, Endpoint, EndpointConfig};
use weft_group::{Apart, Call, Copies, Element, Group, GroupError, Operation, Reduction};
use weft_group::{Seat, Segment, Ticket, Tuning};

const SOON: Duration = Duration::from_secs(20);

fn endpoint() -> Arc<Endpoint> {
    let config = EndpointConfig {
        name: "lo".into(),
        address: Ipv4Addr::LOCALHOST,
        listen: 0..=0,
        dscp: 0,
        backend: Backend::Tcp,
        plan: None,
        connections: 3,
        path_time_out: Duration::from_millis(500),
        give_up: Duration::from_secs(3),
        checksum: Checksum::All,
        encrypt: false,
        congestion: None,
        job_key: Arc::default(),
        line_bps: 0,
        plane: None,
    };
    Arc::new(Endpoint::open(config).expect("a free port"))
}

fn groups(ranks: u32, limit: Duration) -> Vec<Group> {
    let seats: Vec<Seat> = (0..ranks).map(|_| Seat::take(endpoint()).expect("listens")).collect();
    let handles: Vec<_> = seats.iter().map(|seat| seat.handle).collect();
    let tuning = Tuning { chunk: 64 << 10, small: 1 << 10 };
    let join = |(rank, seat): (usize, Seat)| {
        seat.join(handles.clone(), rank as u32, tuning, limit).expect("a thread")
    };
    seats.into_iter().enumerate().map(join).collect()
}

fn segment(of: &mut [f32]) -> Segment {
    Segment { start: of.as_mut_ptr().cast(), len: size_of_val(of) }
}

fn submit(
    group: &Group,
    operation: Operation,
    inputs: Vec<Segment>,
    outputs: Vec<Segment>,
) -> Result<Ticket, GroupError> {
    let (element, reduction) = (Element::F32, Reduction::Sum);
    let call = Call { operation, element, reduction, inputs, outputs };
    // SAFETY: every test waits for its tickets, or drops its groups, before its buffers go.
    unsafe { group.submit(call, Copies::default(), None) }
}

fn finish(tickets: Vec<Ticket>) {
    for ticket in tickets {
        ticket.wait(Some(SOON)).expect("in time").expect("goes well");
    }
}

#[test]
fn operations_follow_each_other() {
    let groups = groups(4, SOON);
    let mut buffers: Vec<Vec<Vec<f32>>> = (0..4u8)
        .map(|rank| [1, 100, 70_000, 500_001].map(|len| vec![f32::from(rank); len]).into())
        .collect();
    let mut tickets = Vec::new();
    for (group, buffers) in groups.iter().zip(&mut buffers) {
        for buffer in buffers.iter_mut() {
            let call = submit(group, Operation::AllReduce, vec![], vec![segment(buffer)]);
            tickets.push(call.expect("makes sense"));
        }
        tickets.push(submit(group, Operation::Barrier, vec![], vec![]).expect("makes sense"));
    }
    finish(tickets);
    assert!(buffers.iter().flatten().flatten().all(|one| *one == 6.0));
}

#[test]
fn all_to_all_with_single_messages_beside_it() {
    let groups = groups(3, SOON);
    let mut inputs: Vec<Vec<Vec<f32>>> = (0..3)
        .map(|from| (0..3).map(|to| vec![(10 * from + to) as f32; 40_000 * (to + 1)]).collect())
        .collect();
    let mut outputs: Vec<Vec<Vec<f32>>> =
        (0..3).map(|to| (0..3).map(|_| vec![0.0; 40_000 * (to + 1)]).collect()).collect();
    let (mut given, mut taken) = (vec![7.0f32; 1000], vec![0.0f32; 1000]);
    let mut tickets = Vec::new();
    // Rank 0 waits for a message that rank 1 sends after its all-to-all, which needs rank 0's.
    let receive = Operation::Receive { from: 1, tag: 5 };
    tickets.push(submit(&groups[0], receive, vec![], vec![segment(&mut taken)]).expect("sense"));
    for (rank, group) in groups.iter().enumerate() {
        let inputs = inputs[rank].iter_mut().map(|buffer| segment(buffer)).collect();
        let outputs = outputs[rank].iter_mut().map(|buffer| segment(buffer)).collect();
        tickets.push(submit(group, Operation::AllToAll, inputs, outputs).expect("makes sense"));
    }
    let send = Operation::Send { to: 0, tag: 5 };
    tickets.push(submit(&groups[1], send, vec![segment(&mut given)], vec![]).expect("sense"));
    finish(tickets);
    for (to, outputs) in outputs.iter().enumerate() {
        for (from, output) in outputs.iter().enumerate() {
            assert!(output.iter().all(|one| *one == (10 * from + to) as f32), "{from} to {to}");
        }
    }
    assert_eq!(given, taken);
}

/// Of operations that follow each other on elements that lie apart each takes what the one before left.
#[test]
fn elements_that_lie_apart_are_taken_in_turn() {
    let groups = groups(2, SOON);
    let mut columns = [[1.0f32, 9.0, 1.0, 9.0, 1.0, 9.0]; 2];
    let mut rooms = [[[0.0f32; 3]; 4]; 2];
    let mut tickets = Vec::new();
    for ((group, column), rooms) in groups.iter().zip(&mut columns).zip(&mut rooms) {
        for room in rooms.iter_mut() {
            let (start, dense) = (column.as_mut_ptr().cast(), room.as_mut_ptr().cast());
            let apart = vec![Apart { start, dense, element: 4, dims: vec![(3, 8)] }];
            let (element, reduction) = (Element::F32, Reduction::Sum);
            let (inputs, outputs) = (vec![], vec![segment(room)]);
            let call =
                Call { operation: Operation::AllReduce, element, reduction, inputs, outputs };
            let copies = Copies { before: apart.clone(), after: apart };
            // SAFETY: as in `submit`.
            tickets.push(unsafe { group.submit(call, copies, None) }.expect("makes sense"));
        }
    }
    finish(tickets);
    assert_eq!(columns, [[16.0, 9.0, 16.0, 9.0, 16.0, 9.0]; 2]);
}

/// Whoever waits for a peer that is gone hears of it, and so does everybody behind.
#[test]
fn a_peer_that_dies_is_named() {
    let mut groups = groups(3, SOON);
    let mut buffers = vec![vec![1.0f32; 2_000_000]; 2];
    let (dead, alive) = (groups.remove(1), groups);
    let begun = Instant::now();
    let call = |group, buffer: &mut Vec<f32>| {
        submit(group, Operation::AllReduce, vec![], vec![segment(buffer)]).expect("makes sense")
    };
    let tickets: Vec<Ticket> =
        alive.iter().zip(&mut buffers).map(|(group, buffer)| call(group, buffer)).collect();
    std::thread::sleep(Duration::from_millis(300));
    drop(dead);
    let error = |ticket: &Ticket| {
        let outcome = ticket.wait(Some(SOON)).expect("in time");
        outcome.expect_err("one is gone").to_string()
    };
    let errors: Vec<String> = tickets.iter().map(error).collect();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(errors.iter().any(|text| text.starts_with("weft: all-reduce: rank 1: ")), "{errors:?}");
    assert!(errors.iter().all(|text| !text.contains('\n')), "{errors:?}");
    // What comes after says why, too.
    let after = submit(&alive[0], Operation::Barrier, vec![], vec![]).expect("makes sense");
    let text = after.wait(Some(SOON)).expect("at once").expect_err("it is over").to_string();
    assert!(text.starts_with("weft: barrier: the group is over since all-reduce: "), "{text}");
}

/// A peer that is there and does nothing is waited for no longer than was said.
#[test]
fn a_peer_that_does_nothing_is_named_too() {
    let groups = groups(2, Duration::from_secs(1));
    let mut buffer = vec![1.0f32; 100];
    let ticket = submit(&groups[0], Operation::AllReduce, vec![], vec![segment(&mut buffer)]);
    let outcome = ticket.expect("makes sense").wait(Some(SOON)).expect("in time");
    let text = outcome.expect_err("rank 1 did nothing").to_string();
    assert_eq!(
        text,
        "weft: all-reduce: timed out: nothing from rank 1 within the timeout of 1s; is it still running, and at the same \
         operation?"
    );
}

#[test]
fn calls_that_make_no_sense_are_refused() {
    let groups = groups(2, SOON);
    let mut buffer = vec![1.0f32; 100];
    let odd = Segment { len: 7, ..segment(&mut buffer) };
    let all = segment(&mut buffer);
    for (operation, inputs, outputs, wanted) in [
        (Operation::Broadcast { root: 2 }, vec![], vec![all], "there is no rank 2; use 0 to 1"),
        (Operation::Send { to: 0, tag: 0 }, vec![all], vec![], "rank 0 cannot talk to itself"),
        (Operation::AllReduce, vec![], vec![], "0 outputs were given; give 1"),
        (Operation::AllReduce, vec![], vec![odd], "7 bytes are no whole number of float32"),
        (Operation::AllGather, vec![odd], vec![all, all], "7 bytes are no whole number"),
    ] {
        let error = submit(&groups[0], operation, inputs, outputs).expect_err(wanted).to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

/// Tags in any order, both ways, and more of them than a process may have open files.
#[test]
fn tags_come_in_any_order() {
    const TAGS: u32 = 1500;
    let groups = groups(2, SOON);
    let mut given: Vec<Vec<f32>> = (0..TAGS).map(|tag| vec![tag as f32; 50]).collect();
    let mut taken = vec![vec![vec![0.0f32; 50]; TAGS as usize]; 2];
    let mut tickets = Vec::new();
    for (rank, taken) in taken.iter_mut().enumerate() {
        let peer = 1 - rank as u32;
        for (tag, buffer) in (0..TAGS).zip(&mut given) {
            let call = Operation::Send { to: peer, tag };
            tickets
                .push(submit(&groups[rank], call, vec![segment(buffer)], vec![]).expect("sense"));
        }
        for (tag, buffer) in (0..TAGS).zip(taken).rev() {
            let call = Operation::Receive { from: peer, tag };
            tickets
                .push(submit(&groups[rank], call, vec![], vec![segment(buffer)]).expect("sense"));
        }
    }
    finish(tickets);
    assert!(taken.iter().all(|all| *all == given));
}
