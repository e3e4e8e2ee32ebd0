//! AICB's lists of communications: one row each, in the order in which every rank makes them.
//!
//! ```text
//! [rank0 ~ rank127]
//! comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,...
//! CommType.all_reduce,CommGroup.tp_group,8,20971520,backward.MegatronColumnLinear,None,...
//! ```
//!
//! The sizes of the groups give the degrees of parallelism, and each step waits for the one
//! before it. Sizes count the larger buffer, all-gathers included; a computation takes its
//! elapsed time in nanoseconds; a broadcast comes from the first rank of its group; without a group
//! (`None`) all ranks take part. Source: AICB's `workload_applyer.py`. Other columns are not read.
//!
//! What it does not do: messages between pipeline stages (`isend`, `irecv`), whose ranks do
//! different things; they are kept as unsupported.

use super::{
    Action, Collective, Compute, Degrees, Group, Membership, Node, RankGraph, Remark, Size, Trace,
    TraceFormat, TraceFormatInfo, TraceSource, Work,
};
use crate::WorkloadError;
use crate::collective::Operation;
use ::csv::{ReaderBuilder, StringRecord, Trim};
use std::collections::BTreeMap;
use weft_units::options::quoted;
use weft_units::{OptionError, Options, Time};

const COLUMNS: [&str; 6] =
    ["comm_type", "comm_group", "comm_group_size", "msg_size", "stage", "_elapsed_time"];

/// Those that there have to be, among `COLUMNS`; the first specification has no sizes of groups.
const NEEDED: [usize; 3] = [0, 1, 3];

/// What Python writes for nothing.
const NOTHING: &str = "None";

/// Such lists leave nothing open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommLog;

impl TraceFormat for CommLog {
    const INFO: TraceFormatInfo = TraceFormatInfo {
        name: "list of communications",
        summary: "a list of communications, the same for all ranks",
        source: "AICB",
        ends: &[".csv"],
        per_rank: false,
        alike: false,
        side_file: None,
        options: &[],
        example: b"comm_type,comm_group,msg_size\nCommType.all_reduce,CommGroup.all,4096\n",
    };

    fn read(_: &mut Options<'_>) -> Result<CommLog, OptionError> {
        Ok(CommLog)
    }
    fn recognises(bytes: &[u8]) -> bool {
        std::str::from_utf8(bytes).is_ok_and(is_comm_log)
    }
    fn load(&self, files: &mut dyn TraceSource) -> Result<Trace, WorkloadError> {
        let (name, text) = files.text()?;
        read_comm_log(&name, &text)
    }
}

/// Whether a text is such a list.
pub fn is_comm_log(text: &str) -> bool {
    let mut head = text.lines().take(2);
    head.any(|line| line.contains("comm_type,") && line.contains("comm_group"))
}

/// Reads a list of communications; `name` is what errors call the file. The number of ranks is
/// that of its first line, or open if there is none; [`Trace::for_ranks`] settles or changes it.
///
/// # Errors
/// The first thing that is not understood, with its line.
pub fn read_comm_log(name: &str, text: &str) -> Result<Trace, WorkloadError> {
    let mut log = Log::new(name);
    let (ranks, skipped, table) = log.ranks(text)?;
    let mut reader =
        ReaderBuilder::new().trim(Trim::All).flexible(true).from_reader(table.as_bytes());
    let header = reader.headers().map_err(|csv| log.error(skipped + 1, &csv.to_string()))?;
    let (columns, header_len) = (log.columns(header, skipped + 1)?, header.len());
    for row in reader.into_records() {
        let row = row.map_err(|csv| log.error(skipped + 1, &csv.to_string()))?;
        log.line = skipped + row.position().map_or(0, |position| position.line());
        log.add(&row, &columns, header_len).map_err(|what| log.error(log.line, &what))?;
    }
    if log.graph.nodes().is_empty() {
        return Err(log.error(skipped + 1, "no communication follows; the file is cut off"));
    }
    log.finish(ranks)
}

struct Log<'a> {
    name: &'a str,
    line: u64,
    graph: RankGraph,
    groups: Vec<Group>,
    /// How many ranks each kind of group has, and the line that says so.
    sizes: BTreeMap<Membership, (u32, u64)>,
    /// The first line of each kind of group that does not say it.
    unsaid: BTreeMap<Membership, u64>,
    /// Computations without a time.
    untimed: u64,
}

/// Where the columns of `COLUMNS` stand; `None`: nowhere.
type Places = [Option<usize>; COLUMNS.len()];

