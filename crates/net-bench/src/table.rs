//! A plugin's table of functions of whichever version, behind one set of calls.

#![expect(unsafe_code, reason = "calls C functions through pointers")]

use crate::BenchError;
use libloading::Library;
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};
use weft_nccl_abi::{
    CommConfig, HANDLE_BYTES, Logger, NcclResult, NetAttributes, NetV8, NetV9, NetV10, NetV11,
    NetV12, Profiler, TRAFFIC_CLASS_UNDEFINED, Version, VirtualDevice4, VirtualDevice8,
};

#[derive(Clone, Copy)]
enum Table {
    V8(&'static NetV8),
    V9(&'static NetV9),
    V10(&'static NetV10),
    V11(&'static NetV11),
    V12(&'static NetV12),
}

/// Evaluates one expression with `t` bound to the table, whichever it is.
macro_rules! any {
    ($table:expr, $t:ident => $call:expr) => {
        match $table {
            Table::V8($t) => $call,
            Table::V9($t) => $call,
            Table::V10($t) => $call,
            Table::V11($t) => $call,
            Table::V12($t) => $call,
        }
    };
}

/// A plugin that was loaded. It stays so until the process ends, as its threads may.
#[derive(Clone, Copy)]
pub struct Plugin {
    table: Table,
    version: Version,
    merge_anywhere: Option<MergeAnywhere>,
}

/// Weft's own: whether NICs that NCCL could not place are merged.
type MergeAnywhere = extern "C" fn(bool);

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name(), self.version.name())
    }
}

/// What all versions say of a NIC.
#[derive(Clone, Debug, PartialEq)]
pub struct Properties {
    /// Its name.
    pub name: String,
    /// Its PCI device under `/sys`.
    pub pci_path: Option<String>,
    /// The same for all functions of one NIC.
    pub guid: u64,
    /// Bits of the memory that it can send from.
    pub pointer_support: i32,
    /// Mbps.
    pub speed: i32,
    /// Communicators that it can hold.
    pub max_comms: i32,
    /// Buffers of one receive.
    pub max_receives: i32,
    /// Most bytes of a message, where the version says so.
    pub max_bytes: Option<usize>,
    /// Numbers of the NICs of which it consists; none where the version does not say so.
    pub members: Vec<i32>,
    /// Its rail and its plane, where the version and the plugin know them.
    pub rail: Option<i16>,
    /// As `rail`.
    pub plane: Option<i16>,
}

/// One buffer of a receive.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The address of its first byte.
    pub start: *mut u8,
    /// Its length, in bytes.
    pub len: usize,
    /// Sends with this tag go into it.
    pub tag: i32,
    /// What `register` gave.
    pub memory: *mut c_void,
}

impl Plugin {
    /// Loads `path` and looks up one version.
    ///
    /// # Errors
    /// If the file is no library, or does not have that version.
    pub fn load(path: &Path, version: Version) -> Result<Plugin, BenchError> {
        // SAFETY: the user asked to run this library; its initialisers are trusted as NCCL trusts them.
        let library = unsafe { Library::new(path) }.map_err(|error| {
            BenchError::input(format!("--plugin {}: {}", path.display(), one_line(&error)))
        })?;
        // It is never unloaded: the tables below are used until the process ends.
        let library: &'static Library = Box::leak(Box::new(library));
        fn table<T>(library: &'static Library, version: Version) -> Option<&'static T> {
            // SAFETY: the symbol of that name is a table of that type by NCCL's contract.
            unsafe { library.get::<*const T>(version.symbol().as_bytes()).ok()?.as_ref() }
        }
        let found = match version {
            Version::V8 => table(library, version).map(Table::V8),
            Version::V9 => table(library, version).map(Table::V9),
            Version::V10 => table(library, version).map(Table::V10),
            Version::V11 => table(library, version).map(Table::V11),
            Version::V12 => table(library, version).map(Table::V12),
        };
        let table = found.ok_or_else(|| {
            BenchError::input(format!(
                "--plugin {}: it does not export {}; try another --abi",
                path.display(),
                version.symbol()
            ))
        })?;
        // SAFETY: Weft's own symbol, of that type.
        let merge_anywhere = unsafe { library.get::<MergeAnywhere>(b"weft_merge_anywhere") };
        let merge_anywhere = merge_anywhere.ok().map(|symbol| *symbol);
        let plugin = Plugin { table, version, merge_anywhere };
        plugin.merge_anywhere(true);
        Ok(plugin)
    }

    /// What it calls itself.
    #[must_use]
    pub fn name(&self) -> String {
        text(any!(self.table, t => t.name)).unwrap_or_default()
    }

    /// Whether Weft's plugin merges NICs without a PCI device, which NCCL could not place: as it is loaded it
    /// does. Other plugins have nothing of the kind.
    pub fn merge_anywhere(&self, allowed: bool) {
        if let Some(set) = self.merge_anywhere {
            set(allowed);
        }
    }

    /// The version that was asked for.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Calls `init`: once a communicator from version 11 on, and once a process before.
    ///
    /// # Errors
    /// What it returned.
    pub fn init(&self, logger: Option<Logger>) -> Result<Net, BenchError> {
        self.init_with(logger, None, TRAFFIC_CLASS_UNDEFINED)
    }

    /// The same with a profiler, which versions before 10 do not know.
    ///
    /// # Errors
    /// What it returned.
    pub fn init_profiled(
        &self,
        logger: Option<Logger>,
        profiler: Option<Profiler>,
    ) -> Result<Net, BenchError> {
        self.init_with(logger, profiler, TRAFFIC_CLASS_UNDEFINED)
    }

    /// The same for a communicator with a traffic class, which versions take from 10 on.
    ///
    /// # Errors
    /// What it returned.
    pub fn init_as(&self, logger: Option<Logger>, traffic_class: i32) -> Result<Net, BenchError> {
        self.init_with(logger, None, traffic_class)
    }

    fn init_with(
        &self,
        logger: Option<Logger>,
        profiler: Option<Profiler>,
        traffic_class: i32,
    ) -> Result<Net, BenchError> {
        let mut context = null_mut();
        let mut config = CommConfig { traffic_class };
        // SAFETY: arguments are as the version has them, and outlive the call.
        let result = unsafe {
            match self.table {
                Table::V8(t) => (t.init)(logger),
                Table::V9(t) => (t.init)(logger),
                Table::V10(t) => (t.init)(logger, profiler),
                Table::V11(t) => (t.init)(&raw mut context, 1, &raw mut config, logger, profiler),
                Table::V12(t) => (t.init)(&raw mut context, 1, &raw mut config, logger, profiler),
            }
        };
        checked("init", result)?;
        let profile = Cell::new(null_mut());
        Ok(Net { plugin: *self, context, traffic_class, profile })
    }
}

/// A plugin after `init`, with the context that it gave.
///
/// Pointers that go in come from the same `Net` and are not used after they were closed: that is the
/// caller's to see to, which is why most calls are unsafe.
#[derive(Debug)]
pub struct Net {
    plugin: Plugin,
    context: *mut c_void,
    traffic_class: i32,
    /// What sends and receives belong to, as the profiler knows it.
    pub profile: Cell<*mut c_void>,
}

#[expect(clippy::missing_safety_doc, reason = "said at the type, once for all")]
impl Net {
    /// How many NICs there are.
    ///
    /// # Errors
    /// What it returned.
    pub fn devices(&self) -> Result<i32, BenchError> {
        let mut count = 0;
        // SAFETY: writes one number.
        let result = unsafe { any!(self.plugin.table, t => (t.devices)(&raw mut count)) };
        checked("devices", result).map(|()| count)
    }

