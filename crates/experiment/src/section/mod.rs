//! The sections of an experiment, one file each: their keys, defaults and meanings. Those of fabrics and
//! schemes are `weft-config`'s.

pub(crate) use weft_config::section::{
    balance, fabric, failures, options, read_text, server, smallest_fabric, topology, topology_file,
};
pub(crate) mod background;
pub(crate) mod probe;
pub(crate) mod run;
pub(crate) mod sending;
pub(crate) mod stragglers;
pub(crate) mod transport;
pub(crate) mod workload;
