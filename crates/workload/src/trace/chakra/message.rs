//! The messages of a Chakra file: which is which, and the fields of a node that matter.

use super::Dependencies;
use super::attribute::Attribute;
use super::wire::{Fields, Value, WireError, numbers};
use std::borrow::Cow;

/// A node as the file has it.
#[derive(Default)]
pub(super) struct RawNode<'a> {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) kind: u64,
    /// Ids that it waits for, ascending, each once.
    pub(super) waits: Vec<u64>,
    pub(super) start_micros: u64,
    pub(super) duration_micros: u64,
    /// Its inputs, not decoded; or their values as a text.
    pub(super) inputs: &'a [u8],
    pub(super) values: Option<String>,
    pub(super) attributes: Attributes,
}

/// The attributes that matter; `None` if absent.
#[derive(Default)]
pub(super) struct Attributes {
    pub(super) is_cpu_op: Option<Attribute>,
    pub(super) num_ops: Option<Attribute>,
    pub(super) tensor_size: Option<Attribute>,
    pub(super) comm_type: Option<Attribute>,
    pub(super) comm_size: Option<Attribute>,
    pub(super) comm_src: Option<Attribute>,
    pub(super) comm_dst: Option<Attribute>,
    pub(super) comm_tag: Option<Attribute>,
    pub(super) pg_name: Option<Attribute>,
    pub(super) involved_dim: Option<Attribute>,
}

/// Whether a message is the metadata rather than a node: it lacks all fields by which nodes are
/// told (id, type and duration as numbers, attributes).
pub(super) fn is_metadata(message: &[u8]) -> bool {
    !Fields::of(message)
        .any(|field| matches!(field, Ok((1 | 3 | 7, Value::Varint(_)) | (10, Value::Bytes(_)))))
}

/// Whether the metadata says that the symbolic tensor graph generator wrote the file, which counts
/// elements.
pub(super) fn is_of_tensor_graph(metadata: &[u8]) -> bool {
    Fields::of(metadata).any(|field| match field {
        Ok((2, Value::Bytes(attribute))) => {
            Attribute::name(attribute) == Ok(b"schema")
                && Attribute::value(attribute)
                    .is_ok_and(|value| value == Some(Attribute::Text(TENSOR_GRAPH.into())))
        }
        _ => false,
    })
}

/// What that generator calls its schema.
const TENSOR_GRAPH: &str = "symbolic_tensor_network";

/// Whether a node is of Chakra's first schema (2023), which numbers fields and types otherwise:
/// it has attributes, told by the number of their type, where later nodes have none.
pub(super) fn is_first_schema(message: &[u8]) -> bool {
    let typed = |attribute: &[u8]| {
        Fields::of(attribute).any(|field| matches!(field, Ok((2, Value::Varint(_)))))
            && Attribute::name(attribute).is_ok_and(|name| !name.is_empty())
    };
    Fields::of(message)
        .any(|field| matches!(field, Ok((11, Value::Bytes(attribute))) if typed(attribute)))
}

impl<'a> RawNode<'a> {
    /// Decodes a node with those of its dependencies that count; fields that are not known are
    /// skipped.
    pub(super) fn decode(
        message: &'a [u8],
        dependencies: Dependencies,
    ) -> Result<RawNode<'a>, WireError> {
        let mut node = RawNode::default();
        for field in Fields::of(message) {
            match field? {
                (1, Value::Varint(id)) => node.id = id,
                (2, Value::Bytes(name)) => node.name = String::from_utf8_lossy(name).into_owned(),
                (3, Value::Varint(kind)) => node.kind = kind,
                (4, _) if dependencies == Dependencies::Data => {}
                (4 | 5, value) => numbers(value, &mut node.waits)?,
                (6, Value::Varint(micros)) => node.start_micros = micros,
                (7, Value::Varint(micros)) => node.duration_micros = micros,
                (8, Value::Bytes(inputs)) => node.inputs = inputs,
                (10, Value::Bytes(attribute)) => node.attributes.take(attribute)?,
                _ => {}
            }
        }
        node.waits.sort_unstable();
        node.waits.dedup();
        Ok(node)
    }

    /// Whether it only moves data within its rank: told by name or `comm_type`, since the schema
    /// has no number for it. What has the number of a collective is one.
    pub(super) fn reorders(&self) -> bool {
        const REORDERS: &str = "DATA_REORDER";
        match &self.attributes.comm_type {
            Some(Attribute::Text(kind)) if kind == REORDERS => true,
            Some(kind) if matches!(kind.number(), Some(0..=9)) => false,
            _ => self.name.contains(REORDERS),
        }
    }

    /// The values of its inputs, where PyTorch's process-group metadata is.
    pub(super) fn input_values(&self) -> Cow<'_, str> {
        if let Some(values) = &self.values {
            return Cow::Borrowed(values);
        }
        let mut fields = Fields::of(self.inputs).filter_map(Result::ok);
        let values = fields.find_map(|field| match field {
            (1, Value::Bytes(values)) => Some(values),
            _ => None,
        });
        String::from_utf8_lossy(values.unwrap_or_default())
    }
}

impl Attributes {
    fn take(&mut self, message: &[u8]) -> Result<(), WireError> {
        if let Some(place) = self.place(Attribute::name(message)?) {
            *place = Attribute::value(message)?;
        }
        Ok(())
    }

    /// Where the attribute of this name is kept; `None`: it does not matter.
    pub(super) fn place(&mut self, name: &[u8]) -> Option<&mut Option<Attribute>> {
        Some(match name {
            b"is_cpu_op" => &mut self.is_cpu_op,
            b"num_ops" => &mut self.num_ops,
            b"tensor_size" => &mut self.tensor_size,
            b"comm_type" => &mut self.comm_type,
            b"comm_size" => &mut self.comm_size,
            b"comm_src" => &mut self.comm_src,
            b"comm_dst" => &mut self.comm_dst,
            b"comm_tag" => &mut self.comm_tag,
            b"pg_name" => &mut self.pg_name,
            b"involved_dim" => &mut self.involved_dim,
            _ => return None,
        })
    }
}