    /// What a NIC is.
    ///
    /// # Errors
    /// What it returned.
    pub fn properties(&self, device: i32) -> Result<Properties, BenchError> {
        macro_rules! ask {
            ($t:ident, $p:ident => $($base:ident).+, $more:expr) => {{
                // SAFETY: numbers and pointers, all of which may be zero.
                let mut $p = unsafe { std::mem::zeroed() };
                // SAFETY: it fills in the structure of its version.
                checked("getProperties", unsafe { ($t.get_properties)(device, &raw mut $p) })?;
                let (max_bytes, members, [rail, plane]) = $more;
                let known = |number: Option<i16>| number.filter(|number| *number >= 0);
                Properties {
                    name: text($($base).+.name).unwrap_or_default(),
                    pci_path: text($($base).+.pci_path),
                    guid: $($base).+.guid,
                    pointer_support: $($base).+.pointer_support,
                    speed: $($base).+.speed,
                    max_comms: $($base).+.max_comms,
                    max_receives: $($base).+.max_receives,
                    max_bytes,
                    members,
                    rail: known(rail),
                    plane: known(plane),
                }
            }};
        }
        /// What versions say from 9 on.
        macro_rules! more {
            ($base:expr, $place:expr) => {{
                let (count, devices) = ($base.virtual_device.count, $base.virtual_device.devices);
                let members = devices.into_iter().take(usize::try_from(count).unwrap_or(0));
                (Some($base.max_p2p_bytes), members.collect(), $place)
            }};
        }
        Ok(match self.plugin.table {
            Table::V8(t) => ask!(t, p => p, (None, Vec::new(), [None; 2])),
            Table::V9(t) => ask!(t, p => p, more!(p, [None; 2])),
            Table::V10(t) => ask!(t, p => p, more!(p, [None; 2])),
            Table::V11(t) => ask!(t, p => p.base, more!(p.base, [None; 2])),
            Table::V12(t) => ask!(t, p => p, more!(p, [Some(p.rail), Some(p.plane)])),
        })
    }

