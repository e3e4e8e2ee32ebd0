//! Files that describe fabrics, failures and schemes: read once, with one line that names file, key and
//! mend for what is wrong. Knows no simulator, no solver and no socket.
//!
//! | module | what it does |
//! |---|---|
//! | [`parse`] | TOML or JSON text to a [`value::Table`] that remembers its lines |
//! | [`reader`], [`kind`] | typed reading that writes defaults out and refuses unknown keys |
//! | [`section`] | the keys of `[fabric]`, `[failures]`, `[balance]`: one file each |
//! | [`mod@fabric_links`] | the links of a fabric as they are at the start, for real clusters |
//! | [`mod@topology_info`] | what is in a topology file |
//! | [`cluster`] | a real cluster: names, addresses, ports |
//! | [`plan_file`], [`mod@paths_file`] | plans of jobs, and tables of discovered paths |
//! | [`memory`] | what things take of it, beside what there is |
//! | [`entry`] | one thing to choose, as lists show it |
//!
//! Invariant: a mistake is an [`ExperimentError`], one line that names the source, the key and the mend.

pub mod cluster;
pub mod entry;
pub mod error;
pub mod fabric_links;
pub mod in_order;
pub mod kind;
pub mod memory;
pub mod nearest;
mod only_clos;
mod origin;
pub mod other_names;
pub mod parse;
pub mod paths_file;
pub mod plan_file;
pub mod reader;
pub mod section;
pub mod topology_info;
pub mod value;

pub use entry::{Entry, OptionEntry};
pub use error::ExperimentError;
pub use fabric_links::{FabricLinks, LinkRow, LinkState, SwitchRow, fabric_links, known_at_start};
pub use only_clos::{only_clos, only_clos_planes};
pub use origin::Origin;
pub use parse::Format;
pub use topology_info::topology_info;
