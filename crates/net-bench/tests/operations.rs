//! Every collective over plain sockets, with ranks as threads: what comes out is right, for sizes from
//! nothing to many chunks; and the check notices what is wrong.

use std::net::TcpListener;
use std::time::Duration;
use weft_net_bench::{BenchError, Benchmark, Config, Operation, Over, Row, data, run_rank};

fn free_place() -> String {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
    socket.local_addr().expect("an address").to_string()
}

fn all_ranks(ranks: usize, plan: &Benchmark) -> Vec<Vec<Row>> {
    let meet = free_place();
    std::thread::scope(|scope| {
        let one = |rank: usize| {
            let over = Over::Sockets { connections: 2, address: None };
            let patience = Duration::from_secs(20);
            let (meet, plan) = (meet.clone(), plan.clone());
            let config = Config { rank, ranks, meet, patience, over, plan };
            scope.spawn(move || {
                let mut rows = Vec::new();
                let mut keep = |row| {
                    rows.push(row);
                    Ok(())
                };
                run_rank(&config, &mut |_| Ok(()), &mut keep, &|| Ok(())).map(|()| rows)
            })
        };
        let threads: Vec<_> = (0..ranks).map(one).collect();
        threads.into_iter().map(|one| one.join().expect("no panic").expect("no error")).collect()
    })
}

#[test]
fn every_operation_gives_the_right_result() {
    for (operation, name) in Operation::ALL {
        for (ranks, channels) in [(2, 1), (3, 2), (4, 1)] {
            let plan = Benchmark {
                operation,
                sizes: vec![0, 4, 40, 4096, 100_004],
                iterations: 2,
                warm_up: 1,
                checks: 2,
                channels,
                chunk: 4096,
            };
            for rows in all_ranks(ranks, &plan) {
                assert_eq!(rows.len(), plan.sizes.len(), "{name}");
                for row in rows {
                    assert_eq!(row.wrong, Some(0), "{name} over {ranks} ranks, {} bytes", row.size);
                    assert!(row.slowest >= row.seconds);
                }
            }
        }
    }
}

#[test]
fn bus_bandwidth_is_as_in_nccl_tests() {
    // nccl-tests' PERFORMANCE.md: what n ranks send over the links of an ideal network.
    for (operation, factor) in [
        (Operation::AllReduce, 1.5),
        (Operation::AllGather, 0.75),
        (Operation::ReduceScatter, 0.75),
        (Operation::AllToAll, 0.75),
        (Operation::SendRecv, 1.0),
    ] {
        assert!((operation.bus_factor(4) - factor).abs() < 1e-12);
    }
}

#[test]
fn a_wrong_element_is_noticed() {
    for (operation, name) in Operation::ALL {
        let (ranks, count, rank) = (4, 16, 1);
        let mut result = vec![f32::NAN; count];
        // Of a reduce-scatter only the own part counts.
        let all = if operation == Operation::ReduceScatter { count / ranks } else { count };
        assert_eq!(data::wrong(operation, rank, ranks, 0, &result), all, "{name}");
        let mut source = vec![0.0; count];
        data::fill(operation, rank, ranks, 0, &mut source, &mut result);
        assert!(data::wrong(operation, rank, ranks, 0, &result) > 0, "{name}: it has not run");
    }
}

#[test]
fn who_does_not_come_is_named() {
    let over = Over::Sockets { connections: 1, address: None };
    let plan = Benchmark {
        operation: Operation::AllReduce,
        sizes: vec![4],
        iterations: 1,
        warm_up: 0,
        checks: 0,
        channels: 1,
        chunk: 4096,
    };
    let patience = Duration::from_millis(200);
    let config = Config { rank: 0, ranks: 3, meet: free_place(), patience, over, plan };
    let error = run_rank(&config, &mut |_| Ok(()), &mut |_| Ok(()), &|| Ok(()));
    let Err(BenchError::Late(text)) = error else { panic!("{error:?}") };
    assert!(text.ends_with("ranks 1, 2 have not come"), "{text}");
}