    /// Makes one NIC of several; its number. Versions do so from 9 on.
    ///
    /// # Errors
    /// What it returned; more NICs than the version takes.
    pub fn make_virtual(&self, devices: &[i32]) -> Result<i32, BenchError> {
        let (mut number, count) = (-1, int(devices.len())?);
        let out = &raw mut number;
        macro_rules! make {
            ($call:expr, $kind:ident, $room:expr) => {{
                let none = || BenchError::input("the plugin makes no virtual NICs");
                let call = $call.ok_or_else(none)?;
                let mut given = $kind { count, devices: [0; $room] };
                let chosen = given.devices.iter_mut().zip(devices);
                chosen.for_each(|(place, device)| *place = *device);
                // SAFETY: writes one number, and reads the structure of its version.
                unsafe { call(out, &raw mut given) }
            }};
        }
        let result = match self.plugin.table {
            Table::V8(_) => return Err(BenchError::input("version 8 has no virtual NICs")),
            Table::V9(t) => make!(t.make_v_device, VirtualDevice4, 4),
            Table::V10(t) => make!(t.make_v_device, VirtualDevice4, 4),
            Table::V11(t) => make!(t.make_v_device, VirtualDevice4, 4),
            Table::V12(t) => make!(t.make_v_device, VirtualDevice8, 8),
        };
        checked("makeVDevice", result).map(|()| number)
    }

    /// Listens: handle and listener.
    ///
    /// # Errors
    /// What it returned.
    pub fn listen(&self, device: i32) -> Result<([u8; HANDLE_BYTES], *mut c_void), BenchError> {
        let mut bytes = [0; HANDLE_BYTES];
        let handle = bytes.as_mut_ptr().cast();
        let mut listener = null_mut();
        // SAFETY: it writes at most the bytes of a handle, and one pointer.
        let result = unsafe {
            match self.plugin.table {
                Table::V8(t) => (t.listen)(device, handle, &raw mut listener),
                Table::V9(t) => (t.listen)(device, handle, &raw mut listener),
                Table::V10(t) => (t.listen)(device, handle, &raw mut listener),
                Table::V11(t) => (t.listen)(self.context, device, handle, &raw mut listener),
                Table::V12(t) => (t.listen)(self.context, device, handle, &raw mut listener),
            }
        };
        checked("listen", result).map(|()| (bytes, listener))
    }

