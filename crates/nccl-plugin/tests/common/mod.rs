//! The plugin as NCCL finds it, a file, and channels of a process to itself.

#![allow(
    unsafe_code,
    dead_code,
    unreachable_pub,
    reason = "C functions; each test uses some of it"
)]

pub mod job;

use std::ffi::{CString, c_int, c_void};
use std::path::PathBuf;
use std::sync::Once;
use std::time::{Duration, Instant};
use weft_nccl_abi::Version;
use weft_net_bench::table::{Net, Part, Plugin};
use weft_net_bench::{BenchError, log};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(300);

/// The library that cargo built beside the tests.
pub fn library() -> PathBuf {
    let name =
        format!("{}nccl_net_weft{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let test = std::env::current_exe().expect("a path");
    let found = test.ancestors().skip(1).take(2).map(|folder| folder.join(&name));
    found.into_iter().find(|path| path.is_file()).expect("cargo builds the library for its tests")
}

/// The address of a symbol of the library.
pub fn symbol<T>(name: &str) -> &'static T {
    let path = CString::new(library().to_str().expect("text")).expect("no zero");
    let name = CString::new(name).expect("no zero");
    // SAFETY: a library that is never unloaded, and tables that NCCL's contract says are there.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        assert!(!library.is_null());
        libc::dlsym(library, name.as_ptr()).cast::<T>().as_ref().expect("it is exported")
    }
}

/// Sets variables of the environment, the same in all tests of a file: loopback, and what is given.
pub fn environment(more: &[(&str, &str)]) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (name, value) in [("WEFT_IFNAME", "=lo")].iter().chain(more) {
            // SAFETY: every test comes by here before it does anything, so nobody reads meanwhile.
            unsafe { std::env::set_var(name, value) };
        }
    });
}

/// The plugin of one version, after `init`.
pub fn net(version: Version) -> Net {
    environment(&[]);
    let plugin = Plugin::load(&library(), version).expect("the version is there");
    plugin.init(Some(log::logger())).expect("init works")
}

/// Both ends of a channel, with one buffer each.
pub struct Pair<'a> {
    pub net: &'a Net,
    pub send: *mut c_void,
    pub receive: *mut c_void,
    pub out: Vec<u8>,
    pub into: Vec<u8>,
    send_memory: *mut c_void,
    receive_memory: *mut c_void,
}

/// Asks until there is an answer.
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "{what} takes too long");
        std::thread::yield_now();
    }
}

