//! The libraries, and their functions by name.
#![expect(unsafe_code, reason = "a foreign library's functions")]

use crate::VerbsError;
use crate::abi::{
    CompChannel, Context, Cq, Device, GidEntry, Mr, Pd, PortAttr, Qp, QpAttr, QpInitAttr,
};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::Arc;

const IBVERBS: &str = "libibverbs.so.1";
const MLX5: &str = "libmlx5.so.1";

/// Declares the table of functions and how it is filled.
macro_rules! functions {
    ($($field:ident = $symbol:literal: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// Functions of `libibverbs.so.1`.
        #[derive(Clone, Copy)]
        pub(crate) struct Functions {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            fn of(library: &Library) -> Result<Functions, libloading::Error> {
                // SAFETY: names and types are those of the library's header, ABI version 1.1 and later,
                // which the library promises to keep.
                unsafe { Ok(Functions { $($field: *library.get($symbol)?,)* }) }
            }

            /// What a library must have, each ended by zero.
            #[cfg(test)]
            pub(crate) const NAMES: &'static [&'static [u8]] = &[$($symbol),*];
        }
    };
}

functions! {
    get_device_list = b"ibv_get_device_list\0": fn(*mut c_int) -> *mut *mut Device;
    free_device_list = b"ibv_free_device_list\0": fn(*mut *mut Device);
    get_device_name = b"ibv_get_device_name\0": fn(*mut Device) -> *const c_char;
    open_device = b"ibv_open_device\0": fn(*mut Device) -> *mut Context;
    close_device = b"ibv_close_device\0": fn(*mut Context) -> c_int;
    query_port = b"ibv_query_port\0": fn(*mut Context, u8, *mut PortAttr) -> c_int;
    query_gid_ex = b"_ibv_query_gid_ex\0":
        fn(*mut Context, u32, u32, *mut GidEntry, u32, usize) -> c_int;
    alloc_pd = b"ibv_alloc_pd\0": fn(*mut Context) -> *mut Pd;
    dealloc_pd = b"ibv_dealloc_pd\0": fn(*mut Pd) -> c_int;
    reg_mr = b"ibv_reg_mr\0": fn(*mut Pd, *mut c_void, usize, c_int) -> *mut Mr;
    dereg_mr = b"ibv_dereg_mr\0": fn(*mut Mr) -> c_int;
    create_comp_channel = b"ibv_create_comp_channel\0": fn(*mut Context) -> *mut CompChannel;
    destroy_comp_channel = b"ibv_destroy_comp_channel\0": fn(*mut CompChannel) -> c_int;
    create_cq = b"ibv_create_cq\0":
        fn(*mut Context, c_int, *mut c_void, *mut CompChannel, c_int) -> *mut Cq;
    destroy_cq = b"ibv_destroy_cq\0": fn(*mut Cq) -> c_int;
    get_cq_event = b"ibv_get_cq_event\0":
        fn(*mut CompChannel, *mut *mut Cq, *mut *mut c_void) -> c_int;
    ack_cq_events = b"ibv_ack_cq_events\0": fn(*mut Cq, c_uint);
    create_qp = b"ibv_create_qp\0": fn(*mut Pd, *mut QpInitAttr) -> *mut Qp;
    modify_qp = b"ibv_modify_qp\0": fn(*mut Qp, *mut QpAttr, c_int) -> c_int;
    destroy_qp = b"ibv_destroy_qp\0": fn(*mut Qp) -> c_int;
    wc_status_str = b"ibv_wc_status_str\0": fn(c_uint) -> *const c_char;
}

/// `ibv_fork_init`.
type ForkInit = unsafe extern "C" fn() -> c_int;

/// `ibv_reg_dmabuf_mr`: domain, offset in the DMA-BUF, bytes, address, file, rights. Libraries before
/// rdma-core 34 do not have it.
pub(crate) type RegDmaBuf = unsafe extern "C" fn(*mut Pd, u64, usize, u64, c_int, c_int) -> *mut Mr;

/// `mlx5dv_modify_qp_udp_sport`.
pub(crate) type ModifySourcePort = unsafe extern "C" fn(*mut Qp, u16) -> c_int;

/// The library, loaded.
pub struct Verbs {
    pub(crate) call: Functions,
    pub(crate) reg_dma_buf: Option<RegDmaBuf>,
    pub(crate) modify_source_port: Option<ModifySourcePort>,
    // Functions above are theirs: they are never unloaded before.
    _ibverbs: Library,
    _mlx5: Option<Library>,
}

impl std::fmt::Debug for Verbs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Verbs")
    }
}

