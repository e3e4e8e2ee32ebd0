//! Memory that a device may read and write.
#![expect(unsafe_code, reason = "calls into libibverbs")]

use crate::abi::{Mr, access};
use crate::{Device, VerbsError};
use std::sync::Arc;

/// A range of memory, pinned and known to a device until this is dropped.
#[derive(Debug)]
pub struct Region {
    device: Arc<Device>,
    mr: *mut Mr,
    start: usize,
    len: usize,
    local_key: u32,
    remote_key: u32,
}

// SAFETY: it is used for its numbers; the library allows its end from any thread.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Registers `len` bytes from `start` on, for writing by peers too.
    ///
    /// # Safety
    /// The memory stays mapped as long as this lives. Peers that are told its remote key may write to it.
    ///
    /// # Errors
    /// If the system refuses: too much is pinned (`ulimit -l`), or memory that cannot be.
    pub unsafe fn new(
        device: &Arc<Device>,
        start: *mut u8,
        len: usize,
    ) -> Result<Region, VerbsError> {
        let rights = access::LOCAL_WRITE | access::REMOTE_WRITE;
        // SAFETY: the domain is alive; of the memory the caller vouches.
        let mr = unsafe { (device.verbs.call.reg_mr)(device.pd, start.cast(), len, rights) };
        if mr.is_null() {
            let what = format!("registering {len} bytes with {} (see ulimit -l)", device.name());
            return Err(VerbsError::last(what));
        }
        // SAFETY: it was just made.
        let (local_key, remote_key) = unsafe { ((*mr).lkey, (*mr).rkey) };
        let device = Arc::clone(device);
        Ok(Region { device, mr, start: start as usize, len, local_key, remote_key })
    }

    /// The key by which our own posts name it.
    pub fn local_key(&self) -> u32 {
        self.local_key
    }

    /// The key by which a peer's posts name it.
    pub fn remote_key(&self) -> u32 {
        self.remote_key
    }

    /// Whether it holds all of `len` bytes from address `start` on.
    pub fn covers(&self, start: usize, len: usize) -> bool {
        start >= self.start && len <= self.len && start - self.start <= self.len - len
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: made in `new`, ended once.
        unsafe { (self.device.verbs.call.dereg_mr)(self.mr) };
    }
}
