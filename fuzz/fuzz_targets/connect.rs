//! The plugin's `connect` with handles that nobody made, through the table that NCCL calls: an error
//! or null, no crash, and a channel between honest ends works all the while.
//!
//! Handles that pass for real lead to loopback only: a fuzzer calls no strangers.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nccl_net_weft::versions::ncclNetPlugin_v12 as NET;
use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr::null_mut;
use weft_nccl_abi::{CommConfig, HANDLE_BYTES};

struct Honest {
    context: *mut c_void,
    handle: [u8; HANDLE_BYTES],
    send: *mut c_void,
    receive: *mut c_void,
    tried: u64,
    /// Open to the end; here so that it is no leak.
    _listener: *mut c_void,
}

thread_local! {
    static HONEST: RefCell<Honest> = RefCell::new(begin());
}

fn begin() -> Honest {
    // SAFETY: the first thing that happens, in one thread; then calls as the interface has them.
    unsafe {
        std::env::set_var("WEFT_IFNAME", "=lo");
        std::env::set_var("WEFT_GIVE_UP", "2s");
        let (mut context, mut config) = (null_mut(), CommConfig { traffic_class: -1 });
        assert!((NET.init)(&raw mut context, 1, &raw mut config, None, None).is_success());
        let mut handle = [0_u8; HANDLE_BYTES];
        let mut listener: *mut c_void = null_mut();
        let place = handle.as_mut_ptr().cast();
        assert!((NET.listen)(context, 0, place, &raw mut listener).is_success());
        let mut send: *mut c_void = null_mut();
        let mut receive: *mut c_void = null_mut();
        while send.is_null() || receive.is_null() {
            if send.is_null() {
                let result = (NET.connect)(context, 0, place, &raw mut send, null_mut());
                assert!(result.is_success());
            }
            if receive.is_null() {
                assert!((NET.accept)(listener, &raw mut receive, null_mut()).is_success());
            }
        }
        Honest { context, handle, send, receive, tried: 0, _listener: listener }
    }
}

impl Honest {
    fn transfer(&self) {
        let mut out = [9_u8; 300];
        let mut into = [0_u8; 300];
        let (mut start, mut size, mut tag) = (into.as_mut_ptr().cast(), into.len(), 0);
        let mut key: *mut c_void = null_mut();
        let (mut send, mut receive) = (null_mut(), null_mut());
        // SAFETY: as the interface has it; both requests are done before the buffers go.
        unsafe {
            let (s, z, t, k) = (&raw mut start, &raw mut size, &raw mut tag, &raw mut key);
            let result = (NET.irecv)(self.receive, 1, s, z, t, k, null_mut(), &raw mut receive);
            assert!(result.is_success());
            let (data, len) = (out.as_mut_ptr().cast(), out.len());
            let request = &raw mut send;
            let result = (NET.isend)(self.send, data, len, 0, null_mut(), null_mut(), request);
            assert!(result.is_success());
            for request in [send, receive] {
                let mut done = 0;
                while done == 0 {
                    assert!((NET.test)(request, &raw mut done, null_mut()).is_success());
                }
            }
        }
        assert!(into == [9; 300]);
    }
}

fuzz_target!(|data: &[u8]| {
    HONEST.with_borrow_mut(|honest| {
        let Some((how, data)) = data.split_first() else { return };
        let mut bytes = [0; HANDLE_BYTES];
        // Garbage, or a real handle with some bytes of it changed.
        if how & 1 == 1 {
            bytes = honest.handle;
        }
        for (byte, change) in bytes.iter_mut().zip(data) {
            *byte ^= change;
        }
        if how & 2 == 2 {
            bytes[..6].copy_from_slice(&honest.handle[..6]);
            // Loopback, at the real port or one where nobody listens.
            bytes[8..12].copy_from_slice(&[127, 0, 0, 1]);
            bytes[6..8].copy_from_slice(if how & 4 == 4 { &honest.handle[6..8] } else { &[0, 9] });
            let check = crc32c::crc32c(&bytes[..HANDLE_BYTES - 4]).to_be_bytes();
            bytes[HANDLE_BYTES - 4..].copy_from_slice(&check);
        } else if bytes == honest.handle {
            return;
        }
        let mut comm: *mut c_void = null_mut();
        for _ in 0..3 {
            let place = bytes.as_mut_ptr().cast();
            // SAFETY: as the interface has it.
            let result =
                unsafe { (NET.connect)(honest.context, 0, place, &raw mut comm, null_mut()) };
            if !result.is_success() || !comm.is_null() {
                break;
            }
        }
        if !comm.is_null() {
            // SAFETY: it is open.
            assert!(unsafe { (NET.close_send)(comm) }.is_success());
        }
        honest.tried += 1;
        if honest.tried % 64 == 0 {
            honest.transfer();
        }
    });
});
