//! The grammar of connection matrices: lines to fields, and declared counts to actual ones.
//!
//! What it does not do: relate lines to each other, such as triggers to connections.

use crate::WorkloadError;
use std::str::{FromStr, SplitAsciiWhitespace};
use weft_units::Time;
use weft_units::options::quoted;

/// The fields of a file.
pub(super) struct Matrix {
    pub(super) nodes: u32,
    pub(super) connections: Vec<Connection>,
    pub(super) triggers: Vec<Trigger>,
}

pub(super) struct Connection {
    pub(super) line: u64,
    pub(super) src: u32,
    pub(super) dst: u32,
    pub(super) id: Option<u32>,
    pub(super) begin: Begin,
    pub(super) bytes: u64,
    /// The trigger that the last acknowledgement activates.
    pub(super) sent: Option<u32>,
    /// The trigger that the last byte activates.
    pub(super) received: Option<u32>,
    pub(super) priority: Option<u32>,
}

/// What starts a connection.
#[derive(Clone, Copy)]
pub(super) enum Begin {
    At(Time),
    On(u32),
}

pub(super) struct Trigger {
    pub(super) line: u64,
    pub(super) id: u32,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Oneshot,
    Multishot,
    /// Fires at this many activations.
    Barrier(u32),
}

/// A number from the header and where it stands.
#[derive(Clone, Copy)]
struct Declared {
    value: u32,
    line: u64,
}

#[derive(Default)]
struct Header {
    nodes: Option<Declared>,
    connections: Option<Declared>,
    triggers: Option<Declared>,
    failures: Option<Declared>,
}

/// What is wrong with a line, with the mend; the caller knows where it is.
type Line<T> = Result<T, String>;

impl Matrix {
    /// # Errors
    /// The first line that is not understood, or a count that is not met.
    pub(super) fn parse(name: &str, text: &str) -> Result<Matrix, WorkloadError> {
        let mut header = Header::default();
        let mut matrix = Matrix { nodes: 0, connections: Vec::new(), triggers: Vec::new() };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut last = 0;
        for (number, line) in (1..).zip(text.lines()) {
            let mut words = line.split_ascii_whitespace();
            let Some(first) = words.next().filter(|first| !first.starts_with('#')) else {
                continue;
            };
            matrix
                .line(&mut header, number, first, words)
                .map_err(|what| WorkloadError::at(name, number, what))?;
            last = number;
        }
        matrix.nodes = header.check(name, last, &matrix)?;
        Ok(matrix)
    }

    /// Takes in one line that says something.
    fn line(&mut self, header: &mut Header, line: u64, first: &str, rest: Words) -> Line<()> {
        if matches!(first, "Nodes" | "Connections" | "Triggers" | "Failures") {
            if !self.connections.is_empty() || !self.triggers.is_empty() {
                return Err(format!("'{first}' after the header; move it to the top of the file"));
            }
            return header.line(line, first, rest);
        }
        if first.contains("->") {
            header.room(self.connections.len(), header.connections, "Connections", "connection")?;
            self.connections.push(Connection::parse(line, first, rest)?);
        } else if first == "trigger" {
            header.room(self.triggers.len(), header.triggers, "Triggers", "trigger")?;
            self.triggers.push(Trigger::parse(line, rest)?);
        } else if first == "failure" {
            return Err("failures are no part of a workload; remove them and 'Failures'".into());
        } else {
            return Err(format!(
                "unknown word {}; a line starts with Nodes, Connections, Triggers, src->dst or \
                 trigger",
                quoted(first)
            ));
        }
        Ok(())
    }
}

