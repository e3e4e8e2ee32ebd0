//! GOAL in binary: what LogGOPSim's `txt2bin` writes, little endian and packed.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | 4223 |
//! | 8 | 4, 1, 1 | number of ranks, largest cpu, largest nic |
//! | 14 | 16 a rank | where its block begins and ends, counted from byte 8 |
//!
//! A block: nodes, roots, the roots, records of 39 bytes, and the numbers of nodes that records point to. A
//! record: how many it waits for, type (1 send, 2 receive, 3 calc), peer, size or time, tag, cpu, nic, how many
//! wait for its end and where their numbers begin, how many wait for its start and where these begin.

use super::tasks::{ANY, Message, Op, Task, nanoseconds};
use crate::WorkloadError;

const MAGIC: u64 = 4223;
/// What a run with `--save-mem` leaves behind.
const SPOILT: u64 = 2342;
const RECORD: usize = 39;
/// Where offsets count from.
const BASE: usize = 8;

/// Whether these bytes begin as a file of this form.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    let first = bytes.first_chunk::<8>().map(|first| u64::from_le_bytes(*first));
    matches!(first, Some(MAGIC | SPOILT))
}

/// The tasks of all ranks; `name` is what errors call the file.
pub(super) fn parse(name: &str, bytes: &[u8]) -> Result<Vec<Vec<Task>>, WorkloadError> {
    let error = |what: String| WorkloadError(format!("{name}: {what}"));
    let mut head = Bytes { bytes, at: 0 };
    let cut = |what: &str| error(format!("{what}; it is cut off: copy or write it again"));
    if head.u64() == Some(SPOILT) {
        let what = "LogGOPSim has changed it (--save-mem); make it from the text again";
        return Err(error(what.into()));
    }
    let no_head = || cut("the file ends within its header");
    let count = head.u32().ok_or_else(no_head)?;
    head.take::<2>().ok_or_else(no_head)?;
    if count == 0 {
        return Err(error("there are no ranks; write it again".into()));
    }
    let mut ranks = Vec::new();
    for rank in 0..count {
        let no_block = || cut(&format!("the file ends before the block of rank {rank} of {count}"));
        let (from, to) = (head.u64().ok_or_else(no_block)?, head.u64().ok_or_else(no_block)?);
        let place = |offset: u64| usize::try_from(offset).ok()?.checked_add(BASE);
        let block = place(from).zip(place(to)).and_then(|(from, to)| bytes.get(from..to));
        let block = block.ok_or_else(no_block)?;
        let is_damaged = "; the file is damaged: make it from the text again";
        let tasks = Block { rank, ranks: count, bytes: block }.tasks();
        ranks.push(tasks.map_err(|what| error(format!("rank {rank}: {what}{is_damaged}")))?);
    }
    Ok(ranks)
}

struct Block<'a> {
    rank: u32,
    ranks: u32,
    bytes: &'a [u8],
}

/// A record: the task, and where the numbers of those stand that wait for its end and its start.
type Record = (Task, [(u32, u32); 2]);

impl Block<'_> {
    fn tasks(&self) -> Result<Vec<Task>, String> {
        let short = || "its block ends too early".to_owned();
        let mut head = Bytes { bytes: self.bytes, at: 0 };
        let (nodes, roots) = (head.u32().ok_or_else(short)?, head.u32().ok_or_else(short)?);
        let skip = (roots as usize).checked_mul(4).and_then(|skip| skip.checked_add(head.at));
        let records = skip.and_then(|from| self.bytes.get(from..)).ok_or_else(short)?;
        let size = (nodes as usize).checked_mul(RECORD).ok_or_else(short)?;
        let (records, numbers) = records.split_at_checked(size).ok_or_else(short)?;
        let records: Vec<Record> = (0..nodes)
            .zip(records.chunks_exact(RECORD))
            .map(|(number, record)| self.record(number, record))
            .collect::<Result<_, String>>()?;
        let (mut tasks, waiting): (Vec<Task>, Vec<_>) = records.into_iter().unzip();
        // Every number belongs to one record.
        let told: u64 = waiting.iter().flatten().map(|(count, _)| u64::from(*count)).sum();
        if told > (numbers.len() / 4) as u64 {
            return Err("more nodes wait for others than are in the file".into());
        }
        for (number, [ends, starts]) in (0..nodes).zip(waiting) {
            for (place, (count, first)) in [ends, starts].into_iter().enumerate() {
                for at in 0..count {
                    let other = first.checked_add(at).and_then(|at| number_at(numbers, at));
                    let other = other.filter(|other| *other < nodes);
                    let other = other.ok_or_else(|| {
                        format!("record {number}: what waits for it is not in the file")
                    })?;
                    let task = &mut tasks[other as usize];
                    if place == 0 { &mut task.requires } else { &mut task.irequires }.push(number);
                }
            }
        }
        Ok(tasks)
    }

    fn record(&self, number: u32, record: &[u8]) -> Result<Record, String> {
        let error = |what: &str| format!("record {number}: {what}");
        // How many it waits for, in front, is said from the other end, too.
        let kind = record[4];
        let word = |at: usize| Bytes { bytes: record, at }.u32().expect("a record is long enough");
        let (peer, tag) = (word(5), word(17));
        let size = Bytes { bytes: record, at: 9 }.u64().expect("the same");
        let [cpu, nic] = [record[21], record[22]];
        let waiting = [(word(23), word(27)), (word(31), word(35))];
        let message = Message { peer, bytes: size, tag };
        let op = match kind {
            1 if size == 0 && peer >= self.ranks => Op::Mark,
            1 => Op::Send(message),
            2 => Op::Receive(message),
            3 => Op::Calc(nanoseconds(size).map_err(error)?),
            other => return Err(error(&format!("there is no type {other}"))),
        };
        match op {
            Op::Receive(Message { peer: ANY, .. }) | Op::Calc(_) | Op::Mark => {}
            _ if peer >= self.ranks => return Err(error(&format!("there is no rank {peer}"))),
            _ if peer == self.rank => return Err(error("it sends to its own rank")),
            Op::Send(Message { tag: ANY, .. }) => return Err(error("a send without a tag")),
            _ => {}
        }
        let (requires, irequires) = (Vec::new(), Vec::new());
        let (place, label) = (number.into(), "".into());
        Ok((Task { place, label, op, cpu, nic, requires, irequires }, waiting))
    }
}

