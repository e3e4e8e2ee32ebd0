//! PyTorch's execution trace: the communications in it, and the groups.
//!
//! Three forms are read: of schema 1.0 (fields beside each other, `inputs` a list), of 1.0.2 and later (`inputs`
//! with `values`), and with the attributes of 1.1.0. Positional inputs of `record_param_comms`: tensors if there
//! are any, sequence, group, rank, name, splits in, splits out.

use super::comms::{Comm, width};
use super::groups::{Groups, numbers};
use crate::WorkloadError;
use serde_json::Value;

/// What is read of an execution trace.
#[derive(Debug, Default)]
pub(super) struct Host {
    /// Communications in their order, each with its record function id.
    pub(super) comms: Vec<(u64, Comm)>,
}

/// Reads an execution trace; `name` is what errors call it.
pub(super) fn read(name: &str, bytes: &[u8]) -> Result<Host, WorkloadError> {
    let error = |what: &str| WorkloadError(format!("{name}: {what}"));
    let json: Value = serde_json::from_slice(bytes).map_err(|json| {
        error(&format!("not JSON ({json}); it is cut off or damaged: copy it again"))
    })?;
    let nodes = json.get("nodes").and_then(Value::as_array);
    let nodes = nodes.ok_or_else(|| error("has no nodes; give an execution trace of PyTorch"))?;
    let mut groups = Groups::default();
    for node in nodes.iter().filter(|node| is_named(node, "process_group:init")) {
        let text = values(node).first().and_then(Value::as_str).unwrap_or("[]").to_owned();
        groups.add_json(&text);
    }
    let mut comms: Vec<(u64, u64, Comm)> = Vec::new();
    for node in nodes.iter().filter(|node| is_named(node, "record_param_comms")) {
        let id = node.get("id").and_then(Value::as_u64).unwrap_or(0);
        let rf_id = attribute(node, "rf_id").and_then(Value::as_u64).unwrap_or(0);
        let comm = comm(node, &groups).map_err(|what| error(&format!("node {id}: {what}")))?;
        comms.push((id, rf_id, comm));
    }
    // The order of ids is that of their execution.
    comms.sort_by_key(|(id, ..)| *id);
    pointers(name, &mut comms)?;
    Ok(Host { comms: comms.into_iter().map(|(_, rf_id, comm)| (rf_id, comm)).collect() })
}

/// Old traces name groups by addresses. One address stands for all ranks; of several nobody knows whom they have.
fn pointers(name: &str, comms: &mut [(u64, u64, Comm)]) -> Result<(), WorkloadError> {
    let mut known: Option<String> = None;
    for (id, _, comm) in comms.iter_mut().filter(|(.., comm)| !comm.is_wait()) {
        if comm.size.is_some()
            || !comm.group.1.is_empty()
            || comm.group.0.parse::<u64>().unwrap_or(0) < 1 << 32
        {
            continue;
        }
        let first = known.get_or_insert_with(|| comm.group.0.clone());
        if *first != comm.group.0 {
            return Err(WorkloadError(format!(
                "{name}: node {id}: its process group and another one are told by addresses only, so that \
                 their ranks are not known; record the trace with PyTorch 2.3 or later"
            )));
        }
        comm.group.0.clear();
    }
    Ok(())
}

fn is_named(node: &Value, part: &str) -> bool {
    node.get("name").and_then(Value::as_str).is_some_and(|name| name.contains(part))
}

/// The values of a node's inputs, in both forms.
fn values(node: &Value) -> &[Value] {
    let inputs = node.get("inputs");
    let values = inputs.and_then(|inputs| inputs.get("values")).or(inputs);
    values.and_then(Value::as_array).map_or(&[], |values| values)
}

/// An attribute of a node: in its list, or a field of its own.
fn attribute<'a>(node: &'a Value, key: &str) -> Option<&'a Value> {
    let mut attributes = node.get("attrs").and_then(Value::as_array).into_iter().flatten();
    let named = attributes.find(|one| one.get("name").and_then(Value::as_str) == Some(key));
    named.and_then(|one| one.get("value")).or_else(|| node.get(key))
}

fn comm(node: &Value, groups: &Groups) -> Result<Comm, String> {
    let values = values(node);
    // Without tensors the list begins with the sequence.
    let is_tensors = |value: &Value| {
        value.as_array().is_some_and(|items| items.len() != 2 || items[0].is_array())
    };
    let (tensors, rest) = match values.split_first() {
        Some((first, rest)) if is_tensors(first) => (Some(first), rest),
        _ => (None, values),
    };
    let [sequence, group, place, name, splits @ ..] = rest else {
        return Err("its inputs are cut off; record the trace again".into());
    };
    let name = name.as_str().ok_or("its inputs have no name of a collective; record it again")?;
    let text = |key: &str| attribute(node, key).and_then(Value::as_str);
    let number = |key: &str| attribute(node, key).and_then(Value::as_u64);
    let (elements, each) = tensors.map_or((0, None), size);
    let out = node.get("outputs").map(|outputs| outputs.get("values").unwrap_or(outputs));
    let given = out.map_or(0, |out| size(out).0);
    let width = text("dtype").and_then(width).or(each).unwrap_or(1);
    let split = |place: usize| splits.get(place).and_then(numbers).unwrap_or_default();
    let group_name = match (text("pg_name"), group) {
        (Some(name), _) => name.to_owned(),
        (None, Value::Array(pair)) => pair.first().and_then(Value::as_str).unwrap_or("").to_owned(),
        (None, other) => other.as_u64().map_or(String::new(), |number| number.to_string()),
    };
    let size = number("pg_size").and_then(|size| u32::try_from(size).ok());
    let span = number("global_rank_start").zip(number("global_rank_stride"));
    let ranks = groups.ranks(&group_name, None, span, size);
    Ok(Comm {
        name: name.to_owned(),
        elements: [
            number("in_msg_nelems").unwrap_or(elements),
            number("out_msg_nelems").unwrap_or(given),
        ],
        width,
        splits: [split(0), split(1)],
        is_cut: false,
        group: (group_name, ranks),
        size,
        place: place.as_u64().and_then(|place| u32::try_from(place).ok()),
        peer: None,
        sequence: sequence.as_u64().or_else(|| sequence.get(0).and_then(Value::as_u64)),
    })
}

/// Elements of all tensors in a value, and the bytes of one: `[tensor, storage, offset, elements, bytes of each,
/// device]`, or lists of such.
fn size(value: &Value) -> (u64, Option<u64>) {
    let Value::Array(items) = value else { return (0, None) };
    if let [_, _, _, elements, each, device] = &items[..]
        && device.is_string()
    {
        return (elements.as_u64().unwrap_or(0), each.as_u64());
    }
    items
        .iter()
        .map(size)
        .fold((0, None), |all, one| (all.0.saturating_add(one.0), all.1.or(one.1)))
}
