//! GOAL as text.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//! a: calc 1000 cpu 1
//! b: send 4096b to 1 tag 7
//! b requires a
//! }
//! rank 1 {
//! r: recv 4096b from 0 tag 7
//! }
//! ```
//!
//! One statement a line, comments as in C. What stands behind the last block is not read, but for the block of another rank.

use super::tasks::{ANY, Message, Op, Task, nanoseconds};
use crate::WorkloadError;
use std::collections::BTreeMap;
use weft_units::options::quoted;

/// Whether a text begins with `num_ranks` and a number, after comments perhaps.
pub(super) fn is_text(text: &str) -> bool {
    let mut text = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let after = match text.get(..2) {
            Some("/*") => text.split_once("*/"),
            Some("//") => text.split_once('\n'),
            _ => break,
        };
        let Some((_, after)) = after else { return false };
        text = after.trim_start();
    }
    let Some(count) = text.strip_prefix("num_ranks") else { return false };
    count.starts_with(char::is_whitespace)
        && count.trim_start().starts_with(|digit: char| digit.is_ascii_digit())
}

/// The tasks of all ranks; `name` is what errors call the file.
pub(super) fn parse(name: &str, text: &str) -> Result<Vec<Vec<Task>>, WorkloadError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = Statements { lines: text.lines(), line: 0, in_comment: false };
    let error = |line, what: &str| WorkloadError::at(name, line, what);
    let no_ranks = |line| error(line, "the file does not say num_ranks N; write that first");
    let (line, first) = lines.next().ok_or_else(|| no_ranks(1))?;
    let count = first.strip_prefix("num_ranks").ok_or_else(|| no_ranks(line))?;
    let count: u32 = number(count.trim(), "num_ranks").map_err(|what| error(line, &what))?;
    let mut ranks = Vec::new();
    while (ranks.len() as u32) < count {
        let rank = ranks.len() as u32;
        let Some((line, head)) = lines.next() else {
            let what = format!(
                "the file ends before the block of rank {rank} of {count}; it is cut off: copy or \
                 write it again"
            );
            return Err(error(lines.line.max(1), &what));
        };
        let own = head.strip_prefix("rank").and_then(|rest| rest.trim().strip_suffix('{'));
        if own.is_none_or(|own| own.trim() != rank.to_string()) {
            let what =
                format!("{} is not the block of rank {rank}; write rank {rank} {{", quoted(&head));
            return Err(error(line, &what));
        }
        ranks.push(block(name, &mut lines, rank, count)?);
    }
    if let Some((line, head)) = lines.find(|(_, statement)| statement.starts_with("rank")) {
        let what = format!(
            "{} is one rank more than num_ranks {count}; correct one of them",
            quoted(&head)
        );
        return Err(error(line, &what));
    }
    match count {
        0 => Err(error(line, "there are no ranks; write num_ranks with at least 1")),
        _ => Ok(ranks),
    }
}

/// The statements of a rank, up to the brace that ends them.
fn block(
    name: &str,
    lines: &mut Statements<'_>,
    rank: u32,
    ranks: u32,
) -> Result<Vec<Task>, WorkloadError> {
    let mut block = Block { rank, ranks, tasks: Vec::new(), labels: BTreeMap::new() };
    for (line, statement) in lines.by_ref() {
        if statement == "}" {
            return Ok(block.tasks);
        }
        block.take(line, &statement).map_err(|what| WorkloadError::at(name, line, what))?;
    }
    let what = format!(
        "the file ends within the block of rank {rank}; it is cut off: copy or write it again"
    );
    Err(WorkloadError::at(name, lines.line.max(1), what))
}

/// A rank as it is read.
struct Block {
    rank: u32,
    ranks: u32,
    tasks: Vec<Task>,
    labels: BTreeMap<Box<str>, u32>,
}

impl Block {
    fn take(&mut self, line: u64, statement: &str) -> Result<(), String> {
        let (label, rest) = match statement.split_once(':') {
            Some((label, rest)) => (label.trim(), rest.trim()),
            None => ("", statement),
        };
        let words: Vec<&str> = rest.split_whitespace().collect();
        if let [before, word @ ("requires" | "irequires"), after] = words[..]
            && label.is_empty()
        {
            return self.wait(before, word == "irequires", after);
        }
        if statement.contains(':') && !is_label(label) {
            return Err(format!(
                "{} is no label; use a letter, then letters, digits and underscores",
                quoted(label)
            ));
        }
        let own = self.tasks.len() as u32;
        let task = self.task(line, label, &words)?;
        if !label.is_empty() && self.labels.insert(label.into(), own).is_some() {
            return Err(format!("the label {} is already used; choose another", quoted(label)));
        }
        self.tasks.push(task);
        Ok(())
    }

