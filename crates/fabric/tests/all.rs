//! The integration tests of this crate: one program, since linking takes longer than compiling.

mod common;
mod simai_file;

mod aggregation;
mod clos;
mod detour;
mod examples;
mod failing_switches;
mod failure;
mod homes;
mod import;
mod import_infragraph;
mod import_ns3;
mod import_simai;
mod path_weights;
mod rails;
mod weights;
mod wiring;
