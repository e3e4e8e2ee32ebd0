//! `libnccl-net-weft.so`: Weft as NCCL's network, in versions 8 to 12 of its plugin interface, as its
//! profiler, versions 3 to 5, and as its tuner, versions 4 and 5.
//!
//! NCCL finds it by `NCCL_NET_PLUGIN`, takes the newest table that it knows, and drives it from a
//! thread of its own. All that happens on wires happens in `weft-comm`; what is here is the border:
//!
//! | module | what it does |
//! |---|---|
//! | [`versions`] | the five tables and what differs between them |
//! | `calls` | each function once, for all versions |
//! | `core` | what a process has once: NICs by the environment, opened when first used |
//! | `objects` | communicators, memory and requests as the pointers that NCCL keeps |
//! | `boundary` | panics and errors to results, with one line in NCCL's log |
//! | `logger` | NCCL's logger |
//! | [`profile`] | what happens to messages, with NCCL's own events, to a file |
//! | [`tuner`] | NCCL's choice of algorithms, as a plan has it |
//! | `watch`, `changes`, `http`, `directory` | statistics to a file and to Prometheus, what changed to the log |
//!
//! # What it relies on
//! NCCL gives back only pointers that it got from here, none after it closed it; a request is over as
//! soon as `test` says that it is done; buffers stay until then, or until the communicator is closed.
//!
//! # What it leaves out
//! GPU memory over TCP: NCCL copies through host memory. A receive whose completion NCCL does not
//! need (LL, LL128) is completed all the same. The traffic class is not looked at: `dscp` of the cluster
//! file is what packets get.

mod boundary;
mod calls;
mod changes;
mod core;
mod directory;
mod forked;
mod http;
mod logger;
mod nic;
mod objects;
pub mod profile;
pub mod tuner;
pub mod versions;
mod watch;
