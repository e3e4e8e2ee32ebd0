//! A child that was forked from a process with communicators: every call returns an error, none hangs.

#![expect(unsafe_code, reason = "forks, and drives C functions")]

mod common;

use common::{Pair, net};
use weft_nccl_abi::{NcclResult, Version};
use weft_net_bench::BenchError;

/// Runs `work` in a child, which gets so many seconds; how it ended: zero is well.
fn in_a_child(work: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child does `work` and ends without a word to anybody.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: they take numbers.
        unsafe {
            libc::alarm(10);
            let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            libc::_exit(i32::from(!good.unwrap_or(false)));
        }
    }
    let mut status = -1;
    // SAFETY: the child is ours, and the place is one number.
    unsafe { libc::waitpid(child, &mut status, 0) };
    status
}

fn is_usage<T>(outcome: Result<T, BenchError>) -> bool {
    matches!(outcome, Err(BenchError::Plugin { result: NcclResult::INVALID_USAGE, .. }))
}

#[test]
fn every_call_in_a_forked_child_is_an_error() {
    for version in Version::ALL {
        let net = net(version);
        let mut pair = Pair::new(&net, 1000);
        pair.transfer(1000);
        // What hangs where nobody looks: a half with requests under way waits for the engine's thread.
        let request = pair.receive(&[(0, 100, 0)]);
        let (mut handle, listener) = net.listen(0).expect("it listens");
        let status = in_a_child(|| {
            let mut sizes = [0; 8];
            // SAFETY: all is what NCCL would give.
            unsafe {
                is_usage(net.devices())
                    && is_usage(net.properties(0))
                    && is_usage(net.listen(0))
                    && is_usage(net.connect(0, &mut handle))
                    && is_usage(net.accept(listener))
                    && is_usage(net.test(request, &mut sizes))
                    && is_usage(net.close_recv(pair.receive))
                    && is_usage(net.close_send(pair.send))
                    && is_usage(net.close_listen(listener))
                    && is_usage(net.isend(
                        pair.send,
                        pair.out.as_ptr(),
                        10,
                        0,
                        std::ptr::null_mut(),
                    ))
            }
        });
        assert_eq!(status, 0, "{version:?}: a call hangs (14) or does something else");
        // The parent goes on as if nothing had been.
        let send = pair.send(0, 100, 0);
        pair.wait(send);
        pair.wait(request);
        // SAFETY: it is open.
        unsafe { net.close_listen(listener).expect("it closes") };
        pair.close();
        net.finalize().expect("it ends");
    }
}
