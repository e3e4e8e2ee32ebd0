//! Results as named columns: what becomes data frames.

/// A column of one type.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Counts and ids.
    U32(Vec<u32>),
    /// Bytes, packets, rates.
    U64(Vec<u64>),
    /// Seconds and shares.
    F64(Vec<f64>),
    /// Text, such as names.
    Text(Vec<String>),
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A count.
    U64(u64),
    /// Seconds or a ratio.
    F64(f64),
    /// A name.
    Text(String),
    /// Nothing: the run does not tell.
    Unknown,
}

impl From<u64> for Cell {
    fn from(number: u64) -> Cell {
        Cell::U64(number)
    }
}
impl From<u32> for Cell {
    fn from(number: u32) -> Cell {
        Cell::U64(u64::from(number))
    }
}
impl From<f64> for Cell {
    fn from(number: f64) -> Cell {
        Cell::F64(number)
    }
}
impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}
impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

/// Named columns of equal length, in order.
pub type Columns = Vec<(&'static str, Column)>;
/// Named values, in order.
pub type Row = Vec<(&'static str, Cell)>;
