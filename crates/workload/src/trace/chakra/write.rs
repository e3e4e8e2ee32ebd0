//! Jobs as Chakra traces: a file a rank, and the JSON file of process groups.
//!
//! Collectives stay what they are. Nodes that do nothing are computations of no time on the CPU.

use super::action;
use crate::WorkloadError;
use crate::collective::Operation;
use crate::trace::export::Written;
use crate::trace::{Action, Collective, Size, Trace, Transfer, Work};
use std::collections::BTreeMap;
use weft_units::Time;

const MICROSECOND: u64 = 1_000_000;
const COMPUTE: u64 = 4;
const COLLECTIVE: u64 = 7;

/// Fields of an attribute, by the type of its value.
const INT32: u64 = 7;
const INT64: u64 = 9;
const UINT64: u64 = 13;
const BOOL: u64 = 27;
const STRING: u64 = 29;

/// Writes a trace.
pub(in crate::trace) fn write_chakra(trace: &Trace) -> Result<Written, WorkloadError> {
    let mut writer = Writer { trace, groups: BTreeMap::new(), rounded: 0, streams: 0 };
    let mut files = Vec::new();
    for rank in 0..trace.ranks.unwrap_or(0) {
        files.push((format!(".{rank}.et"), writer.rank(rank)?));
    }
    if !writer.groups.is_empty() {
        let all: serde_json::Map<String, serde_json::Value> = writer
            .groups
            .iter()
            .map(|(members, number)| (number.to_string(), members.as_slice().into()))
            .collect();
        files.push((".json".into(), serde_json::Value::Object(all).to_string().into_bytes()));
    }
    let mut written = Written { files, ..Written::default() };
    written.remark(writer.rounded, "times were rounded to microseconds");
    let what = "computations lose their streams, and follow each other at their rank";
    written.remark(writer.streams, what);
    Ok(written)
}

struct Writer<'a> {
    trace: &'a Trace,
    /// Numbers of groups by their members, from 1.
    groups: BTreeMap<Vec<u32>, usize>,
    rounded: u64,
    /// Computations on other streams than the first.
    streams: u64,
}

