//! Memory that a device may read and write.
#![expect(unsafe_code, reason = "calls into libibverbs")]

use crate::abi::{Mr, access};
use crate::{Device, VerbsError};
use std::io::Error;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;

/// Rights to memory of a GPU.
const GPU: i32 = access::LOCAL_WRITE | access::REMOTE_WRITE | access::REMOTE_READ;

/// A range of memory, pinned and known to a device until this is dropped.
#[derive(Debug)]
pub struct Region {
    device: Arc<Device>,
    mr: *mut Mr,
    start: usize,
    len: usize,
    local_key: u32,
    remote_key: u32,
    is_gpu: bool,
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
        Ok(unsafe { Region::of(device, mr, (start as usize, len), false) })
    }

    /// Registers memory of a GPU by its address, which takes the kernel module of its maker
    /// (`nvidia_peermem`). Our own posts may read it back ([`crate::QueuePair::read`]).
    ///
    /// # Safety
    /// As [`Region::new`].
    ///
    /// # Errors
    /// If the system refuses.
    pub unsafe fn of_gpu(
        device: &Arc<Device>,
        start: usize,
        len: usize,
    ) -> Result<Region, VerbsError> {
        let place = std::ptr::without_provenance_mut(start);
        // SAFETY: the domain is alive; of the memory the caller vouches.
        let mr = unsafe { (device.verbs.call.reg_mr)(device.pd, place, len, GPU) };
        if mr.is_null() {
            let what = format!("registering {len} bytes of a GPU with {}", device.name());
            return Err(VerbsError::last(format!("{what} (is nvidia_peermem loaded?)")));
        }
        // SAFETY: it was just made.
        Ok(unsafe { Region::of(device, mr, (start, len), true) })
    }

    /// Registers `len` bytes from `offset` on of a DMA-BUF, which posts name from `start` on. It may be
    /// closed afterwards.
    ///
    /// # Safety
    /// Peers that are told its remote key may write to it, and our own posts may read it.
    ///
    /// # Errors
    /// If the system refuses, or the library knows no DMA-BUFs.
    pub unsafe fn of_dma_buf(
        device: &Arc<Device>,
        file: BorrowedFd<'_>,
        offset: u64,
        start: usize,
        len: usize,
    ) -> Result<Region, VerbsError> {
        let Some(register) = device.verbs.reg_dma_buf else {
            let why = "it has no ibv_reg_dmabuf_mr: rdma-core 34 or later has".to_owned();
            return Err(VerbsError::Library { library: "libibverbs.so.1", why });
        };
        let (pd, file) = (device.pd, file.as_raw_fd());
        // SAFETY: the domain is alive, and the file is open.
        let mr = unsafe { register(pd, offset, len, start as u64, file, GPU) };
        if mr.is_null() {
            let what = format!("registering {len} bytes of a DMA-BUF with {}", device.name());
            return Err(VerbsError::last(what));
        }
        // SAFETY: it was just made.
        Ok(unsafe { Region::of(device, mr, (start, len), true) })
    }

    /// # Safety
    /// `mr` is of the device, alive, and nobody else's.
    unsafe fn of(
        device: &Arc<Device>,
        mr: *mut Mr,
        (start, len): (usize, usize),
        is_gpu: bool,
    ) -> Region {
        // SAFETY: by the contract.
        let (local_key, remote_key) = unsafe { ((*mr).lkey, (*mr).rkey) };
        Region { device: Arc::clone(device), mr, start, len, local_key, remote_key, is_gpu }
    }

    /// The key by which our own posts name it.
    pub fn local_key(&self) -> u32 {
        self.local_key
    }

    /// The key by which a peer's posts name it.
    pub fn remote_key(&self) -> u32 {
        self.remote_key
    }

    /// Whether it is memory of a GPU, which the processor does not read.
    pub fn is_gpu(&self) -> bool {
        self.is_gpu
    }

    /// Whether it holds all of `len` bytes from address `start` on.
    pub fn covers(&self, start: usize, len: usize) -> bool {
        start >= self.start && len <= self.len && start - self.start <= self.len - len
    }
}

