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
    let rank = |rank| config(rank, ranks, plan);
    run_all((0..ranks).map(rank)).into_iter().map(|rows| rows.expect("no error")).collect()
}

/// Of a rank that nobody waits for yet.
fn config(rank: usize, ranks: usize, plan: &Benchmark) -> Config {
    let over = Over::Sockets { connections: 2, address: None };
    let (meet, patience, plan) = (String::new(), Duration::from_secs(20), plan.clone());
    Config { rank, ranks, meet, patience, over, plan }
}

fn run_all(configs: impl Iterator<Item = Config>) -> Vec<Result<Vec<Row>, BenchError>> {
    let meet = free_place();
    std::thread::scope(|scope| {
        let one = |config: Config| {
            let config = Config { meet: meet.clone(), ..config };
            scope.spawn(move || {
                let mut rows = Vec::new();
                let mut keep = |row| {
                    rows.push(row);
                    Ok(())
                };
                run_rank(&config, &mut |_| Ok(()), &mut keep, &|| Ok(())).map(|()| rows)
            })
        };
        let threads: Vec<_> = configs.map(one).collect();
        threads.into_iter().map(|one| one.join().expect("no panic")).collect()
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

fn few_runs() -> Benchmark {
    Benchmark {
        operation: Operation::AllReduce,
        sizes: vec![4096],
        iterations: 1,
        warm_up: 1,
        checks: 1,
        channels: 1,
        chunk: 4096,
    }
}

/// Each rank is told, and none waits for what never comes.
#[test]
fn ranks_with_other_options_are_named() {
    let plan = few_runs();
    let other = |change: &dyn Fn(&mut Benchmark)| {
        let mut other = plan.clone();
        change(&mut other);
        config(1, 2, &other)
    };
    let over = |connections| Over::Sockets { connections, address: None };
    for (other, said) in [
        (
            other(&|it| it.operation = Operation::SendRecv),
            "--op: rank 0 has all-reduce, rank 1 has",
        ),
        (
            other(&|it| it.sizes.push(8192)),
            "-b, -e and -f: rank 0 has one size, 4096 bytes, rank 1",
        ),
        (other(&|it| it.iterations = 2), "-n: rank 0 has 1, rank 1 has 2; give all ranks"),
        (other(&|it| it.warm_up = 0), "-w: rank 0 has 1, rank 1 has 0; "),
        (other(&|it| it.checks = 0), "-c: rank 0 has 1, rank 1 has 0; "),
        (other(&|it| it.channels = 2), "--channels: rank 0 has 1, rank 1 has 2; "),
        (other(&|it| it.chunk = 64), "--chunk: rank 0 has 4096 bytes, rank 1 has 64 bytes; "),
        (config(1, 3, &plan), "--ranks: rank 0 has 2, rank 1 has 3; "),
        (
            Config { over: over(3), ..config(1, 2, &plan) },
            "--connections: rank 0 has 2, rank 1 has",
        ),
    ] {
        for outcome in run_all([config(0, 2, &plan), other].into_iter()) {
            let Err(BenchError::Input(text)) = outcome else { panic!("{said}: {outcome:?}") };
            assert!(text.starts_with(said), "{text}");
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
    let plan = few_runs();
    let patience = Duration::from_millis(200);
    let config = Config { rank: 0, ranks: 3, meet: free_place(), patience, over, plan };
    let error = run_rank(&config, &mut |_| Ok(()), &mut |_| Ok(()), &|| Ok(()));
    let Err(BenchError::Late(text)) = error else { panic!("{error:?}") };
    assert!(text.ends_with("ranks 1, 2 have not come"), "{text}");
}

#[test]
fn who_comes_twice_is_named() {
    let place = free_place();
    let run = |rank| {
        let over = Over::Sockets { connections: 1, address: None };
        let (meet, patience) = (place.clone(), Duration::from_secs(2));
        let config = Config { rank, ranks: 3, meet, patience, over, plan: few_runs() };
        run_rank(&config, &mut |_| Ok(()), &mut |_| Ok(()), &|| Ok(()))
    };
    std::thread::scope(|scope| {
        let others = [1, 1].map(|rank| scope.spawn(move || run(rank).is_err()));
        let Err(BenchError::Late(text)) = run(0) else { panic!("not late") };
        assert!(text.ends_with("ranks 2 have not come; rank 1 has come twice"), "{text}");
        assert!(others.into_iter().all(|other| other.join().expect("it ends")));
    });
}
