//! NCCL's log: a line for each call (`COLL`), and one for each communicator of a process (`INIT`).
//!
//! ```text
//! n1:7:9 [0] NCCL INFO ncclCommInitRank comm 0x3 rank 0 nranks 4 cudaDev 0 busId 80 commId 0x2ef1 - Init COMPLETE
//! n1:7:9 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 1024 datatype 7 op 0 root 0 comm 0x3 [nranks=4] stream 0x4
//! ```
//!
//! What stands before the host (times, prefixes of launchers) and behind the stream is not read. Source: NCCL's
//! `info` calls, and logs of its users.

use super::calls::{Call, Calls, bytes};
use super::{COMPUTE, read_compute};
use crate::WorkloadError;
use crate::trace::packed::head;
use crate::trace::{Trace, TraceFile, TraceFormat, TraceFormatInfo, TraceSource};
use std::collections::BTreeMap;
use weft_units::{OptionError, Options, Time};

/// How to read what a log leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NcclLog {
    /// How long every rank computes before each call.
    pub compute: Time,
}

const INFO: &str = " NCCL INFO ";
const CALL: &str = ": opCount ";

impl TraceFormat for NcclLog {
    const INFO: TraceFormatInfo = TraceFormatInfo {
        name: "NCCL log",
        summary: "NCCL's log of its calls (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,COLL), of one or all processes",
        source: "NCCL, RCCL",
        ends: &[".log"],
        per_rank: false,
        alike: true,
        side_file: None,
        options: &[COMPUTE],
        example: b"n1:7:9 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 1024 \
            datatype 7 op 0 root 0 comm 0x3 [nranks=4] stream 0x4\n",
    };

    fn read(options: &mut Options<'_>) -> Result<NcclLog, OptionError> {
        Ok(NcclLog { compute: read_compute(options)? })
    }
    fn recognises(bytes: &[u8]) -> bool {
        let is_line = |line: &str| {
            line.contains(INFO) && (line.contains(CALL) || line.contains("NCCL version"))
        };
        let text = String::from_utf8_lossy(bytes);
        head(bytes).contains(&b' ') && text.lines().any(is_line)
    }
    fn load(&self, files: &mut dyn TraceSource) -> Result<Trace, WorkloadError> {
        let mut log = Log::default();
        let mut name = String::new();
        while let Some(TraceFile { name: own, bytes, .. }) = files.next_file()? {
            // Lines of other programs may be in any encoding.
            log.read(&own, &String::from_utf8_lossy(&bytes))?;
            if name.is_empty() {
                name = own;
            }
        }
        log.told().job(&name, self.compute)
    }
}

/// What was read so far.
#[derive(Default)]
struct Log {
    calls: Calls,
    /// What all ranks call a communicator, by process and its address there; a later one may have
    /// the address of one that is gone.
    names: BTreeMap<(String, String), String>,
}

impl Log {
    fn read(&mut self, name: &str, text: &str) -> Result<(), WorkloadError> {
        for (line, text) in (1u64..).zip(text.lines()) {
            let Some((front, rest)) = text.split_once(INFO) else { continue };
            let Some(process) = process(front) else { continue };
            let error = |what: String| WorkloadError::at(name, line, what);
            // Before NCCL 2.18 without the call's name.
            let is_made = rest.starts_with("ncclComm") || rest.starts_with("comm ");
            let is_told = || rest.contains(" commId ") || rest.contains(" parent ");
            if is_made && rest.contains(" nranks ") && is_told() {
                self.communicator(process, rest).map_err(error)?;
            } else if rest.contains(CALL) {
                let mut call = call(rest, format!("{name}:{line}")).map_err(error)?;
                call.communicator = self.name(&process, &call.communicator);
                self.calls.processes.entry(process).or_default().push(call);
            }
        }
        Ok(())
    }

    /// What all ranks call the communicator that a process has at an address by now.
    fn name(&self, process: &str, address: &str) -> String {
        let known = self.names.get(&(process.to_owned(), address.to_owned()));
        // Another process may use the same address for another communicator.
        known.cloned().unwrap_or_else(|| format!("{address} of {process}"))
    }

