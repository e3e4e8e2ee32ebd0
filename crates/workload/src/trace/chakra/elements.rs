//! Whether a collective's size counts elements: the tensors that a recorded trace gives as inputs
//! say how many elements they have, and how long these are.

use super::message::RawNode;
use serde_json::Value;

/// Whether `size` is the number of elements of the inputs, and not of their bytes.
pub(super) fn counts_elements(node: &RawNode<'_>, size: u64) -> bool {
    let values = node.input_values();
    if size == 0 || values.is_empty() {
        return false;
    }
    // Python's own writing, with single quotes.
    let json: Result<Value, _> = serde_json::from_str(&values.replace('\'', "\""));
    let Ok(inputs) = json else { return false };
    let (elements, bytes) = count(&inputs);
    elements == size && bytes != size
}

/// Elements and bytes of all tensors in an input: `[tensor, storage, offset, elements, bytes of
/// each, device]`, or a list of them.
fn count(input: &Value) -> (u64, u64) {
    let Value::Array(items) = input else { return (0, 0) };
    let numbers: Vec<u64> = items.iter().map_while(Value::as_u64).collect();
    match (&numbers[..], items.len()) {
        ([_, _, _, elements, each], 6) if items[5].is_string() => {
            (*elements, elements.saturating_mul(*each))
        }
        _ => items.iter().map(count).fold((0, 0), |all, one| {
            (u64::saturating_add(all.0, one.0), u64::saturating_add(all.1, one.1))
        }),
    }
}