impl Verbs {
    /// Loads `libibverbs.so.1`, and `libmlx5.so.1` if it is there.
    ///
    /// # Errors
    /// If the first is not there or lacks a function, as before rdma-core 32.
    pub fn load() -> Result<Arc<Verbs>, VerbsError> {
        let refused = |error: libloading::Error| VerbsError::Library {
            library: IBVERBS,
            why: error.to_string(),
        };
        let ibverbs = open(IBVERBS).map_err(refused)?;
        Verbs::of(ibverbs, open(MLX5).ok()).map_err(refused)
    }

    /// Prepares the libraries for use.
    pub(crate) fn of(
        ibverbs: Library,
        mlx5: Option<Library>,
    ) -> Result<Arc<Verbs>, libloading::Error> {
        let call = Functions::of(&ibverbs)?;
        // After a fork the device must go on with the pages of the parent, whoever writes first: on
        // kernels before 5.12 these are those of the child. It refuses if somebody else in this
        // process has registered memory before, and then it is as they wanted it.
        // SAFETY: the type is that of the header.
        if let Ok(fork_init) = unsafe { ibverbs.get::<ForkInit>(b"ibv_fork_init\0") } {
            // SAFETY: takes nothing, and may be called any number of times.
            let _ = unsafe { fork_init() };
        }
        // SAFETY: the type is that of the header.
        let reg_dma_buf = unsafe { ibverbs.get(b"ibv_reg_dmabuf_mr\0") }.ok().map(|found| *found);
        let modify_source_port = mlx5.as_ref().and_then(|library| {
            // SAFETY: the type is that of the header. Libraries before rdma-core 34 do not have it.
            unsafe { library.get(b"mlx5dv_modify_qp_udp_sport\0") }.ok().map(|found| *found)
        });
        Ok(Arc::new(Verbs {
            call,
            reg_dma_buf,
            modify_source_port,
            _ibverbs: ibverbs,
            _mlx5: mlx5,
        }))
    }

    /// The names of all devices. None is no error.
    ///
    /// # Errors
    /// If the library cannot tell, as without the kernel's part of it.
    pub fn devices(&self) -> Result<Vec<String>, VerbsError> {
        self.with_devices(|list| list.iter().map(|&device| self.name(device)).collect())
    }

    /// Calls `f` with all devices, which exist until it returns or for as long as they are open.
    pub(crate) fn with_devices<T>(
        &self,
        f: impl FnOnce(&[*mut Device]) -> T,
    ) -> Result<T, VerbsError> {
        let mut count = 0;
        // SAFETY: `count` is written; the list is ours until it is freed below.
        let list = unsafe { (self.call.get_device_list)(&mut count) };
        if list.is_null() {
            return Err(VerbsError::last("looking for RDMA devices"));
        }
        // SAFETY: the library says that it has `count` entries.
        let devices = unsafe { std::slice::from_raw_parts(list, count.max(0) as usize) };
        let result = f(devices);
        // SAFETY: `devices` is not used any more.
        unsafe { (self.call.free_device_list)(list) };
        Ok(result)
    }

    /// The name of a device of the list.
    pub(crate) fn name(&self, device: *mut Device) -> String {
        // SAFETY: the device is of a list that is not freed yet; its name is a C string inside it.
        let name = unsafe { (self.call.get_device_name)(device) };
        text(name)
    }

    /// What a status is called.
    pub(crate) fn status(&self, status: u32) -> String {
        // SAFETY: takes any number; gives a constant.
        text(unsafe { (self.call.wc_status_str)(status) })
    }
}

/// A C string of the library as one of ours; null is empty.
fn text(start: *const c_char) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: callers pass what the library calls a string, alive during this call.
    unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned()
}

pub(crate) fn open(name: &str) -> Result<Library, libloading::Error> {
    // SAFETY: what these libraries do when they are loaded is sound: they look at the environment.
    unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }
}

#[cfg(test)]
mod tests {
    use crate::fake;

    #[test]
    fn forks_are_told_of_before_a_device_is_looked_for() {
        let verbs = fake::library(
            r#"
            static int forks;
            int ibv_fork_init(void) { return forks++, 0; }
            void *ibv_get_device_list(int *count) {
                errno = forks == 1 ? ENOSYS : EINVAL;
                return 0;
            }
            "#,
            &["ibv_get_device_list"],
        );
        let error = verbs.devices().expect_err("the fake has none").to_string();
        assert!(error.contains("not implemented"), "{error}");
    }

    /// Libraries without it are older than the rest that is needed, or other people's.
    #[test]
    fn libraries_without_it_will_do() {
        fake::library("", &[]);
    }
}
