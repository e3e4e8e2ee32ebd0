//! Memory that is registered with the devices of an endpoint, found again by address.
//!
//! Invariant: what is registered is registered with each of them that is not lost, or with none.

#![expect(unsafe_code, reason = "callers vouch for memory that is sent and received in place")]

use super::tables::{Keys, Known, Pages, Tables, after_sweep, pages};
use crate::handle::MOST_NICS;
use crate::memory::Span;
use crate::request::Status;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_verbs::{Device, Region, VerbsError};

/// Every device has it, and tells about it as long as it works.
const FIRST_PORT: u8 = 1;

/// All registered memory of an endpoint.
pub(crate) struct Memory {
    /// By NIC of the endpoint, and whether it is lost.
    devices: Vec<(Arc<Device>, AtomicBool)>,
    tables: Mutex<Tables<Regions>>,
}

/// One range of memory, as each device knows it: by NIC, nothing where that was lost before.
#[derive(Debug)]
pub(crate) struct Regions(Vec<Option<Region>>);

impl Regions {
    /// Whether it is memory of a GPU, which the processor does not read.
    pub(crate) fn is_gpu(&self) -> bool {
        self.0.iter().flatten().any(Region::is_gpu)
    }

    /// The key by which peers name it, and our own reads, at one of the NICs.
    pub(crate) fn remote_key(&self, nic: usize) -> Option<u32> {
        Some(self.0.get(nic)?.as_ref()?.remote_key())
    }
}

impl Known for Regions {
    fn covers(&self, span: Span) -> bool {
        let mut all = self.0.iter().flatten();
        all.any(|region| region.covers(span.start() as usize, span.len()))
    }
    fn local_key(&self, nic: u8) -> Option<u32> {
        Some(self.0.get(usize::from(nic))?.as_ref()?.local_key())
    }
    fn remote_keys(&self) -> Keys {
        let mut keys = [0; MOST_NICS];
        for (nic, key) in keys.iter_mut().enumerate() {
            *key = self.remote_key(nic).unwrap_or(0);
        }
        keys
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.devices.iter().map(|(device, _)| device.name()).collect();
        write!(f, "memory of {}", names.join(", "))
    }
}

impl Memory {
    /// Of these devices, by NIC.
    pub(crate) fn new(devices: impl IntoIterator<Item = Arc<Device>>) -> Memory {
        let devices = devices.into_iter().map(|device| (device, AtomicBool::new(false)));
        Memory { devices: devices.collect(), tables: Mutex::default() }
    }

    /// The device of a NIC is lost: it is not asked to know anything more.
    pub(crate) fn lose(&self, nic: u8) {
        self.devices[usize::from(nic)].1.store(true, Ordering::Relaxed);
    }

    /// Registers memory for as long as what is returned is held. The same pages are registered once.
    ///
    /// # Safety
    /// The memory stays mapped until then.
    ///
    /// # Errors
    /// If a device refuses; then none knows it.
    pub(crate) unsafe fn hold(&self, span: Span) -> Result<Arc<Regions>, VerbsError> {
        // SAFETY: as the caller says.
        self.hold_pages(pages(span), |pages| unsafe { self.register(pages) })
    }

    /// Registers memory of a GPU for as long as what is returned is held: by its address, or where `file` is
    /// given as so many bytes from an offset on of a DMA-BUF.
    ///
    /// # Safety
    /// The memory stays where it is until then.
    ///
    /// # Errors
    /// If a device refuses; then none knows it.
    pub(crate) unsafe fn hold_gpu(
        &self,
        span: Span,
        file: Option<(BorrowedFd<'_>, u64)>,
    ) -> Result<Arc<Regions>, VerbsError> {
        // Its pages are not the system's.
        self.hold_pages((span.start() as usize, span.len()), |(start, len)| {
            self.with_each(|device| match file {
                // SAFETY: as the caller says.
                None => unsafe { Region::of_gpu(device, start, len) },
                // SAFETY: as above.
                Some((file, offset)) => unsafe {
                    Region::of_dma_buf(device, file, offset, start, len)
                },
            })
        })
    }

    fn hold_pages(
        &self,
        pages: Pages,
        register: impl Fn(Pages) -> Result<Regions, VerbsError>,
    ) -> Result<Arc<Regions>, VerbsError> {
        if let Some(known) = self.tables().held(pages) {
            return Ok(known);
        }
        // It may take seconds, and the engine looks into the tables with each frame.
        let regions = after_sweep(|| register(pages), || self.tables().sweep())?;
        Ok(self.tables().keep(pages, regions))
    }

    /// Makes memory known for a request; the keys by which peers name it.
    ///
    /// # Safety
    /// The memory stays mapped while the request is under way, and so does what holds it, if anything does.
    ///
    /// # Errors
    /// If a device refuses; then none knows it.
    pub(crate) unsafe fn lend(&self, span: Span, user: &Arc<Status>) -> Result<Keys, VerbsError> {
        // SAFETY: as the caller says.
        self.tables().lend(span, user, |pages| unsafe { self.register(pages) })
    }

    /// The key by which posts to one of our NICs name memory that was lent to a request under way.
    pub(crate) fn local_key(&self, nic: u8, span: Span) -> Option<u32> {
        self.tables().local_key(nic, span)
    }

    /// Whether it was held as memory of a GPU.
    pub(crate) fn is_gpu(&self, span: Span) -> bool {
        self.tables().find_held(span).is_some_and(|region| region.is_gpu())
    }

    /// # Safety
    /// The memory stays mapped while the regions live; pages are mapped whole.
    unsafe fn register(&self, (start, len): Pages) -> Result<Regions, VerbsError> {
        // SAFETY: as the caller says.
        self.with_each(|device| unsafe { Region::new(device, start as *mut u8, len) })
    }

    fn with_each(
        &self,
        register: impl Fn(&Arc<Device>) -> Result<Region, VerbsError>,
    ) -> Result<Regions, VerbsError> {
        let (mut regions, mut lost) = (Vec::new(), None);
        for (device, is_lost) in &self.devices {
            if is_lost.load(Ordering::Relaxed) {
                regions.push(None);
                continue;
            }
            regions.push(match register(device) {
                Ok(region) => Some(region),
                // It has failed, and the engine is about to notice: the others will do.
                Err(error) if device.port(FIRST_PORT).is_err() => {
                    lost = Some(error);
                    None
                }
                Err(error) => return Err(error),
            });
        }
        match lost {
            Some(error) if regions.iter().all(Option::is_none) => Err(error),
            _ => Ok(Regions(regions)),
        }
    }

    fn tables(&self) -> MutexGuard<'_, Tables<Regions>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
