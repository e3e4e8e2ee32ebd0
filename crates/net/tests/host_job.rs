//! What hosts on real sockets are told before they begin.

#[path = "../../experiment/tests/common/mod.rs"]
mod common;

use common::{GOOD, settled};
use weft_balance::plan::{Post, Route, Subflow};
use weft_net::host_job;
use weft_units::{HostId, MessageId, Time};

const BYTES: u64 = 1 << 20;

/// Payload by uplink of what host 0 sends to a host under each other leaf, with one link of its leaf
/// as `failure` says.
fn by_uplink(scheme: &str, failure: &str) -> [u64; 2] {
    let text = GOOD.replace("ecmp", scheme)
        + "unit = \"byte\"\n[failures.x]\nlinks = [\"leaf-0 <-> spine-1\"]\n"
        + failure;
    let experiment = settled(&text, &[("transport.congestion", "swift")]);
    let sender = host_job(&experiment, 1, HostId(0)).expect("a host").sender;
    let (mut planner, mut subflows) = (sender.planner(), Vec::<Subflow>::new());
    for (message, dst) in [(1, 4), (2, 8), (3, 12)] {
        let (message, dst) = (MessageId(message), HostId(dst));
        let post = Post { message, dst, bytes: BYTES, job: 0, ranks: (0, 0), tag: 0 };
        planner.post(Time::us(1), post, &sender.fabric, &mut subflows);
    }
    planner.flush(Time::us(2), &sender.fabric, &mut subflows);
    let mut loads = [0; 2];
    for subflow in subflows {
        let Route::Pinned(path) = subflow.route else { panic!("{subflow:?} is hashed") };
        loads[usize::from(path.0 >> 8)] += subflow.bytes;
    }
    loads
}

#[test]
fn slow_links_get_their_share() {
    let [whole, slow] = by_uplink("ethereal-weighted", "kind = \"degraded\"\nlost = 0.5\n");
    assert!(whole.abs_diff(2 * BYTES) <= 3 && whole + slow == 3 * BYTES, "{whole} and {slow}");
    // Who does not ask is told nothing of them.
    let even = by_uplink("ethereal", "kind = \"degraded\"\nlost = 0.5\n");
    assert_eq!(even[0], even[1]);
}

#[test]
fn dead_links_get_nothing() {
    for scheme in ["ethereal", "ethereal-weighted"] {
        assert_eq!(by_uplink(scheme, "kind = \"down\"\n"), [3 * BYTES, 0], "{scheme}");
    }
    // Not dead from the start: nobody knows.
    let later = by_uplink("ethereal", "kind = \"down\"\nstart = \"1ms\"\n");
    assert_eq!(later[0], later[1]);
}

#[test]
fn what_sockets_cannot_do_is_refused() {
    let told = |changes: &[(&str, &str)]| host_job(&settled(GOOD, changes), 1, HostId(0));
    let swift = ("transport.congestion", "swift");
    for recovery in ["go-back-n", "selective-repeat", "tcp"] {
        assert!(told(&[swift, ("transport.recovery", recovery)]).is_ok(), "{recovery}");
    }
    for (key, value) in [
        ("transport.recovery", "coding"),
        ("transport.congestion", "dctcp"),
        ("transport.congestion", "dcqcn"),
        ("transport.congestion", "fixed-rate"),
    ] {
        let error = told(&[swift, (key, value)]).unwrap_err().to_string();
        assert!(error.contains(key) && error.contains("; use "), "{error}");
    }
}
