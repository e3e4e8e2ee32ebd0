//! Files and variables to endpoints, on machines that are made up.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weft_comm::Backend;
use weft_deploy::{Deployment, Device, Interface, on_machine};
use weft_fabric::PathId;
use weft_units::HostId;

const CLUSTER: &str = r#"
[fabric]
topology = "leaf-spine"
leaves = 2
spines = 4
hosts_per_leaf = 2
link = "10Gbps"
[cluster]
protocol = "tcp"
"#;

/// A file for this test alone.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn interface(name: &str, address: &str) -> Interface {
    Interface {
        name: name.into(),
        addresses: vec![address.parse().unwrap()],
        is_up: true,
        is_loopback: name == "lo",
        mac: [2, 0, 0, 0, 0, 9],
        ..Interface::default()
    }
}

fn deployed(variables: &[(&str, &str)], interfaces: &[Interface]) -> Result<Deployment, String> {
    let get = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    on_machine(&get, interfaces).map_err(|error| error.to_string())
}

#[test]
fn a_host_finds_itself_by_its_address() {
    let path = file("self/cluster.toml", CLUSTER);
    let here = [interface("lo", "127.0.0.1"), interface("eth7", "10.1.0.3")];
    let found = deployed(&[("WEFT_CONFIG", path.to_str().unwrap())], &here).unwrap();
    assert_eq!((found.scheme.as_str(), found.devices.len()), ("ethereal", 1));
    assert_eq!(found.warnings, Vec::<String>::new());
    let device = &found.devices[0];
    assert_eq!((device.name.as_str(), device.interface.as_str()), ("h3", "eth7"));
    assert_eq!((device.speed_mbps, device.guid), (10_000, 0x0200_0000_0009));
    let endpoint = &device.endpoint;
    assert_eq!(endpoint.address, Ipv4Addr::new(10, 1, 0, 3));
    assert_eq!((endpoint.listen.clone(), endpoint.dscp), (4791..=4854, 26));
    assert_eq!((endpoint.backend.clone(), endpoint.connections), (Backend::Tcp, 4));
    assert_eq!(endpoint.line_bps, 10_000_000_000);
    let plan = endpoint.plan.as_ref().unwrap();
    assert_eq!((plan.host.0, plan.addresses.len()), (3, 4));
    assert_eq!(plan.source_ports, 49_152..=65_535);
    let scheme = format!("{:?}", plan.balance.scheme);
    assert!(scheme.contains("enforce: Segments") && scheme.contains("unit: Packet"), "{scheme}");
}

/// A table of the first host's paths to the third, over each of four spines, or without any.
fn paths(protocol: &str, spines: u32) -> String {
    let path = |spine: u32| {
        let (hop, port) = (2 * spine + 1, 50_000 + spine);
        format!(r#"{{"hops":["10.0.0.1","100.64.0.{hop}"],"ports":[{port}]}}"#)
    };
    let paths: Vec<String> = (0..spines).map(path).collect();
    format!(
        r#"{{"format":"weft-paths","version":1,"protocol":"{protocol}","port":4791,"sources":[
        {{"address":"10.0.0.2","seconds":1.0,"probes":1,"answers":1,"lost":0,"targets":[
        {{"address":"10.1.0.2","hops":3,"done":true,"confidence":0.9,"smallest_share":0.1,
        "max_over_mean":null,"p_value":null,"checked":0,"changed":0,"paths":[{}]}}]}}]}}"#,
        paths.join(",")
    )
}

