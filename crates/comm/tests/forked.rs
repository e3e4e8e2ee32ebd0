//! A child that was forked has no thread that would move its bytes: all it asks is an error, at once.

#![expect(unsafe_code, reason = "forks, for want of anything that does so in std")]

mod common;

use common::*;

#[test]
fn nothing_works_in_a_forked_child_and_nothing_hangs() {
    let (a, b, sending, receiving) = pair();
    let (listener, handle) = b.listen().unwrap();
    let mut connecting = a.connect(&handle).unwrap();
    let mut buffer = [0; 8];
    let received = take(|| receive(&receiving, &mut [(&mut buffer, 0)]));
    // SAFETY: the child only does what follows, and ends without a word to anybody.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: it takes a number.
        unsafe { libc::alarm(10) };
        let refused = a.connect(&handle).is_err()
            && b.listen().is_err()
            && listener.try_accept().is_err()
            && connecting.try_finish().is_err()
            && send(&sending, b"hello", 0).is_err()
            && receive(&receiving, &mut [(&mut [0; 8], 0)]).is_err()
            && received.test().is_err()
            && a.statistics().paths.is_empty();
        // Closing waits for nobody.
        drop((sending, receiving, connecting, listener, a, b));
        // But what it opens itself works.
        let (_a, _b, sending, receiving) = pair();
        exchange(&sending, &receiving, b"hello", 5);
        // SAFETY: it takes a number.
        unsafe { libc::_exit(i32::from(!refused)) };
    }
    let mut status = -1;
    // SAFETY: the child is this test's, and the place is one number.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0, "14: it hangs; 256: a call was no error");
    let sent = take(|| send(&sending, b"hello", 0));
    wait(&sent).unwrap();
    assert_eq!(wait(&received).unwrap().sizes[0], 5);
}