impl Header {
    fn line(&mut self, line: u64, word: &str, mut rest: Words) -> Line<()> {
        let value = number(word, rest.next())?;
        if let Some(extra) = rest.next() {
            return Err(format!(
                "unknown word {} after '{word} {value}'; remove it",
                quoted(extra)
            ));
        }
        let slot = match word {
            "Nodes" => &mut self.nodes,
            "Connections" => &mut self.connections,
            "Triggers" => &mut self.triggers,
            _ => &mut self.failures,
        };
        if let Some(earlier) = slot {
            return Err(format!("'{word}' is already given on line {}; remove one", earlier.line));
        }
        *slot = Some(Declared { value, line });
        if word == "Failures" && value > 0 {
            return Err("failures are no part of a workload; remove them and 'Failures'".into());
        }
        Ok(())
    }

    /// Whether one more line may follow `have` of its kind.
    fn room(&self, have: usize, declared: Option<Declared>, word: &str, kind: &str) -> Line<()> {
        if self.nodes.is_none() {
            return Err(format!("a {kind} before 'Nodes'; start the file with 'Nodes <hosts>'"));
        }
        match declared {
            None => Err(format!("a {kind} without '{word}' before it; add '{word} <how many>'")),
            Some(Declared { value, line }) if have >= value as usize => Err(format!(
                "one {kind} more than '{word} {value}' on line {line}; correct the count or remove \
                 the line"
            )),
            Some(_) => Ok(()),
        }
    }

    /// Checks at the end of the file that all that was declared came, and returns the nodes.
    fn check(&self, name: &str, last: u64, matrix: &Matrix) -> Result<u32, WorkloadError> {
        for (word, declared) in [("Nodes", self.nodes), ("Connections", self.connections)] {
            if declared.is_none() {
                let what = format!("the file ends without '{word}'; it is empty or truncated");
                return Err(WorkloadError::at(name, last.max(1), what));
            }
        }
        let counts = [
            ("Connections", self.connections, matrix.connections.len()),
            ("Triggers", self.triggers, matrix.triggers.len()),
        ];
        for (word, declared, have) in counts {
            if let Some(Declared { value, line }) = declared
                && have < value as usize
            {
                let what = format!(
                    "'{word} {value}' but the file ends after {have} of them, on line {last}: it \
                     is truncated; fetch it again or correct the count"
                );
                return Err(WorkloadError::at(name, line, what));
            }
        }
        if matrix.connections.is_empty() {
            let what = "there are no connections; add at least one, with its count";
            return Err(WorkloadError::at(name, last, what));
        }
        Ok(self.nodes.map_or(0, |nodes| nodes.value))
    }
}

type Words<'a> = SplitAsciiWhitespace<'a>;

impl Connection {
    /// A line `ends` (`src->dst`) and what follows.
    fn parse(line: u64, ends: &str, mut words: Words) -> Line<Connection> {
        let (src, dst) = ends.split_once("->").expect("the caller saw the arrow");
        let (src, dst) = (number("source host", Some(src))?, number("receiver", Some(dst))?);
        let (mut id, mut start, mut trigger, mut size) = (None, None, None, None);
        let (mut sent, mut received, mut priority) = (None, None, None);
        while let Some(word) = words.next() {
            match word {
                "id" => once(&mut id, word, nonzero(word, words.next())?)?,
                "start" => once(&mut start, word, picoseconds(words.next())?)?,
                "trigger" => once(&mut trigger, word, nonzero(word, words.next())?)?,
                "size" => once(&mut size, word, number(word, words.next())?)?,
                "send_done_trigger" => once(&mut sent, word, nonzero(word, words.next())?)?,
                "recv_done_trigger" => once(&mut received, word, nonzero(word, words.next())?)?,
                "prio" => once(&mut priority, word, number(word, words.next())?)?,
                other => return Err(unknown(other)),
            }
        }
        let begin = begin(start, trigger)?;
        let bytes = match size {
            None => return Err("no 'size'; add 'size <bytes>'".into()),
            Some(0) => return Err("size 0 is an endless flow; give it a size in bytes".into()),
            Some(bytes) => bytes,
        };
        Ok(Connection { line, src, dst, id, begin, bytes, sent, received, priority })
    }
}

