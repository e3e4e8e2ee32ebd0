//! NCCL's tuner: of the collective that was planned (`WEFT_CONFIG`) it takes the algorithm of the plan, and as many
//! channels as the job says. Of others, and without a plan, it changes nothing.
//!
//! A plan is of one operation, size, number of ranks and algorithm. It is followed for calls of that operation in
//! communicators of as many ranks, from half the size to twice as much: beyond, latency or bandwidth weigh
//! otherwise than planned. It says nothing of protocols: of the algorithm's NCCL's own favourite is kept.
//!
//! # Safety
//! All functions here are called by NCCL through its tables, with what its interface says.

#![expect(unsafe_code, reason = "functions that C calls, and symbols that it looks for")]

use crate::boundary::{Failure, enter};
use crate::logger;
use crate::objects::{at, give, take};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use weft_deploy::PlannedCollective;
use weft_nccl_abi::tuner::{IGNORED, TunerV4, TunerV5, algorithm, function};
use weft_nccl_abi::{Logger, NcclResult};

/// What a communicator is to do otherwise.
struct Advice {
    function: c_int,
    /// A row of NCCL's table.
    row: usize,
    planned: PlannedCollective,
    said: AtomicBool,
}

/// What NCCL calls an operation, if it has it.
fn function(operation: &str) -> Option<c_int> {
    Some(match operation {
        "all-reduce" => function::ALL_REDUCE,
        "all-gather" => function::ALL_GATHER,
        "reduce-scatter" => function::REDUCE_SCATTER,
        "broadcast" => function::BROADCAST,
        "reduce" => function::REDUCE,
        _ => return None,
    })
}

/// NCCL's algorithm that is the planned one. Others of the planner NCCL does not have, or splits otherwise.
fn row(name: &str) -> Option<usize> {
    Some(match name {
        "ring" => algorithm::RING,
        "double-binary-tree" => algorithm::TREE,
        "pat" => algorithm::PAT,
        _ => return None,
    })
}

fn advise(planned: PlannedCollective, ranks: usize) -> Option<Advice> {
    let (function, row) = (function(&planned.operation)?, row(&planned.algorithm)?);
    let said = AtomicBool::new(false);
    (planned.ranks == ranks as u64).then_some(Advice { function, row, planned, said })
}

impl Advice {
    fn is_of(&self, function: c_int, bytes: usize) -> bool {
        let (bytes, size) = (bytes as u64, self.planned.size);
        self.function == function && bytes >= size / 2 && bytes <= size.saturating_mul(2)
    }

    /// Makes the planned algorithm the cheapest, by the protocol that is cheapest of its own. Whether NCCL can
    /// have it.
    fn follow(&self, table: &mut [f32], protocols: usize) -> bool {
        let Some(row) = table.chunks_exact_mut(protocols).nth(self.row) else { return false };
        let possible = row.iter_mut().filter(|cost| **cost > IGNORED);
        match possible.min_by(|one, other| one.total_cmp(other)) {
            Some(cheapest) => {
                *cheapest = 0.0;
                true
            }
            None => false,
        }
    }

    fn say(&self, follows: bool) {
        if self.said.swap(true, Ordering::Relaxed) {
            return;
        }
        let PlannedCollective { operation, algorithm, ranks, size, .. } = &self.planned;
        let what = format!("{operation} of {size} bytes, {ranks} ranks: {algorithm}");
        match follows {
            true => logger::info(&format!("tuner: {what}, as planned")),
            false => logger::info(&format!("tuner: {what} is planned, and NCCL cannot do it here")),
        }
    }
}

/// What the environment's plan has, read once. A file that cannot be read ends no communicator: the network says
/// so, too.
fn planned() -> &'static [PlannedCollective] {
    static PLANNED: OnceLock<Vec<PlannedCollective>> = OnceLock::new();
    PLANNED.get_or_init(|| {
        weft_deploy::planned_collectives().unwrap_or_else(|error| {
            logger::warn(&format!("tuner: {error}"));
            Vec::new()
        })
    })
}

fn begin(context: *mut *mut c_void, ranks: usize) -> Result<(), Failure> {
    // SAFETY: a place for one pointer.
    let context = unsafe { context.as_mut() }.ok_or(Failure::Null("context"))?;
    *context = null_mut();
    let advice: Vec<Advice> =
        planned().iter().filter_map(|planned| advise(planned.clone(), ranks)).collect();
    if !advice.is_empty() {
        *context = give(advice);
    }
    Ok(())
}

unsafe extern "C" fn init_v4(
    ranks: usize,
    _nodes: usize,
    log: Option<Logger>,
    context: *mut *mut c_void,
) -> NcclResult {
    logger::set(log);
    enter("tuner init", || begin(context, ranks))
}

unsafe extern "C" fn init_v5(
    context: *mut *mut c_void,
    _communicator: u64,
    ranks: usize,
    _nodes: usize,
    log: Option<Logger>,
    _domains: *mut c_void,
    _constants: *mut c_void,
) -> NcclResult {
    logger::set(log);
    enter("tuner init", || begin(context, ranks))
}

unsafe extern "C" fn get_coll_info(
    context: *mut c_void,
    function: c_int,
    bytes: usize,
    _operations: c_int,
    table: *mut *mut f32,
    algorithms: c_int,
    protocols: c_int,
    _registered: c_int,
    channels: *mut c_int,
) -> NcclResult {
    if context.is_null() {
        return NcclResult::SUCCESS;
    }
    enter("getCollInfo", || {
        // SAFETY: as at the top.
        let all = unsafe { at::<Vec<Advice>>(context, "context")? };
        let Some(advice) = all.iter().find(|advice| advice.is_of(function, bytes)) else {
            return Ok(());
        };
        let sizes = [algorithms, protocols].map(|size| usize::try_from(size).unwrap_or(0));
        if table.is_null() || sizes.contains(&0) {
            return Err(Failure::Null("collCostTable"));
        }
        let [algorithms, protocols] = sizes;
        // SAFETY: NCCL's table is one block of rows, whatever the type of its pointer.
        let table = unsafe { std::slice::from_raw_parts_mut(table.cast(), algorithms * protocols) };
        let follows = advice.follow(table, protocols);
        // SAFETY: a place for one number, or null.
        if let (true, Some(count), Some(channels)) =
            (follows, advice.planned.channels, unsafe { channels.as_mut() })
        {
            *channels = count as c_int;
        }
        advice.say(follows);
        Ok(())
    })
}

unsafe extern "C" fn finalize(context: *mut c_void) -> NcclResult {
    enter("tuner finalize", || {
        if !context.is_null() {
            // SAFETY: it came from `begin`, and nobody asks again.
            drop(unsafe { take::<Vec<Advice>>(context, "context")? });
        }
        Ok(())
    })
}

/// Version 4.
#[unsafe(no_mangle)]
pub static ncclTunerPlugin_v4: TunerV4 =
    TunerV4 { name: c"Weft".as_ptr(), init: init_v4, get_coll_info, finalize };

/// Version 5.
#[unsafe(no_mangle)]
pub static ncclTunerPlugin_v5: TunerV5 =
    TunerV5 { name: c"Weft".as_ptr(), init: init_v5, get_coll_info, finalize };
