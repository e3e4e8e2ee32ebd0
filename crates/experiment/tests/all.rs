//! The integration tests of this crate: one program, since linking takes longer than compiling.

mod common;
#[path = "../../workload/tests/et/mod.rs"]
mod et;
#[path = "../../fabric/tests/simai_file/mod.rs"]
mod simai_file;
mod twill_runs;

mod astra_sim;
mod background;
mod bounds;
mod capacity;
mod catalogue;
mod expansion;
mod extremes;
mod failures;
mod fairness;
mod fidelity;
mod job_mistakes;
mod jobs;
mod known_failures;
mod matrix;
mod mistakes;
mod plan_bounds;
mod presets;
mod quick;
mod results;
mod settings;
mod simai_files;
mod stragglers;
mod threads;
mod topology_files;
mod trace_files;
mod twill;
mod twill_adversaries;
mod uplinks;