/// Number `at` of a list of them.
fn number_at(numbers: &[u8], at: u32) -> Option<u32> {
    let from = (at as usize).checked_mul(4)?;
    Bytes { bytes: numbers, at: from }.u32()
}

/// Reads numbers, one after the other.
struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let taken = self.bytes.get(self.at..)?.first_chunk::<N>()?;
        self.at += N;
        Some(taken)
    }
    fn u32(&mut self) -> Option<u32> {
        self.take().map(|bytes| u32::from_le_bytes(*bytes))
    }
    fn u64(&mut self) -> Option<u64> {
        self.take().map(|bytes| u64::from_le_bytes(*bytes))
    }
}

/// The file of these tasks; blocks that cannot be counted in 32 bits are the caller's to refuse.
pub(super) fn bytes_of(ranks: &[Vec<Task>]) -> Vec<u8> {
    let largest = |of: fn(&Task) -> u8| ranks.iter().flatten().map(of).max().unwrap_or(0);
    let mut out = MAGIC.to_le_bytes().to_vec();
    out.extend((ranks.len() as u32).to_le_bytes());
    out.extend([largest(|task| task.cpu), largest(|task| task.nic)]);
    let blocks: Vec<Vec<u8>> = ranks.iter().map(|tasks| block_of(tasks)).collect();
    let mut at = (out.len() + 16 * ranks.len() - BASE) as u64;
    for block in &blocks {
        let end = at + block.len() as u64;
        out.extend(at.to_le_bytes().into_iter().chain(end.to_le_bytes()));
        at = end;
    }
    out.extend(blocks.into_iter().flatten());
    out
}

fn block_of(tasks: &[Task]) -> Vec<u8> {
    let mut waiting = vec![[Vec::new(), Vec::new()]; tasks.len()];
    for (own, task) in (0u32..).zip(tasks) {
        for (place, others) in [&task.requires, &task.irequires].into_iter().enumerate() {
            others.iter().for_each(|other| waiting[*other as usize][place].push(own));
        }
    }
    let unmet = |task: &Task| (task.requires.len() + task.irequires.len()) as u32;
    let roots: Vec<u32> =
        (0u32..).zip(tasks).filter(|(_, task)| unmet(task) == 0).map(|(own, _)| own).collect();
    let mut out = Vec::new();
    let mut put = |number: u32| out.extend(number.to_le_bytes());
    put(tasks.len() as u32);
    put(roots.len() as u32);
    roots.into_iter().for_each(&mut put);
    let mut numbers: Vec<u32> = Vec::new();
    for (task, [ends, starts]) in tasks.iter().zip(waiting) {
        let (kind, peer, size, tag) = match &task.op {
            Op::Send(one) => (1, one.peer, one.bytes, one.tag),
            Op::Receive(one) => (2, one.peer, one.bytes, one.tag),
            Op::Calc(time) => (3, 0, time.0 / 1_000, 0),
            Op::Mark => (3, 0, 0, 0),
        };
        out.extend(unmet(task).to_le_bytes());
        out.push(kind);
        out.extend(peer.to_le_bytes());
        out.extend(size.to_le_bytes());
        out.extend(tag.to_le_bytes());
        out.extend([task.cpu, task.nic]);
        for others in [ends, starts] {
            out.extend((others.len() as u32).to_le_bytes());
            out.extend((numbers.len() as u32).to_le_bytes());
            numbers.extend(others);
        }
    }
    out.extend(numbers.into_iter().flat_map(u32::to_le_bytes));
    out
}
