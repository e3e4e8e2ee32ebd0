//! Several NICs, each a device with an endpoint, paths and counters of its own. The interfaces and the
//! cluster file are made by `tests/test_name_spaces.py`, which runs this.

mod common;

use common::{Pair, environment, fill, is_filled, net};
use weft_nccl_abi::Version;

const ROOM: usize = 4 << 20;

/// Two servers of two NICs, all here: from each NIC of the first to that of the second, at once.
#[test]
#[ignore = "needs the interfaces of two servers"]
fn channels_use_the_nics_that_they_are_given() {
    let file = std::env::temp_dir().join(format!("weft-nics-{}.json", std::process::id()));
    environment(&[("WEFT_STATS", file.to_str().expect("text"))]);
    let net = net(Version::V12);
    assert_eq!(net.devices().expect("it counts"), 4);
    let about: Vec<_> = (0..4).map(|at| net.properties(at).expect("it is there")).collect();
    let names: Vec<_> = about.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["s0r0", "s0r1", "s1r0", "s1r1"]);
    for (at, one) in about.iter().enumerate() {
        let same = about.iter().filter(|other| other.guid == one.guid).count();
        assert_eq!(same, 1, "device {at}: NCCL takes equal numbers for ports of one NIC");
    }
    let mut pairs = [(0, 2), (1, 3)].map(|way| Pair::between(&net, way, ROOM));
    for round in 1..=4 {
        let mut under_way = Vec::new();
        for (at, pair) in pairs.iter_mut().enumerate() {
            let len = ROOM >> at;
            fill(&mut pair.out[..len], round + at);
            under_way.push((pair.receive(&[(0, len, 0)]), pair.send(0, len, 0)));
        }
        for (at, (receive, send)) in under_way.into_iter().enumerate() {
            let len = ROOM >> at;
            pairs[at].wait(send);
            assert_eq!(pairs[at].wait(receive)[0] as usize, len);
            assert!(is_filled(&pairs[at].into[..len], round + at), "pair {at}, round {round}");
        }
    }
    pairs.into_iter().for_each(Pair::close);
    net.finalize().expect("it ends");
    // What each has sent is for the test that runs this to see.
    let text = std::fs::read_to_string(&file).expect("it was written");
    println!("statistics: {}", text.replace('\n', ""));
    std::fs::remove_file(file).expect("it goes");
}
