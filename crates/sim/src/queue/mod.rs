//! The queue of future events.

mod due;
mod heap;
mod interface;
mod pool;
mod wheel;

pub use heap::Heap;
pub use interface::EventQueue;
pub use wheel::Wheel;
