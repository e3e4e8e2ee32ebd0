//! NCCL's interface to tuner plugins (`ncclTuner`), versions 4 and 5.
//!
//! A plugin exports one static table a version, as `ncclTunerPlugin_v4`; NCCL takes the newest that both
//! know. `NCCL_TUNER_PLUGIN` names its library; without it NCCL looks into that of the network plugin, too.
//!
//! In version 5 `init` also tells the communicator and its NVLink domains, and shows the cost model's constants.
//!
//! `getCollInfo` is asked before each collective, and may change NCCL's estimates: a table of microseconds by
//! algorithm and protocol, of which NCCL takes the least. Entries of [`IGNORED`] are not possible.

use crate::{Logger, NcclResult};
use std::ffi::{c_char, c_int, c_void};

/// `ncclFunc_t`: what a collective does.
pub mod function {
    use std::ffi::c_int;

    /// To all from one.
    pub const BROADCAST: c_int = 0;
    /// The sum, at one.
    pub const REDUCE: c_int = 1;
    /// The parts of all, at all.
    pub const ALL_GATHER: c_int = 2;
    /// The sum, a part at each.
    pub const REDUCE_SCATTER: c_int = 3;
    /// The sum, at all.
    pub const ALL_REDUCE: c_int = 4;
}

/// `NCCL_ALGO_...`: rows of the table.
pub mod algorithm {
    /// Two binary trees.
    pub const TREE: usize = 0;
    /// Rings, one a channel.
    pub const RING: usize = 1;
    /// Parallel aggregated trees.
    pub const PAT: usize = 6;
}

/// `NCCL_PROTO_...`: columns of the table.
pub mod protocol {
    /// Bulk.
    pub const SIMPLE: usize = 2;
}

/// Algorithms of the table.
pub const ALGORITHMS: usize = 7;
/// Protocols of the table.
pub const PROTOCOLS: usize = 3;
/// `NCCL_ALGO_PROTO_IGNORE`: an entry that NCCL cannot take.
pub const IGNORED: f32 = -1.0;

/// `init` of version 4: ranks, nodes, logger, context.
pub type TunerInitV4 =
    unsafe extern "C" fn(usize, usize, Option<Logger>, *mut *mut c_void) -> NcclResult;
/// `init` of version 5: context, communicator, ranks, nodes, logger, NVLink domains, constants.
pub type TunerInitV5 = unsafe extern "C" fn(
    *mut *mut c_void,
    u64,
    usize,
    usize,
    Option<Logger>,
    *mut c_void,
    *mut c_void,
) -> NcclResult;
/// `getCollInfo`: context, function, bytes, operations in the group, the table (rows of protocols side by side,
/// whatever its type says), its algorithms and protocols, whether buffers are registered, channels (0: NCCL's).
pub type GetCollInfo = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    usize,
    c_int,
    *mut *mut f32,
    c_int,
    c_int,
    c_int,
    *mut c_int,
) -> NcclResult;

/// `ncclTuner_v4_t` and `ncclTuner_v5_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "said at the top of the module")]
pub struct TunerTable<I> {
    pub name: *const c_char,
    pub init: I,
    pub get_coll_info: GetCollInfo,
    pub finalize: unsafe extern "C" fn(*mut c_void) -> NcclResult,
}

#[expect(unsafe_code, reason = "tables are constants that any thread may read")]
// SAFETY: nothing in it changes, and `name` points to constant text.
unsafe impl<I> Sync for TunerTable<I> {}

/// Version 4.
pub type TunerV4 = TunerTable<TunerInitV4>;
/// Version 5.
pub type TunerV5 = TunerTable<TunerInitV5>;