impl<'a> Pair<'a> {
    /// Connects, with so many bytes of buffer.
    pub fn new(net: &'a Net, room: usize) -> Pair<'a> {
        Pair::between(net, (0, 0), room)
    }

    /// The same from one NIC to another.
    pub fn between(net: &'a Net, (from, to): (i32, i32), room: usize) -> Pair<'a> {
        let (mut handle, listener) = net.listen(to).expect("it listens");
        let mut send: *mut c_void = std::ptr::null_mut();
        // SAFETY: the listener is open.
        let mut receive = unsafe { net.accept(listener).expect("it accepts") };
        assert!(receive.is_null(), "nobody has connected yet");
        until("connecting", || {
            if send.is_null() {
                send = net.connect(from, &mut handle).expect("it connects");
            }
            if receive.is_null() {
                // SAFETY: the listener is open.
                receive = unsafe { net.accept(listener).expect("it accepts") };
            }
            (!send.is_null() && !receive.is_null()).then_some(())
        });
        // SAFETY: it is open.
        unsafe { net.close_listen(listener).expect("it closes") };
        Pair::of(net, (send, receive), room)
    }

    /// Of halves that are there, with so many bytes of buffer each.
    pub fn of(net: &'a Net, (send, receive): (*mut c_void, *mut c_void), room: usize) -> Pair<'a> {
        let (mut out, mut into) = (vec![0; room], vec![0; room]);
        // SAFETY: both are open; buffers live as long as the pair.
        let (send_memory, receive_memory) = unsafe {
            let registered = net.register(send, out.as_mut_ptr(), room);
            (
                registered.expect("it registers"),
                net.register(receive, into.as_mut_ptr(), room).expect("it registers"),
            )
        };
        Pair { net, send, receive, out, into, send_memory, receive_memory }
    }

    /// Tries to send a part of `out`.
    pub fn try_send(&self, from: usize, len: usize, tag: i32) -> Option<*mut c_void> {
        assert!(from + len <= self.out.len());
        // SAFETY: within the buffer, which stays; tests leave alone what is under way.
        let request = unsafe {
            self.net.isend(self.send, self.out.as_ptr().add(from), len, tag, self.send_memory)
        };
        let request = request.expect("it sends");
        (!request.is_null()).then_some(request)
    }

    /// Tries to receive into parts of `into`: from, bytes, tag.
    pub fn try_receive(
        &mut self,
        parts: &[(usize, usize, i32)],
        optional: bool,
    ) -> Option<*mut c_void> {
        let start = self.into.as_mut_ptr();
        let part = |(from, len, tag): &(usize, usize, i32)| {
            assert!(from + len <= self.into.len());
            // SAFETY: within the buffer.
            let start = unsafe { start.add(*from) };
            Part { start, len: *len, tag: *tag, memory: self.receive_memory }
        };
        let parts: Vec<Part> = parts.iter().map(part).collect();
        // SAFETY: as above.
        let request = unsafe { self.net.irecv(self.receive, &parts, optional) };
        let request = request.expect("it receives");
        (!request.is_null()).then_some(request)
    }

    /// Sends, asking again where it must.
    pub fn send(&self, from: usize, len: usize, tag: i32) -> *mut c_void {
        until("isend", || self.try_send(from, len, tag))
    }

    /// Receives, asking again where it must.
    pub fn receive(&mut self, parts: &[(usize, usize, i32)]) -> *mut c_void {
        until("irecv", || self.try_receive(parts, false))
    }

    /// Sizes, if it is done.
    pub fn test(&self, request: *mut c_void) -> Option<[c_int; 8]> {
        self.try_test(request).expect("it goes well")
    }

    /// The same, where it may go wrong.
    pub fn try_test(&self, request: *mut c_void) -> Result<Option<[c_int; 8]>, BenchError> {
        let mut sizes = [-1; 8];
        // SAFETY: a request that is not over.
        unsafe { self.net.test(request, &mut sizes) }.map(|done| done.then_some(sizes))
    }

    /// How a request ends.
    pub fn outcome(&self, request: *mut c_void) -> Result<[c_int; 8], BenchError> {
        until("a request", || self.try_test(request).transpose())
    }

    /// Waits until it is done.
    pub fn wait(&self, request: *mut c_void) -> [c_int; 8] {
        until("a request", || self.test(request))
    }

    /// A message, and waits for its end.
    pub fn transfer(&mut self, len: usize) {
        let receive = self.receive(&[(0, len, 0)]);
        let send = self.send(0, len, 0);
        self.wait(send);
        assert_eq!(self.wait(receive)[0], len as c_int);
    }

    /// What `into` is known by.
    pub fn memory(&self) -> *mut c_void {
        self.receive_memory
    }

    /// Closes both ends.
    pub fn close(self) {
        // SAFETY: all are open, and used no more.
        unsafe {
            self.net.deregister(self.send, self.send_memory).expect("it forgets");
            self.net.deregister(self.receive, self.receive_memory).expect("it forgets");
            self.net.close_send(self.send).expect("it closes");
            self.net.close_recv(self.receive).expect("it closes");
        }
    }
}

/// Contents that tell where they belong.
pub fn fill(data: &mut [u8], message: usize) {
    for (at, byte) in data.iter_mut().enumerate() {
        *byte = (at.wrapping_mul(131) ^ message.wrapping_mul(29) ^ (at >> 11)) as u8;
    }
}

/// Whether they are still there.
pub fn is_filled(data: &[u8], message: usize) -> bool {
    let expected = |at: usize| (at.wrapping_mul(131) ^ message.wrapping_mul(29) ^ (at >> 11)) as u8;
    data.iter().enumerate().all(|(at, byte)| *byte == expected(at))
}