    /// Connects, or goes on to: null while it is under way. The handle stays in its place meanwhile:
    /// plugins may know it by its address, or keep notes in it.
    ///
    /// # Errors
    /// What it returned.
    pub fn connect(
        &self,
        device: i32,
        handle: &mut [u8; HANDLE_BYTES],
    ) -> Result<*mut c_void, BenchError> {
        let mut config = CommConfig { traffic_class: self.traffic_class };
        let (config, handle) = (&raw mut config, handle.as_mut_ptr().cast());
        let (mut comm, mut offload) = (null_mut(), null_mut());
        let (out, offload) = (&raw mut comm, &raw mut offload);
        // SAFETY: the handle has its bytes, the rest is ours.
        let result = unsafe {
            match self.plugin.table {
                Table::V8(t) => (t.connect)(device, handle, out, offload),
                Table::V9(t) => (t.connect)(device, handle, out, offload),
                Table::V10(t) => (t.connect)(device, config, handle, out, offload),
                Table::V11(t) => (t.connect)(self.context, device, handle, out, offload),
                Table::V12(t) => (t.connect)(self.context, device, handle, out, offload),
            }
        };
        checked("connect", result).map(|()| comm)
    }

    /// The receiving half, or null while there is none.
    ///
    /// # Errors
    /// What it returned.
    pub unsafe fn accept(&self, listener: *mut c_void) -> Result<*mut c_void, BenchError> {
        let (mut comm, mut offload) = (null_mut(), null_mut());
        // SAFETY: by the contract of the type.
        let result = unsafe {
            any!(self.plugin.table, t => (t.accept)(listener, &raw mut comm, &raw mut offload))
        };
        checked("accept", result).map(|()| comm)
    }

    /// Makes host memory known.
    ///
    /// # Errors
    /// What it returned.
    pub unsafe fn register(
        &self,
        comm: *mut c_void,
        start: *mut u8,
        len: usize,
    ) -> Result<*mut c_void, BenchError> {
        let mut memory = null_mut();
        let (start, kind) = (start.cast(), weft_nccl_abi::POINTER_HOST);
        // SAFETY: by the contract of the type; the memory is the caller's.
        let result = unsafe {
            any!(self.plugin.table, t => (t.reg_mr)(comm, start, len, kind, &raw mut memory))
        };
        checked("regMr", result).map(|()| memory)
    }

    /// Makes CUDA memory known that is a DMA-BUF from an offset on.
    ///
    /// # Errors
    /// What it returned; that the plugin has no such call.
    pub unsafe fn register_dma_buf(
        &self,
        comm: *mut c_void,
        (start, len): (*mut u8, usize),
        (file, offset): (c_int, u64),
    ) -> Result<*mut c_void, BenchError> {
        let Some(call) = any!(self.plugin.table, t => t.reg_mr_dma_buf) else {
            return Err(BenchError::input("the plugin has no regMrDmaBuf"));
        };
        let mut memory = null_mut();
        let (start, kind) = (start.cast(), weft_nccl_abi::POINTER_CUDA);
        // SAFETY: by the contract of the type; the memory is the caller's.
        let result = unsafe { call(comm, start, len, kind, offset, file, &raw mut memory) };
        checked("regMrDmaBuf", result).map(|()| memory)
    }

