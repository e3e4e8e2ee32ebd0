//! Files of other kinds that people take for traces: told apart by how they begin, and named.
//!
//! What it does not do: read them. Nothing is taken for another format because nobody knew better.

use flate2::bufread::GzDecoder;
use std::borrow::Cow;
use std::io::Read;

/// How much of a file is looked at, unpacked.
const HEAD: u64 = 1 << 16;

/// How GOAL begins as LogGOPSim's `txt2bin` and the files of its htsim port have it.
const BINARY_GOAL: [u8; 8] = [0x7f, 0x10, 0, 0, 0, 0, 0, 0];

const GOAL: &str = "is a GOAL schedule, which Weft does not read yet; give a Chakra trace (.et) or a \
                    connection matrix (.cm) of the same traffic";
const ARCHIVE: &str = "is an archive (tar); unpack it and name a trace in it";
const CHAKRA_JSON: &str = "is a Chakra trace in JSON, which is not read; write it as .et";
const KINETO: &str = "is a Kineto trace of PyTorch's profiler, which is not read; link it to the \
                      execution trace of the same step with chakra_trace_link, and convert it with \
                      chakra_converter to .et";
const PYTORCH: &str = "is an execution trace of PyTorch, which is not read; link it to the Kineto \
                       trace of the same step with chakra_trace_link, and convert it with \
                       chakra_converter to .et";
const MSCCL: &str = "is a schedule for MSCCL (XML), which is not read; give the .et files that were \
                     made from it";
const MATRIX: &str = "is a connection matrix, and no trace; weft run and weft compare read it if its \
                      name ends in .cm";
const TOPOLOGY: &str =
    "is a topology, and no trace; weft topology info reads it, and --fabric takes it";
const SYSTEM: &str = "is a system file of ASTRA-sim, and no trace; name the trace, and give what the \
                      file says as keys of an experiment";

/// What the file is that begins like this, and what to do; `None` if it is nothing that is known here.
pub fn foreign(bytes: &[u8]) -> Option<&'static str> {
    let bytes = unpacked_head(bytes);
    if bytes.starts_with(&BINARY_GOAL) {
        return Some(GOAL);
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return Some(ARCHIVE);
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut text = text.trim_start_matches('\u{feff}').trim_start();
    while let Some(comment) = text.strip_prefix('#') {
        text = comment.split_once('\n').map_or("", |(_, rest)| rest.trim_start());
    }
    let has = |key: &str| text.contains(key);
    let begins = |word: &str| text.starts_with(word);
    match text.chars().next()? {
        'N' if begins("Nodes") && has("\nConnections") => Some(MATRIX),
        'N' if begins("Nodes") && has("\nTier") => Some(TOPOLOGY),
        '{' if has("\"preferred-dataset-splits\"") => Some(SYSTEM),
        '{' if has("\"workload_graph\"") => Some(CHAKRA_JSON),
        '{' if has("\"traceEvents\"") || has("\"schemaVersion\"") => Some(KINETO),
        '{' if has("\"nodes\"") && has("\"rf_id\"") => Some(PYTORCH),
        '<' if has("<algo ") && has("nchannels") => Some(MSCCL),
        _ => is_goal(text).then_some(GOAL),
    }
}

/// The first bytes of a file, unpacked if they are gzipped.
fn unpacked_head(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut head = Vec::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        // As much as can be read of a damaged one is enough.
        let _ = GzDecoder::new(bytes).take(HEAD).read_to_end(&mut head);
        return Cow::Owned(head);
    }
    Cow::Borrowed(&bytes[..bytes.len().min(HEAD as usize)])
}

/// Whether a text begins with `num_ranks` and a number, after comments perhaps.
fn is_goal(mut text: &str) -> bool {
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
