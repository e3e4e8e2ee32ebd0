//! The files of NCCL's profiler plugins: the example's events, the same of Weft's (`WEFT_PROFILE`), and the
//! inspector's records.
//!
//! ```text
//! [{"name": "AllReduce", "cat": "COLL", "ph": "b", "ts": 5.0, "args": {"SeqNum": 0, "CommHash": 7, "Rank": 0, "Count": 1024, "Datatype": "ncclFloat32"}}, {}]
//! {"header": {"id": "0x7", "rank": 0, "n_ranks": 4}, "coll_perf": {"coll": "AllReduce", "coll_sn": 1, "coll_msg_size_bytes": 4096}}
//! ```
//!
//! The example does not say how many ranks a communicator has: as many as have a file. Weft's says it (events
//! `communicator`), streams and groups of calls, and which NIC or plane sent what (events `WEFT_PIECE`). The inspector says no root and no peers; its messages
//! (`p2p_perf`) are kept as unsupported. Source: `ext-profiler` of NCCL.

use super::calls::{Call, Calls, bytes};
use super::{COMPUTE, read_compute};
use crate::WorkloadError;
use crate::trace::packed::{head, unpacked};
use crate::trace::{Carried, Carrier, Trace, TraceFile, TraceFormat, TraceFormatInfo, TraceSource};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;
use weft_units::options::quoted;
use weft_units::{OptionError, Options, Time};

/// How to read what the files leave open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NcclProfile {
    /// How long every rank computes before each call.
    pub compute: Time,
}

impl TraceFormat for NcclProfile {
    const INFO: TraceFormatInfo = TraceFormatInfo {
        name: "NCCL profile",
        summary: "what NCCL's profiler plugins write (the example, the inspector, Weft's WEFT_PROFILE); a file a process",
        source: "NCCL",
        ends: &[".json", ".jsonl", ".json.gz", ".log"],
        per_rank: false,
        alike: true,
        side_file: None,
        options: &[COMPUTE],
        example: br#"{"header":{"id":"0x7","rank":0,"n_ranks":4},"coll_perf":{"coll":"AllReduce","coll_sn":1,"coll_msg_size_bytes":4096}}"#,
    };

    fn read(options: &mut Options<'_>) -> Result<NcclProfile, OptionError> {
        Ok(NcclProfile { compute: read_compute(options)? })
    }
    fn recognises(bytes: &[u8]) -> bool {
        let head = head(bytes);
        let text = String::from_utf8_lossy(&head);
        let begins = text.trim_start();
        begins.starts_with('[')
            && (text.contains("\"CommHash\"") || text.contains("\"weft_profile\""))
            || begins.starts_with('{')
                && text.contains("\"header\"")
                && text.contains("\"n_ranks\"")
    }
    fn load(&self, files: &mut dyn TraceSource) -> Result<Trace, WorkloadError> {
        let (mut calls, mut sums) = (Calls::default(), Sums::new());
        let mut first = String::new();
        while let Some(TraceFile { name, bytes, .. }) = files.next_file()? {
            read(&mut calls, &mut sums, &name, &unpacked(&name, &bytes)?)?;
            if first.is_empty() {
                first = name;
            }
        }
        if calls.processes.values().all(Vec::is_empty) {
            return Err(WorkloadError(format!(
                "{first}: has no call of NCCL's; record a job that makes one, with NCCL 2.26 or newer"
            )));
        }
        let (ranks, sizes) = (&calls.ranks, &mut calls.sizes);
        for (_, communicator) in ranks.keys() {
            let told = sizes.entry(communicator.clone()).or_insert(0);
            let seen = ranks.keys().filter(|(_, other)| other == communicator).count();
            *told = (*told).max(seen as u32);
        }
        let carried = |(by, (pieces, bytes))| Carried { by, pieces, bytes };
        let carried = sums.into_iter().map(carried).collect();
        Ok(Trace { carried, ..calls.job(&first, self.compute)? })
    }
}

/// Pieces and their bytes, by NIC or plane.
type Sums = BTreeMap<Carrier, (u64, u64)>;

