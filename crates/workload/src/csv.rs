//! Flows as a table: comma-separated values with a header line.
//!
//! ```text
//! id,src,dst,size,start,after
//! a,0,1,16KB,1.5us,
//! b,1,2,4096,0,a
//! c,2,3,1MB,2us,a:sent;b
//! ```
//!
//! | column | value |
//! |---|---|
//! | `src`, `dst` | host numbers, from 0 |
//! | `size` | bytes (`4096`) or a size with its unit (`16KB`, `1MiB`) |
//! | `start` (optional) | a time with its unit (`1.5us`), or `0` or empty for none |
//! | `id` (optional) | a name for others to wait for, without `;` and `:` |
//! | `after` (optional) | ids to wait for, separated by `;`, each with `:sent` or `:received` |
//!
//! A flow starts `start` after the last thing in `after`, or after the start of the run. An id
//! in `after` without an end means `:received`: the receiver has the last byte.
//!
//! Columns come in any order; values may be quoted; empty lines and lines with `#` in front are
//! skipped. A number without a unit is bytes in `size`, as in every trace format, but refused
//! in `start`, where traces disagree on the unit.
//!
//! Invariant: message `i` is row `i`. There are as many hosts as the largest number needs; see
//! [`Workload::on_fabric_of`] for more. A file cut at the end of a row cannot be told from a
//! whole one, since no count is declared.

use crate::dag::{check_ends, cycle_text};
use crate::{Dependency, Message, When, Workload, WorkloadError};
use ::csv::{ReaderBuilder, StringRecord, Trim};
use std::collections::BTreeMap;
use weft_units::id::Id;
use weft_units::options::quoted;
use weft_units::{HostId, MessageId, Time, parse_size, parse_time};

const COLUMNS: [&str; 6] = ["src", "dst", "size", "start", "id", "after"];

/// Reads a table of flows; `name` is what errors call the file. Message ids follow the order of
/// the rows.
///
/// # Errors
/// The first thing wrong, as one line with file, line and column.
pub fn read_csv(name: &str, text: &str) -> Result<Workload, WorkloadError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let table = Table::read(name, text)?;
    let ids = table.ids()?;
    let mut workload = Workload::new(table.hosts());
    let mut dependencies = Vec::new();
    for row in &table.rows {
        dependencies.clear();
        for wait in row.after.split(';').map(str::trim).filter(|wait| !wait.is_empty()) {
            let dependency = dependency(wait, &ids);
            dependencies.push(dependency.map_err(|what| table.error(row, "after", &what))?);
        }
        workload.push(row.message, &dependencies);
    }
    match workload.cycle() {
        None => Ok(workload),
        Some(cycle) => {
            let row = |id: MessageId| &table.rows[id.index()];
            let chain = cycle_text(&cycle, |id| format!("line {}", row(id).line));
            let what = format!("this flow can never start, since {chain}");
            Err(table.error(row(cycle[0]), "after", &what))
        }
    }
}

/// One flow, its own values understood, its names not yet looked up.
struct Row {
    line: u64,
    message: Message,
    id: String,
    after: String,
}

struct Table<'a> {
    name: &'a str,
    rows: Vec<Row>,
}