impl Writer<'_> {
    fn rank(&mut self, rank: u32) -> Result<Vec<u8>, WorkloadError> {
        let graph = self.trace.graph(rank);
        // Ids tell which collective of a group is which, so their order stays.
        let mut order: Vec<u32> = (0..graph.nodes().len() as u32).collect();
        order.sort_by_key(|node| graph.nodes()[*node as usize].id);
        let mut ids = vec![0u64; order.len()];
        (0..).zip(&order).for_each(|(id, node)| ids[*node as usize] = id);
        let mut out = Vec::new();
        let mut metadata = Message::default();
        metadata.bytes(1, b"0.0.4");
        out.extend(metadata.framed());
        for node in &order {
            let one = &graph.nodes()[*node as usize];
            let error = |what: String| {
                WorkloadError(format!("{}: {}: {what}", graph.source, graph.label(*node)))
            };
            if one.start > Time::ZERO {
                let what =
                    "starts at a time of its own, which is not written; leave start times out";
                return Err(error(what.into()));
            }
            let mut message = Message::default();
            message.number(1, ids[*node as usize]);
            message
                .bytes(2, if one.name.is_empty() { one.work.kind() } else { &one.name }.as_bytes());
            for wait in graph.waits(*node) {
                message.number(5, ids[*wait as usize]);
            }
            self.work(&mut message, rank, &one.work).map_err(error)?;
            out.extend(message.framed());
        }
        Ok(out)
    }

    fn work(&mut self, message: &mut Message, rank: u32, work: &Work) -> Result<(), String> {
        let kind = |message: &mut Message, kind: u64, on_host: bool| {
            message.number(3, kind);
            message.attribute("is_cpu_op", BOOL, u64::from(on_host));
        };
        match work {
            Work::Nothing => kind(message, COMPUTE, true),
            Work::Compute(one) => {
                kind(message, COMPUTE, one.on_host);
                message.number(7, self.micros(one.time));
                self.streams += u64::from(one.stream > 0);
                message.attribute("num_ops", INT64, one.operations);
                message.attribute("tensor_size", UINT64, one.bytes);
            }
            Work::Memory(one) => {
                kind(message, if one.store { 3 } else { 2 }, false);
                message.number(7, self.micros(one.time));
                message.attribute("tensor_size", UINT64, one.bytes);
            }
            Work::Send(Transfer { peer, bytes, tag, .. })
            | Work::Receive(Transfer { peer, bytes, tag, .. }) => {
                let is_send = matches!(work, Work::Send(_));
                kind(message, if is_send { 5 } else { 6 }, false);
                let (own, other) = (u64::from(rank), u64::from(peer.of(rank)));
                let (src, dst) = if is_send { (own, other) } else { (other, own) };
                message.attribute("comm_src", INT32, src);
                message.attribute("comm_dst", INT32, dst);
                // Chakra's own tools read 32 bits.
                let kind = if i32::try_from(*tag).is_ok() { INT32 } else { INT64 };
                message.attribute("comm_tag", kind, *tag);
                message.attribute("comm_size", INT64, *bytes);
            }
            Work::Collective(one) => {
                kind(message, COLLECTIVE, false);
                self.collective(message, rank, one)?;
            }
            Work::Unsupported(what) => return Err(format!("{what} is not supported; remove it")),
        }
        Ok(())
    }

    fn collective(
        &mut self,
        message: &mut Message,
        rank: u32,
        one: &Collective,
    ) -> Result<(), String> {
        let comm_type = (0..=9).find(|number| action(*number) == Ok(one.action));
        let comm_type = comm_type.filter(|_| one.root == 0).ok_or_else(|| {
            let of_root = if one.root > 0 { " from a root other than the first rank" } else { "" };
            format!("Chakra has no {}{of_root}; write its messages (--unfold)", one.action.name())
        })?;
        let members = self.trace.members(one.group, rank).ok_or("its rank is not in its group")?;
        let (ranks, bytes) = (members.len(), one.bytes(members.len()));
        let is_gather = one.action == Action::Operation(Operation::AllGather);
        let size = match one.size {
            Size::Shard(part) if is_gather => part,
            _ if is_gather && !bytes.is_multiple_of(ranks.into()) => {
                return Err(format!(
                    "Chakra counts one rank's part of an all-gather, and {bytes} B are no multiple of \
                     {ranks}; use one that is"
                ));
            }
            _ if is_gather => bytes / u64::from(ranks),
            _ => bytes,
        };
        message.attribute("comm_type", INT64, comm_type);
        message.attribute("comm_size", INT64, size);
        if !members.iter().eq(0..self.trace.ranks.unwrap_or(0)) {
            let next = self.groups.len() + 1;
            let number = *self.groups.entry(members.iter().collect()).or_insert(next);
            message.text("pg_name", &number.to_string());
        }
        Ok(())
    }

    fn micros(&mut self, time: Time) -> u64 {
        self.rounded += u64::from(!time.0.is_multiple_of(MICROSECOND));
        time.0.saturating_add(MICROSECOND / 2) / MICROSECOND
    }
}

/// A message in protobuf's wire format.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }
    fn number(&mut self, field: u64, number: u64) {
        self.varint(field << 3);
        self.varint(number);
    }
    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }
    fn attribute(&mut self, name: &str, kind: u64, value: u64) {
        let mut attribute = Message::default();
        attribute.bytes(1, name.as_bytes());
        attribute.number(kind, value);
        self.bytes(10, &attribute.0);
    }
    fn text(&mut self, name: &str, value: &str) {
        let mut attribute = Message::default();
        attribute.bytes(1, name.as_bytes());
        attribute.bytes(STRING, value.as_bytes());
        self.bytes(10, &attribute.0);
    }
    fn framed(self) -> Vec<u8> {
        let mut out = Message::default();
        out.varint(self.0.len() as u64);
        out.0.extend(self.0);
        out.0
    }
}
