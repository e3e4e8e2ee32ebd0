//! The pattern, the algorithm and the trace format of `docs/extend`, compiled as they stand there and
//! put to work.

mod ideal;

// The files say `crate::` and `super::`, as they would in `crates/workload/src`. Public there, private
// to this test.
pub(crate) use weft_workload::{Workload, WorkloadError};

#[allow(unreachable_pub)]
#[path = "guide"]
mod pattern {
    pub(crate) use weft_workload::pattern::{PatternInfo, Scope};
    pub(crate) mod shift;

    /// What only the registry sees.
    pub(crate) fn told(given: &[(&str, &str)]) -> shift::Shift {
        let mut options =
            weft_units::Options::new("the guide", shift::INFO.options, given).unwrap();
        shift::Shift::read(&mut options).unwrap()
    }
}
#[allow(unreachable_pub)]
#[path = "guide"]
mod collective {
    pub(crate) use weft_workload::collective::{
        AlgorithmInfo, Call, Operation, Payload, Schedule, Step,
    };
    pub(crate) mod neighbor_exchange;
}
#[allow(unreachable_pub)]
#[path = "guide"]
mod trace {
    pub(crate) use weft_workload::trace::{
        Action, Collective, Compute, Degrees, Group, Membership, Node, RankGraph, Size, Trace,
        TraceFormat, TraceFormatInfo, TraceSource, Work,
    };
    pub(crate) mod nccl_log;
}

use collective::neighbor_exchange::NeighborExchange;
use collective::{Call, Operation, Schedule, Step};
use ideal::Ideal;
use pattern::Scope;
use std::collections::{BTreeMap, BTreeSet};
use trace::nccl_log::NcclLog;
use trace::{Trace, TraceFormat, TraceFormatInfo, TraceSource};
use weft_units::{Options, Time};
use weft_workload::collective::Servers;
use weft_workload::job::{Algorithms, Job};
use weft_workload::trace::{SideFile, TraceFile, check};

#[test]
fn the_guides_show_these_files() {
    for (guide, file) in [
        (include_str!("../../../docs/extend/pattern.md"), include_str!("guide/shift.rs")),
        (
            include_str!("../../../docs/extend/collective.md"),
            include_str!("guide/neighbor_exchange.rs"),
        ),
        (include_str!("../../../docs/extend/trace-format.md"), include_str!("guide/nccl_log.rs")),
    ] {
        assert!(guide.contains(&format!("```rust\n{file}```\n")));
    }
}

#[test]
fn the_guides_pattern_shifts() {
    let scope = Scope { hosts: 6, hosts_per_leaf: 2, bytes: 9, start: Time::ZERO, seed: 1 };
    let receivers = |given: &[(&str, &str)]| {
        let workload = pattern::told(given).generate(&scope)?;
        Ok(workload.messages().iter().map(|message| message.dst.0).collect::<Vec<_>>())
    };
    assert_eq!(receivers(&[]), Ok(vec![3, 4, 5, 0, 1, 2]));
    assert_eq!(receivers(&[("stride", "1")]), Ok(vec![1, 2, 3, 4, 5, 0]));
    let line = receivers(&[("stride", "12")]).map_err(|error: WorkloadError| error.0);
    assert_eq!(line, Err("stride: 12 has every host send to itself; use 1 to 5".to_owned()));
}

