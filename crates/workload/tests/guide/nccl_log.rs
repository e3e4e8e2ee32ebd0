//! NCCL's log of collectives (`NCCL_DEBUG=INFO`, `NCCL_DEBUG_SUBSYS=COLL`): a line for each call.

use super::{
    Action, Collective, Compute, Degrees, Group, Membership, Node, RankGraph, Size, Trace,
    TraceFormat, TraceFormatInfo, TraceSource, Work,
};
use crate::WorkloadError;
use crate::collective::Operation;
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

/// How to read what the format leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NcclLog {
    /// How long every rank computes before each call.
    pub compute: Time,
}

impl TraceFormat for NcclLog {
    const INFO: TraceFormatInfo = TraceFormatInfo {
        name: "NCCL log",
        summary: "NCCL's log of collectives: the calls of one process, the same for all ranks",
        source: "Weft's guide to new formats; NCCL",
        ends: &[".log"],
        per_rank: false,
        alike: false,
        side_file: None,
        options: &[OptionInfo {
            key: "nccl_compute",
            default: "0ns",
            kind: OptionKind::Time(Time::ZERO),
            meaning: "NCCL log: how long every rank computes before each call",
        }],
        example: b"n1:7:9 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 1024 \
            datatype 7 op 0 root 0 comm 0x3 [nranks=4] stream 0x4\n",
    };

    fn read(options: &mut Options<'_>) -> Result<NcclLog, OptionError> {
        Ok(NcclLog { compute: options.time("nccl_compute")? })
    }
    fn recognises(bytes: &[u8]) -> bool {
        let is_call = |line: &str| line.contains(" NCCL INFO ") && line.contains(": opCount ");
        std::str::from_utf8(bytes).is_ok_and(|text| text.lines().any(is_call))
    }
    fn load(&self, files: &mut dyn TraceSource) -> Result<Trace, WorkloadError> {
        let (name, text) = files.text()?;
        let mut graph = RankGraph::new(&name);
        let mut first = None;
        for (line, text) in (1u64..).zip(text.lines()) {
            let Some((process, call)) = text.split_once(" NCCL INFO ") else { continue };
            let error = |what: &str| WorkloadError(format!("{name}:{line}: {what}"));
            if call.contains(": opCount ") {
                let (call, ranks) = parse(call).map_err(|what| error(&what))?;
                let (known, all) = *first.get_or_insert((process, ranks));
                if known == process && all != ranks {
                    return Err(error("calls of different communicators; log one of them"));
                }
                if known == process {
                    self.push(&mut graph, call);
                }
            }
        }
        graph.number_turns();
        let Some((_, ranks)) = first else {
            return Err(WorkloadError(format!("{name}: has no call; set NCCL_DEBUG_SUBSYS=COLL")));
        };
        let groups = vec![Group { name: "all".into(), members: Membership::World }];
        let (graphs, degrees) = (vec![graph], Degrees::NONE);
        let remarks = Vec::new();
        let (exchanges, carried) = (Vec::new(), Vec::new());
        let shared = true;
        Trace { name, ranks: None, graphs, shared, groups, degrees, exchanges, carried, remarks }
            .for_ranks(ranks)
    }
}

impl NcclLog {
    /// A computation behind the last call, then the call behind that.
    fn push(&self, graph: &mut RankGraph, call: Collective) {
        let works = [
            Work::Compute(Compute { time: self.compute, ..Compute::default() }),
            Work::Collective(call),
        ];
        for work in works {
            let id = graph.nodes().len() as u64;
            let name = format!("{} {id}", call.action.name()).into();
            let before = id.checked_sub(1).map(|before| before as u32);
            graph.push(Node { id, name, work, start: Time::ZERO }, before.as_slice());
        }
    }
}

/// The call in `AllReduce: opCount 0 ... count 1024 datatype 7 ... root 0 ... [nranks=4] ...`, and
/// how many ranks make it; or what is wrong with it, with the mend.
fn parse(text: &str) -> Result<(Collective, u32), String> {
    // Bytes of an element by NCCL's number of its type, from ncclInt8 to ncclBfloat16.
    const WIDTHS: [u64; 10] = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2];
    let number = |key: &str| {
        let word = text.split_once(key).and_then(|(_, rest)| rest.split([' ', ']']).next());
        let number: Option<u64> = word.and_then(|word| word.parse().ok());
        number.ok_or_else(|| format!("no number follows {key:?}; the line is cut off"))
    };
    let width = usize::try_from(number(" datatype ")?).ok().and_then(|kind| WIDTHS.get(kind));
    let bytes = width.and_then(|width| number(" count ").ok()?.checked_mul(*width));
    let bytes = bytes.ok_or("no count and datatype of NCCL; write the log again")?;
    let (operation, size) = match text.split(':').next().unwrap_or_default() {
        "AllReduce" => (Operation::AllReduce, Size::Whole(bytes)),
        // NCCL counts one rank's part of these two.
        "AllGather" => (Operation::AllGather, Size::Shard(bytes)),
        "ReduceScatter" => (Operation::ReduceScatter, Size::Shard(bytes)),
        "Broadcast" => (Operation::Broadcast, Size::Whole(bytes)),
        "Reduce" => (Operation::Reduce, Size::Whole(bytes)),
        other => return Err(format!("{other:?} is not read; remove the line")),
    };
    let narrow = |number: u64| u32::try_from(number).map_err(|_| format!("{number} is too large"));
    let (root, ranks) = (narrow(number(" root ")?)?, narrow(number("[nranks=")?)?);
    let action = Action::Operation(operation);
    Ok((Collective { action, size, group: 0, root, turn: 0 }, ranks))
}
