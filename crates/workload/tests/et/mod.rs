//! Writes Chakra messages, for tests: the wire format from the other side.

// Each test file uses its own part.
#![allow(dead_code)]

/// A value of an attribute, with the number of its field in Chakra's schema.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Int32(i64),
    Int64(i64),
    Uint64(u64),
    Bool(bool),
    Text(String),
    Double(f64),
    Sint64(i64),
    Fixed64(u64),
    Int64List(Vec<i64>),
    BoolList(Vec<bool>),
}

/// A node to write; fields that are zero or empty are left out, as protobuf 3 does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) kind: u64,
    pub(crate) ctrl: Vec<u64>,
    pub(crate) data: Vec<u64>,
    pub(crate) start: u64,
    pub(crate) duration: u64,
    pub(crate) inputs: String,
    pub(crate) attributes: Vec<(String, Value)>,
}

pub(crate) fn varint(mut number: u64, into: &mut Vec<u8>) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}
pub(crate) fn number(field: u32, value: u64, into: &mut Vec<u8>) {
    varint(u64::from(field) << 3, into);
    varint(value, into);
}
pub(crate) fn bytes(field: u32, content: &[u8], into: &mut Vec<u8>) {
    varint(u64::from(field) << 3 | 2, into);
    varint(content.len() as u64, into);
    into.extend_from_slice(content);
}
fn fixed64(field: u32, bits: u64, into: &mut Vec<u8>) {
    varint(u64::from(field) << 3 | 1, into);
    into.extend_from_slice(&bits.to_le_bytes());
}
fn packed(numbers: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut content = Vec::new();
    for number in numbers {
        varint(number, &mut content);
    }
    let mut message = Vec::new();
    bytes(1, &content, &mut message);
    message
}

pub(crate) fn attribute(name: &str, value: &Value) -> Vec<u8> {
    let mut message = Vec::new();
    bytes(1, name.as_bytes(), &mut message);
    let into = &mut message;
    match value {
        Value::Double(real) => fixed64(3, real.to_bits(), into),
        Value::Int32(value) => number(7, *value as u64, into),
        Value::Int64(value) => number(9, *value as u64, into),
        Value::Int64List(list) => bytes(10, &packed(list.iter().map(|one| *one as u64)), into),
        Value::Uint64(value) => number(13, *value, into),
        Value::Sint64(value) => number(17, (*value << 1 ^ *value >> 63) as u64, into),
        Value::Fixed64(value) => fixed64(21, *value, into),
        Value::Bool(value) => number(27, u64::from(*value), into),
        Value::BoolList(list) => bytes(28, &packed(list.iter().map(|one| u64::from(*one))), into),
        Value::Text(text) => bytes(29, text.as_bytes(), into),
    }
    message
}

impl Node {
    pub(crate) fn new(id: u64, name: &str, kind: u64, data: &[u64]) -> Node {
        Node { id, name: name.into(), kind, data: data.to_vec(), ..Node::default() }
    }
    pub(crate) fn with(mut self, name: &str, value: Value) -> Node {
        self.attributes.push((name.into(), value));
        self
    }
    /// A collective of the type, size and group given, as ASTRA-sim's generator writes them.
    pub(crate) fn collective(id: u64, data: &[u64], kind: i64, size: i64, group: &str) -> Node {
        let node = Node::new(id, "collective", 7, data)
            .with("is_cpu_op", Value::Bool(false))
            .with("comm_type", Value::Int64(kind))
            .with("comm_size", Value::Int64(size));
        match group {
            "" => node,
            group => node.with("pg_name", Value::Text(group.into())),
        }
    }
    pub(crate) fn send(id: u64, data: &[u64], to: i64, size: i64) -> Node {
        Node::new(id, "send", 5, data)
            .with("comm_type", Value::Int64(5))
            .with("comm_size", Value::Int64(size))
            .with("comm_dst", Value::Int32(to))
    }
    pub(crate) fn receive(id: u64, data: &[u64], from: i64, size: i64) -> Node {
        Node::new(id, "receive", 6, data)
            .with("comm_type", Value::Int64(6))
            .with("comm_size", Value::Int64(size))
            .with("comm_src", Value::Int32(from))
    }
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut message = Vec::new();
        let into = &mut message;
        for (field, value) in [(1, self.id), (3, self.kind), (6, self.start), (7, self.duration)] {
            if value != 0 {
                number(field, value, into);
            }
        }
        bytes(2, self.name.as_bytes(), into);
        for wait in &self.ctrl {
            number(4, *wait, into);
        }
        if !self.data.is_empty() {
            let mut content = Vec::new();
            self.data.iter().for_each(|wait| varint(*wait, &mut content));
            bytes(5, &content, into);
        }
        if !self.inputs.is_empty() {
            let mut inputs = Vec::new();
            bytes(1, self.inputs.as_bytes(), &mut inputs);
            bytes(8, &inputs, into);
        }
        for (name, value) in &self.attributes {
            bytes(10, &attribute(name, value), into);
        }
        message
    }
}

/// A message behind its length.
pub(crate) fn frame(message: &[u8], into: &mut Vec<u8>) {
    varint(message.len() as u64, into);
    into.extend_from_slice(message);
}

/// A file: metadata with a version, then the nodes.
pub(crate) fn file(nodes: &[Node]) -> Vec<u8> {
    let mut metadata = Vec::new();
    bytes(1, b"0.0.4", &mut metadata);
    let mut out = Vec::new();
    frame(&metadata, &mut out);
    for node in nodes {
        frame(&node.encode(), &mut out);
    }
    out
}