/// Pages of our own, known to a device until this is dropped. Nothing else is on them: a child that is forked
/// misses nothing where the library takes from it what devices write (`ibv_fork_init`, before Linux 5.12).
#[derive(Debug)]
pub struct Pages {
    // Dropped first: memory goes after whoever writes it.
    region: Region,
    map: Map,
}

/// Whole pages of memory.
#[derive(Debug)]
struct Map {
    start: *mut u8,
    len: usize,
}

// SAFETY: it is memory that nothing else has; who follows the pointer sees to the rest.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Pages {
    /// At least `len` bytes, which are zero.
    ///
    /// # Errors
    /// If there is no memory, or the system refuses to pin it.
    pub fn new(device: &Arc<Device>, len: usize) -> Result<Pages, VerbsError> {
        let map = Map::new(len).map_err(|error| {
            VerbsError::of(format!("{len} bytes of memory for {}", device.name()), &error)
        })?;
        // SAFETY: the pages go after the region.
        let region = unsafe { Region::new(device, map.start, map.len) }?;
        Ok(Pages { region, map })
    }

    /// The address of the first byte.
    pub fn start(&self) -> *mut u8 {
        self.map.start
    }

    /// As [`Region::local_key`].
    pub fn local_key(&self) -> u32 {
        self.region.local_key()
    }
}

impl Map {
    fn new(len: usize) -> Result<Map, Error> {
        // SAFETY: asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let len = len.next_multiple_of(usize::try_from(page).unwrap_or(4_096));
        let (rights, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory, wherever the system likes.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, rights, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        Ok(Map { start: start.cast(), len })
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: made in `new`, ended once.
        unsafe { libc::munmap(self.start.cast(), self.len) };
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
    use std::os::fd::AsFd;

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

    #[test]
    fn memory_of_gpus_may_be_read_back() {
        let verbs = fake::library(
            r#"
            static struct { void *of[3]; size_t length; unsigned handle, lkey, rkey; } mr;
            void *ibv_reg_mr(void *pd, void *start, size_t len, int rights) {
                if (start == (void *)0x3000) { errno = EFAULT; return 0; }
                mr.rkey = rights;
                return &mr;
            }
            void *ibv_reg_dmabuf_mr(void *pd, unsigned long long offset, size_t len,
                                    unsigned long long address, int file, int rights) {
                if (file < 0) { errno = EBADF; return 0; }
                mr.rkey = rights + 100 * offset + address;
                return &mr;
            }
            "#,
            &["ibv_reg_mr"],
        );
        let device = fake::device(verbs);
        assert!(device.takes_dma_bufs());
        // SAFETY: the fake follows no pointer.
        let by_address = |start| unsafe { Region::of_gpu(&device, start, 0x1000) };
        assert_eq!(by_address(0x2000).expect("registered").remote_key(), 7, "all rights");
        let error = by_address(0x3000).expect_err("the kernel does not know it").to_string();
        assert!(error.contains("nvidia_peermem"), "{error}");
        let file = std::fs::File::open("/dev/null").expect("a file");
        // SAFETY: as above.
        let region = unsafe { Region::of_dma_buf(&device, file.as_fd(), 3, 0x5000, 0x1000) };
        let region = region.expect("registered");
        assert_eq!(region.remote_key(), 7 + 300 + 0x5000);
        assert!(region.covers(0x5000, 0x1000) && !region.covers(0x5000, 0x1001));
    }

    /// As of drivers and libraries that lack it.
    #[test]
    fn devices_that_take_no_dma_bufs_are_known() {
        let refuses = "void *ibv_reg_dmabuf_mr(void) { errno = EOPNOTSUPP; return 0; }";
        for (source, why) in [(refuses, "not supported"), ("", "ibv_reg_dmabuf_mr")] {
            let device = fake::device(fake::library(source, &[]));
            assert!(!device.takes_dma_bufs());
            let file = std::fs::File::open("/dev/null").expect("a file");
            // SAFETY: as above.
            let region = unsafe { Region::of_dma_buf(&device, file.as_fd(), 0, 0x5000, 0x1000) };
            let error = region.expect_err("it cannot").to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
