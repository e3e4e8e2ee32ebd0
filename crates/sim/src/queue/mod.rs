//! The queue of future events.

mod due;
mod heap;
mod interface;
mod pool;
mod sort;
mod wheel;

pub(crate) use due::{LONGEST_WINDOW, WINDOW_BITS};
pub use heap::Heap;
pub use interface::{EventQueue, Row, Whole};
pub(crate) use sort::Sorter;
pub use wheel::Wheel;