impl<'a> Log<'a> {
    fn new(name: &'a str) -> Log<'a> {
        let groups = vec![Group::of(Membership::World)];
        Log {
            name,
            line: 0,
            graph: RankGraph::new(name),
            groups,
            sizes: BTreeMap::new(),
            unsaid: BTreeMap::new(),
            untimed: 0,
        }
    }

    fn error(&self, line: u64, what: &str) -> WorkloadError {
        WorkloadError::at(self.name, line, what)
    }

    /// The number of ranks, how many lines said so, and the table after them.
    fn ranks<'t>(&self, text: &'t str) -> Result<(Option<u32>, u64, &'t str), WorkloadError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Some(range) = text.strip_prefix('[') else { return Ok((None, 0, text)) };
        let (first, rest) = range.split_once('\n').unwrap_or((range, ""));
        if first.contains("pp_stage") {
            let what = "the list of one pipeline stage of several, which is not read; give a list \
                        of a job without pipeline (pp1)";
            return Err(self.error(1, what));
        }
        let last = first.trim().strip_suffix(']').and_then(|range| range.rsplit_once("rank"));
        let last: Option<u32> = last.and_then(|(_, last)| last.trim().parse().ok());
        match last.and_then(|last| last.checked_add(1)) {
            Some(ranks) => Ok((Some(ranks), 1, rest)),
            None => Err(self.error(1, "not the ranks of a list; write [rank0 ~ rank127]")),
        }
    }

    fn columns(&self, header: &StringRecord, line: u64) -> Result<Places, WorkloadError> {
        let places = COLUMNS.map(|column| header.iter().position(|name| name == column));
        match NEEDED.into_iter().find(|column| places[*column].is_none()) {
            None => Ok(places),
            Some(missing) => {
                let what = format!("there is no column {:?}; add it", COLUMNS[missing]);
                Err(self.error(line, &what))
            }
        }
    }

    fn add(
        &mut self,
        row: &StringRecord,
        columns: &Places,
        header_len: usize,
    ) -> Result<(), String> {
        let cell = |column: usize| columns[column].and_then(|at| row.get(at));
        let kind = cell(0).and_then(|kind| kind.rsplit('.').next()).unwrap_or_default();
        let work = match kind {
            "epoch_end" => Work::Nothing,
            "computation" => {
                // The size is a pair of shapes, with commas of its own: the time counts from the end.
                let from_end = columns[5].map(|at| header_len - at);
                let time = from_end.and_then(|back| row.get(row.len().checked_sub(back)?));
                let nanos = time.and_then(|time| time.split('.').next()?.parse::<u64>().ok());
                self.untimed += u64::from(nanos.is_none());
                let time = nanos.unwrap_or(0).checked_mul(1_000).map(Time::ps);
                let time = time.ok_or("_elapsed_time is longer than 213 days; correct it")?;
                Work::Compute(Compute { time, ..Compute::default() })
            }
            _ => self.communication(kind, &[cell(1), cell(2), cell(3)])?,
        };
        let id = self.graph.nodes().len() as u64;
        let name = format!("{} {kind}", cell(4).unwrap_or_default());
        let node = Node { id, name: name.trim().into(), work, start: Time::ZERO };
        let before = id.checked_sub(1).map(|before| before as u32);
        self.graph.push(node, before.as_slice());
        Ok(())
    }

    /// A communication of this kind; group, its size and the bytes as in the row.
    fn communication(&mut self, kind: &str, cells: &[Option<&str>; 3]) -> Result<Work, String> {
        let needed = |cell: usize| {
            let missing = || format!("the row ends before {}; complete it", COLUMNS[cell + 1]);
            cells[cell].ok_or_else(missing)
        };
        let (group, bytes) = (needed(0)?, needed(2)?);
        let size = cells[1].filter(|size| !matches!(*size, "" | NOTHING));
        Ok(match (action(kind), membership(group)) {
            (Some(action), Some(members)) => {
                let bytes = match action {
                    Action::Barrier | Action::Dispatch(_) | Action::Combine(_) => 0,
                    _ => whole(bytes, COLUMNS[3])?,
                };
                let bytes = Size::Whole(bytes);
                let group = self.group(members, size)?;
                Work::Collective(Collective { action, size: bytes, group, root: 0, turn: 0 })
            }
            (None, _) => Work::Unsupported(format!("communication {}", quoted(kind)).into()),
            (_, None) => Work::Unsupported(format!("group {}", quoted(group)).into()),
        })
    }

    /// The index of a group, its size noted.
    fn group(&mut self, members: Membership, size: Option<&str>) -> Result<u32, String> {
        match size {
            Some(size) => self.note_size(&members, size)?,
            None => {
                self.unsaid.entry(members.clone()).or_insert(self.line);
            }
        }
        let index = self.groups.iter().position(|group| group.members == members);
        if index.is_none() {
            self.groups.push(Group::of(members));
        }
        Ok(index.unwrap_or(self.groups.len() - 1) as u32)
    }

    fn note_size(&mut self, members: &Membership, size: &str) -> Result<(), String> {
        let ranks = whole(size, COLUMNS[2])?;
        let ranks = u32::try_from(ranks).ok().filter(|ranks| *ranks > 0);
        let ranks =
            ranks.ok_or(format!("{}: a group cannot have {size} ranks; correct it", COLUMNS[2]))?;
        let (known, line) = *self.sizes.entry(members.clone()).or_insert((ranks, self.line));
        match known == ranks {
            true => Ok(()),
            false => Err(format!(
                "the {} group has {ranks} ranks here but {known} on line {line}; correct one",
                members.name()
            )),
        }
    }

    /// A group whose size nothing tells: all ranks are as many as there are, and data-parallel ones
    /// those that the others leave.
    fn check_sizes(&self) -> Result<(), WorkloadError> {
        let follows = |members: &Membership| {
            matches!(members, Membership::World | Membership::Data | Membership::ExpertData)
                || self.sizes.contains_key(members)
        };
        match self.unsaid.iter().find(|(members, _)| !follows(members)) {
            None => Ok(()),
            Some((members, line)) => {
                let what = format!(
                    "no row says how many ranks the {} group has; give it as {}",
                    members.name(),
                    COLUMNS[2]
                );
                Err(self.error(*line, &what))
            }
        }
    }

    fn finish(mut self, ranks: Option<u32>) -> Result<Trace, WorkloadError> {
        self.check_sizes()?;
        self.graph.number_turns();
        let what = "computations have no _elapsed_time, and take none".to_owned();
        let untimed = Remark { what, count: self.untimed };
        let size = |members| self.sizes.get(&members).map(|(ranks, _)| *ranks);
        let tensor = size(Membership::Tensor).unwrap_or(1);
        let ranks = ranks.or(size(Membership::World));
        // Ranks that are neither tensor- nor data-parallel are other stages.
        let stages = ranks.zip(size(Membership::Data)).map(|(ranks, data)| {
            let stage = u64::from(tensor) * u64::from(data);
            u32::try_from(u64::from(ranks) / stage).unwrap_or(1)
        });
        let pipeline = size(Membership::Pipeline).or(stages).unwrap_or(1);
        let told = ranks.zip(self.sizes.get(&Membership::Data));
        if let Some((ranks, (data, line))) = told
            && u64::from(tensor) * u64::from(*data) * u64::from(pipeline) != u64::from(ranks)
        {
            let what = format!(
                "{ranks} ranks cannot be {data} data-parallel ones for each of {tensor} tensor-parallel ones; \
                 correct the sizes of groups or the first line"
            );
            return Err(self.error(*line, &what));
        }
        let expert = size(Membership::Expert).unwrap_or(1);
        let trace = Trace {
            exchanges: Vec::new(),
            carried: Vec::new(),
            name: self.name.into(),
            ranks: None,
            graphs: vec![self.graph],
            shared: true,
            groups: self.groups,
            degrees: Degrees { tensor, expert, pipeline, ..Degrees::NONE },
            remarks: (self.untimed > 0).then_some(untimed).into_iter().collect(),
        };
        match ranks {
            Some(ranks) => trace.for_ranks(ranks),
            None => Ok(trace),
        }
    }
}

fn whole(word: &str, column: &str) -> Result<u64, String> {
    word.parse()
        .map_err(|_| format!("{column} must be a whole number, not {}; correct it", quoted(word)))
}

fn action(kind: &str) -> Option<Action> {
    Some(Action::Operation(match kind {
        "all_reduce" => Operation::AllReduce,
        "all_gather" | "all_gather_into_tensor" => Operation::AllGather,
        "reduce_scatter" | "reduce_scatter_tensor" => Operation::ReduceScatter,
        "all_to_all" => Operation::AllToAll,
        "broadcast" => Operation::Broadcast,
        "reduce" => Operation::Reduce,
        "barrier" => return Some(Action::Barrier),
        _ => return None,
    }))
}

fn membership(group: &str) -> Option<Membership> {
    Some(match group.rsplit('.').next().unwrap_or_default() {
        "all" | NOTHING => Membership::World,
        "tp_group" => Membership::Tensor,
        "dp_group" => Membership::Data,
        "ep_group" => Membership::Expert,
        "ep_dp_group" => Membership::ExpertData,
        "pp_group" => Membership::Pipeline,
        _ => return None,
    })
}
