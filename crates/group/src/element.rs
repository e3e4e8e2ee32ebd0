//! What a buffer holds, and how two of them become one.

/// The type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// IEEE 754, 32 bits.
    F32,
    /// IEEE 754, 64 bits.
    F64,
    /// IEEE 754, 16 bits; reduced in 32 bits and rounded after each step.
    F16,
    /// The upper half of an `F32`; reduced in 32 bits and rounded after each step.
    Bf16,
    /// Signed, 8 bits.
    I8,
    /// Unsigned, 8 bits.
    U8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// A byte that is 0 or 1. Its sum is "or", its product "and".
    Bool,
}

/// How elements of several ranks become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Their sum; of integers modulo their range.
    Sum,
    /// Their product; of integers modulo their range.
    Product,
    /// The least; NaN if one is NaN.
    Min,
    /// The greatest; NaN if one is NaN.
    Max,
    /// The sum over the number of ranks; of integers rounded towards zero.
    Avg,
    /// Bit by bit.
    And,
    /// Bit by bit.
    Or,
    /// Bit by bit.
    Xor,
}

impl Element {
    /// All of them.
    pub const ALL: [Element; 10] = [
        Element::F32,
        Element::F64,
        Element::F16,
        Element::Bf16,
        Element::I8,
        Element::U8,
        Element::I16,
        Element::I32,
        Element::I64,
        Element::Bool,
    ];

    /// Bytes of one.
    pub fn bytes(self) -> usize {
        match self {
            Element::I8 | Element::U8 | Element::Bool => 1,
            Element::F16 | Element::Bf16 | Element::I16 => 2,
            Element::F32 | Element::I32 => 4,
            Element::F64 | Element::I64 => 8,
        }
    }
    /// As Python is told, in the manner of NumPy.
    pub fn name(self) -> &'static str {
        match self {
            Element::F32 => "float32",
            Element::F64 => "float64",
            Element::F16 => "float16",
            Element::Bf16 => "bfloat16",
            Element::I8 => "int8",
            Element::U8 => "uint8",
            Element::I16 => "int16",
            Element::I32 => "int32",
            Element::I64 => "int64",
            Element::Bool => "bool",
        }
    }
    /// Whether it has a fraction.
    pub fn is_float(self) -> bool {
        matches!(self, Element::F32 | Element::F64 | Element::F16 | Element::Bf16)
    }
    /// Whether `reduction` means anything to it.
    pub fn has(self, reduction: Reduction) -> bool {
        match reduction {
            Reduction::And | Reduction::Or | Reduction::Xor => !self.is_float(),
            Reduction::Avg => self != Element::Bool,
            _ => true,
        }
    }
}

impl Reduction {
    /// All of them.
    pub const ALL: [Reduction; 8] = [
        Reduction::Sum,
        Reduction::Product,
        Reduction::Min,
        Reduction::Max,
        Reduction::Avg,
        Reduction::And,
        Reduction::Or,
        Reduction::Xor,
    ];

    /// As Python is told.
    pub fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "sum",
            Reduction::Product => "product",
            Reduction::Min => "min",
            Reduction::Max => "max",
            Reduction::Avg => "avg",
            Reduction::And => "and",
            Reduction::Or => "or",
            Reduction::Xor => "xor",
        }
    }
}
