//! A plugin as a [`NetworkPlugin`].

#![expect(unsafe_code, reason = "calls a plugin, whose comms and requests are pointers")]

use crate::network::{Handle, NetworkPlugin, Span};
use crate::table::{Net, Part, Plugin};
use crate::{BenchError, log};
use std::ffi::{c_int, c_void};
use weft_nccl_abi::{CommAttributes, NetAttributes, TRAFFIC_CLASS_UNDEFINED, UNDEFINED};

/// A NIC of a plugin, after `init`.
#[derive(Debug)]
pub struct PluginNetwork {
    net: Net,
    device: i32,
    about: String,
}

/// One half of a channel, with its registered spans.
#[derive(Debug)]
pub struct Half {
    comm: *mut c_void,
    memory: Vec<*mut c_void>,
}

/// A send or receive under way.
#[derive(Clone, Copy, Debug)]
pub struct Posted {
    request: *mut c_void,
    /// Bytes that were posted.
    bytes: usize,
}

/// What `test` finds in the place of a size. Not all plugins write one.
const UNTOLD: c_int = -1;

impl PluginNetwork {
    /// Initialises the plugin and picks a NIC, or makes one of several.
    ///
    /// # Errors
    /// If it fails, or does not have those NICs, does not make one of them, or cannot send from host memory.
    pub fn open(
        plugin: Plugin,
        devices: &[i32],
        traffic_class: Option<i32>,
    ) -> Result<PluginNetwork, BenchError> {
        let class = traffic_class.unwrap_or(TRAFFIC_CLASS_UNDEFINED);
        let net = plugin.init_as(Some(log::logger()), class)?;
        let count = net.devices()?;
        if let Some(device) = devices.iter().find(|device| !(0..count).contains(*device)) {
            return Err(BenchError::input(format!(
                "--device {device}: the plugin has {count}; they count from 0"
            )));
        }
        let device = match devices {
            [device] => *device,
            several => net.make_virtual(several)?,
        };
        let properties = net.properties(device)?;
        if properties.pointer_support & weft_nccl_abi::POINTER_HOST == 0 {
            return Err(BenchError::input(format!(
                "--device {device}: {} cannot send from host memory",
                properties.name
            )));
        }
        let (plugin, version) = (plugin.name(), plugin.version().name());
        let about = format!("{plugin} {version} on {}", properties.name);
        Ok(PluginNetwork { net, device, about })
    }

    /// Ends it.
    ///
    /// # Errors
    /// What the plugin returned.
    pub fn finalize(self) -> Result<(), BenchError> {
        self.net.finalize()
    }

    fn half(&self, comm: *mut c_void, spans: &[Span]) -> Result<Half, BenchError> {
        // SAFETY: the comm is fresh, and spans outlive it.
        let register = |span: &Span| unsafe { self.net.register(comm, span.start, span.len) };
        Ok(Half { comm, memory: spans.iter().map(register).collect::<Result<_, _>>()? })
    }

    fn forget(&self, half: &Half) -> Result<(), BenchError> {
        // SAFETY: each was registered with this comm, and is forgotten once.
        half.memory.iter().try_for_each(|memory| unsafe { self.net.deregister(half.comm, *memory) })
    }

    /// The size that the plugin tells, else what was posted: whether so much came the contents show.
    fn test(&self, posted: Posted) -> Result<Option<usize>, BenchError> {
        let mut sizes = [UNTOLD; 8];
        // SAFETY: callers keep a request only until it is done.
        let done = unsafe { self.net.test(posted.request, &mut sizes)? };
        Ok(done.then(|| match sizes[0] {
            UNTOLD => posted.bytes,
            told => usize::try_from(told).unwrap_or(usize::MAX),
        }))
    }
}

impl NetworkPlugin for PluginNetwork {
    type Listener = *mut c_void;
    type Connecting = Box<Handle>;
    type Sender = Half;
    type Receiver = Half;
    type Request = Posted;

    fn describe(&self) -> String {
        self.about.clone()
    }

    fn listen(&self) -> Result<(*mut c_void, Handle), BenchError> {
        self.net.listen(self.device).map(|(handle, listener)| (listener, handle))
    }

    fn connect(&self, handle: &Handle) -> Result<Box<Handle>, BenchError> {
        Ok(Box::new(*handle))
    }

    fn connected(
        &self,
        connecting: &mut Box<Handle>,
        spans: &[Span],
    ) -> Result<Option<Half>, BenchError> {
        let comm = self.net.connect(self.device, connecting)?;
        if comm.is_null() { Ok(None) } else { self.half(comm, spans).map(Some) }
    }

    fn accept(
        &self,
        listener: &mut *mut c_void,
        spans: &[Span],
    ) -> Result<Option<Half>, BenchError> {
        // SAFETY: it is open until it has given its channel.
        let comm = unsafe { self.net.accept(*listener)? };
        if comm.is_null() {
            return Ok(None);
        }
        // SAFETY: as above; the caller asks no more.
        unsafe { self.net.close_listen(*listener)? };
        self.half(comm, spans).map(Some)
    }

    unsafe fn isend(
        &self,
        sender: &mut Half,
        span: usize,
        part: Span,
        tag: i32,
    ) -> Result<Option<Posted>, BenchError> {
        let memory = sender.memory[span];
        // SAFETY: the caller sees to the memory.
        let request = unsafe { self.net.isend(sender.comm, part.start, part.len, tag, memory)? };
        Ok((!request.is_null()).then_some(Posted { request, bytes: part.len }))
    }

    unsafe fn irecv(
        &self,
        receiver: &mut Half,
        span: usize,
        part: Span,
        tag: i32,
    ) -> Result<Option<Posted>, BenchError> {
        let memory = receiver.memory[span];
        let part = Part { start: part.start, len: part.len, tag, memory };
        // SAFETY: the caller sees to the memory.
        let request = unsafe { self.net.irecv(receiver.comm, &[part], false)? };
        Ok((!request.is_null()).then_some(Posted { request, bytes: part.len }))
    }

    fn sent(&self, _: &mut Half, request: &Posted) -> Result<Option<usize>, BenchError> {
        self.test(*request)
    }

    fn received(&self, _: &mut Half, request: &Posted) -> Result<Option<usize>, BenchError> {
        self.test(*request)
    }

    fn close(&self, sender: Half, receiver: Half) -> Result<(), BenchError> {
        self.forget(&sender)?;
        self.forget(&receiver)?;
        // SAFETY: both are open, and used no more.
        unsafe {
            self.net.close_send(sender.comm)?;
            self.net.close_recv(receiver.comm)
        }
    }

    fn expect(&self, peers: i32, flows: i32) -> Result<(), BenchError> {
        let each = CommAttributes {
            max_concurrent_peers: peers,
            min_concurrent_peers: peers,
            max_flows_per_peer: flows,
            min_flows_per_peer: flows,
        };
        let unknown = UNDEFINED.cast_unsigned();
        self.net.attributes(NetAttributes {
            send: each,
            receive: each,
            operation: unknown,
            algorithm: unknown,
            protocol: unknown,
        })
    }
}