    fn task(&self, line: u64, label: &str, words: &[&str]) -> Result<Task, String> {
        let (op, rest) = match words {
            ["calc", time, rest @ ..] => {
                (Op::Calc(nanoseconds(number(time, "the time of calc")?)?), rest)
            }
            ["send", size, "to", peer, rest @ ..] => {
                let bytes = bytes(size)?;
                match number::<u32>(peer, "the other rank")? {
                    peer if bytes == 0 && peer >= self.ranks => (Op::Mark, rest),
                    _ => (Op::Send(Message { peer: self.peer(peer)?, bytes, tag: 0 }), rest),
                }
            }
            ["recv", size, "from", peer, rest @ ..] => {
                let peer = if *peer == "-1" { ANY } else { self.peer(peer)? };
                (Op::Receive(Message { peer, bytes: bytes(size)?, tag: 0 }), rest)
            }
            _ => {
                return Err(format!(
                    "{} is no statement; write send, recv, calc, requires or irequires, as in \
                     send 4096b to 1 tag 7",
                    quoted(&words.join(" "))
                ));
            }
        };
        let (place, label) = (line, label.into());
        let (requires, irequires) = (Vec::new(), Vec::new());
        let mut task = Task { place, label, op, cpu: 0, nic: 0, requires, irequires };
        options(&mut task, rest)?;
        Ok(task)
    }

    fn peer(&self, word: &str) -> Result<u32, String> {
        let peer: u32 = number(word, "the other rank")?;
        match peer {
            _ if peer >= self.ranks => {
                Err(format!("there is no rank {peer}; ranks are 0 to {}", self.ranks - 1))
            }
            _ if peer == self.rank => {
                Err(format!("rank {peer} sends to itself, which needs no network; remove it"))
            }
            _ => Ok(peer),
        }
    }

    fn wait(&mut self, before: &str, starts: bool, after: &str) -> Result<(), String> {
        let find = |label: &str| {
            self.labels.get(label).copied().ok_or_else(|| {
                format!("no statement above has the label {}; add it or correct it", quoted(label))
            })
        };
        let (own, other) = (find(before)?, find(after)?);
        let task = &mut self.tasks[own as usize];
        if starts { &mut task.irequires } else { &mut task.requires }.push(other);
        Ok(())
    }
}

/// `tag t cpu c nic n`, each of which may be left out.
fn options(task: &mut Task, words: &[&str]) -> Result<(), String> {
    let mut rest = words;
    let is_calc = matches!(task.op, Op::Calc(_));
    if let ["tag", word, more @ ..] = rest
        && !is_calc
    {
        let tag = match *word {
            "-1" => ANY,
            word => number(word, "tag")?,
        };
        if let Op::Send(one) | Op::Receive(one) = &mut task.op {
            one.tag = tag;
        }
        rest = more;
    }
    if let ["cpu", word, more @ ..] = rest {
        task.cpu = number(word, "cpu")?;
        rest = more;
    }
    if let ["nic", word, more @ ..] = rest
        && !is_calc
    {
        task.nic = number(word, "nic")?;
        rest = more;
    }
    if matches!(&task.op, Op::Send(Message { tag: ANY, .. })) {
        return Err("a send needs a tag of its own; give a number instead of -1".into());
    }
    match rest {
        [] => Ok(()),
        [word, ..] => {
            let order = if is_calc { "cpu" } else { "tag, cpu and nic, in this order" };
            Err(format!("{} is not expected here; a statement ends with {order}", quoted(word)))
        }
    }
}

fn is_label(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic())
        && word.chars().all(|one| one.is_ascii_alphanumeric() || one == '_')
}

/// `4096b`.
fn bytes(word: &str) -> Result<u64, String> {
    let count = word.strip_suffix('b');
    let count = count.ok_or_else(|| format!("{} is no size; write it as 4096b", quoted(word)))?;
    number(count, "the size")
}

fn number<T: std::str::FromStr>(word: &str, what: &str) -> Result<T, String> {
    // `parse` would take a sign.
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| word.parse().ok()).flatten();
    number.ok_or_else(|| {
        format!("{what} is {}, which is no number that fits; correct it", quoted(word))
    })
}

/// The lines of a text that say something, with their numbers, comments and outer blanks taken out.
struct Statements<'a> {
    lines: std::str::Lines<'a>,
    line: u64,
    in_comment: bool,
}

impl Iterator for Statements<'_> {
    type Item = (u64, String);
    fn next(&mut self) -> Option<(u64, String)> {
        loop {
            let mut rest = self.lines.next()?;
            self.line += 1;
            let mut kept = String::new();
            while !rest.is_empty() {
                if self.in_comment {
                    let Some((_, after)) = rest.split_once("*/") else { break };
                    (rest, self.in_comment) = (after, false);
                    continue;
                }
                let from = rest.find("//").into_iter().chain(rest.find("/*")).min();
                let Some(from) = from else {
                    kept += rest;
                    break;
                };
                kept += &rest[..from];
                kept.push(' ');
                self.in_comment = rest[from..].starts_with("/*");
                rest = if self.in_comment { &rest[from + 2..] } else { "" };
            }
            let kept = kept.trim();
            if !kept.is_empty() {
                return Some((self.line, kept.to_owned()));
            }
        }
    }
}