/// Every receipt comes from the send of the same turn, whose rank has what it sends, and every rank gets
/// all blocks.
#[test]
fn the_guides_algorithm_gathers() {
    for (ranks, bytes) in [(2, 7), (4, 40), (6, 61), (32, 1_000)] {
        let (operation, servers) = (Operation::AllGather, Servers::EACH);
        let call = Call { operation, ranks, bytes, root: 0, servers };
        assert!(NeighborExchange.check(&call).is_ok());
        let step = |rank, at| NeighborExchange.step(&call, rank, 0, at);
        let mut held: Vec<BTreeSet<u32>> = (0..ranks).map(|rank| [rank].into()).collect();
        for turn in 0..ranks / 2 {
            let mut sent = BTreeMap::new();
            for rank in 0..ranks {
                let Some(Step::Send { to, payload, receipt, .. }) = step(rank, 2 * turn) else {
                    panic!("a send of rank {rank}");
                };
                assert_eq!(receipt, turn);
                assert!(payload.blocks().all(|block| held[rank as usize].contains(&block)));
                assert_eq!(sent.insert(to, (rank, payload)), None);
            }
            for rank in 0..ranks {
                let Some(Step::Receive { from, payload }) = step(rank, 2 * turn + 1) else {
                    panic!("a receipt of rank {rank}");
                };
                assert_eq!(sent.remove(&rank), Some((from, payload)));
                held[rank as usize].extend(payload.blocks());
            }
        }
        assert!((0..ranks).all(|rank| step(rank, ranks).is_none()));
        assert!(held.iter().all(|held| held.len() == ranks as usize));
    }
    let odd = Call {
        operation: Operation::AllGather,
        ranks: 5,
        bytes: 5,
        root: 0,
        servers: Servers::EACH,
    };
    assert!(NeighborExchange.check(&odd).is_err());
}

/// A log in memory.
struct Log(Option<String>);

impl TraceSource for Log {
    fn next_file(&mut self) -> Result<Option<TraceFile>, WorkloadError> {
        let bytes = self.0.take().map(String::into_bytes);
        Ok(bytes.map(|bytes| TraceFile { rank: 0, name: "a.log".into(), bytes }))
    }
    fn side_file(&mut self) -> Result<Option<SideFile>, WorkloadError> {
        Ok(None)
    }
}

fn read(text: &str, compute: &str) -> Result<Trace, String> {
    const INFO: TraceFormatInfo = NcclLog::INFO;
    let given = [("nccl_compute", compute)];
    let mut options = Options::new("the guide", INFO.options, &given).unwrap();
    let format = NcclLog::read(&mut options).unwrap();
    format.load(&mut Log(Some(text.to_owned()))).map_err(|error| error.0)
}

#[test]
fn the_guides_format_is_read_and_runs() {
    let call = |process: &str, what: &str| {
        let rest = "sendbuff 0x1 recvbuff 0x2 count 1000 datatype 7 op 0 root 0 comm 0x3";
        format!("{process} [0] NCCL INFO {what}: opCount 0 {rest} [nranks=4] stream 0x4\n")
    };
    let log = format!(
        "n1:7:9 [0] NCCL INFO Bootstrap\n{}{}{}",
        call("n1:7:9", "AllReduce"),
        call("n2:8:8", "AllReduce"),
        call("n1:7:9", "AllGather"),
    );
    assert!(NcclLog::recognises(log.as_bytes()) && !NcclLog::recognises(b"NCCL INFO\nopCount "));
    let trace = read(&log, "5us").unwrap();
    assert_eq!((trace.ranks, trace.graphs.len()), (Some(4), 1));
    assert!(check(&trace).is_clean());
    // 6 steps of 1000 bytes, then 3 of 4000, at 1 ns a byte; twice 5 us before.
    let network = Ideal { latency: Time::ZERO, ps_per_byte: 1_000 };
    let outcome = ideal::run(&Job::new(trace, Algorithms::usual()).unwrap(), network);
    assert_eq!(outcome.end, Time::us(10 + 6 + 12));

    let refused = |from: &str, to: &str| read(&log.replace(from, to), "0ns").unwrap_err();
    assert_eq!(
        refused("[nranks=4] s", "\n"),
        "a.log:2: no number follows \"[nranks=\"; the line is cut off"
    );
    assert!(refused("datatype 7", "datatype 70").starts_with("a.log:2: no count and datatype"));
    assert!(refused("AllGather", "AllScatter").contains("\"AllScatter\" is not read; remove"));
    assert!(refused("opCount", "opcount").ends_with("set NCCL_DEBUG_SUBSYS=COLL"));
    for end in 0..NcclLog::INFO.example.len() {
        let _ = read(std::str::from_utf8(&NcclLog::INFO.example[..end]).unwrap(), "0ns");
    }
    assert!(read(std::str::from_utf8(NcclLog::INFO.example).unwrap(), "0ns").is_ok());
}
