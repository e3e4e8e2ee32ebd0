//! Events as they come. Each has a number, which NCCL gets as its handle: a number that is not known any more, or
//! that is another process's, does no harm.

use super::file::TraceFile;
use super::line::{Id, Line, Phase};
use crate::boundary::Failure;
use crate::logger;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use weft_comm::Process;

/// Text that may wait to be written: no more events begin beyond it, and beyond twice as much none ends.
const MOST_TEXT: usize = 8 << 20;
/// Events under way, at most: the oldest end where there are more, since NCCL may never end them.
const MOST_OPEN: usize = 1 << 16;
/// Collectives and messages of NCCL whose end is not written, since their proxies may still work on them.
const MOST_TASKS: usize = 1 << 10;
/// Calls that are remembered for their tasks.
const MOST_CALLS: usize = 1 << 13;
/// The largest file: Perfetto and `weft trace` have all of it in memory.
const MOST_BYTES: u64 = 256 << 20;
/// How often text is written.
const WRITE: Duration = Duration::from_millis(200);
/// Times are since a multiple of so many nanoseconds (11.6 days), the same at all ranks: Perfetto counts in
/// floating point.
const EPOCH_NS: u64 = 1_000_000_000_000_000;

/// A communicator of NCCL's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Communicator {
    /// Its hash.
    pub(crate) hash: u64,
    /// This process's rank in it.
    pub(crate) rank: i32,
    /// Its ranks and their nodes, where NCCL tells them, and its name if it has one.
    pub(crate) told: Option<(i32, i32, String)>,
}

/// An event under way.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) category: &'static str,
    pub(crate) name: String,
    pub(crate) parent: u64,
    /// Which communicator it is of, and which rank.
    pub(crate) of: Option<(u64, i32)>,
    /// Whether its end is that of the last event that is a part of it.
    pub(crate) is_task: bool,
    /// When it, or the last part of it, was over.
    pub(crate) over: u64,
    /// Bytes so far.
    pub(crate) transferred: u64,
}

/// A call of the application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) stream: u64,
    pub(crate) group: u64,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) text: String,
    numbers: u64,
    pub(crate) open: BTreeMap<u64, Open>,
    tasks: VecDeque<u64>,
    pub(crate) calls: HashMap<u64, Call>,
    pub(crate) communicators: Vec<Communicator>,
    /// Events that there was no room for.
    left_out: u64,
    told_left_out: u64,
    /// The file has its largest size.
    full: bool,
}

/// What is recorded, and the file that it goes into.
pub(crate) struct Recorder {
    directory: PathBuf,
    state: Mutex<State>,
    file: Mutex<Option<TraceFile>>,
    wake: Condvar,
    /// A child that was forked has no thread that writes.
    process: Process,
    began: Instant,
    /// Nanoseconds of `began` since the epoch, and the epoch since 1970.
    began_ns: u64,
    epoch_ns: u64,
}

impl Recorder {
    pub(crate) fn new(directory: PathBuf) -> Recorder {
        let wall =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        Recorder {
            directory,
            state: Mutex::default(),
            file: Mutex::new(None),
            wake: Condvar::new(),
            process: Process::current(),
            began: Instant::now(),
            began_ns: wall % EPOCH_NS,
            epoch_ns: wall - wall % EPOCH_NS,
        }
    }

    /// Starts the thread that writes.
    ///
    /// # Errors
    /// If nothing can be written into the directory: that is said now, not at the end of the job.
    pub(crate) fn begin(&'static self) -> Result<(), Failure> {
        let directory = &self.directory;
        let broken = |error: std::io::Error| {
            Failure::Setup(format!("WEFT_PROFILE: {}: {error}", directory.display()))
        };
        weft_deploy::try_directory(directory).map_err(broken)?;
        let thread = std::thread::Builder::new().name("weft-profile".into());
        thread
            .spawn(|| {
                loop {
                    let state = self.lock();
                    let wait = self.wake.wait_timeout(state, WRITE);
                    drop(wait.unwrap_or_else(PoisonError::into_inner));
                    self.write_out();
                }
            })
            .map_err(broken)?;
        Ok(())
    }