#[test]
fn ports_come_from_a_table_of_discovered_paths() {
    let config = file("paths/cluster.toml", CLUSTER);
    let here = [interface("eth0", "10.0.0.2")];
    let with = |table: &str, more: &[(&str, &str)]| {
        let table = file("paths/paths.json", table);
        let (config, table) = (config.to_str().unwrap(), table.to_str().unwrap());
        let given = [&[("WEFT_CONFIG", config), ("WEFT_PATHS", table)], more].concat();
        deployed(&given, &here)
    };
    let found = with(&paths("tcp", 4), &[]).unwrap();
    assert_eq!((found.scheme.as_str(), found.warnings.len()), ("ethereal", 0));
    assert_eq!(found.paths.len(), 1);
    let endpoint = &found.devices[0].endpoint;
    // Switches hash the destination port too.
    assert_eq!(endpoint.listen, 4791..=4791);
    let plan = endpoint.plan.as_ref().unwrap();
    assert!(format!("{:?}", plan.balance.scheme).contains("enforce: Discovered"));
    let ports = plan.ports.as_ref().unwrap().get();
    let to = |spine| ports.ports(HostId(0), HostId(2), PathId::new(spine, 0)).to_vec();
    assert_eq!([0, 1, 2, 3].map(to), [50_000, 50_001, 50_002, 50_003].map(|port| vec![port]));
    assert!(with(&paths("tcp", 4), &[("WEFT_PATHS_CHECK", "0")]).unwrap().paths.is_empty());

    // What is left where nothing was found: the connection with the fewest bytes outstanding.
    let none = with(&paths("tcp", 0), &[]).unwrap();
    assert_eq!(none.scheme, "hpn");
    assert!(none.warnings[0].contains("no path from h0 is in it"), "{:?}", none.warnings);

    let other = with(&paths("udp", 4), &[]).unwrap_err();
    assert!(other.contains("the table is of udp") && other.contains("--protocol tcp"), "{other}");
    let without = deployed(
        &[("WEFT_CONFIG", config.to_str().unwrap()), ("WEFT_OPTIONS", "enforce=discovered")],
        &here,
    );
    assert!(without.unwrap_err().contains("set WEFT_PATHS"));
}

#[test]
fn the_host_may_be_named() {
    let path = file("named/cluster.toml", CLUSTER);
    let config = ("WEFT_CONFIG", path.to_str().unwrap());
    let here = [interface("eth0", "192.168.1.9")];
    for name in ["h2", "2"] {
        let found = deployed(&[config, ("WEFT_HOST", name)], &here).unwrap();
        let endpoint = &found.devices[0].endpoint;
        assert_eq!(endpoint.plan.as_ref().unwrap().host.0, 2);
        assert_eq!(endpoint.address, Ipv4Addr::new(192, 168, 1, 9));
    }
    let nobody = deployed(&[config], &here).unwrap_err();
    assert!(nobody.contains("(10.0.0.2 to 10.1.0.3)") && nobody.contains("WEFT_HOST"), "{nobody}");
}

#[test]
fn a_server_has_a_device_for_each_nic() {
    let two = CLUSTER.replace("[cluster]", "[fabric.server]\nnics = 2\ngpus = 2\n[cluster]");
    let path = file("nics/cluster.toml", &two);
    let here = [interface("b", "10.0.0.3"), interface("a", "10.0.0.2")];
    let found = deployed(&[("WEFT_CONFIG", path.to_str().unwrap())], &here).unwrap();
    let names: Vec<_> = found.devices.iter().map(|one| (&*one.name, &*one.interface)).collect();
    assert_eq!(names, [("s0r0", "a"), ("s0r1", "b")]);
}

