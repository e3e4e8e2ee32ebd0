//! The topology of `docs/extend`, compiled as it stands there and put to work.

// The file says `crate::`, as it would in `crates/fabric/src/topology`.
pub(crate) use weft_fabric::{Cable, FabricError, Link, Wiring};
// Public there, private to this test.
#[allow(unreachable_pub)]
#[path = "guide/hypercube.rs"]
mod hypercube;

use hypercube::Hypercube;
use weft_fabric::Fabric;
use weft_units::{HostId, Rate, Time};

#[test]
fn the_guide_shows_this_file() {
    let guide = include_str!("../../../docs/extend/topology.md");
    let file = include_str!("guide/hypercube.rs");
    assert!(guide.contains(&format!("```rust\n{file}```\n")));
}

#[test]
fn a_hypercube_mends_one_bit_after_the_other() {
    let link = Link { rate: Rate::gbps(100), delay: Time::us(1) };
    let it = Hypercube { dimensions: 4, hosts: 1, host_link: link, link };
    let fabric = Fabric::of_wiring(it.wiring().unwrap()).unwrap();
    assert_eq!((fabric.hosts(), fabric.switches(), fabric.links().count()), (16, 16, 16 + 32));
    for src in 0..16_u32 {
        for dst in (0..16).filter(|dst| *dst != src) {
            let bits = (src ^ dst).count_ones();
            assert_eq!(fabric.hops(HostId(src), HostId(dst)), bits + 2);
            assert_eq!(fabric.path_set(HostId(src), HostId(dst)).len(), 1);
        }
    }
    assert!(!fabric.has_circular_routes());
    let large = Hypercube { dimensions: 13, ..it };
    assert!(large.wiring().is_err());
}
