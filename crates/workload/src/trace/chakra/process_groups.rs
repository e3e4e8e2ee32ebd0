//! Process groups: the JSON file beside a trace, and the metadata nodes of PyTorch traces.

use crate::WorkloadError;
use crate::trace::Membership;
use crate::trace::groups::listed;
use serde_json::Value;
use std::collections::BTreeMap;

/// Groups by their names.
pub(super) type Groups = BTreeMap<String, Membership>;

/// The file: `{"1": [0, 1], "2": [2, 3]}`.
pub(super) fn from_file(name: &str, text: &str) -> Result<Groups, WorkloadError> {
    const FORM: &str = r#"write it as {"1": [0, 1], "2": [2, 3]}"#;
    let error = |what: String| WorkloadError(format!("{name}: {what}"));
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let json: Value = serde_json::from_str(text)
        .map_err(|json| error(format!("not a process-group file ({json}); {FORM}")))?;
    let Value::Object(entries) = json else {
        return Err(error(format!("not a process-group file (no object); {FORM}")));
    };
    let mut groups = Groups::new();
    for (group, value) in entries {
        let ranks = ranks(&value)
            .ok_or_else(|| error(format!("group {group:?}: not a list of ranks; {FORM}")))?;
        let members = listed(&format!("{name}: group {group:?}"), ranks)?;
        groups.insert(group, members);
    }
    Ok(groups)
}

/// The inputs of a metadata node; `None` if they are not about process groups, and an error in
/// words if they are not understood.
pub(super) fn from_inputs(inputs: &str) -> Option<Result<Groups, &'static str>> {
    if !inputs.contains("pg_name") {
        return None;
    }
    // A list of objects, as text, as the only item of a list; the objects are what matters.
    let objects = inputs.find('{').zip(inputs.rfind('}'));
    let list = format!("[{}]", objects.and_then(|(from, to)| inputs.get(from..=to)).unwrap_or("{"));
    let json: Result<Value, _> =
        serde_json::from_str(&list).or_else(|_| serde_json::from_str(&list.replace("\\\"", "\"")));
    let Ok(Value::Array(entries)) = json else {
        return Some(Err("process-group metadata that is not JSON"));
    };
    let groups: Option<Groups> = entries.iter().map(entry).collect();
    Some(groups.ok_or("process-group metadata without pg_name and ranks"))
}

/// `{"pg_name": "1", "ranks": [0, 1], ...}`; without ranks, all of them.
fn entry(value: &Value) -> Option<(String, Membership)> {
    let name = match value.get("pg_name")? {
        Value::String(name) => name.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let ranks = ranks(value.get("ranks")?)?;
    match ranks.is_empty() {
        true => Some((name, Membership::World)),
        false => Some((name, listed("", ranks).ok()?)),
    }
}

/// A list of ranks, or an object whose keys they are.
fn ranks(value: &Value) -> Option<Vec<u32>> {
    match value {
        Value::Array(items) => {
            items.iter().map(|item| u32::try_from(item.as_u64()?).ok()).collect()
        }
        Value::Object(entries) => entries.keys().map(|key| key.parse().ok()).collect(),
        _ => None,
    }
}