/// Planes are networks without a link between them, and have a file each.
#[test]
fn planes_have_a_file_each() {
    let server = "[fabric.server]\nnics = 2\ngpus = 2\n[cluster]";
    let first = CLUSTER.replace("[cluster]", server);
    let second = first.replace("10Gbps", "25Gbps")
        + "host_address = \"11.{leaf}.0.{place+2}\"\nrack = \"11.{leaf}.0.0/16\"\n\
           gateway = \"11.{leaf}.0.1\"\n";
    let files = [file("planes/a.toml", &first), file("planes/b.toml", &second)];
    let [a, b] = files.each_ref().map(|path| path.to_str().unwrap());
    let both = format!("{a}, {b}");
    let addresses = ["10.0.0.2", "10.0.0.3", "11.0.0.2", "11.0.0.3"];
    let names = ["a", "b", "c", "d"];
    let here: Vec<_> =
        names.iter().zip(addresses).map(|(name, address)| interface(name, address)).collect();
    let found = deployed(&[("WEFT_CONFIG", &both)], &here).unwrap();
    let said: Vec<_> = found
        .devices
        .iter()
        .map(|one| (&*one.name, &*one.interface, one.rail, one.plane, one.speed_mbps))
        .collect();
    assert_eq!(
        said,
        [
            ("plane-0-s0r0", "a", Some(0), Some(0), 10_000),
            ("plane-0-s0r1", "b", Some(1), Some(0), 10_000),
            ("plane-1-s0r0", "c", Some(0), Some(1), 25_000),
            ("plane-1-s0r1", "d", Some(1), Some(1), 25_000),
        ]
    );
    assert_eq!(found.scheme, "ethereal");
    let endpoint = &found.devices[3].endpoint;
    assert_eq!((endpoint.plane, endpoint.line_bps), (Some(1), 25_000_000_000));
    let plan = endpoint.plan.as_ref().unwrap();
    assert_eq!((plan.host.0, plan.addresses[3]), (1, Ipv4Addr::new(11, 1, 0, 3)));

    let of_process = |deployment: &Deployment, index| -> Vec<String> {
        deployment.of_process(index).into_iter().map(|one| one.name).collect()
    };
    assert_eq!(of_process(&found, 3), ["plane-0-s0r1", "plane-1-s0r1"]);

    let alone = deployed(&[("WEFT_CONFIG", a)], &here).unwrap();
    assert_eq!(of_process(&alone, 3), ["s0r1"]);
    let place = |deployment: &Deployment| {
        let one = &deployment.devices[1];
        (one.name.clone(), one.rail, one.plane, one.endpoint.plane)
    };
    assert_eq!(place(&alone), ("s0r1".into(), Some(1), Some(0), None));
    let unplanned = deployed(&[], &here).unwrap();
    assert_eq!(place(&unplanned), ("b".into(), None, None, None));
    let missing = deployed(&[("WEFT_CONFIG", &both)], &here[..2]).unwrap_err();
    assert!(missing.contains("b.toml: none of its hosts"), "{missing}");
    let tables = [("WEFT_CONFIG", &*both), ("WEFT_PATHS", "x.json")];
    let missing = deployed(&tables, &here).unwrap_err();
    assert!(missing.contains("1 tables for 2 files"), "{missing}");
    let comma = file("planes/a,b.toml", &first);
    let found = deployed(&[("WEFT_CONFIG", comma.to_str().unwrap())], &here).unwrap();
    assert_eq!(found.devices.len(), 2, "a file whose name has a comma is one");
    let nine = deployed(&[("WEFT_CONFIG", &[a; 9].join(","))], &here).unwrap_err();
    assert!(nine.contains("8 at most"), "{nine}");
}

/// What the file says of a link counts, and whoever has a slower one is told; if it is a real one.
#[test]
fn speeds_are_those_of_the_file() {
    let path = file("speeds/cluster.toml", CLUSTER);
    let config = ("WEFT_CONFIG", path.to_str().unwrap());
    let pci_path = Some("/sys/devices/pci0000:00/0000:00:03.0".to_owned());
    for (mbps, is_real, warnings) in
        [(25_000, true, 0), (1_000, true, 1), (1_000, false, 0), (10_000, true, 0)]
    {
        let pci_path = pci_path.clone().filter(|_| is_real);
        let one = Interface { speed_mbps: Some(mbps), pci_path, ..interface("eth0", "10.0.0.2") };
        let found = deployed(&[config], &[one]).unwrap();
        assert_eq!(found.devices[0].speed_mbps, 10_000);
        assert_eq!(found.warnings.len(), warnings, "{mbps}: {:?}", found.warnings);
        assert!(found.warnings.iter().all(|line| line.contains("eth0 runs at 1000")));
    }
    let one = Interface { speed_mbps: Some(1_000), ..interface("eth0", "10.0.0.2") };
    assert_eq!(deployed(&[], &[one]).unwrap().devices[0].speed_mbps, 1_000);
    let unknown = deployed(&[], &[interface("eth0", "10.0.0.2")]).unwrap();
    assert_eq!(unknown.devices[0].speed_mbps, 10_000);
}