    pub(crate) fn is_here(&self) -> bool {
        self.process.is_current()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nanoseconds since the epoch.
    pub(crate) fn at(&self, time: Instant) -> u64 {
        self.began_ns + time.saturating_duration_since(self.began).as_nanos() as u64
    }

    pub(crate) fn now(&self) -> u64 {
        self.at(Instant::now())
    }

    /// Has a thread write that has nothing else to do, if there is much.
    pub(crate) fn relieve(&self, state: MutexGuard<'_, State>) {
        let much = state.text.len() > MOST_TEXT / 4;
        drop(state);
        if much {
            self.wake.notify_one();
        }
    }

    /// Ends the tasks of a communicator, which goes; `None`: of all. Then all is written.
    pub(crate) fn end(&self, of: Option<(u64, i32)>) {
        self.lock().end_tasks(of);
        self.write_out();
    }

    /// Writes what waits.
    pub(crate) fn write_out(&self) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        if state.text.is_empty() {
            return;
        }
        let text = std::mem::take(&mut state.text);
        let (rank, left_out, full) = (state.rank(), state.news(), state.full);
        drop(state);
        if full {
            return;
        }
        let outcome = match file.take() {
            Some(old) => Ok(old),
            None => TraceFile::create(&self.directory, rank)
                .and_then(|mut new| new.write(self.heading(rank)).map(|()| new)),
        };
        let written = outcome.and_then(|mut open| {
            open.write(text)?;
            if left_out > 0 {
                open.write(self.gap(left_out))?;
            }
            Ok(open)
        });
        match written {
            Ok(open) if open.len < MOST_BYTES => *file = Some(open),
            Ok(open) => self.stop(&format!("{}: full; no more is recorded", open.path.display())),
            Err(error) => self.stop(&format!("{}: {error}", self.directory.display())),
        }
    }

    fn stop(&self, why: &str) {
        self.lock().full = true;
        logger::warn(&format!("WEFT_PROFILE: {why}"));
    }

    /// The first lines: whose file it is.
    fn heading(&self, rank: Option<i32>) -> String {
        let mut text = String::new();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = host.trim();
        let process = std::process::id();
        let name = match rank {
            Some(rank) => format!("rank {rank} ({host}, process {process})"),
            None => format!("{host}, process {process}"),
        };
        metadata(&mut text, "process_name").text("name", &name);
        if let Some(rank) = rank {
            metadata(&mut text, "process_sort_index").number("sort_index", rank);
        }
        metadata(&mut text, "weft_profile")
            .number("version", 1)
            .text("host", host)
            .number("epoch_ns", self.epoch_ns);
        text
    }

    fn gap(&self, left_out: u64) -> String {
        let mut text = String::new();
        metadata(&mut text, "weft_left_out").number("events", left_out);
        text
    }
}

/// A line of the file itself.
fn metadata<'t>(text: &'t mut String, name: &str) -> Line<'t> {
    Line::new(text, Phase::Metadata, Id { category: "__metadata", name, number: 0 }, 0)
}

impl State {
    /// The rank of this process in the first communicator.
    fn rank(&self) -> Option<i32> {
        self.communicators.first().map(|one| one.rank)
    }