    /// Begins to see to it that what was received is where it belongs: a request, or null where there is
    /// nothing to wait for.
    ///
    /// # Errors
    /// What it returned; a size that is no `int`.
    pub unsafe fn flush(
        &self,
        comm: *mut c_void,
        parts: &[Part],
    ) -> Result<*mut c_void, BenchError> {
        let Some(call) = any!(self.plugin.table, t => t.iflush) else { return Ok(null_mut()) };
        let mut starts: Vec<*mut c_void> = parts.iter().map(|part| part.start.cast()).collect();
        let mut sizes: Vec<c_int> =
            parts.iter().map(|part| int(part.len)).collect::<Result<_, _>>()?;
        let mut memory: Vec<*mut c_void> = parts.iter().map(|part| part.memory).collect();
        let mut request = null_mut();
        let (count, out) = (int(parts.len())?, &raw mut request);
        let (data, lens, keys) = (starts.as_mut_ptr(), sizes.as_mut_ptr(), memory.as_mut_ptr());
        // SAFETY: by the contract of the type; all arrays have `count` entries.
        checked("iflush", unsafe { call(comm, count, data, lens, keys, out) }).map(|()| request)
    }

    /// Forgets it.
    ///
    /// # Errors
    /// What it returned.
    pub unsafe fn deregister(
        &self,
        comm: *mut c_void,
        memory: *mut c_void,
    ) -> Result<(), BenchError> {
        // SAFETY: by the contract of the type.
        checked("deregMr", unsafe { any!(self.plugin.table, t => (t.dereg_mr)(comm, memory)) })
    }

    /// Sends; a null request: ask again.
    ///
    /// # Errors
    /// What it returned; a size that version 8 cannot express.
    pub unsafe fn isend(
        &self,
        comm: *mut c_void,
        start: *const u8,
        len: usize,
        tag: i32,
        memory: *mut c_void,
    ) -> Result<*mut c_void, BenchError> {
        let data = start.cast_mut().cast();
        let mut request = null_mut();
        let out = &raw mut request;
        // SAFETY: by the contract of the type; the memory is the caller's until the request is over.
        let result = unsafe {
            match self.plugin.table {
                Table::V8(t) => (t.isend)(comm, data, int(len)?, tag, memory, out),
                Table::V9(t) => (t.isend)(comm, data, len, tag, memory, out),
                Table::V10(t) => (t.isend)(comm, data, len, tag, memory, self.profile.get(), out),
                Table::V11(t) => (t.isend)(comm, data, len, tag, memory, self.profile.get(), out),
                Table::V12(t) => (t.isend)(comm, data, len, tag, memory, self.profile.get(), out),
            }
        };
        checked("isend", result).map(|()| request)
    }

    /// Receives into several buffers; a null request: ask again. `optional`: as NCCL asks where it
    /// does not need to know when it is done.
    ///
    /// # Errors
    /// What it returned; a size that version 8 cannot express.
    pub unsafe fn irecv(
        &self,
        comm: *mut c_void,
        parts: &[Part],
        optional: bool,
    ) -> Result<*mut c_void, BenchError> {
        let mut starts: Vec<*mut c_void> = parts.iter().map(|part| part.start.cast()).collect();
        let mut sizes: Vec<usize> = parts.iter().map(|part| part.len).collect();
        let mut tags: Vec<c_int> = parts.iter().map(|part| part.tag).collect();
        let mut memory: Vec<*mut c_void> = parts.iter().map(|part| part.memory).collect();
        let mut profile = vec![self.profile.get(); parts.len()];
        let count = int(parts.len())?;
        let wanted = if optional { weft_nccl_abi::OPTIONAL_COMPLETION } else { 0 };
        let mut request = std::ptr::without_provenance_mut(wanted);
        let out = &raw mut request;
        let (data, lens) = (starts.as_mut_ptr(), sizes.as_mut_ptr());
        let (tags, keys) = (tags.as_mut_ptr(), memory.as_mut_ptr());
        let handles = profile.as_mut_ptr();
        // SAFETY: by the contract of the type; all arrays have `count` entries.
        let result = unsafe {
            match self.plugin.table {
                Table::V8(t) => {
                    let mut lens: Vec<c_int> =
                        sizes.iter().map(|len| int(*len)).collect::<Result<_, _>>()?;
                    (t.irecv)(comm, count, data, lens.as_mut_ptr(), tags, keys, out)
                }
                Table::V9(t) => (t.irecv)(comm, count, data, lens, tags, keys, out),
                Table::V10(t) => (t.irecv)(comm, count, data, lens, tags, keys, handles, out),
                Table::V11(t) => (t.irecv)(comm, count, data, lens, tags, keys, handles, out),
                Table::V12(t) => (t.irecv)(comm, count, data, lens, tags, keys, handles, out),
            }
        };
        checked("irecv", result).map(|()| request)
    }