/// A plan as `weft plan` writes it, as far as hosts read it.
fn plan(cluster: &str, scheme: &str, options: &str) -> String {
    let read =
        weft_config::cluster::read(cluster, weft_config::cluster::Format::Toml, "cluster.toml", 1);
    let cluster = read.unwrap().0.to_json();
    format!(
        r#"{{"format":"weft-plan","version":1,"title":"t","scheme":"{scheme}","options":{options},
        "seed":7,"mtu":4096,"cluster":{cluster},"steps":[]}}"#
    )
}

#[test]
fn a_plan_brings_scheme_options_and_seed() {
    let options = r#"{"batch":"100ns","group":"size","bad_for":"2s","start_jitter":"50ns"}"#;
    let path = file("plan/plan.json", &plan(CLUSTER, "ethereal", options));
    let here = [interface("eth0", "10.0.0.2")];
    let of = |path: &Path, more: &[(&str, &str)]| {
        let mut all = vec![("WEFT_CONFIG", path.to_str().unwrap())];
        all.extend(more);
        let found = deployed(&all, &here).unwrap();
        let plan = found.devices[0].endpoint.plan.clone().unwrap();
        (plan.seed, format!("{:?}", plan.balance.scheme))
    };
    for path in [path.clone(), path.parent().unwrap().to_owned()] {
        let (seed, scheme) = of(&path, &[]);
        assert_eq!(seed, 7);
        // The simulator's 100 ns are no choice, the other two are.
        for part in ["batch: Time(20000000)", "group: Size", "bad_for: Time(2000000000000)"] {
            assert!(scheme.contains(part), "{part}: {scheme}");
        }
    }
    let (seed, scheme) = of(&path, &[("WEFT_OPTIONS", "batch=1us"), ("WEFT_SEED", "3")]);
    assert_eq!(seed, 3);
    assert!(scheme.contains("batch: Time(1000000)") && scheme.contains("group: Size"), "{scheme}");
    let (_, scheme) = of(&path, &[("WEFT_SCHEME", "dnlb")]);
    assert!(scheme.contains("queue_pairs: 4"), "{scheme}");
}

/// A plan that somebody has edited is refused before anything is looked up in it, with its key.
#[test]
fn a_plan_whose_cluster_does_not_fit_is_refused() {
    let here = [interface("eth0", "10.0.0.2")];
    let good: serde_json::Value = serde_json::from_str(&plan(CLUSTER, "ethereal", "{}")).unwrap();
    type Edit = fn(&mut serde_json::Value);
    let edits: [(Edit, &str); 6] = [
        (
            |it| {
                drop(it["hosts"].as_array_mut().unwrap().remove(3));
                drop(it["links"].as_array_mut().unwrap().remove(3));
            },
            "cluster.hosts: 3 of a fabric that has 4; make",
        ),
        (|it| it["hosts"][0]["number"] = 32_767.into(), "hosts[0].number: is 32767, and its place"),
        (|it| it["links"] = serde_json::json!([]), "cluster.links: fewer than hosts; make the"),
        (|it| it["port"] = 65_535.into(), "cluster.ports: 64 from 65535 on end above"),
        (|it| it["ports"] = 0.into(), "cluster.ports: 0 is out of range; use 1 to 4096"),
        (|it| it["last_port"] = 9.into(), "cluster.last_port: 0 source ports for 4 uplinks; make"),
    ];
    for (edit, said) in edits {
        let mut bad = good.clone();
        edit(&mut bad["cluster"]);
        let path = file("edited/plan.json", &bad.to_string());
        let error = deployed(&[("WEFT_CONFIG", path.to_str().unwrap())], &here).unwrap_err();
        assert!(error.contains(said) && error.contains("plan.json: "), "{error}");
    }
}

