//! From an experiment file to validated runs to result columns. Knows no Python.
//!
//! | module | what it does |
//! |---|---|
//! | [`parse`] | TOML or JSON text to a [`value::Table`] that remembers its lines |
//! | [`overrides`] | `--set key=value`, and short forms such as `leaf-spine:leaves=4,...` |
//! | `quick` | `[quick]`: fewer seeds and values for a first look |
//! | `relative_start` | failures that begin at a share of the completion time |
//! | [`sweep`] | one experiment to every combination of the swept values |
//! | [`reader`], [`kind`] | typed reading that writes defaults out and refuses unknown keys |
//! | `section` | the keys of `[fabric]`, `[workload]`, ...: one file each |
//! | [`experiment`] | [`Resolved`]: every choice made, ready to simulate; its key |
//! | [`mod@expand`] | all of the above in one call |
//! | [`mod@bound`] | the lower bound that no run may beat |
//! | `cuts`, [`fair`], [`pace`] | what senders may compute in advance: fair shares, sub-flows |
//! | [`mod@capacity`] | whether the fabric carries the workload, failures and all |
//! | [`mod@run`] | builds, simulates, times |
//! | [`memory`] | what a run takes of it, beside what there is |
//! | `clock` | how long that took |
//! | [`threads`] | on how many threads |
//! | [`progress`] | how far a run is |
//! | `segments` | whether DNLB can balance the workload |
//! | `measure`, `uplinks`, [`columns`] | the result columns |
//! | [`planning`] | a job's subflows, their ways, loads and bounds |
//! | [`discovery`] | what it costs a host to find out paths by probes |
//! | [`mod@tuning`] | ParaLet's m and S for a fabric |
//! | `fabric_links` | the links of a fabric, for plans of real clusters |
//! | [`mod@fabric_tables`] | switches, links and failures of any fabric, for pictures of it |
//! | [`catalogue`] | what there is to choose from |
//!
//! Invariants: a mistake in an experiment is an [`ExperimentError`], one line that names the
//! source, the key and the mend; a resolved experiment reads back as the same, with the same
//! key; results are a function of resolved experiment and seed alone.
//!
//! This crate reads workload and topology files, the clock (for [`run::Timing`]) and how many
//! cores there are; those below it do not.

mod background;
pub mod bound;
pub mod capacity;
pub mod catalogue;
mod clock;
mod collectives;
pub mod columns;
pub mod completion;
mod control_characters;
mod cuts;
mod digest;
pub mod discovery;
pub mod expand;
pub mod experiment;
mod extends;
pub mod fabric_tables;
pub mod fair;
pub mod fidelity;
mod hints;
mod leaves;
pub mod measure;
pub mod overrides;
pub mod pace;
pub mod planning;
mod presets;
pub mod progress;
mod quick;
mod relative_start;
pub mod run;
mod section;
mod segments;
pub mod sweep;
pub mod threads;
mod time_out;
mod trace_convert;
mod trace_info;
pub mod traffic;
pub mod tuning;
mod uplinks;

pub use weft_config::{
    Entry, ExperimentError, FabricLinks, Format, LinkRow, LinkState, OptionEntry, Origin,
    SwitchRow, error, fabric_links, kind, known_at_start, memory, parse, reader, topology_info,
    value,
};

pub use bound::bound;
pub use capacity::{Capacity, capacity};
pub use catalogue::Catalogue;
pub use columns::{Cell, Column, Columns, Row};
pub use expand::{Expansion, Request, expand, expand_quick, read_run};
pub use experiment::{CODE_VERSION, Resolved};
pub use fabric_tables::{FabricTables, fabric_tables};
pub use overrides::{ShortKind, shorthand, workload_key};
pub use progress::Progress;
pub use run::{RunError, RunResult, Series, Timing, least_time, run, run_watched, work};
pub use threads::{Threads, cores};
pub use trace_convert::{ConvertRequest, trace_convert};
pub use trace_info::trace_info;
pub use tuning::{Wanted, tuning};
pub use weft_plan as plan;
