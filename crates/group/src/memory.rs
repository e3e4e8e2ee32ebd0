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

/// Elements that lie apart, as those of a column do, and as much memory where they lie one behind the
/// other: an operation uses that.
#[derive(Clone, Debug)]
pub struct Apart {
    /// Where the first element is.
    pub start: *mut u8,
    /// Where they lie one behind the other, in the order of `dims`.
    pub dense: *mut u8,
    /// Bytes of an element.
    pub element: usize,
    /// How many there are along each dimension, and how many bytes from one to the next; the last
    /// dimension changes first.
    pub dims: Vec<(usize, isize)>,
}

// SAFETY: as a segment: whoever submits it vouches for it.
unsafe impl Send for Apart {}

impl Apart {
    /// Copies all elements to where they are dense.
    ///
    /// # Safety
    /// Both memories are mapped and do not overlap, and nobody writes to the first, or uses the second.
    pub(crate) unsafe fn gather(&self) {
        // SAFETY: passed on.
        unsafe { self.copy::<true>() }
    }

    /// Copies all elements back.
    ///
    /// # Safety
    /// As the other way round.
    pub(crate) unsafe fn scatter(&self) {
        // SAFETY: passed on.
        unsafe { self.copy::<false>() }
    }

    unsafe fn copy<const GATHER: bool>(&self) {
        if self.dims.iter().any(|(count, _)| *count == 0) {
            return;
        }
        // Dimensions of one are none, and two that lie as one are one.
        let mut dims: Vec<(usize, isize)> = Vec::new();
        for (count, stride) in self.dims.iter().copied().filter(|(count, _)| *count > 1) {
            match dims.last_mut() {
                Some((outer, step)) if *step == stride * count as isize => {
                    (*outer, *step) = (*outer * count, stride);
                }
                _ => dims.push((count, stride)),
            }
        }
        let (mut size, mut line) = (self.element, (1, 0));
        if let Some((count, stride)) = dims.pop() {
            match stride == size as isize {
                true => size *= count,
                false => line = (count, stride),
            }
        }
        let (count, stride) = line;
        // Elements that are so far apart push each other out of a cache: a part of a line is copied, and what
        // lies beside it, before the next part.
        let tile = if count > 1 && stride % PAGE == 0 && !dims.is_empty() { TILE } else { count };
        for at in (0..count).step_by(tile) {
            let part = (tile.min(count - at), stride);
            let start = self.start.wrapping_offset(at as isize * stride);
            let dense = self.dense.wrapping_add(at * size);
            // SAFETY: passed on.
            unsafe { copy_lines::<GATHER>((start, dense), &dims, part, size, size * count) };
        }
    }
}

/// Addresses that are a multiple of it apart share a few places in a cache.
const PAGE: isize = 4096;
/// Elements of a part of a line.
const TILE: usize = 32;

/// Copies a line of elements for each place along the dimensions outside of it; dense ones are `step`
/// bytes after each other.
unsafe fn copy_lines<const GATHER: bool>(
    (mut apart, mut dense): (*mut u8, *mut u8),
    dims: &[(usize, isize)],
    line: (usize, isize),
    size: usize,
    step: usize,
) {
    let mut place = vec![0; dims.len()];
    loop {
        // SAFETY: passed on; each element is where its place along every dimension puts it.
        unsafe {
            match size {
                1 => copy_line::<1, GATHER>(apart, dense, line),
                2 => copy_line::<2, GATHER>(apart, dense, line),
                4 => copy_line::<4, GATHER>(apart, dense, line),
                8 => copy_line::<8, GATHER>(apart, dense, line),
                _ => copy_pieces::<GATHER>(apart, dense, line, size),
            }
        }
        dense = dense.wrapping_add(step);
        // On to the next line: as a counter counts.
        let mut dim = dims.len();
        loop {
            let Some(next) = dim.checked_sub(1) else { return };
            dim = next;
            let (count, stride) = dims[dim];
            place[dim] += 1;
            apart = apart.wrapping_offset(stride);
            if place[dim] < count {
                break;
            }
            place[dim] = 0;
            apart = apart.wrapping_offset(-stride * count as isize);
        }
    }
}

/// Copies a line of elements of `N` bytes, which may lie at any address.
unsafe fn copy_line<const N: usize, const GATHER: bool>(
    apart: *mut u8,
    dense: *mut u8,
    (count, stride): (usize, isize),
) {
    for at in 0..count {
        // SAFETY: passed on; an array of bytes has no alignment.
        unsafe {
            let apart = apart.offset(at as isize * stride).cast::<[u8; N]>();
            let dense = dense.add(at * N).cast::<[u8; N]>();
            let (from, to) = if GATHER { (apart, dense) } else { (dense, apart) };
            to.write(from.read());
        }
    }
}

/// The same with elements of any size.
unsafe fn copy_pieces<const GATHER: bool>(
    apart: *mut u8,
    dense: *mut u8,
    (count, stride): (usize, isize),
    size: usize,
) {
    for at in 0..count {
        // SAFETY: passed on.
        unsafe {
            let (apart, dense) = (apart.offset(at as isize * stride), dense.add(at * size));
            let (from, to) = if GATHER { (apart, dense) } else { (dense, apart) };
            std::ptr::copy_nonoverlapping(from, to, size);
        }
    }
}

/// What an operation copies besides: as it begins, and when it has gone well.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    /// To where they are dense.
    pub before: Vec<Apart>,
    /// And back.
    pub after: Vec<Apart>,
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Where each element is, by definition: bytes from the first one, in the order of dimensions.
    fn offsets(dims: &[(usize, isize)]) -> Vec<isize> {
        dims.iter().fold(vec![0], |outer, (count, stride)| {
            let inner = |start: isize| (0..*count as isize).map(move |at| start + at * stride);
            outer.into_iter().flat_map(inner).collect()
        })
    }

    #[test]
    fn elements_that_lie_apart_become_dense_and_go_back() {
        for (element, dims) in [
            (4, vec![]),
            (4, vec![(3, 4), (5, 12)]),
            (8, vec![(7, 16)]),
            (2, vec![(4, 40), (5, 8), (4, 2)]),
            (1, vec![(3, 5), (1, 999), (5, 1)]),
            (3, vec![(4, 30), (2, 6)]),
            (16, vec![(2, 16), (3, 64), (2, 32)]),
            (4, vec![(2, 4), (0, 8)]),
            (4, vec![(2, 12), (3, 4), (33, 4096)]),
        ] {
            let offsets = offsets(&dims);
            let given: Vec<u8> = (0..140_000u32).map(|at| (at % 251) as u8).collect();
            let (mut room, mut dense) = (given.clone(), vec![0u8; element * offsets.len()]);
            let (start, into) = (room.as_mut_ptr(), dense.as_mut_ptr());
            let apart = Apart { start, dense: into, element, dims: dims.clone() };
            // SAFETY: both are there, and nobody else has them.
            unsafe { apart.gather() };
            let at = |offset: isize| offset as usize..offset as usize + element;
            let wanted = offsets.iter().flat_map(|offset| &given[at(*offset)]);
            assert!(dense.iter().eq(wanted), "{dims:?}");
            dense.iter_mut().for_each(|byte| *byte = !*byte);
            // SAFETY: as above.
            unsafe { apart.scatter() };
            let mut wanted = given;
            for byte in offsets.iter().flat_map(|offset| at(*offset)) {
                wanted[byte] = !wanted[byte];
            }
            assert_eq!(room, wanted, "{dims:?}");
        }
    }
}
