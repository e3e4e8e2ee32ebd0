//! An event as a line of JSON.

use std::borrow::Cow;
use std::fmt::{Display, Write};
use weft_comm::statistics::label;

/// What an event is in a trace of Chrome's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It begins.
    Begin,
    /// Something happens within it.
    Instant,
    /// It ends.
    End,
    /// It says something of the file.
    Metadata,
}

/// Which event it is.
#[derive(Clone, Copy)]
pub(crate) struct Id<'a> {
    /// Events of one kind.
    pub(crate) category: &'static str,
    /// What people see; events that share it share their rows.
    pub(crate) name: &'a str,
    /// Of the process, one event a number.
    pub(crate) number: u64,
}

/// A line that is being written.
pub(crate) struct Line<'t> {
    text: &'t mut String,
    arguments: usize,
}

impl<'t> Line<'t> {
    /// Begins the line of an event at `ns` nanoseconds.
    pub(crate) fn new(text: &'t mut String, phase: Phase, id: Id<'_>, ns: u64) -> Line<'t> {
        let (category, name, process) = (id.category, quoted(id.name), *super::PROCESS);
        let (us, rest) = (ns / 1_000, ns % 1_000);
        let letter = match phase {
            Phase::Begin => 'b',
            Phase::Instant => 'n',
            Phase::End => 'e',
            Phase::Metadata => 'M',
        };
        let number = id.number;
        // Writing to text cannot fail.
        let _ = write!(
            text,
            "{{\"name\":\"{name}\",\"cat\":\"{category}\",\"ph\":\"{letter}\",\"pid\":{process},\
             \"tid\":1,\"ts\":{us}.{rest:03}"
        );
        if phase != Phase::Metadata {
            let _ = write!(text, ",\"id2\":{{\"local\":\"{number:#x}\"}}");
        }
        Line { text, arguments: 0 }
    }

    fn key(&mut self, key: &str) {
        let before = if self.arguments == 0 { ",\"args\":{" } else { "," };
        self.arguments += 1;
        let _ = write!(self.text, "{before}\"{key}\":");
    }

    /// One more argument.
    pub(crate) fn number(&mut self, key: &str, value: impl Display) -> &mut Self {
        self.key(key);
        let _ = write!(self.text, "{value}");
        self
    }

    /// The same, if there is one.
    pub(crate) fn number_if(&mut self, key: &str, value: Option<impl Display>) -> &mut Self {
        if let Some(value) = value {
            self.number(key, value);
        }
        self
    }

    /// One more argument.
    pub(crate) fn text(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key);
        let _ = write!(self.text, "\"{}\"", quoted(value));
        self
    }
}

/// Text between quotes; as a rule it may stand as it is.
fn quoted(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\' && byte != 0x7f;
    match text.bytes().all(is_plain) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(label(text)),
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        self.text.push_str(if self.arguments > 0 { "}},\n" } else { "},\n" });
    }
}
