//! Chakra traces as JSON: the form that Chakra's feeder reads, and the one that its jsonizer writes.
//!
//! ```text
//! {"workload_graph": [{"Id": 1, "Name": "a", "NodeType": 4, "is_cpu_op": false, "runtime": 5, "data_deps": []}]}
//! {"version": "1.0.0"} {"id": "1", "name": "a", "type": "COMP_NODE", "durationMicros": "5"}
//! ```
//!
//! The first is one object, whose nodes have attributes as fields; the second one object for the metadata and one
//! for each node, in protobuf's JSON. Otherwise they say what `.et` files say, and are read with the same keys.

use super::attribute::Attribute;
use super::message::RawNode;
use super::{ChakraOptions, ChakraReader, Dependencies, PROCESS_GROUPS};
use crate::WorkloadError;
use crate::trace::packed::{head, unpacked};
use crate::trace::{Trace, TraceFile, TraceFormat, TraceFormatInfo, TraceSource};
use serde_json::{Deserializer, Map, Value};
use weft_units::{OptionError, Options};

/// How to read what the format leaves open: as of `.et` files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChakraJson(pub ChakraOptions);

impl TraceFormat for ChakraJson {
    const INFO: TraceFormatInfo = TraceFormatInfo {
        name: "Chakra trace in JSON",
        summary: "Chakra as JSON, of its feeder or its jsonizer; a file a rank",
        source: "MLCommons",
        ends: &[".json", ".json.gz"],
        per_rank: false,
        alike: true,
        side_file: Some(PROCESS_GROUPS),
        options: super::OPTIONS,
        example: br#"{"workload_graph":[{"Id":1,"Name":"a","NodeType":4,"is_cpu_op":false,"runtime":5,"data_deps":[]}]}"#,
    };

    fn read(options: &mut Options<'_>) -> Result<ChakraJson, OptionError> {
        ChakraOptions::read(options).map(ChakraJson)
    }
    fn recognises(bytes: &[u8]) -> bool {
        is_json(&head(bytes))
    }
    fn load(&self, files: &mut dyn TraceSource) -> Result<Trace, WorkloadError> {
        let mut reader = ChakraReader::new(self.0);
        reader.take_groups(files.side_file()?)?;
        while let Some(TraceFile { rank, name, bytes }) = files.next_file()? {
            reader.check_rank(rank, &name)?;
            let nodes = nodes(&name, &unpacked(&name, &bytes)?)?;
            let decode = |place: usize| {
                node(&nodes[place], self.0.dependencies).map_err(|what| {
                    WorkloadError(format!("{name}: node {} of the file: {what}", place + 1))
                })
            };
            reader.lower(rank, &name, nodes.len(), decode)?;
        }
        reader.finish()
    }
    fn check_side_file(name: &str, text: &str) -> Result<(), WorkloadError> {
        ChakraOptions::check_side_file(name, text)
    }
    fn on_data(&self) -> Option<ChakraJson> {
        self.0.on_data().map(ChakraJson)
    }
}

/// Whether a file begins as one of these forms.
fn is_json(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let is_node = || text.contains("_NODE\"") && text.contains("\"id\"");
    text.trim_start().starts_with('{') && (text.contains("\"workload_graph\"") || is_node())
}

/// The nodes of a file.
fn nodes(name: &str, bytes: &[u8]) -> Result<Vec<Map<String, Value>>, WorkloadError> {
    let error = |what: String| WorkloadError(format!("{name}: {what}"));
    let mut nodes = Vec::new();
    for object in Deserializer::from_slice(bytes).into_iter::<Value>() {
        let object = object.map_err(|json| {
            error(format!("not JSON ({json}); it is cut off or damaged: copy it again"))
        })?;
        let Value::Object(mut object) = object else {
            return Err(error("not an object; write it as {\"workload_graph\": [...]}".into()));
        };
        match object.remove("workload_graph") {
            Some(Value::Array(list)) => {
                for (place, node) in list.into_iter().enumerate() {
                    let Value::Object(node) = node else {
                        return Err(error(format!(
                            "node {} is no object; write it again",
                            place + 1
                        )));
                    };
                    nodes.push(node);
                }
            }
            Some(_) => {
                return Err(error("workload_graph is no list; write the nodes in one".into()));
            }
            // What has no type is the metadata.
            None if object.contains_key("id") || object.contains_key("type") => nodes.push(object),
            None => {}
        }
    }
    match u32::try_from(nodes.len()) {
        Ok(_) => Ok(nodes),
        Err(_) => Err(error("has more than 2^32 nodes; write fewer iterations to it".into())),
    }
}

