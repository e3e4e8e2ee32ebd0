//! Files of other kinds that people take for traces: told apart by how they begin, and named; one entry
//! of [`FOREIGN`] each.
//!
//! What it does not do: read them. Nothing is taken for another format because nobody knew better.

use super::packed;

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
        what: "is an archive (tar); unpack it and name a trace in it",
        is: |head| head.bytes.get(257..262) == Some(b"ustar"),
    },
    Foreign {
        what: "is a connection matrix, and no trace; weft run and weft compare read it if its name \
               ends in .cm",
        is: |head| head.begins("Nodes") && head.has("\nConnections"),
    },
    Foreign {
        what: "is a table of flows, and no trace; weft run and weft compare read it if its name \
               ends in .csv",
        is: |head| ["src", "dst", "size"].iter().all(|column| head.has_column(column)),
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
    /// Whether the first line names a column so.
    fn has_column(&self, name: &str) -> bool {
        let titles = self.text.lines().next().unwrap_or_default().split(',');
        titles.into_iter().any(|title| title.trim() == name)
    }
}

/// What the file is that begins like this, and what to do; `None` if it is nothing that is known here.
pub fn foreign(bytes: &[u8]) -> Option<&'static str> {
    let bytes = packed::head(bytes);
    let text = String::from_utf8_lossy(&bytes);
    let mut text = text.trim_start_matches('\u{feff}').trim_start();
    while let Some(comment) = text.strip_prefix('#') {
        text = comment.split_once('\n').map_or("", |(_, rest)| rest.trim_start());
    }
    let head = Head { bytes: &bytes, text };
    FOREIGN.iter().find(|kind| (kind.is)(&head)).map(|kind| kind.what)
}
