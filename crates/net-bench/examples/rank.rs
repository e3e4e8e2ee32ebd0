//! One rank of a benchmark over a network plugin, without Python: for machines that have none.
//!
//!     rank RANK RANKS MEET PLUGIN ABI OPERATION ITERATIONS SIZE...
//!
//! Prints `row SIZE SECONDS BUS-BYTES-PER-SECOND WRONG` for each size, then `ok`.

use std::error::Error;
use std::time::Duration;
use weft_nccl_abi::Version;
use weft_net_bench::{Benchmark, Config, Operation, Over, run_rank};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [rank, ranks, meet, file, abi, operation, iterations, sizes @ ..] = words.as_slice() else {
        return Err("usage: rank RANK RANKS MEET PLUGIN ABI OPERATION ITERATIONS SIZE...".into());
    };
    let version = Version::ALL.into_iter().find(|version| version.name() == *abi);
    let version = version.ok_or_else(|| format!("no ABI {abi}"))?;
    let sizes = sizes.iter().map(|size| size.parse()).collect::<Result<Vec<usize>, _>>()?;
    let plan = Benchmark {
        operation: Operation::named(operation).ok_or_else(|| format!("no {operation}"))?,
        sizes,
        iterations: iterations.parse()?,
        warm_up: 0,
        checks: 1,
        channels: 1,
        chunk: 1 << 20,
    };
    let config = Config {
        rank: rank.parse()?,
        ranks: ranks.parse()?,
        meet: meet.clone(),
        patience: Duration::from_secs(60),
        over: Over::Plugin { file: file.into(), version, devices: vec![0], traffic_class: None },
        plan,
    };
    let mut begin = |about: &str| {
        println!("over {about}");
        Ok(())
    };
    let mut row = |row: weft_net_bench::Row| {
        let wrong = row.wrong.map_or("unchecked".into(), |wrong| wrong.to_string());
        println!("row {} {:.4} {:.0} {wrong}", row.size, row.seconds, row.bus);
        Ok(())
    };
    run_rank(&config, &mut begin, &mut row, &|| Ok(()))?;
    println!("ok");
    Ok(())
}