/// Types of nodes as protobuf's JSON calls them.
const TYPES: [&str; 11] = [
    "INVALID_NODE",
    "METADATA_NODE",
    "MEM_LOAD_NODE",
    "MEM_STORE_NODE",
    "COMP_NODE",
    "COMM_SEND_NODE",
    "COMM_RECV_NODE",
    "COMM_COLL_NODE",
    "STORAGE_NODE",
    "BATCH_NODE",
    "CHECKPOINT_NODE",
];

fn node(json: &Map<String, Value>, dependencies: Dependencies) -> Result<RawNode<'static>, String> {
    let field = |names: [&str; 3]| names.into_iter().find_map(|name| json.get(name));
    let number = |names: [&str; 3]| match field(names) {
        None | Some(Value::Null) => Ok(0),
        Some(value) => whole(value).ok_or_else(|| {
            format!("{} is {value}, which is no whole number from 0 on; correct it", names[0])
        }),
    };
    let kind = match field(["NodeType", "type", "node_type"]) {
        Some(Value::String(name)) if TYPES.contains(&name.as_str()) => {
            TYPES.iter().position(|known| known == name).unwrap_or(0) as u64
        }
        _ => number(["NodeType", "type", "node_type"])?,
    };
    let mut node = RawNode {
        id: number(["Id", "id", "ID"])?,
        name: field(["Name", "name", "NAME"]).and_then(Value::as_str).unwrap_or_default().into(),
        kind,
        start_micros: number(["startTimeMicros", "start_time_micros", "ts"])?,
        duration_micros: number(["runtime", "durationMicros", "duration_micros"])?,
        values: json
            .get("inputs")
            .and_then(|one| one.get("values"))
            .and_then(Value::as_str)
            .map(Into::into),
        ..RawNode::default()
    };
    let mut lists = vec![field(["data_deps", "dataDeps", "DataDeps"])];
    if dependencies == Dependencies::All {
        lists.push(field(["ctrlDeps", "ctrl_deps", "CtrlDeps"]));
    }
    for id in lists.into_iter().flatten().filter_map(Value::as_array).flatten() {
        let id =
            whole(id).ok_or_else(|| format!("it waits for {id}, which is no id; correct it"))?;
        node.waits.push(id);
    }
    node.waits.sort_unstable();
    node.waits.dedup();
    for (name, value) in json {
        put(&mut node, name, value);
    }
    for one in json.get("attr").and_then(Value::as_array).into_iter().flatten() {
        let fields = one.as_object().into_iter().flatten();
        if let Some(name) = one.get("name").and_then(Value::as_str) {
            fields.filter(|(key, _)| !matches!(key.as_str(), "name" | "docString")).for_each(
                |(_, value)| {
                    put(&mut node, name, value.get("values").unwrap_or(value));
                },
            );
        }
    }
    Ok(node)
}

fn put(node: &mut RawNode<'_>, name: &str, value: &Value) {
    if let Some(place) = node.attributes.place(name.as_bytes()) {
        *place = attribute(value);
    }
}

/// A number, or the text that protobuf's JSON makes of long ones.
fn whole(value: &Value) -> Option<u64> {
    let real =
        || value.as_f64().filter(|real| *real >= 0.0 && *real <= 9e15 && *real == real.trunc());
    value
        .as_u64()
        .or_else(|| value.as_str()?.parse().ok())
        .or_else(|| real().map(|real| real as u64))
}

fn attribute(value: &Value) -> Option<Attribute> {
    Some(match value {
        Value::Bool(flag) => Attribute::Integer((*flag).into()),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Attribute::Integer(number.into()),
            (None, Some(number)) => Attribute::Integer(number.into()),
            _ => Attribute::Real(number.as_f64()?),
        },
        Value::String(text) => Attribute::Text(text.clone()),
        Value::Array(items) => Attribute::List(items.iter().filter_map(attribute).collect()),
        Value::Null | Value::Object(_) => return None,
    })
}
