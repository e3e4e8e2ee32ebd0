//! Planes: a file of each, NICs that know their rail and plane, and virtual NICs that are one of several
//! planes; and what profiles say of them. The interfaces and files are made by `tests/test_namespaces.py`, which runs this.

mod common;

use common::{Pair, environment, fill, is_filled, library, net};
use weft_nccl_abi::Version;
use weft_net_bench::table::{Net, Plugin};

const ROOM: usize = 8 << 20;

/// Devices of two planes with two servers each, which have two rails: by plane, server and rail.
fn check_devices(net: &Net, version: Version) {
    for number in 0..8 {
        let one = net.properties(number).expect("it is there");
        let (plane, server, rail) = (number / 4, number / 2 % 2, number % 2);
        assert_eq!(one.name, format!("plane-{plane}-s{server}r{rail}"));
        assert_eq!(one.speed, [10_000, 40_000][plane as usize], "as the file of its plane says");
        assert_eq!(one.members, [number]);
        let known = version == Version::V12;
        assert_eq!(one.rail, known.then_some(rail as i16));
        assert_eq!(one.plane, known.then_some(plane as i16));
    }
}

/// A virtual NIC for each server and rail; their numbers.
fn merged(net: &Net, version: Version) -> [[i32; 2]; 2] {
    [0, 1].map(|server| {
        [0, 1].map(|rail| {
            let members = [2 * server + rail, 4 + 2 * server + rail];
            let number = net.make_virtual(&members).expect("they are alike");
            let one = net.properties(number).expect("it is there");
            assert_eq!(one.name, format!("plane-0-s{server}r{rail}+plane-1-s{server}r{rail}"));
            assert_eq!((one.speed, one.members), (50_000, members.to_vec()));
            assert_eq!(one.max_bytes, Some(1 << 30));
            assert_eq!(one.rail, (version == Version::V12).then_some(rail as i16));
            assert_eq!(one.plane, None, "it is in several");
            number
        })
    })
}

/// These interfaces have no PCI device. NCCL would merge them by itself, and then find no way to them.
fn refuses_what_nccl_cannot_place(net: &Net, version: Version) {
    let plugin = Plugin::load(&library(), version).expect("the version is there");
    let before = net.devices().expect("it counts");
    plugin.merge_anywhere(false);
    net.make_virtual(&[1, 5]).expect_err("the first has no PCI device");
    plugin.merge_anywhere(true);
    assert_eq!(net.devices().expect("it counts"), before, "each is used by itself");
}

#[test]
#[ignore = "needs the interfaces of two servers in two planes"]
fn a_virtual_nic_is_in_several_planes() {
    let file = std::env::temp_dir().join(format!("weft-planes-{}.json", std::process::id()));
    let profile = file.with_extension("profile");
    std::fs::create_dir_all(&profile).expect("it is made");
    environment(&[
        ("WEFT_STATS", file.to_str().expect("text")),
        ("WEFT_PROFILE", profile.to_str().expect("text")),
    ]);
    for version in Version::ALL.into_iter().filter(|version| *version > Version::V8) {
        let net = net(version);
        // Contexts of later versions share what the older ones leave behind.
        let count = net.devices().expect("it counts");
        assert_eq!(count, if version > Version::V10 { 12 } else { 8 }, "{version:?}");
        check_devices(&net, version);
        refuses_what_nccl_cannot_place(&net, version);
        let virtual_nics = merged(&net, version);
        assert_eq!(net.devices().expect("it counts"), 12, "NCCL counts them so");
        assert_eq!(merged(&net, version), virtual_nics, "the same again");
        net.make_virtual(&[8, 1]).expect_err("one is virtual already");
        let [[from, from_too], [to, to_too]] = virtual_nics;
        let mut pairs = [(from, to), (from_too, to_too)].map(|way| Pair::between(&net, way, ROOM));
        for round in 1..=2 {
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
                assert!(is_filled(&pairs[at].into[..len], round + at), "pair {at}, {version:?}");
            }
        }
        pairs.into_iter().for_each(Pair::close);
        // What each has sent is for the test that runs this to see; it is written once a second.
        if version == Version::V12 {
            std::thread::sleep(std::time::Duration::from_millis(2_500));
            let text = std::fs::read_to_string(&file).expect("it was written");
            println!("statistics: {}", text.replace('\n', ""));
            for trace in std::fs::read_dir(&profile).expect("it is there").flatten() {
                let text = std::fs::read_to_string(trace.path()).expect("it was written");
                println!("profile: {}", text.replace('\n', ""));
            }
        }
        net.finalize().expect("it ends");
    }
    std::fs::remove_file(file).expect("it goes");
    std::fs::remove_dir_all(profile).expect("it goes");
}
