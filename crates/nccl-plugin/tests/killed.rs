//! A rank that is killed: the others' requests and calls fail within a second, on either side of a channel.

#![expect(unsafe_code, reason = "drives C functions")]

mod common;

use common::{net, until};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use weft_nccl_abi::{HANDLE_BYTES, NcclResult, Version};
use weft_net_bench::BenchError;
use weft_net_bench::table::{Net, Part};

const CHILD: &str = "KILLED_TEST_CHILD";

fn connect(net: &Net, handle: &mut [u8; HANDLE_BYTES]) -> *mut std::ffi::c_void {
    until("connecting", || {
        let send = net.connect(0, handle).expect("it connects");
        (!send.is_null()).then_some(send)
    })
}

fn accept(net: &Net, listener: *mut std::ffi::c_void) -> *mut std::ffi::c_void {
    until("accepting", || {
        // SAFETY: the listener is open.
        let receive = unsafe { net.accept(listener).expect("it accepts") };
        (!receive.is_null()).then_some(receive)
    })
}

/// One message of a handle's length.
fn exchange(net: &Net, post: impl Fn() -> *mut std::ffi::c_void) {
    let request = until("a request", || Some(post()).filter(|request| !request.is_null()));
    let mut sizes = [0; 8];
    // SAFETY: the request is not over.
    until("a message", || unsafe { net.test(request, &mut sizes) }.expect("works").then_some(()));
}

/// The rank that is killed: a channel each way, and then nothing.
fn be_killed(net: &Net, hex: &str) -> ! {
    let byte = |at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("two digits");
    let send = connect(net, &mut std::array::from_fn(byte));
    let (own, listener) = net.listen(0).expect("it listens");
    let none = std::ptr::null_mut();
    // SAFETY: the handle stays until the message is over.
    exchange(net, || unsafe { net.isend(send, own.as_ptr(), own.len(), 0, none) }.expect("sends"));
    accept(net, listener);
    std::thread::sleep(Duration::from_secs(60));
    std::process::exit(0);
}

#[test]
fn a_rank_that_is_killed_is_noticed_on_both_sides() {
    let net = net(Version::V12);
    if let Ok(hex) = std::env::var(CHILD) {
        be_killed(&net, &hex);
    }
    let (handle, listener) = net.listen(0).expect("it listens");
    let hex: String = handle.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut rank = Command::new(std::env::current_exe().expect("a test"))
        .args(["a_rank_that_is_killed_is_noticed_on_both_sides", "--exact"])
        .env(CHILD, hex)
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let receive = accept(&net, listener);
    let none = std::ptr::null_mut();
    let mut its = [0; HANDLE_BYTES];
    let part = Part { start: its.as_mut_ptr(), len: its.len(), tag: 0, memory: none };
    // SAFETY: the buffer stays until the requests are over, or to the end.
    exchange(&net, || unsafe { net.irecv(receive, &[part], false) }.expect("receives"));
    let send = connect(&net, &mut its);
    let mut buffer = [0_u8; 64];
    let part = Part { start: buffer.as_mut_ptr(), len: buffer.len(), tag: 0, memory: none };
    // SAFETY: as above.
    let received = unsafe { net.irecv(receive, &[part], false) }.expect("it is taken");
    let long = vec![1_u8; 100_000];
    // SAFETY: the message stays. The other side has no buffer for it, and it is too long to go without.
    let sent = unsafe { net.isend(send, long.as_ptr(), long.len(), 0, none) }.expect("it is taken");
    rank.kill().expect("it is killed");
    rank.wait().expect("it ends");
    let killed = Instant::now();
    let mut sizes = [0; 8];
    let mut error_of = |what, request| {
        // SAFETY: the request is not over.
        let error = until(what, || unsafe { net.test(request, &mut sizes) }.err());
        assert!(killed.elapsed() < Duration::from_secs(1), "{what}: {:?}", killed.elapsed());
        error
    };
    let errors = [error_of("the receiver", received), error_of("the sender", sent)];
    // SAFETY: nothing is taken any more.
    let later = unsafe { net.isend(send, its.as_ptr(), 8, 0, none) }.expect_err("it has failed");
    for error in errors.into_iter().chain([later]) {
        let BenchError::Plugin { result, .. } = error else { panic!("{error}") };
        assert_eq!(result, NcclResult::REMOTE_ERROR);
    }
    // SAFETY: all are open, and closed here only.
    unsafe {
        net.close_recv(receive).expect("it closes");
        net.close_send(send).expect("it closes");
        net.close_listen(listener).expect("it closes");
    }
    net.finalize().expect("it ends");
}