/// The key of a job is nobody else's, and a file.
#[test]
fn a_key_that_others_may_read_is_warned_of() {
    use std::os::unix::fs::PermissionsExt;
    let here = [interface("eth0", "10.0.0.2")];
    let path = file("job.key", "sixteen bytes at least");
    let given = [("WEFT_KEY_FILE", path.to_str().unwrap())];
    for (mode, warnings) in [(0o600, 0), (0o640, 0), (0o644, 1)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let found = deployed(&given, &here).unwrap();
        assert_eq!(found.warnings.len(), warnings, "{mode:o}: {:?}", found.warnings);
        assert!(found.warnings.iter().all(|line| line.contains("(mode 644); chmod o= ")));
        assert_eq!(&found.devices[0].endpoint.job_key[..], b"sixteen bytes at least");
    }
    // It never ends.
    let endless = deployed(&[("WEFT_KEY_FILE", "/dev/zero")], &here).unwrap_err();
    assert!(endless.contains("has more than 65536 bytes"), "{endless}");
}

/// 1/32 of what the line carries in 100 us, but 32 KiB at the least.
#[test]
fn chunks_are_as_long_as_the_line_is_fast() {
    let here = [interface("eth0", "10.0.0.2")];
    for (rate, chunk) in [("10Gbps", 32_768), ("100Gbps", 39_062), ("400Gbps", 156_250)] {
        let cluster = CLUSTER.replace("10Gbps", rate);
        let path = file("fast/cluster.toml", &cluster);
        let all = [("WEFT_CONFIG", path.to_str().unwrap()), ("WEFT_SCHEME", "twill")];
        let found = deployed(&all, &here).unwrap();
        let scheme = found.devices[0].endpoint.plan.clone().unwrap().balance.scheme;
        assert!(
            format!("{scheme:?}").contains(&format!("chunk: Some({chunk})")),
            "{rate}: {scheme:?}"
        );
    }
}

#[test]
fn what_the_file_says_of_failures_planners_know() {
    use weft_balance::Planner;
    use weft_balance::plan::{Post, Route};
    let dead =
        format!("{CLUSTER}[failures.a]\nlinks = [\"leaf-1 <-> spine-2\"]\nkind = \"down\"\n");
    let uplinks = |text: &str| {
        let path = file("dead/cluster.toml", text);
        let here = [interface("eth0", "10.0.0.2")];
        let found = deployed(&[("WEFT_CONFIG", path.to_str().unwrap())], &here).unwrap();
        let plan = found.devices[0].endpoint.plan.clone().unwrap();
        let mut planner = Planner::new(&plan.balance, plan.host, plan.seed, plan.quantum);
        plan.known.tell(weft_units::Time::ZERO, &mut planner, &plan.fabric);
        let (message, dst) = (weft_units::MessageId(0), weft_units::HostId(2));
        let post = Post { message, dst, bytes: 1 << 20, job: 0, ranks: (0, 0), tag: 0 };
        let mut subflows = Vec::new();
        planner.post(weft_units::Time::ZERO, post, &plan.fabric, &mut subflows);
        planner.flush(weft_units::Time::secs(1), &plan.fabric, &mut subflows);
        // A source port of the path's segment.
        let uplink = |route| match route {
            Route::Hashed(port) => (port - 49_152) / 4_096,
            Route::Pinned(_) => panic!("switches know source ports only"),
        };
        let mut used: Vec<u16> = subflows.iter().map(|subflow| uplink(subflow.route)).collect();
        used.sort_unstable();
        used
    };
    assert_eq!(uplinks(CLUSTER), [0, 1, 2, 3]);
    assert_eq!(uplinks(&dead), [0, 1, 3]);
}