fn read(calls: &mut Calls, sums: &mut Sums, name: &str, bytes: &[u8]) -> Result<(), WorkloadError> {
    let error = |what: String| WorkloadError(format!("{name}: {what}"));
    let mut records = Vec::new();
    for value in serde_json::Deserializer::from_slice(bytes).into_iter::<Records>() {
        let what = "it is cut off or damaged: copy it again";
        let value = value.map_err(|json| error(format!("not JSON ({json}); {what}")))?;
        let before = records.last().map_or(0, |(number, _)| *number);
        records.extend(value.kept.into_iter().map(|(number, record)| (before + number, record)));
        for (by, (pieces, bytes)) in value.carried {
            let sum = sums.entry(by).or_default();
            *sum = (sum.0 + pieces, sum.1.saturating_add(bytes));
        }
    }
    for (number, record) in &records {
        let place = format!("{name}: record {number}");
        let wrong = |what| WorkloadError(format!("{place}: {what}"));
        if let Some((communicator, rank, size)) = communicator(record).map_err(wrong)? {
            place_rank(calls, name, &communicator, rank).map_err(wrong)?;
            calls.sizes.insert(communicator, size);
            calls.processes.entry(name.to_owned()).or_default();
            continue;
        }
        let one = match record.get("header") {
            Some(header) => inspected(header, record),
            None => event(record),
        };
        let Some((communicator, rank, size, mut call)) = one.map_err(wrong)? else {
            continue;
        };
        call.place.clone_from(&place);
        let process = name.to_owned();
        place_rank(calls, name, &communicator, rank).map_err(wrong)?;
        if size > 0 {
            calls.sizes.insert(communicator, size);
        }
        calls.processes.entry(process).or_default().push(call);
    }
    Ok(())
}

/// Notes which rank a process is in a communicator.
fn place_rank(calls: &mut Calls, name: &str, communicator: &str, rank: u32) -> Result<(), String> {
    let place = (name.to_owned(), communicator.to_owned());
    match calls.ranks.insert(place, rank) {
        Some(other) if other != rank => Err(format!(
            "the process is ranks {other} and {rank} of one communicator; record a process for each GPU"
        )),
        _ => Ok(()),
    }
}

/// The records of a file that are of calls and communicators, with their numbers from one, and the sums of
/// pieces of messages; a trace has many more.
#[derive(Default)]
struct Records {
    kept: Vec<(u64, Value)>,
    carried: Sums,
}

impl Records {
    fn take(&mut self, number: u64, record: Value) {
        if is_of_a_call(&record) {
            self.kept.push((number, record));
        } else if let Some((by, bytes)) = piece(&record) {
            let sum = self.carried.entry(by).or_default();
            *sum = (sum.0 + 1, sum.1.saturating_add(bytes));
        }
    }
}

impl<'de> Deserialize<'de> for Records {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Records, D::Error> {
        deserializer.deserialize_any(RecordsVisitor)
    }
}

struct RecordsVisitor;

impl<'de> Visitor<'de> for RecordsVisitor {
    type Value = Records;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of events or a record")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Records, A::Error> {
        let mut records = Records::default();
        let mut number = 0;
        while let Some(record) = list.next_element::<Value>()? {
            number += 1;
            records.take(number, record);
        }
        Ok(records)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Records, A::Error> {
        let record = Value::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Records { kept: vec![(1, record)], ..Records::default() })
    }
}

fn is_of_a_call(record: &Value) -> bool {
    let is = |key: &str, text: &str| record.get(key).and_then(Value::as_str) == Some(text);
    record.get("header").is_some()
        || is("cat", "COLL")
        || is("cat", "P2P")
        || is("name", COMMUNICATOR)
}

/// The NIC or plane of a piece of a message, and its payload, as Weft's profiler tells; `None`: it is another
/// event, or of a version that does not say which NIC it was.
fn piece(record: &Value) -> Option<(Carrier, u64)> {
    let is = |key: &str, text: &str| record.get(key).and_then(Value::as_str) == Some(text);
    let args = record.get("args").filter(|_| is("cat", "WEFT_PIECE") && is("ph", "b"))?;
    let device = || args.get("Device")?.as_str().map(|name| Carrier::Device(name.to_owned()));
    let plane = args.get("Plane").and_then(Value::as_u64).map(Carrier::Plane);
    Some((plane.or_else(device)?, args.get("Bytes")?.as_u64()?))
}

/// The event that tells of a communicator.
const COMMUNICATOR: &str = "communicator";

