//! Memory that a device may read and write.
#![expect(unsafe_code, reason = "calls into libibverbs")]

use crate::abi::{Mr, access};
use crate::{Device, VerbsError};
use std::io::Error;
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
    /// Registers `len` bytes from `start` on, for writing by peers too; memory that this process may
    /// only read, for reading by its own posts.
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
        let with = |rights| {
            // SAFETY: the domain is alive; of the memory the caller vouches.
            let mr = unsafe { (device.verbs.call.reg_mr)(device.pd, start.cast(), len, rights) };
            if mr.is_null() { Err(Error::last_os_error()) } else { Ok(mr) }
        };
        let mr = with(access::LOCAL_WRITE | access::REMOTE_WRITE).or_else(|error| {
            // As of pages that are mapped for reading: they can be sent from.
            if error.raw_os_error() == Some(libc::EFAULT) { with(0) } else { Err(error) }
        });
        let mr = mr.map_err(|error| {
            let what = format!("registering {len} bytes with {} (see ulimit -l)", device.name());
            VerbsError::of(what, &error)
        })?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    #[test]
    fn memory_that_may_only_be_read_can_be_sent_from() {
        // As the kernel: pages that cannot be written are not there for a device that would.
        let verbs = fake::library(
            r#"
            static struct { void *of[3]; size_t length; unsigned handle, lkey, rkey; } mr;
            void *ibv_reg_mr(void *pd, void *start, size_t len, int rights) {
                int read_only = start == (void *)0x1000, no_memory = start == (void *)0x3000;
                if (read_only && rights) { errno = EFAULT; return 0; }
                if (no_memory) { errno = ENOMEM; return 0; }
                mr.rkey = rights;
                return &mr;
            }
            "#,
            &["ibv_reg_mr"],
        );
        let device = fake::device(verbs);
        // SAFETY: the fake follows no pointer.
        let of = |start: usize| unsafe { Region::new(&device, start as *mut u8, 0x1000) };
        assert_eq!(of(0x2000).expect("may be written").remote_key(), 3, "local and remote write");
        assert_eq!(of(0x1000).expect("may be read").remote_key(), 0);
        let error = of(0x3000).expect_err("there is no memory").to_string();
        assert!(error.contains("ulimit -l") && error.contains("annot allocate memory"), "{error}");
    }
}
