//! Memory that is registered with the device, found again by address.

#![expect(unsafe_code, reason = "callers vouch for memory that is sent and received in place")]

use super::tables::{Known, Pages, Tables};
use crate::memory::Span;
use crate::request::Status;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_verbs::{Device, Region, VerbsError};

/// All registered memory of a device.
pub(crate) struct Memory {
    device: Arc<Device>,
    tables: Mutex<Tables<Region>>,
}

impl Known for Region {
    fn covers(&self, span: Span) -> bool {
        Region::covers(self, span.start() as usize, span.len())
    }
    fn local_key(&self) -> u32 {
        Region::local_key(self)
    }
    fn remote_key(&self) -> u32 {
        Region::remote_key(self)
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "memory of {}", self.device.name())
    }
}

impl Memory {
    pub(crate) fn new(device: Arc<Device>) -> Memory {
        Memory { device, tables: Mutex::default() }
    }

    /// Whose memory it is.
    pub(super) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Registers memory for as long as what is returned is held. The same pages are registered once.
    ///
    /// # Safety
    /// The memory stays mapped until then.
    ///
    /// # Errors
    /// If the device refuses.
    pub(crate) unsafe fn hold(&self, span: Span) -> Result<Arc<Region>, VerbsError> {
        // SAFETY: as the caller says.
        self.tables().hold(span, |pages| unsafe { self.register(pages) })
    }

    /// Registers memory of a GPU for as long as what is returned is held: by its address, or where `file` is
    /// given as so many bytes from an offset on of a DMA-BUF.
    ///
    /// # Safety
    /// The memory stays where it is until then.
    ///
    /// # Errors
    /// If the device refuses.
    pub(crate) unsafe fn hold_gpu(
        &self,
        span: Span,
        file: Option<(BorrowedFd<'_>, u64)>,
    ) -> Result<Arc<Region>, VerbsError> {
        let device = &self.device;
        self.tables().hold_exactly(span, |(start, len)| match file {
            // SAFETY: as the caller says.
            None => unsafe { Region::of_gpu(device, start, len) },
            // SAFETY: as above.
            Some((file, offset)) => unsafe { Region::of_dma_buf(device, file, offset, start, len) },
        })
    }

    /// Makes memory known for a request; the key by which peers name it.
    ///
    /// # Safety
    /// The memory stays mapped while the request is under way, and so does what holds it, if anything does.
    ///
    /// # Errors
    /// If the device refuses.
    pub(crate) unsafe fn lend(&self, span: Span, user: &Arc<Status>) -> Result<u32, VerbsError> {
        // SAFETY: as the caller says.
        self.tables().lend(span, user, |pages| unsafe { self.register(pages) })
    }

    /// The key by which our own posts name memory that was lent to a request under way.
    pub(crate) fn local_key(&self, span: Span) -> Option<u32> {
        self.tables().local_key(span)
    }

    /// Whether it was held as memory of a GPU.
    pub(crate) fn is_gpu(&self, span: Span) -> bool {
        self.tables().find_held(span).is_some_and(|region| region.is_gpu())
    }

    /// # Safety
    /// The memory stays mapped while the region lives; pages are mapped whole.
    unsafe fn register(&self, (start, len): Pages) -> Result<Region, VerbsError> {
        // SAFETY: as the caller says.
        unsafe { Region::new(&self.device, start as *mut u8, len) }
    }

    fn tables(&self) -> MutexGuard<'_, Tables<Region>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
