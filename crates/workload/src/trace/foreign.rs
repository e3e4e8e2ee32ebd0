//! Files of other kinds that people take for traces: told apart by how they begin, and named; one entry
//! of [`FOREIGN`] each.
//!
//! What it does not do: read them. Nothing is taken for another format because nobody knew better.

use flate2::bufread::GzDecoder;
use std::borrow::Cow;
use std::io::Read;

/// How much of a file is looked at, unpacked.
const HEAD: u64 = 1 << 16;

/// How GOAL begins as LogGOPSim's `txt2bin` and the files of its htsim port have it.
const BINARY_GOAL: [u8; 8] = [0x7f, 0x10, 0, 0, 0, 0, 0, 0];

/// A kind of file that is no trace which can be read.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    /// What it is, and after a semicolon the mend: goes on after the name of a file.
    pub what: &'static str,
    /// Whether a file that begins like this is one.
    is: fn(&Head<'_>) -> bool,
}

// The registry: one entry a kind. The first that fits counts.
/// All kinds that are told apart.
pub const FOREIGN: &[Foreign] = &[
    Foreign {
        what: "is a GOAL schedule, which Weft does not read yet; give a Chakra trace (.et) or a \
               connection matrix (.cm) of the same traffic",
        is: |head| head.bytes.starts_with(&BINARY_GOAL) || is_goal(head.text),
    },
    Foreign {
        what: "is an archive (tar); unpack it and name a trace in it",
        is: |head| head.bytes.get(257..262) == Some(b"ustar"),
    },
    Foreign {
        what: "is a connection matrix, and no trace; weft run and weft compare read it if its name \
               ends in .cm",
        is: |head| head.begins("Nodes") && head.has("\nConnections"),
    },
    Foreign {
        what: "is a topology, and no trace; weft topology info reads it, and --fabric takes it",
        is: |head| head.begins("Nodes") && head.has("\nTier"),
    },
    Foreign {
        what: "is a system file of ASTRA-sim, and no trace; name the trace, and give what the file \
               says as keys of an experiment",
        is: |head| head.begins("{") && head.has("\"preferred-dataset-splits\""),
    },
    Foreign {
        what: "is a Chakra trace in JSON, which is not read; write it as .et",
        is: |head| head.begins("{") && head.has("\"workload_graph\""),
    },
    Foreign {
        what: "is a Kineto trace of PyTorch's profiler, which is not read; link it to the execution \
               trace of the same step with chakra_trace_link, and convert it with chakra_converter \
               to .et",
        is: |head| {
            head.begins("{") && (head.has("\"traceEvents\"") || head.has("\"schemaVersion\""))
        },
    },
    Foreign {
        what: "is an execution trace of PyTorch, which is not read; link it to the Kineto trace of \
               the same step with chakra_trace_link, and convert it with chakra_converter to .et",
        is: |head| head.begins("{") && head.has("\"nodes\"") && head.has("\"rf_id\""),
    },
    Foreign {
        what: "is a schedule for MSCCL (XML), which is not read; give the .et files that were made \
               from it",
        is: |head| head.begins("<") && head.has("<algo ") && head.has("nchannels"),
    },
];

/// How a file begins.
struct Head<'a> {
    /// Unpacked.
    bytes: &'a [u8],
    /// The same without comments and blanks in front.
    text: &'a str,
}

impl Head<'_> {
    fn begins(&self, word: &str) -> bool {
        self.text.starts_with(word)
    }
    fn has(&self, key: &str) -> bool {
        self.text.contains(key)
    }
}

/// What the file is that begins like this, and what to do; `None` if it is nothing that is known here.
pub fn foreign(bytes: &[u8]) -> Option<&'static str> {
    let bytes = unpacked_head(bytes);
    let text = String::from_utf8_lossy(&bytes);
    let mut text = text.trim_start_matches('\u{feff}').trim_start();
    while let Some(comment) = text.strip_prefix('#') {
        text = comment.split_once('\n').map_or("", |(_, rest)| rest.trim_start());
    }
    let head = Head { bytes: &bytes, text };
    FOREIGN.iter().find(|kind| (kind.is)(&head)).map(|kind| kind.what)
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