    /// Events that were left out since the last time.
    fn news(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.told_left_out, self.left_out);
        self.left_out - before
    }

    /// The number of an event that is about to begin, if there is room for it.
    pub(crate) fn take_number(&mut self) -> Option<u64> {
        if self.full || self.text.len() >= MOST_TEXT {
            self.left_out += 1;
            return None;
        }
        self.numbers += 1;
        Some(self.numbers)
    }

    /// A communicator; the number that NCCL gets as its context.
    pub(crate) fn meet(&mut self, one: Communicator) -> u64 {
        if self.communicators.contains(&one) {
            return self.context(&one);
        }
        let mut line = metadata(&mut self.text, "communicator");
        line.number("CommHash", one.hash).number("Rank", one.rank);
        if let Some((ranks, nodes, name)) = &one.told {
            line.number("nRanks", ranks).number("nNodes", nodes).text("CommName", name);
        }
        drop(line);
        self.communicators.push(one);
        self.communicators.len() as u64
    }

    /// A communicator that an event has told of.
    pub(crate) fn meet_quietly(&mut self, hash: u64, rank: i32) {
        if !self.communicators.iter().any(|one| (one.hash, one.rank) == (hash, rank)) {
            self.meet(Communicator { hash, rank, told: None });
        }
    }

    /// Hash and rank of the communicator that has this context.
    pub(crate) fn of_context(&self, context: u64) -> Option<(u64, i32)> {
        let at = usize::try_from(context).ok()?.checked_sub(1)?;
        self.communicators.get(at).map(|one| (one.hash, one.rank))
    }

    /// Whether more may be written now.
    pub(crate) fn has_room(&mut self) -> bool {
        let room = !self.full && self.text.len() < MOST_TEXT;
        self.left_out += u64::from(!room);
        room
    }

    fn context(&self, one: &Communicator) -> u64 {
        1 + self.communicators.iter().position(|known| known == one).unwrap_or(0) as u64
    }

    /// Notes that an event is under way.
    pub(crate) fn keep(&mut self, number: u64, open: Open) {
        let is_task = open.is_task;
        self.open.insert(number, open);
        if self.open.len() > MOST_OPEN
            && let Some((oldest, _)) = self.open.first_key_value()
        {
            self.write_end(*oldest);
        }
        if is_task {
            self.tasks.push_back(number);
            if self.tasks.len() > MOST_TASKS
                && let Some(oldest) = self.tasks.pop_front()
            {
                self.write_end(oldest);
            }
        }
    }

    /// Notes a call, and forgets old ones.
    pub(crate) fn keep_call(&mut self, number: u64, call: Call) {
        if self.calls.len() >= MOST_CALLS {
            let newest = self.numbers.saturating_sub(MOST_CALLS as u64 / 2);
            self.calls.retain(|number, _| *number > newest);
        }
        self.calls.insert(number, call);
    }

    /// An event is over; a task as far as its call is concerned.
    pub(crate) fn stop(&mut self, number: u64, now: u64) {
        let Some(open) = self.open.get_mut(&number) else { return };
        open.over = open.over.max(now);
        if open.is_task {
            return;
        }
        let parent = open.parent;
        self.write_end(number);
        if let Some(task) = self.open.get_mut(&parent).filter(|parent| parent.is_task) {
            task.over = now;
        }
    }

    fn end_tasks(&mut self, of: Option<(u64, i32)>) {
        for task in std::mem::take(&mut self.tasks) {
            let stays = of.is_some() && self.open.get(&task).is_some_and(|task| task.of != of);
            match stays {
                true => self.tasks.push_back(task),
                false => self.write_end(task),
            }
        }
    }

    fn write_end(&mut self, number: u64) {
        let Some(open) = self.open.remove(&number) else { return };
        if self.full || self.text.len() >= 2 * MOST_TEXT {
            self.left_out += 1;
            return;
        }
        let id = Id { category: open.category, name: &open.name, number };
        let mut line = Line::new(&mut self.text, Phase::End, id, open.over);
        if open.transferred > 0 {
            line.number("Bytes", open.transferred);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(is_task: bool) -> Open {
        let (category, name) = ("COLL", "AllReduce".to_owned());
        Open { category, name, parent: 0, of: None, is_task, over: 0, transferred: 0 }
    }

    /// Nobody writes, and nothing ends: there is a bound all the same, and what is left out is counted.
    #[test]
    fn memory_is_bounded() {
        let mut state = State::default();
        let mut taken = 0;
        for turn in 0..200_000_u64 {
            let Some(number) = state.take_number() else { continue };
            taken += 1;
            let id = Id { category: "COLL", name: "AllReduce", number };
            drop(Line::new(&mut state.text, Phase::Begin, id, turn));
            state.keep_call(number, Call { stream: 0, group: 0 });
            state.keep(number, event(turn % 2 == 0));
        }
        assert!(taken < 200_000 && state.left_out >= 200_000 - taken);
        assert!(state.text.len() < 2 * MOST_TEXT + 1_000);
        assert!(state.open.len() <= MOST_OPEN && state.tasks.len() <= MOST_TASKS);
        assert!(state.calls.len() <= MOST_CALLS);
        assert_eq!(state.news(), state.left_out);
        assert_eq!(state.news(), 0);
    }

    /// A task ends with the last of its parts, however late that is told.
    #[test]
    fn a_task_is_as_long_as_its_parts() {
        let mut state = State::default();
        let (task, part) = (state.take_number().unwrap(), state.take_number().unwrap());
        state.keep(task, event(true));
        state.keep(part, Open { parent: task, ..event(false) });
        state.stop(task, 1_000);
        state.stop(part, 5_000);
        state.write_end(task);
        let ends: Vec<&str> = state.text.lines().filter(|line| line.contains("\"e\"")).collect();
        assert_eq!(ends.len(), 2);
        assert!(ends.iter().all(|line| line.contains("\"ts\":5.000")), "{ends:?}");
        assert!(state.open.is_empty());
    }

    #[test]
    fn tasks_of_other_communicators_go_on() {
        let mut state = State::default();
        for hash in [7, 8] {
            let number = state.take_number().unwrap();
            state.keep(number, Open { of: Some((hash, 0)), ..event(true) });
        }
        state.end_tasks(Some((7, 0)));
        let left: Vec<_> = state.open.values().map(|task| task.of).collect();
        assert_eq!((left, state.tasks.len()), (vec![Some((8, 0))], 1));
        state.end_tasks(None);
        assert!(state.open.is_empty() && state.tasks.is_empty());
    }

    #[test]
    fn names_are_escaped() {
        let mut text = String::new();
        let id = Id { category: "P2P", name: "a\"b\\c\n", number: 255 };
        Line::new(&mut text, Phase::Begin, id, 1_002_003).text("Key", "\"").number("One", 1);
        let expected = "{\"name\":\"a\\\"b\\\\c\",\"cat\":\"P2P\",\"ph\":\"b\",";
        assert!(text.starts_with(expected), "{text}");
        let end = "\"ts\":1002.003,\"id2\":{\"local\":\"0xff\"},\"args\":{\"Key\":\"\\\"\",\"One\":1}},\n";
        assert!(text.ends_with(end), "{text}");
    }
}
