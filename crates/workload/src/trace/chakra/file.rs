//! A file's bytes: gzip, framing, and which messages are nodes.
//!
//! Invariant: positions in errors count bytes of the unpacked file.

use super::Dependencies;
use super::message::{RawNode, is_first_schema, is_metadata};
use super::wire::varint;
use crate::WorkloadError;
use crate::trace::foreign;
use weft_units::options::quoted;

/// A message that is a node.
pub(super) struct Message<'a> {
    bytes: &'a [u8],
    begins: usize,
    /// Among all messages, from 0: the metadata.
    number: usize,
}

impl<'a> Message<'a> {
    /// The node; `name` is what errors call the file.
    pub(super) fn decode(
        &self,
        name: &str,
        dependencies: Dependencies,
    ) -> Result<RawNode<'a>, WorkloadError> {
        let Message { bytes, begins, number } = *self;
        let error = |what: &str| {
            Err(WorkloadError(format!("{name}: byte {begins} (message {number}): {what}")))
        };
        if is_first_schema(bytes) {
            return error(
                "a node of Chakra's first schema (2023), which is not read; write the trace with \
                 Chakra 0.0.4 or later",
            );
        }
        RawNode::decode(bytes, dependencies).or_else(|wire| {
            let mend = "the file is damaged, or no Chakra trace (.et): write it again";
            error(&format!("{}; {mend}", wire.0))
        })
    }
}

/// The metadata of a file, empty if there is none, and all its nodes, not yet decoded.
pub(super) fn messages<'a>(
    name: &str,
    bytes: &'a [u8],
) -> Result<(&'a [u8], Vec<Message<'a>>), WorkloadError> {
    if let Some(what) = foreign(bytes) {
        return Err(WorkloadError(format!("{name}: {what}")));
    }
    if bytes.starts_with(b"{") && serde_json::from_slice::<serde_json::Value>(bytes).is_ok() {
        let what = "a trace in JSON; rename it to end in .json";
        return Err(WorkloadError(format!("{name}: {what}")));
    }
    let mut metadata: &[u8] = &[];
    let mut messages: Vec<Message<'a>> = Vec::new();
    for (number, frame) in Frames::of(name, bytes).enumerate() {
        let (begins, bytes) = frame.map_err(|error| match messages.last() {
            // What was read last helps to find the place in the program that wrote the file.
            Some(last) => match last.decode(name, Dependencies::All) {
                Ok(node) => {
                    let name = quoted(&node.name);
                    WorkloadError(format!("{error}; the last whole node is {} ({name})", node.id))
                }
                Err(earlier) => earlier,
            },
            None => error,
        })?;
        match number == 0 && is_metadata(bytes) {
            true => metadata = bytes,
            false => messages.push(Message { bytes, begins, number }),
        }
    }
    Ok((metadata, messages))
}

/// The messages of a file, each with the position where its content begins.
struct Frames<'n, 'a> {
    name: &'n str,
    bytes: &'a [u8],
    at: usize,
    count: u64,
}

impl<'n, 'a> Frames<'n, 'a> {
    fn of(name: &'n str, bytes: &'a [u8]) -> Frames<'n, 'a> {
        Frames { name, bytes, at: 0, count: 0 }
    }

    /// What went before, for errors: a file is often told by where it was cut.
    fn so_far(&self) -> String {
        match self.count {
            0 => "nothing was read before".into(),
            1 => "the metadata was read before".into(),
            2 => "the metadata and 1 node were read before".into(),
            n => format!("the metadata and {} nodes were read before", n - 1),
        }
    }

    fn frame(&mut self) -> Result<(usize, &'a [u8]), WorkloadError> {
        let (name, from) = (self.name, self.at);
        let error = |what: String| WorkloadError(format!("{name}: byte {from}: {what}"));
        let length = varint(self.bytes, &mut self.at).map_err(|wire| {
            error(match wire.0 {
                "a number is cut off" => format!(
                    "the file ends within the length of a message ({}); it is cut off: copy or \
                     write it again",
                    self.so_far()
                ),
                _ => "no message has this length; is it a Chakra trace (.et)?".into(),
            })
        })?;
        if length == 0 && self.count > 0 {
            // Nodes have an id at least; blocks of a disk that were never written are zeros.
            return Err(error(format!(
                "a message of 0 bytes begins here ({}); the file is damaged, such as filled up with \
                 zeros: copy or write it again",
                self.so_far()
            )));
        }
        let rest = self.bytes.len() - self.at;
        match usize::try_from(length).ok().filter(|length| *length <= rest) {
            Some(length) => {
                let content = &self.bytes[self.at..self.at + length];
                let begins = self.at;
                self.at += length;
                self.count += 1;
                Ok((begins, content))
            }
            None => Err(error(format!(
                "a message of {length} bytes begins here, of which the file has only {rest} ({}); \
                 it is cut off, or not a Chakra trace (.et): copy or write it again",
                self.so_far()
            ))),
        }
    }
}

impl<'a> Iterator for Frames<'_, 'a> {
    type Item = Result<(usize, &'a [u8]), WorkloadError>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let frame = self.frame();
        if frame.is_err() {
            self.at = self.bytes.len();
        }
        Some(frame)
    }
}
