//! What PyTorch's profiler wrote: events on the device, calls that launched them, and communications.

use super::comms::{Comm, width};
use super::groups::{Groups, numbers};
use super::host::Host;
use crate::WorkloadError;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use weft_units::Time;

/// What a file tells of a rank, times counted from the first event.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// Which rank it is, and how many there are, if the file says so.
    pub(super) rank: Option<u32>,
    pub(super) world: Option<u32>,
    /// Kernels and copies, by their start.
    pub(super) device: Vec<DeviceEvent>,
    /// Calls of CUDA's runtime and driver, by time.
    pub(super) calls: Vec<Call>,
    /// `record_param_comms`, by time.
    pub(super) comms: Vec<CommOp>,
    /// Streams that wait, by the correlation of the call.
    pub(super) waits: BTreeMap<u64, StreamWait>,
}

/// Something on a stream.
#[derive(Debug)]
pub(super) struct DeviceEvent {
    /// Device and stream.
    pub(super) stream: (u64, u64),
    pub(super) start: Time,
    pub(super) duration: Time,
    pub(super) name: String,
    pub(super) correlation: Option<u64>,
    /// Whether it is a kernel of NCCL, and what it does, if it says so.
    pub(super) is_comm: bool,
    pub(super) comm: Option<Comm>,
}

/// A call of the runtime.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) at: Time,
    pub(super) duration: Time,
    pub(super) thread: String,
    pub(super) name: String,
    pub(super) correlation: Option<u64>,
}

/// A communication on the host.
#[derive(Debug)]
pub(super) struct CommOp {
    pub(super) at: Time,
    pub(super) thread: String,
    pub(super) rf_id: Option<u64>,
    pub(super) comm: Comm,
}

/// A stream that waits for what another one had before it when an event was recorded there.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamWait {
    pub(super) stream: u64,
    pub(super) on_stream: u64,
    pub(super) record: u64,
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "traceEvents", deserialize_with = "those_that_count")]
    events: Vec<Event>,
    #[serde(rename = "distributedInfo")]
    distributed: Option<Value>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    ph: String,
    #[serde(default)]
    cat: String,
    #[serde(default)]
    name: Value,
    ts: Option<Value>,
    dur: Option<Value>,
    tid: Option<Value>,
    args: Option<Value>,
}

/// The events that are read; files have many others, which need not all be in memory.
fn those_that_count<'de, D: Deserializer<'de>>(events: D) -> Result<Vec<Event>, D::Error> {
    struct Kept;
    impl<'de> Visitor<'de> for Kept {
        type Value = Vec<Event>;
        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("a list of events")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<Vec<Event>, A::Error> {
            let mut kept = Vec::new();
            while let Some(event) = events.next_element::<Event>()? {
                if event.counts() {
                    kept.push(event);
                }
            }
            Ok(kept)
        }
    }
    events.deserialize_seq(Kept)
}

impl Event {
    fn is_call(&self) -> bool {
        matches!(self.cat.as_str(), "cuda_runtime" | "cuda_driver")
    }
    fn is_on_device(&self) -> bool {
        matches!(self.cat.as_str(), "kernel" | "gpu_memcpy" | "gpu_memset")
    }
    fn is_comm(&self) -> bool {
        self.cat == "cpu_op" && self.name == "record_param_comms"
    }
    fn counts(&self) -> bool {
        let counts =
            self.is_call() || self.is_on_device() || self.is_comm() || self.cat == "cuda_sync";
        self.ph == "X" && counts
    }
    fn arg(&self, key: &str) -> Option<&Value> {
        self.args.as_ref()?.get(key)
    }
    fn number(&self, key: &str) -> Option<u64> {
        self.arg(key).and_then(whole)
    }
    fn text(&self, key: &str) -> Option<&str> {
        self.arg(key)?.as_str()
    }
}

/// A number, or a text that is one.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Reads a file; `name` is what errors call it.
pub(super) fn read(name: &str, bytes: &[u8]) -> Result<Recorded, WorkloadError> {
    let file: File = serde_json::from_slice(bytes).map_err(|json| {
        let what = "not a whole Kineto trace";
        WorkloadError(format!("{name}: {what} ({json}); it is cut off or damaged: copy it again"))
    })?;
    let info = file.distributed.as_ref();
    let number = |key: &str| info?.get(key).and_then(whole).and_then(|one| u32::try_from(one).ok());
    let mut groups = Groups::default();
    if let Some(list) = info.and_then(|info| info.get("pg_config")) {
        groups.add(list);
    }
    let stamps = file.events.iter().filter(|event| event.ph == "X");
    let first =
        stamps.filter_map(|event| event.ts.as_ref()?.as_f64()).fold(f64::INFINITY, f64::min);
    let mut recorded =
        Recorded { rank: number("rank"), world: number("world_size"), ..Recorded::default() };
    for event in &file.events {
        recorded
            .take(event, first, &groups)
            .map_err(|what| WorkloadError(format!("{name}: {what}")))?;
    }
    recorded.device.sort_by_key(|event| event.start);
    recorded.calls.sort_by_key(|call| call.at);
    recorded.comms.sort_by_key(|comm| comm.at);
    if recorded.device.is_empty() {
        let what = "no event is on a device; record it with ProfilerActivity.CUDA";
        return Err(WorkloadError(format!("{name}: {what}")));
    }
    Ok(recorded)
}