    /// Whether a request is done; then it is over, and `sizes` are filled in.
    ///
    /// # Errors
    /// What it returned.
    pub unsafe fn test(
        &self,
        request: *mut c_void,
        sizes: &mut [c_int; 8],
    ) -> Result<bool, BenchError> {
        let mut done = 0;
        // SAFETY: by the contract of the type; a receive has no more than 8 buffers.
        let result = unsafe {
            any!(self.plugin.table, t => (t.test)(request, &raw mut done, sizes.as_mut_ptr()))
        };
        checked("test", result).map(|()| done != 0)
    }

    /// Closes the sending half.
    ///
    /// # Errors
    /// What it returned.
    pub unsafe fn close_send(&self, comm: *mut c_void) -> Result<(), BenchError> {
        // SAFETY: by the contract of the type.
        checked("closeSend", unsafe { any!(self.plugin.table, t => (t.close_send)(comm)) })
    }

    /// Closes the receiving half.
    ///
    /// # Errors
    /// What it returned.
    pub unsafe fn close_recv(&self, comm: *mut c_void) -> Result<(), BenchError> {
        // SAFETY: by the contract of the type.
        checked("closeRecv", unsafe { any!(self.plugin.table, t => (t.close_recv)(comm)) })
    }

    /// Closes a listener.
    ///
    /// # Errors
    /// What it returned.
    pub unsafe fn close_listen(&self, listener: *mut c_void) -> Result<(), BenchError> {
        // SAFETY: by the contract of the type.
        checked("closeListen", unsafe { any!(self.plugin.table, t => (t.close_listen)(listener)) })
    }

    /// Says what traffic is to come, where the version and the plugin take it.
    ///
    /// # Errors
    /// What it returned.
    pub fn attributes(&self, mut attributes: NetAttributes) -> Result<(), BenchError> {
        let call = match self.plugin.table {
            Table::V11(t) => t.set_net_attr,
            Table::V12(t) => t.set_net_attr,
            _ => None,
        };
        let Some(call) = call else { return Ok(()) };
        // SAFETY: the context is that of `init`.
        checked("setNetAttr", unsafe { call(self.context, &raw mut attributes) })
    }

    /// Ends it, where the version knows how to.
    ///
    /// # Errors
    /// What it returned.
    pub fn finalize(self) -> Result<(), BenchError> {
        // SAFETY: the context is that of `init`, and it is used no more.
        let result = unsafe {
            match self.plugin.table {
                Table::V11(t) => (t.finalize)(self.context),
                Table::V12(t) => (t.finalize)(self.context),
                _ => NcclResult::SUCCESS,
            }
        };
        checked("finalize", result)
    }
}

fn checked(call: &'static str, result: NcclResult) -> Result<(), BenchError> {
    if result.is_success() { Ok(()) } else { Err(BenchError::Plugin { call, result }) }
}

fn int(number: usize) -> Result<c_int, BenchError> {
    let wrong = |_| BenchError::input(format!("{number} bytes are too many for this version"));
    c_int::try_from(number).map_err(wrong)
}

fn text(pointer: *const std::ffi::c_char) -> Option<String> {
    if std::ptr::eq(pointer, null()) {
        return None;
    }
    // SAFETY: names and paths of a plugin are C strings that stay.
    let text = unsafe { CStr::from_ptr(pointer) };
    Some(text.to_string_lossy().into_owned())
}

fn one_line(error: &libloading::Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
