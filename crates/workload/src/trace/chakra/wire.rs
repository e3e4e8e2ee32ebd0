//! The wire format of protocol buffers: bytes to numbered fields.
//!
//! Invariant: whatever the bytes, decoding ends and nothing beyond them is read. Source: the
//! encoding guide of protobuf. What it does not do: know any message.

/// A field's content, by how it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

/// Why bytes are not a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WireError(pub(super) &'static str);

/// The fields of a message, in their order.
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Fields<'a> {
        Fields { bytes, at: 0 }
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let rest = &self.bytes[self.at..];
        let Some((number, _)) = rest.split_first_chunk::<N>() else {
            return Err(WireError("a number is cut off"));
        };
        self.at += N;
        Ok(*number)
    }

    fn field(&mut self) -> Result<(u32, Value<'a>), WireError> {
        let key = varint(self.bytes, &mut self.at)?;
        let number = u32::try_from(key >> 3).ok().filter(|number| *number != 0);
        let Some(number) = number else {
            return Err(WireError("no field has this number"));
        };
        let value = match key & 7 {
            0 => Value::Varint(varint(self.bytes, &mut self.at)?),
            1 => Value::Fixed64(u64::from_le_bytes(self.fixed()?)),
            2 => Value::Bytes(self.delimited()?),
            5 => Value::Fixed32(u32::from_le_bytes(self.fixed()?)),
            _ => return Err(WireError("no field is written this way")),
        };
        Ok((number, value))
    }

    fn delimited(&mut self) -> Result<&'a [u8], WireError> {
        let length = varint(self.bytes, &mut self.at)?;
        let end = usize::try_from(length).ok().and_then(|length| self.at.checked_add(length));
        let Some(content) = end.and_then(|end| self.bytes.get(self.at..end)) else {
            return Err(WireError("a field is longer than its message"));
        };
        self.at += content.len();
        Ok(content)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), WireError>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.at = self.bytes.len();
        }
        Some(field)
    }
}

/// The number at `at`, seven bits a byte, lowest first; `at` moves behind it.
pub(super) fn varint(bytes: &[u8], at: &mut usize) -> Result<u64, WireError> {
    let mut number = 0u64;
    for shift in (0..70).step_by(7) {
        let Some(byte) = bytes.get(*at) else {
            return Err(WireError("a number is cut off"));
        };
        *at += 1;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            break;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(WireError("a number has more than 64 bits"))
}

/// Appends the numbers of a repeated field, of which this is one occurrence: a number, or
/// several packed into bytes.
pub(super) fn numbers(value: Value<'_>, into: &mut Vec<u64>) -> Result<(), WireError> {
    match value {
        Value::Varint(number) => into.push(number),
        Value::Bytes(packed) => {
            let mut at = 0;
            while at < packed.len() {
                into.push(varint(packed, &mut at)?);
            }
        }
        _ => return Err(WireError("a list of numbers is written another way")),
    }
    Ok(())
}
