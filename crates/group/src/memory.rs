//! Buffers of an operation. All that touches memory through a pointer is here.

#![expect(unsafe_code, reason = "buffers belong to the caller, who vouches for them")]

use crate::combine::{self, Truth};
use crate::element::{Element, Reduction};
use half::{bf16, f16};

/// Memory of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it begins, aligned as its elements are.
    pub start: *mut u8,
    /// Its length, in bytes.
    pub len: usize,
}

// SAFETY: a segment is a number until `Memory` uses it, and whoever makes a `Memory` vouches that
// it may be used from there.
unsafe impl Send for Segment {}

/// A part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The segment that it lies in.
    pub(crate) segment: usize,
    /// Bytes before it.
    pub(crate) start: usize,
    /// Its length, in bytes.
    pub(crate) len: usize,
}

/// The segments of an operation: inputs, outputs, and at last room for what comes in.
#[derive(Debug)]
pub(crate) struct Memory {
    segments: Vec<Segment>,
    /// What the last segment points to. Words of the largest alignment.
    _room: Vec<u64>,
}

impl Memory {
    /// Takes the segments of a call and `room` more bytes.
    ///
    /// # Safety
    /// Until it is dropped, and all that was sent or received through its pointers is over, the
    /// segments stay mapped and aligned for the elements that are used with them; nobody writes to
    /// those that are read, and nobody reads or writes those that are written.
    pub(crate) unsafe fn new(mut segments: Vec<Segment>, room: usize) -> Memory {
        let mut words = vec![0u64; room.div_ceil(8)];
        segments.push(Segment { start: words.as_mut_ptr().cast(), len: room });
        Memory { segments, _room: words }
    }

    /// Where a span begins.
    pub(crate) fn pointer(&self, span: Span) -> *mut u8 {
        let segment = self.segments[span.segment];
        assert!(span.start <= segment.len && span.len <= segment.len - span.start);
        // SAFETY: within the segment, as just checked.
        unsafe { segment.start.add(span.start) }
    }

    /// Copies one span to another of equal length. They may be the same.
    pub(crate) fn copy(&mut self, from: Span, to: Span) {
        assert_eq!(from.len, to.len);
        // SAFETY: both are within their segments; `copy` allows them to overlap.
        unsafe { std::ptr::copy(self.pointer(from), self.pointer(to), from.len) }
    }

    /// Reduces `from` into `into`; and then, if `ranks` is given, divides by it.
    pub(crate) fn combine(
        &mut self,
        (element, reduction): (Element, Reduction),
        from: Span,
        into: Span,
        ranks: Option<u32>,
    ) {
        match element {
            Element::F32 => self.typed::<f32>(reduction, from, into, ranks),
            Element::F64 => self.typed::<f64>(reduction, from, into, ranks),
            Element::F16 => self.typed::<f16>(reduction, from, into, ranks),
            Element::Bf16 => self.typed::<bf16>(reduction, from, into, ranks),
            Element::I8 => self.typed::<i8>(reduction, from, into, ranks),
            Element::U8 => self.typed::<u8>(reduction, from, into, ranks),
            Element::I16 => self.typed::<i16>(reduction, from, into, ranks),
            Element::I32 => self.typed::<i32>(reduction, from, into, ranks),
            Element::I64 => self.typed::<i64>(reduction, from, into, ranks),
            Element::Bool => self.typed::<Truth>(reduction, from, into, ranks),
        }
    }

    fn typed<T: combine::Number>(
        &mut self,
        reduction: Reduction,
        from: Span,
        into: Span,
        ranks: Option<u32>,
    ) {
        let count = into.len / size_of::<T>();
        let (source, target) = (self.pointer(from).cast::<T>(), self.pointer(into).cast::<T>());
        let (first, second) = (source.addr(), target.addr());
        assert!(from.len == into.len && into.len == count * size_of::<T>());
        assert!(source.is_aligned() && target.is_aligned());
        assert!(first.abs_diff(second) >= into.len, "what is reduced does not overlap");
        // SAFETY: `Number` is of plain numbers, any bits of which are a value. Both spans are
        // mapped, aligned and apart, and `new`'s contract has nobody else use them meanwhile.
        let (source, target) = unsafe {
            (
                std::slice::from_raw_parts(source, count),
                std::slice::from_raw_parts_mut(target, count),
            )
        };
        combine::combine(reduction, target, source);
        if let Some(ranks) = ranks {
            combine::share(target, ranks);
        }
    }
}