#[test]
fn rocev2_falls_back_with_a_word() {
    let udp = CLUSTER.replace("protocol = \"tcp\"", "");
    let path = file("udp/cluster.toml", &udp);
    let config = ("WEFT_CONFIG", path.to_str().unwrap());
    let here = [interface("none-such", "10.0.0.2")];
    let found = deployed(&[config], &here).unwrap();
    let endpoint = &found.devices[0].endpoint;
    assert_eq!((endpoint.backend.clone(), endpoint.listen.clone()), (Backend::Tcp, 0..=0));
    assert!(found.warnings[0].contains("cluster.protocol: udp"), "{:?}", found.warnings);
    let tcp = file("tcp/cluster.toml", CLUSTER);
    let roce = [
        ("WEFT_CONFIG", tcp.to_str().unwrap()),
        ("WEFT_BACKEND", "roce"),
        ("WEFT_RDMA_DEVICE", "mlx5_0"),
    ];
    let found = deployed(&roce, &here).unwrap();
    assert!(found.warnings[0].contains("hash the udp"), "{:?}", found.warnings);
    let forced = [config, ("WEFT_BACKEND", "roce")];
    let error = deployed(&forced, &here).unwrap_err();
    assert!(error.contains("none-such has no RDMA device; set"), "{error}");
    let named = [config, ("WEFT_RDMA_DEVICE", "mlx5_1:2"), ("WEFT_GID_INDEX", "3")];
    let found = deployed(&named, &here).unwrap();
    let device = "mlx5_1".to_owned();
    let roce = Backend::Roce { device, port: 2, gid_index: Some(3), or_tcp: true };
    assert_eq!(found.devices[0].endpoint.backend, roce);
    // One of each NIC, in their order; one for all; else as many as there are.
    let two = [interface("a", "10.0.0.2"), interface("b", "10.0.0.3")];
    let devices = |names: &'static str| {
        let found = deployed(&[config, ("WEFT_RDMA_DEVICE", names)], &two)?;
        let name = |device: &Device| match &device.endpoint.backend {
            Backend::Roce { device, port, .. } => format!("{device}:{port}"),
            Backend::Tcp => "tcp".to_owned(),
        };
        Ok::<_, String>(found.devices.iter().map(name).collect::<Vec<_>>())
    };
    assert_eq!(devices("mlx5_1, mlx5_0:2").unwrap(), ["mlx5_1:1", "mlx5_0:2"]);
    assert_eq!(devices("mlx5_1").unwrap(), ["mlx5_1:1", "mlx5_1:1"]);
    let error = devices("mlx5_0,mlx5_1,mlx5_2").unwrap_err();
    assert!(error.contains("3 devices for 2 NICs"), "{error}");
}

#[test]
fn without_a_file_interfaces_are_chosen_as_nccl_does() {
    let mut down = interface("eth9", "10.9.0.1");
    down.is_up = false;
    let all = [
        interface("lo", "127.0.0.1"),
        interface("docker0", "172.17.0.1"),
        interface("eth0", "10.0.0.1"),
        interface("eth01", "10.0.1.1"),
        interface("ib0", "10.1.0.1"),
        down,
    ];
    let names = |ifname: &str, all: &[Interface]| {
        let found = deployed(&[("WEFT_IFNAME", ifname)], all)?;
        Ok::<_, String>(found.devices.iter().map(|one| one.name.clone()).collect::<Vec<_>>())
    };
    for (ifname, expected) in [
        ("", &["eth0", "eth01", "ib0"] as &[_]),
        ("ib,eth", &["ib0", "eth0", "eth01"]),
        ("=eth0", &["eth0"]),
        ("^eth,lo", &["docker0", "ib0"]),
        ("^=eth0", &["lo", "docker0", "eth01", "ib0"]),
        ("lo", &["lo"]),
    ] {
        assert_eq!(names(ifname, &all).unwrap(), expected, "{ifname:?}");
    }
    let error = names("eth9", &all).unwrap_err();
    assert!(error.starts_with("WEFT_IFNAME: \"eth9\": no interface"), "{error}");
    assert!(error.ends_with("; there are lo, docker0, eth0, eth01, ib0"), "{error}");
    let error = names("eth9", &all[5..]).unwrap_err();
    assert!(error.ends_with("; none is; look at ip addr"), "{error}");
    assert_eq!(names("", &all[..2]).unwrap(), ["docker0"]);
    // A node of Kubernetes, whose own network these are not.
    for name in ["cilium_host", "vxlan.calico", "tunl0", "ovn-k8s-mp0", "kube-bridge"] {
        let node = [interface(name, "10.244.0.1"), interface("eth0", "10.0.0.1")];
        assert_eq!(names("", &node).unwrap(), ["eth0"], "{name}");
    }
    assert_eq!(names("", &all[..1]).unwrap(), ["lo"]);
    let plain = deployed(&[], &all).unwrap();
    let endpoint = &plain.devices[0].endpoint;
    assert!(endpoint.plan.is_none());
    assert_eq!((endpoint.connections, endpoint.listen.clone()), (4, 0..=0));
    assert_eq!(endpoint.path_time_out, Duration::from_secs(1));
}

