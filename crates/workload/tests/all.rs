//! The integration tests of this crate: one program, since linking takes longer than compiling.

mod et;
mod ideal;
mod training;

mod background;
mod cm;
mod collective;
mod csv;
mod dag;
mod experts;
mod goal;
mod job;
mod job_parts;
mod model;
mod model_properties;
mod pattern;
mod skew;
mod stragglers;
mod trace_chakra;
mod trace_chakra_options;
mod trace_check;
mod trace_formats;
mod trace_real;
mod trace_text;