/// The error for a word that a connection does not have.
fn unknown(word: &str) -> String {
    match word {
        "msg" => "'msg' (several messages on one connection) is not supported; give every message \
                  its own id and remove 'msg'"
            .into(),
        _ => format!(
            "unknown word {}; a connection has id, start, trigger, size, send_done_trigger, \
             recv_done_trigger, prio",
            quoted(word)
        ),
    }
}

fn begin(start: Option<Time>, trigger: Option<u32>) -> Line<Begin> {
    match (start, trigger) {
        (Some(start), None) => Ok(Begin::At(start)),
        (None, Some(trigger)) => Ok(Begin::On(trigger)),
        (None, None) => {
            Err("nothing starts it; add 'start <picoseconds>' or 'trigger <id>'".into())
        }
        (Some(_), Some(_)) => Err("both 'start' and 'trigger'; keep one".into()),
    }
}

impl Trigger {
    /// A line `trigger` and what follows.
    fn parse(line: u64, mut words: Words) -> Line<Trigger> {
        let (mut id, mut kind, mut count) = (None, None, None);
        while let Some(word) = words.next() {
            match word {
                "id" => once(&mut id, word, nonzero(word, words.next())?)?,
                "count" => once(&mut count, word, nonzero(word, words.next())?)?,
                "oneshot" | "multishot" | "barrier" => {
                    once(&mut kind, word, word).map_err(|_| "more than one kind; keep one")?;
                }
                other => {
                    return Err(format!(
                        "unknown word {}; a trigger has id and one of oneshot, multishot, barrier \
                         count <n>",
                        quoted(other)
                    ));
                }
            }
        }
        let id = id.ok_or("a trigger without id; add 'id <number>'")?;
        let kind = match (kind, count) {
            (Some("oneshot"), None | Some(1)) => Kind::Oneshot,
            (Some("multishot"), None) => Kind::Multishot,
            (Some("barrier"), Some(count)) => Kind::Barrier(count),
            (Some("barrier"), None) => return Err("a barrier needs 'count <activations>'".into()),
            (Some(_), _) => return Err("only a barrier has a 'count'; remove it".into()),
            (None, _) => return Err("no kind; add oneshot, multishot or barrier count <n>".into()),
        };
        Ok(Trigger { line, id, kind })
    }
}

/// Fills a field that may be given once.
fn once<T>(field: &mut Option<T>, word: &str, value: T) -> Line<()> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("'{word}' twice; remove one")),
    }
}

/// A whole number that follows `word`.
fn number<T: FromStr>(word: &str, text: Option<&str>) -> Line<T> {
    let text = text.ok_or_else(|| format!("no number after '{word}': the line is truncated"))?;
    // `parse` would take a sign.
    match text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse()) {
        Some(Ok(value)) => Ok(value),
        _ => Err(format!(
            "{word} {} is not a whole number; write one such as 4, no larger than \
             32 bits (sizes and starts: 64)",
            quoted(text)
        )),
    }
}

/// A whole number above zero that follows `word`.
fn nonzero(word: &str, text: Option<&str>) -> Line<u32> {
    match number(word, text)? {
        0 => Err(format!("'{word} 0' is not allowed; count from 1")),
        value => Ok(value),
    }
}

/// A start time. Decimals are taken if they are all zero, as htsim's own writer gives them for
/// a start of zero; others come from that writer's microseconds, which its loader misreads.
fn picoseconds(text: Option<&str>) -> Line<Time> {
    let Some((whole, decimals)) = text.and_then(|text| text.split_once('.')) else {
        return number("start", text).map(Time);
    };
    if decimals.bytes().any(|byte| byte != b'0') {
        return Err(format!(
            "start {whole}.{decimals} is not a whole number of picoseconds; multiply by 1000000 if \
             it means microseconds"
        ));
    }
    number("start", Some(whole)).map(Time)
}
