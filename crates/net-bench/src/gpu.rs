//! Memory that stands for a GPU's, where there is none: a file in memory, or a DMA-BUF of it. Its
//! addresses are those that the GPU would have; the processor finds nothing there, and dies where it looks.

#![expect(unsafe_code, reason = "maps memory")]

use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd};

/// Memory of a GPU.
#[derive(Debug)]
pub struct GpuMemory {
    /// Where the GPU has it.
    start: *mut u8,
    /// Where the GPU's kernels look at it.
    view: *mut u8,
    len: usize,
    file: File,
    is_dma_buf: bool,
}

impl GpuMemory {
    /// So many bytes, whole pages, of a file.
    ///
    /// # Errors
    /// If the system has no memory.
    pub fn new(len: usize) -> Result<GpuMemory> {
        // SAFETY: a file of its own, with a constant name.
        let memory = unsafe {
            let made = libc::memfd_create(c"gpu".as_ptr(), libc::MFD_ALLOW_SEALING);
            if made < 0 {
                return Err(Error::last_os_error());
            }
            File::from_raw_fd(made)
        };
        memory.set_len(len as u64)?;
        let view = map(len, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, &memory)?;
        let nothing = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let start = map(len, libc::PROT_NONE, nothing, &memory)?;
        Ok(GpuMemory { start, view, len, file: memory, is_dma_buf: false })
    }

    /// The same as a DMA-BUF of the kernel, where it has `/dev/udmabuf`.
    #[must_use]
    pub fn as_dma_buf(mut self) -> GpuMemory {
        if let Some(made) = dma_buf_of(&self.file, self.len) {
            (self.file, self.is_dma_buf) = (made, true);
        }
        self
    }

    /// Where it begins, by the GPU's count.
    #[must_use]
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// What stands for it to a device.
    #[must_use]
    pub fn file(&self) -> i32 {
        self.file.as_raw_fd()
    }

    /// Whether that is a DMA-BUF of the kernel, and no mere file.
    #[must_use]
    pub fn is_dma_buf(&self) -> bool {
        self.is_dma_buf
    }

    /// What is in it. Not while a device is at it.
    pub fn view(&mut self) -> &mut [u8] {
        // SAFETY: so many bytes are mapped as long as this lives.
        unsafe { std::slice::from_raw_parts_mut(self.view, self.len) }
    }
}

impl Drop for GpuMemory {
    fn drop(&mut self) {
        for start in [self.start, self.view] {
            // SAFETY: mapped in `new`, and lent to nobody any more.
            unsafe { libc::munmap(start.cast(), self.len) };
        }
    }
}

fn map(len: usize, rights: i32, flags: i32, file: &File) -> Result<*mut u8> {
    let file = if flags & libc::MAP_ANONYMOUS == 0 { file.as_raw_fd() } else { -1 };
    // SAFETY: a mapping of its own, wherever there is room.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), len, rights, flags, file, 0) };
    if start == libc::MAP_FAILED { Err(Error::last_os_error()) } else { Ok(start.cast()) }
}

/// `struct udmabuf_create` of the kernel.
#[repr(C)]
struct Create {
    memfd: u32,
    flags: u32,
    offset: u64,
    size: u64,
}

/// `UDMABUF_CREATE`, an ioctl.
const CREATE: libc::c_ulong = 0x4018_7542;
/// `UDMABUF_FLAGS_CLOEXEC`.
const CLOSED_BY_EXEC: u32 = 1;

/// A DMA-BUF of the memory, where the kernel makes one.
fn dma_buf_of(memory: &File, len: usize) -> Option<File> {
    let device = File::options().read(true).write(true).open("/dev/udmabuf").ok()?;
    let memfd = memory.as_raw_fd().cast_unsigned();
    let create = Create { memfd, flags: CLOSED_BY_EXEC, offset: 0, size: len as u64 };
    // SAFETY: the files are open, and the structure is there during the calls.
    let made = unsafe {
        libc::fcntl(memory.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK);
        libc::ioctl(device.as_raw_fd(), CREATE, &raw const create)
    };
    // SAFETY: it was just made.
    (made >= 0).then(|| unsafe { File::from_raw_fd(made) })
}