impl<'a> Table<'a> {
    fn read(name: &'a str, text: &str) -> Result<Table<'a>, WorkloadError> {
        let mut reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .comment(Some(b'#'))
            .trim(Trim::All)
            .from_reader(text.as_bytes());
        let mut lines = Lines { text, at: 0, line: 1 };
        let mut table = Table { name, rows: Vec::new() };
        let mut columns = None;
        let mut record = StringRecord::new();
        loop {
            let start = reader.position().byte();
            let more = reader.read_record(&mut record);
            let line = lines.of_record_from(start as usize);
            if !more.map_err(|error| WorkloadError::at(name, line, error))? {
                break;
            }
            if record.len() == 1 && record[0].is_empty() {
                continue; // Blanks only.
            }
            let located = |what: String| WorkloadError::at(name, line, what);
            match &columns {
                None => columns = Some(Columns::read(&record).map_err(located)?),
                Some(columns) => {
                    table.rows.push(columns.row(line, &record).map_err(located)?);
                }
            }
        }
        if table.rows.is_empty() {
            let what = "there are no flows; write a header 'src,dst,size' and a row for each";
            return Err(WorkloadError::at(name, lines.line, what));
        }
        table.check_total()?;
        Ok(table)
    }

    fn check_total(&self) -> Result<(), WorkloadError> {
        let mut total = 0u64;
        for row in &self.rows {
            total = total.checked_add(row.message.bytes).ok_or_else(|| {
                self.error(row, "size", "all sizes together exceed 2^64 bytes; make them smaller")
            })?;
        }
        Ok(())
    }

    fn error(&self, row: &Row, column: &str, what: &str) -> WorkloadError {
        WorkloadError::at(self.name, row.line, format!("{column}: {what}"))
    }

    fn hosts(&self) -> u32 {
        let largest = |row: &Row| row.message.src.0.max(row.message.dst.0);
        self.rows.iter().map(largest).max().map_or(0, |host| host + 1)
    }

    /// The rows that have a name.
    fn ids(&self) -> Result<BTreeMap<&str, MessageId>, WorkloadError> {
        let mut ids = BTreeMap::new();
        for (index, row) in self.rows.iter().enumerate().filter(|(_, row)| !row.id.is_empty()) {
            if row.id.contains([';', ':']) {
                let what = format!("{} has a ';' or ':'; use other characters", quoted(&row.id));
                return Err(self.error(row, "id", &what));
            }
            if let Some(earlier) = ids.insert(&row.id[..], MessageId::from_index(index)) {
                let line = self.rows[earlier.index()].line;
                let shown = quoted(&row.id);
                let what = format!("{shown} is already used on line {line}; choose another");
                return Err(self.error(row, "id", &what));
            }
        }
        Ok(ids)
    }
}

/// One entry of `after`.
fn dependency(wait: &str, ids: &BTreeMap<&str, MessageId>) -> Result<Dependency, String> {
    let (id, end) = wait.split_once(':').unwrap_or((wait, "received"));
    let when = match end.trim() {
        "received" => When::Received,
        "sent" => When::Sent,
        other => return Err(format!("unknown end {}; use sent or received", quoted(other))),
    };
    match ids.get(id.trim()) {
        Some(&on) => Ok(Dependency { on, when }),
        None => Err(format!("no row has the id {}; add it or remove the wait", quoted(id.trim()))),
    }
}

/// Where each column stands.
struct Columns {
    places: [Option<usize>; COLUMNS.len()],
    count: usize,
}

impl Columns {
    fn read(header: &StringRecord) -> Result<Columns, String> {
        let mut places = [None; COLUMNS.len()];
        for (place, title) in header.iter().enumerate() {
            let Some(column) = COLUMNS.iter().position(|known| *known == title) else {
                return Err(format!(
                    "unknown column {}; the first line names the columns, of {}",
                    quoted(title),
                    COLUMNS.join(", ")
                ));
            };
            if places[column].replace(place).is_some() {
                return Err(format!("column {title:?} stands twice; remove one"));
            }
        }
        for (column, place) in COLUMNS.iter().zip(&places).take(3) {
            if place.is_none() {
                return Err(format!("no column {column:?}; the first line needs src,dst,size"));
            }
        }
        Ok(Columns { places, count: header.len() })
    }

    fn row(&self, line: u64, record: &StringRecord) -> Result<Row, String> {
        if record.len() != self.count {
            return Err(format!(
                "{} values for {} columns; write one for each, or quote those with commas",
                record.len(),
                self.count
            ));
        }
        let [src, dst, size, start, id, after] =
            self.places.map(|place| place.map_or("", |place| &record[place]));
        let (src, dst) = (host("src", src)?, host("dst", dst)?);
        check_ends(src, dst, u32::MAX).map_err(|what| format!("dst: {what}"))?;
        let bytes = bytes(size).map_err(|what| format!("size: {what}"))?;
        let start = time(start).map_err(|what| format!("start: {what}"))?;
        let message = Message { src, dst, bytes, start };
        Ok(Row { line, message, id: id.into(), after: after.into() })
    }
}

fn host(column: &str, text: &str) -> Result<HostId, String> {
    // `parse` would take a sign.
    match text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse()) {
        Some(Ok(host)) => Ok(HostId(host)),
        _ => Err(format!("{column}: {} is not a host; write its number, from 0", quoted(text))),
    }
}

fn bytes(text: &str) -> Result<u64, String> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let bytes = match plain {
        true => text.parse().map_err(|_| format!("{} is too large", quoted(text)))?,
        false => parse_size(text).map_err(|error| error.to_string())?,
    };
    match bytes {
        0 => Err("sends nothing; give it at least one byte".into()),
        bytes => Ok(bytes),
    }
}

fn time(text: &str) -> Result<Time, String> {
    match text {
        "" | "0" => Ok(Time::ZERO),
        _ => parse_time(text).map_err(|error| error.to_string()),
    }
}

/// Counts lines up to a record. The reader's own count stands before the empty lines and
/// comments that it skips in front of a record.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: u64,
}

impl Lines<'_> {
    /// The line of the record that was read from byte `start` on; `start` never goes back.
    fn of_record_from(&mut self, start: usize) -> u64 {
        let bytes = self.text.as_bytes();
        let passed = &bytes[self.at..start.min(bytes.len()).max(self.at)];
        self.line += passed.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.at = self.at.max(start);
        let rest = self.text.get(self.at..).unwrap_or("");
        let skipped = rest
            .split_inclusive('\n')
            .take_while(|line| {
                line.trim_end_matches(['\r', '\n']).is_empty() || line.starts_with('#')
            })
            .count();
        self.line + skipped as u64
    }
}
