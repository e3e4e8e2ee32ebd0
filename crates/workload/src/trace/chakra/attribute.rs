//! Attributes of a node: a name and a value of any of Chakra's thirty types.
//!
//! Writers disagree on types (`is_cpu_op` as `int32`, sizes as strings), and older ones wrap
//! single values in lists, so values are read by what is asked of them.

use super::wire::{Fields, Value, WireError};

/// An attribute's value, whatever type it was written as.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Attribute {
    Integer(i128),
    Real(f64),
    Text(String),
    List(Vec<Attribute>),
}

/// The scalar types in the order of their field numbers 3, 5, 7, ...; each is followed by its
/// list.
#[derive(Clone, Copy, PartialEq)]
enum Type {
    Double,
    Float,
    Signed,
    Unsigned,
    ZigZag,
    SignedFixed,
    Text,
}

const TYPES: [Type; 15] = [
    Type::Double,
    Type::Float,
    Type::Signed,
    Type::Signed,
    Type::Unsigned,
    Type::Unsigned,
    Type::ZigZag,
    Type::ZigZag,
    Type::Unsigned,
    Type::Unsigned,
    Type::SignedFixed,
    Type::SignedFixed,
    Type::Unsigned,
    Type::Text,
    Type::Text,
];

impl Attribute {
    /// The name of an attribute; its value is not looked at.
    pub(super) fn name(message: &[u8]) -> Result<&[u8], WireError> {
        for field in Fields::of(message) {
            if let (1, Value::Bytes(name)) = field? {
                return Ok(name);
            }
        }
        Ok(&[])
    }

    /// The value of an attribute; `None` if it has none of a known type.
    pub(super) fn value(message: &[u8]) -> Result<Option<Attribute>, WireError> {
        let mut found = None;
        for field in Fields::of(message) {
            let (number, value) = field?;
            let Some(place) = number.checked_sub(3) else { continue };
            let Some(kind) = TYPES.get(place as usize / 2) else { continue };
            found = match (place % 2, value) {
                (0, value) => scalar(*kind, value),
                (_, Value::Bytes(list)) => Some(Attribute::List(items(*kind, list)?)),
                _ => continue,
            };
        }
        Ok(found)
    }

    /// As a whole number, however it was written; lists of one count as their item.
    pub(super) fn number(&self) -> Option<i128> {
        match self {
            Attribute::Integer(number) => Some(*number),
            // Beyond 2^53 a float says nothing about the unit's digit.
            Attribute::Real(real) if real.abs() <= 9e15 && *real == real.trunc() => {
                Some(*real as i128)
            }
            Attribute::Real(_) => None,
            Attribute::Text(text) => match text.trim() {
                "true" | "True" => Some(1),
                "false" | "False" => Some(0),
                text => text.parse().ok(),
            },
            Attribute::List(items) => match &items[..] {
                [one] => one.number(),
                _ => None,
            },
        }
    }

    /// As a text; numbers in digits.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Attribute::Text(text) => Some(text.clone()),
            Attribute::List(items) => match &items[..] {
                [one] => one.text(),
                _ => None,
            },
            _ => self.number().map(|number| number.to_string()),
        }
    }

    /// Its items, if it is a list of numbers.
    pub(super) fn items(&self) -> Option<Vec<i128>> {
        match self {
            Attribute::List(items) => items.iter().map(Attribute::number).collect(),
            _ => None,
        }
    }
}

fn scalar(kind: Type, value: Value<'_>) -> Option<Attribute> {
    let integer = |number: i128| Some(Attribute::Integer(number));
    match (kind, value) {
        (Type::Double, Value::Fixed64(bits)) => Some(Attribute::Real(f64::from_bits(bits))),
        (Type::Float, Value::Fixed32(bits)) => Some(Attribute::Real(f32::from_bits(bits).into())),
        (Type::Text, Value::Bytes(bytes)) => {
            Some(Attribute::Text(String::from_utf8_lossy(bytes).into_owned()))
        }
        (Type::Signed, Value::Varint(number)) => integer((number as i64).into()),
        (Type::ZigZag, Value::Varint(number)) => {
            integer(((number >> 1) as i64 ^ -((number & 1) as i64)).into())
        }
        (Type::SignedFixed, Value::Fixed32(bits)) => integer((bits as i32).into()),
        (Type::SignedFixed, Value::Fixed64(bits)) => integer((bits as i64).into()),
        (_, Value::Varint(number)) => integer(number.into()),
        (_, Value::Fixed32(bits)) => integer(bits.into()),
        (_, Value::Fixed64(bits)) => integer(bits.into()),
        (_, Value::Bytes(_)) => None,
    }
}

/// The items of a list message: field 1, several times or packed.
fn items(kind: Type, list: &[u8]) -> Result<Vec<Attribute>, WireError> {
    let mut items = Vec::new();
    for field in Fields::of(list) {
        match field? {
            (1, Value::Bytes(packed)) if kind != Type::Text => unpack(kind, packed, &mut items)?,
            (1, value) => items.extend(scalar(kind, value)),
            _ => {}
        }
    }
    Ok(items)
}

fn unpack(kind: Type, packed: &[u8], items: &mut Vec<Attribute>) -> Result<(), WireError> {
    match kind {
        Type::Double => {
            let words = packed.as_chunks::<8>().0.iter();
            items.extend(words.map(|word| Attribute::Real(f64::from_le_bytes(*word))));
        }
        Type::Float => {
            let words = packed.as_chunks::<4>().0.iter();
            items.extend(words.map(|word| Attribute::Real(f32::from_le_bytes(*word).into())));
        }
        // Lists of fixed numbers hold nothing that is asked for.
        Type::SignedFixed => {}
        _ => {
            let mut at = 0;
            while at < packed.len() {
                let number = super::wire::varint(packed, &mut at)?;
                items.extend(scalar(kind, Value::Varint(number)));
            }
        }
    }
    Ok(())
}