#[test]
fn mistakes_are_told_in_one_line() {
    let path = file("wrong/cluster.toml", CLUSTER);
    let bad = file("wrong/bad.toml", &CLUSTER.replace("leaves", "leafs"));
    let junk = file("wrong/plan.json", "{\"format\": \"other\"}");
    let old = file("wrong/old.json", "{\"format\": \"weft-plan\", \"version\": 9}");
    let half = file("wrong/half.json", "{\"format\": \"weft-plan\", \"version\": 1}");
    let three = file("wrong/port.toml", &format!("{CLUSTER}port = 65500\n"));
    let config = ("WEFT_CONFIG", path.to_str().unwrap());
    let here = [interface("eth0", "10.0.0.2")];
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("WEFT_CONFIG", "/nowhere")], "WEFT_CONFIG: /nowhere: "),
        (&[("WEFT_CONFIG", bad.to_str().unwrap())], "fabric.leafs (line 4): unknown key"),
        (&[("WEFT_CONFIG", junk.to_str().unwrap())], "plan.json: format: not a plan of weft"),
        (&[("WEFT_CONFIG", old.to_str().unwrap())], "old.json: version: 9 is not known"),
        (&[("WEFT_CONFIG", half.to_str().unwrap())], "half.json: scheme: is missing"),
        (&[("WEFT_CONFIG", three.to_str().unwrap())], "cluster.ports: 64 from 65500 on"),
        (&[config, ("WEFT_SCHEME", "etherial")], "WEFT_SCHEME: "),
        (&[config, ("WEFT_SCHEME", "spray")], "WEFT_SCHEME: spray needs"),
        (&[config, ("WEFT_SCHEME", "drill")], "WEFT_SCHEME: drill needs"),
        (&[config, ("WEFT_SCHEME", "conweave")], "WEFT_SCHEME: conweave needs"),
        (&[config, ("WEFT_OPTIONS", "batch")], "WEFT_OPTIONS: \"batch\": is no list"),
        (&[config, ("WEFT_OPTIONS", "bach=1us")], "WEFT_OPTIONS: bach: unknown option"),
        (&[config, ("WEFT_OPTIONS", "batch=soon")], "WEFT_OPTIONS: batch: "),
        (&[config, ("WEFT_HOST", "h9")], "WEFT_HOST: \"h9\" is no host of"),
        (&[config, ("WEFT_HOST", "h0,0")], "WEFT_HOST: h0 is there twice"),
        (&[("WEFT_SCHEME", "ethereal")], "WEFT_SCHEME: ethereal needs to know the fabric"),
        (&[("WEFT_SCHEME", "etherial")], "WEFT_SCHEME: unknown value \"etherial\""),
        (&[("WEFT_PATHS", "paths.json")], "WEFT_PATHS: paths of a cluster that is not known"),
        (&[("WEFT_SEED", "-1")], "WEFT_SEED: \"-1\": is no whole number"),
        (&[("WEFT_CONNECTIONS", "0")], "WEFT_CONNECTIONS: \"0\": is out of range; use 1 to 64"),
        (&[("WEFT_BACKEND", "rdma")], "WEFT_BACKEND: \"rdma\": is not known; use one of auto"),
        (&[("WEFT_CHECKSUM", "yes")], "WEFT_CHECKSUM: \"yes\": is not known; use one of 0, 1"),
        (
            &[("WEFT_PATH_TIMEOUT", "5")],
            "WEFT_PATH_TIMEOUT: \"5\": is no time from 1ms on; write it with its unit, as 500ms or 2s",
        ),
        (&[("WEFT_PATHS_CHECK", "1us")], "WEFT_PATHS_CHECK: \"1us\": is no time from 1ms on"),
        (&[("WEFT_TCP_CONGESTION", "none")], "WEFT_TCP_CONGESTION: \"none\": No such file"),
        (&[("WEFT_GIVE_UP", "100ms")], "WEFT_GIVE_UP: \"100ms\": shorter than"),
        (
            &[("WEFT_PATH_TIMEOUT", "31s")],
            "WEFT_PATH_TIMEOUT: \"31s\": longer than WEFT_GIVE_UP, which is 30s unless set",
        ),
        (&[("WEFT_PROMETHEUS", "9400")], "WEFT_PROMETHEUS: \"9400\": is no address; write"),
        (&[("WEFT_RDMA_DEVICE", "mlx5_0:x")], "WEFT_RDMA_DEVICE: \"mlx5_0:x\": is no device"),
        (&[("WEFT_LOG", "loud")], "WEFT_LOG: \"loud\": is not known"),
    ];
    for (variables, expected) in cases {
        let error = deployed(variables, &here).unwrap_err();
        assert!(error.contains(expected), "{variables:?}: {error}");
        assert!(error.contains("; ") && !error.contains('\n'), "{error}");
    }
}

