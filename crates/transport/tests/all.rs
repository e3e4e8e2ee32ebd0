//! The integration tests of this crate: one program, since linking takes longer than compiling.

mod common;

mod channel;
mod dcqcn;
mod dctcp;
mod dctcp_rate;
mod delivery;
mod mp_rdma;
mod nscc;
mod pacing;
mod plain;
mod recovery;
mod send_times;
mod swift;
mod tcp;
mod uet;
