//! RoCE wanted where there is none. With devices it is tested in a machine of its own (tests/roce).

mod common;

use common::*;
use weft_comm::{Backend, CommError, Endpoint, EndpointConfig};

/// A device that nobody has.
fn wants_roce(last: u8, or_tcp: bool) -> EndpointConfig {
    let device = "no_such_device".into();
    let backend = Backend::Roce { device, port: 1, gid_index: None, or_tcp };
    EndpointConfig { backend, ..config(last) }
}

#[test]
fn without_a_device_it_is_an_error_of_one_line() {
    let Err(CommError::System(what)) = Endpoint::open(wants_roce(1, false)) else {
        panic!("it opens")
    };
    let known = what.contains("libibverbs.so.1") || what.contains("RDMA device");
    assert!(what.starts_with("lo1: ") && known && !what.contains('\n'), "{what}");
}

#[test]
fn or_tcp_does_instead_and_says_why() {
    let a = Endpoint::open(wants_roce(1, true)).unwrap();
    let b = Endpoint::open(wants_roce(2, true)).unwrap();
    let notice = a.notice().unwrap();
    assert!(notice.starts_with("lo1: ") && notice.ends_with("; using TCP"), "{notice}");
    let (sending, receiving) = channel(&a, &b);
    exchange(&sending, &receiving, &pattern(1, 300_000), 300_000);
    assert!(open(3).notice().is_none());
}

#[test]
fn source_ports_that_roce_cannot_have_are_refused() {
    let EndpointConfig { plan, .. } = planned(1, "ethereal", &[]);
    let plan = plan.map(|plan| weft_comm::PathPlan { source_ports: 30_000..=40_000, ..plan });
    let Err(CommError::System(what)) =
        Endpoint::open(EndpointConfig { plan, ..wants_roce(1, false) })
    else {
        panic!("it opens")
    };
    assert!(what.contains("source port 30000") && what.contains("49152"), "{what}");
}