/// A communicator, the rank of the process and how many there are, as Weft's profiler tells; `None`: it is another
/// event.
fn communicator(record: &Value) -> Result<Option<(String, u32, u32)>, String> {
    let is = record.get("name").and_then(Value::as_str) == Some(COMMUNICATOR);
    let Some(args) = record.get("args").filter(|args| is && args.get("nRanks").is_some()) else {
        return Ok(None);
    };
    let name = number(args, "CommHash")?.to_string();
    Ok(Some((name, narrow(args, "Rank")?, narrow(args, "nRanks")?)))
}

/// Communicator, rank in it, its size or 0, and the call.
type Told = (String, u32, u32, Call);

fn number(value: &Value, key: &str) -> Result<u64, String> {
    value
        .get(key)
        .and_then(Value::as_u64)
        .ok_or_else(|| format!("has no number {key:?}; write it again"))
}

fn narrow(value: &Value, key: &str) -> Result<u32, String> {
    u32::try_from(number(value, key)?).map_err(|_| format!("{key:?} is too large; correct it"))
}

fn made(name: &str, communicator: &str, ranks: u32, bytes: u64) -> Call {
    Call {
        name: name.to_owned(),
        communicator: communicator.to_owned(),
        ranks,
        bytes,
        root: 0,
        stream: String::new(),
        group: None,
        place: String::new(),
    }
}

/// A record of the inspector; `None`: it is of no call.
fn inspected(header: &Value, record: &Value) -> Result<Option<Told>, String> {
    let id =
        header.get("id").and_then(Value::as_str).ok_or("its header has no id; write it again")?;
    let (rank, size) = (narrow(header, "rank")?, narrow(header, "n_ranks")?);
    let Some(perf) = record.get("coll_perf") else {
        let message =
            record.get("p2p_perf").map(|_| made("a message of the inspector", id, size, 0));
        return Ok(message.map(|call| (id.to_owned(), rank, size, call)));
    };
    let name = perf
        .get("coll")
        .and_then(Value::as_str)
        .ok_or("has no name of a collective; write it again")?;
    // The inspector counts the larger buffer, NCCL one rank's part.
    let whole = number(perf, "coll_msg_size_bytes")?;
    let bytes = match name {
        "AllGather" | "ReduceScatter" | "AllToAll" | "AlltoAll" => whole / u64::from(size.max(1)),
        _ => whole,
    };
    Ok(Some((id.to_owned(), rank, size, made(name, id, size, bytes))))
}

/// An event of the example plugin; `None`: it is of no call.
fn event(record: &Value) -> Result<Option<Told>, String> {
    let text = |key: &str| record.get(key).and_then(Value::as_str).unwrap_or_default();
    let args = record.get("args");
    let (true, Some(args)) = (matches!(text("cat"), "COLL" | "P2P") && text("ph") == "b", args)
    else {
        return Ok(None);
    };
    let communicator = number(args, "CommHash")?.to_string();
    let kind = args.get("Datatype").and_then(Value::as_str).unwrap_or_default();
    let place = KINDS.iter().position(|known| *known == kind);
    let place =
        place.ok_or_else(|| format!("{} is no type of NCCL's; write it again", quoted(kind)))?;
    let mut call =
        made(text("name"), &communicator, 0, bytes(number(args, "Count")?, place as u64)?);
    let key = if text("cat") == "P2P" { "Peer" } else { "Root" };
    if args.get(key).is_some() {
        call.root = narrow(args, key)?;
    }
    // Where the plugin does not say which, all messages between two collectives are one group.
    let group = args.get("Group").and_then(Value::as_u64).unwrap_or(0);
    call.group = (text("cat") == "P2P").then_some(group);
    if let Some(stream) = args.get("Stream").and_then(Value::as_u64) {
        call.stream = stream.to_string();
    }
    Ok(Some((communicator, narrow(args, "Rank")?, 0, call)))
}

/// Types as the plugin calls them, by NCCL's numbers.
const KINDS: [&str; 12] = [
    "ncclInt8",
    "ncclUint8",
    "ncclInt32",
    "ncclUint32",
    "ncclInt64",
    "ncclUint64",
    "ncclFloat16",
    "ncclFloat32",
    "ncclFloat64",
    "ncclBfloat16",
    "ncclFloat8e4m3",
    "ncclFloat8e5m2",
];
