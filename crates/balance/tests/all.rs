//! The integration tests of this crate: one program, since linking takes longer than compiling.

mod common;
mod twill_network;

mod conweave;
mod dlb;
mod enforce;
mod ethereal;
mod ethereal_weighted;
mod hashing;
mod hpn;
mod in_network;
mod known;
mod mp_rdma;
mod mrc;
mod one_home;
mod persistent_queue_pairs;
mod planner;
mod repathing;
mod reps_freezing;
mod spray_bitmap;
mod steering;
mod subflows;
mod switching;
mod themis;
mod theorem_one;
mod twill;
mod twill_adversaries;
mod weighted_connections;
