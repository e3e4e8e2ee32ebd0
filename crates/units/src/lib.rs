//! Quantities that every other crate shares: simulated time, data sizes, link rates,
//! typed ids and reproducible randomness.
//!
//! | module | what it holds |
//! |---|---|
//! | [`time`] | [`Time`]: picoseconds, as an instant or a span |
//! | [`alarm`] | [`Alarm`]: a time that may be put off |
//! | [`rate`] | [`Rate`]: bits per second, and [`Wire`]: exact serialisation times |
//! | [`about`] | times and sizes for a reader, to four digits |
//! | [`parse`] | text with units (`"400Gbps"`, `"500ns"`, `"64MB"`) to numbers |
//! | [`options`] | options of schemes and patterns as text, with their errors |
//! | [`mod@id`] | u32 newtypes and the vectors that they index |
//! | [`random`] | counter-based random draws and streams |
//! | [`stretches`] | which bytes of something are there |
//! | [`fastdiv`] | division by a number known only at run time, without a divide |
//!
//! Invariant: nothing here depends on the machine, the clock or the order of calls.
//! All arithmetic is on integers, or on IEEE basic operations, which every platform
//! rounds alike.

pub mod about;
pub mod alarm;
pub mod fastdiv;
pub mod id;
pub mod options;
pub mod parse;
pub mod prefetch;
pub mod random;
pub mod rate;
pub mod stretches;
pub mod time;

pub use about::{about_bytes, about_time};
pub use alarm::{Alarm, Ring};
pub use fastdiv::FastDiv;
pub use id::{HostId, IdVec, MessageId, PortId, SwitchId};
pub use options::{OptionError, OptionInfo, OptionKind, Options};
pub use parse::{UnitError, parse_nccl_size, parse_rate, parse_size, parse_time, size_text};
pub use random::{Draw, Stream};
pub use rate::{Rate, Wire};
pub use stretches::Stretches;
pub use time::Time;