#[test]
fn statistics_may_have_the_host_in_their_name() {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let of = |name| deployed(&[("WEFT_STATS", name)], &[interface("eth0", "10.0.0.2")]).unwrap();
    let named = format!("/tmp/{}-%p.json", host.trim());
    assert_eq!(of("/tmp/%h-%p.json").stats, Some(named.into()));
    assert_eq!(of("a-%p.json").stats, Some("a-%p.json".into()));
}

#[test]
fn tcp_in_the_place_of_verbs_is_told() {
    let here = [interface("weft-none0", "10.1.0.3")];
    let wanted = [("WEFT_BACKEND", "roce"), ("WEFT_ALLOW_TCP", "1")];
    let found = deployed(&wanted, &here).unwrap();
    assert_eq!(found.devices[0].endpoint.backend, Backend::Tcp);
    assert_eq!(found.warnings.len(), 1, "{:?}", found.warnings);
    assert!(found.warnings[0].contains("weft-none0 has no RDMA device, so TCP is used"));
}

#[test]
fn choices_without_a_cluster_are_told() {
    let here = [interface("eth0", "10.0.0.2")];
    for variable in [("WEFT_OPTIONS", "batch=1us"), ("WEFT_HOST", "h0")] {
        let found = deployed(&[variable], &here).unwrap();
        let line =
            format!("{}: without WEFT_CONFIG there is nothing to choose; unset it", variable.0);
        assert_eq!(found.warnings, [line]);
    }
}

#[test]
fn variables_that_there_are_not_are_told() {
    let names = ["WEFT_CONFIG", "PATH", "WEFT_CONFG", "WEFT_UTTERLY_ELSE"];
    let lines = weft_deploy::variables::unknown(names.into_iter());
    assert_eq!(lines.len(), 2);
    assert!(lines[0].ends_with("did you mean WEFT_CONFIG?"), "{lines:?}");
}

#[test]
fn this_machine_has_interfaces() {
    let found = weft_deploy::from_environment(&|_| None).unwrap();
    assert!(!found.devices.is_empty());
    assert!(found.devices.iter().all(|device| device.speed_mbps > 0));
}