    /// `ncclCommInitRank comm 0x3 rank 0 nranks 4 ... commId 0x2ef1 - Init COMPLETE`, or
    /// `ncclCommSplit comm 0x5 rank 0 nranks 2 ... parent 0x3 splitCount 1 color 7 key 0 - Init COMPLETE`.
    fn communicator(&mut self, process: String, text: &str) -> Result<(), String> {
        let address = word(text, "comm ")?.to_owned();
        let (rank, ranks) = (number(text, " rank ")?, number(text, "nranks ")?);
        let id = match text.contains(" commId ") {
            true => word(text, "commId ")?.to_owned(),
            // From NCCL 2.23 on these tell the ranks of a part of a communicator from those of others.
            false => {
                let parent = self.name(&process, word(text, " parent ")?);
                let turn = word(text, "splitCount ").or_else(|_| word(text, "childCount "))?;
                format!("{parent}/{turn}/{}", word(text, "color ")?)
            }
        };
        let before = self.name(&process, &address);
        if self.names.insert((process.clone(), address), id.clone()).is_none() {
            // Calls that were logged before their communicator.
            let calls = self.calls.processes.get_mut(&process).into_iter().flatten();
            calls
                .filter(|call| call.communicator == before)
                .for_each(|call| call.communicator.clone_from(&id));
        }
        self.calls.ranks.insert((process, id.clone()), narrow(rank)?);
        self.calls.sizes.insert(id, narrow(ranks)?);
        Ok(())
    }

    /// The calls, and how many ranks their communicators have.
    fn told(mut self) -> Calls {
        for call in self.calls.processes.values().flatten() {
            self.calls.sizes.entry(call.communicator.clone()).or_insert(call.ranks);
        }
        self.calls
    }
}

/// `host:process [device]`, from `... host:process:thread [device]`.
fn process(front: &str) -> Option<String> {
    let mut words = front.split_whitespace().rev();
    let mut device = words.next()?;
    // RCCL writes a time behind the device.
    if device.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        device = words.next()?;
    }
    let device = device.strip_prefix('[')?.strip_suffix(']')?;
    let mut parts = words.next()?.rsplitn(3, ':');
    let (_thread, process, host) = (parts.next()?, parts.next()?, parts.next()?);
    // What a launcher puts in front of a line.
    let host = host.rsplit([':', '>']).next()?;
    Some(format!("{host}:{process} [{device}]"))
}

/// `AllReduce: opCount 0 ... count 1024 datatype 7 op 0 root 0 comm 0x3 [nranks=4] stream 0x4`.
fn call(text: &str, place: String) -> Result<Call, String> {
    let name = text.split(':').next().unwrap_or_default().to_owned();
    let ranks = number(text, "[nranks=")?;
    let bytes = bytes(number(text, " count ")?, number(text, " datatype ")?)?;
    let group = word(text, "opCount ").ok().and_then(|word| u64::from_str_radix(word, 16).ok());
    let communicator = word(text, " comm ")?.to_owned();
    let stream = word(text, " stream ").unwrap_or_default().to_owned();
    let (ranks, root) = (narrow(ranks)?, narrow(number(text, " root ")?)?);
    Ok(Call { name, communicator, ranks, bytes, root, stream, group, place })
}

/// The word behind `key`.
fn word<'t>(text: &'t str, key: &str) -> Result<&'t str, String> {
    let rest = text.split_once(key).map(|(_, rest)| rest);
    let word = rest.and_then(|rest| rest.split([' ', ']']).next()).filter(|word| !word.is_empty());
    word.ok_or_else(|| format!("nothing follows {key:?}; the line is cut off: write the log again"))
}

fn number(text: &str, key: &str) -> Result<u64, String> {
    let word = word(text, key)?;
    let what = || format!("no number follows {key:?}; the line is cut off: write the log again");
    word.parse().map_err(|_| what())
}

fn narrow(number: u64) -> Result<u32, String> {
    u32::try_from(number).map_err(|_| format!("{number} is too large for a rank; correct it"))
}