impl Recorded {
    fn take(&mut self, event: &Event, first: f64, groups: &Groups) -> Result<(), String> {
        let name = event.name.as_str().unwrap_or_default();
        if event.cat == "cuda_sync" {
            self.wait(event);
            return Ok(());
        }
        let micros = |value: &Option<Value>, key: &str| {
            let micros = value
                .as_ref()
                .and_then(Value::as_f64)
                .filter(|micros| micros.is_finite() && *micros >= 0.0);
            micros.ok_or_else(|| format!("an event {name:?} has no {key}; copy or record it again"))
        };
        let at = picoseconds(micros(&event.ts, "ts")? - first)?;
        let duration = picoseconds(micros(&event.dur, "dur")?)?;
        let (name, correlation) = (name.to_owned(), event.number("correlation"));
        if event.is_on_device() {
            let is_comm = event.cat == "kernel" && name.to_ascii_lowercase().contains("nccl");
            let stream = event.number("stream").or_else(|| event.tid.as_ref().and_then(whole));
            let stream = (event.number("device").unwrap_or(0), stream.unwrap_or(0));
            let comm = if is_comm { comm(event, groups)? } else { None };
            let start = at;
            self.device.push(DeviceEvent {
                stream,
                start,
                duration,
                name,
                correlation,
                is_comm,
                comm,
            });
            return Ok(());
        }
        let thread = event.tid.as_ref().map(Value::to_string).unwrap_or_default();
        if event.is_call() {
            self.calls.push(Call { at, duration, thread, name, correlation });
        } else {
            let comm = comm(event, groups)?.unwrap_or_default();
            let rf_id = event.number("Record function id");
            self.comms.push(CommOp { at, thread, rf_id, comm });
        }
        Ok(())
    }

    fn wait(&mut self, event: &Event) {
        let keys = ["correlation", "stream", "wait_on_stream", "wait_on_cuda_event_record_corr_id"];
        if let [Some(own), Some(stream), Some(on_stream), Some(record)] =
            keys.map(|key| event.number(key))
        {
            self.waits.insert(own, StreamWait { stream, on_stream, record });
        }
    }

    /// Takes what communications move from the execution trace of the same step.
    ///
    /// # Errors
    /// If it has other communications.
    pub(super) fn tell(
        &mut self,
        name: &str,
        host_name: &str,
        host: &Host,
    ) -> Result<(), WorkloadError> {
        let by_id: BTreeMap<u64, &Comm> = host.comms.iter().map(|(id, comm)| (*id, comm)).collect();
        let is_linked =
            self.comms.iter().any(|op| op.rf_id.is_some_and(|id| by_id.contains_key(&id)));
        if !is_linked && self.comms.len() != host.comms.len() {
            return Err(WorkloadError(format!(
                "{name}: has {} communications, but {host_name} has {}; give the two of one step and rank",
                self.comms.len(),
                host.comms.len()
            )));
        }
        for (place, op) in self.comms.iter_mut().enumerate() {
            let found = match is_linked {
                true => op.rf_id.and_then(|id| by_id.get(&id).copied()),
                false => host.comms.get(place).map(|(_, comm)| comm),
            };
            found.into_iter().for_each(|comm| op.comm.complete(comm));
        }
        Ok(())
    }
}

/// What an event says of a communication; `None`: nothing.
fn comm(event: &Event, groups: &Groups) -> Result<Option<Comm>, String> {
    let Some(name) = event.text("Collective name") else { return Ok(None) };
    let elements = |way: &str| {
        event
            .number(&format!("{way} msg nelems"))
            .or_else(|| event.number(&format!("{way} msg size")))
    };
    let kind = event.text("dtype").unwrap_or_default();
    let elements = [elements("In").unwrap_or(0), elements("Out").unwrap_or(0)];
    let width = match width(kind) {
        Some(width) => width,
        None if elements == [0, 0] => 1,
        None => {
            return Err(format!(
                "a collective has elements of the type {kind:?}, which is not known"
            ));
        }
    };
    let told = ["In", "Out"].map(|way| event.arg(&format!("{way} split size")));
    let splits = told.map(|told| told.and_then(numbers).unwrap_or_default());
    // Lists of more than 30 end with dots.
    let is_cut =
        told.into_iter().flatten().filter_map(Value::as_str).any(|text| text.contains("..."));
    let narrow = |number: u64| u32::try_from(number).ok();
    let size = event.number("Group size").and_then(narrow);
    let group = event.text("Process Group Name").unwrap_or_default().to_owned();
    let span = event.number("Global rank start").zip(event.number("Global rank stride"));
    let ranks = groups.ranks(&group, event.text("Process Group Ranks"), span, size);
    let peer = match name {
        "send" => event.number("Dst Rank"),
        "recv" => event.number("Src Rank"),
        _ => None,
    };
    let place = event.number("Root").or_else(|| event.number("Root rank"));
    Ok(Some(Comm {
        name: name.to_owned(),
        elements,
        width,
        splits,
        is_cut,
        group: (group, ranks),
        size,
        place: place.and_then(narrow),
        peer: peer.and_then(narrow),
        sequence: event.number("Seq"),
    }))
}

/// A time of so many microseconds.
fn picoseconds(micros: f64) -> Result<Time, String> {
    // Beyond 213 days no time can be said.
    match micros < 1.8e13 {
        true => Ok(Time::ps((micros * 1e6 + 0.5) as u64)),
        false => Err("a time is longer than 213 days; record it again".into()),
    }
}
