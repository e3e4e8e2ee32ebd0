//! InfraGraph's files: by hand, as its blueprints wire them, and refused.

use std::fmt::Write;
use weft_fabric::import::{self, Infragraph, Network, Topology, infragraph};
use weft_fabric::{Bundle, Clos, Fabric, Link, Node, Tiers};
use weft_units::{HostId, Rate, SwitchId, Time};

/// Two servers of two NICs, on a switch each, under two spines.
const SMALL: &str = r#"name: small
devices:
- name: server
  components:
  - {name: xpu, count: 2, choice: xpu}
  - {name: nic, count: 2, choice: nic}
  links: []
  edges: []
- name: switch
  components:
  - {name: asic, count: 1, choice: cpu}
  - {name: port, count: 8, choice: port}
  links: []
  edges: []
links:
- name: host
  physical:
    bandwidth: {choice: gigabits_per_second, gigabits_per_second: 400}
    latency: {choice: ns, ns: 250}
- name: up
  physical:
    bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: 12.5}
    latency: {choice: us, us: 1.5}
instances:
- {name: server, device: server, count: 2}
- {name: spine, device: switch, count: 2}
- {name: leaf, device: switch, count: 2}
edges:
- {ep1: {instance: "server[0]", component: nic}, ep2: {instance: "leaf[0]", component: port}, scheme: one2one, link: host}
- {ep1: {instance: "server[1]", component: "nic[0:2]"}, ep2: {instance: "leaf[1]", component: "port[:2]"}, scheme: one2one, link: host}
- {ep1: {instance: leaf, component: "port[2]"}, ep2: {instance: "spine[0]", component: "port[0:2]"}, scheme: one2one, link: up}
- {ep1: {instance: "leaf[0]", component: "port[4:8:2]"}, ep2: {instance: "spine[1]", component: "port[0]"}, scheme: many2many, link: up}
- {ep1: {instance: "leaf[0]", component: "port[3]"}, ep2: {instance: "spine[0]", component: "port[3]"}, scheme: one2one, link: up}
- {ep1: {instance: "leaf[1]", component: "port[3]"}, ep2: {instance: "spine[0]", component: "port[4]"}, scheme: one2one, link: up}
- {ep1: {instance: "leaf[1]", component: "port[4:6]"}, ep2: {instance: "spine[1]", component: "port[1:3]"}, scheme: one2one, link: up}
- {ep1: {instance: "spine[1]", component: "port[1:3]"}, ep2: {instance: "leaf[1]", component: "port[4:6]"}, scheme: one2one, link: up}
"#;

fn read(text: &str) -> Infragraph {
    infragraph::read("x.yaml", text).unwrap()
}
fn line(text: &str) -> String {
    let line = infragraph::read("x.yaml", text).unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}
fn clos(found: &Infragraph) -> Clos {
    match &found.network {
        Network::Clos(clos) => *clos,
        Network::Graph { why, .. } => panic!("{why}"),
    }
}

#[test]
fn a_small_clos() {
    let found = read(SMALL);
    let link = Link { rate: Rate::gbps(400), delay: Time::ns(250) };
    let up = Link { rate: Rate::gbps(100), delay: Time::ns(1500) };
    let tiers = Tiers::Two { leaves: 2, spines: 2 };
    // The last edge says the same as the one before: both are one. Ports 4 and 6 have a link each.
    let leaf_bundle = Bundle { link: up, members: 2 };
    assert_eq!(clos(&found), Clos { leaf_bundle, ..Clos::uniform(tiers, 2, link) });
    let names = [
        "server.0.nic.0",
        "server.0.nic.1",
        "server.1.nic.0",
        "server.1.nic.1",
        "spine.0",
        "spine.1",
        "leaf.0",
        "leaf.1",
    ];
    assert_eq!(found.names, names);
    let host = |id| Node::Host(HostId(id));
    let switch = |id| Node::Switch(SwitchId(id));
    assert_eq!(
        found.nodes,
        [host(0), host(1), host(2), host(3), switch(2), switch(3), switch(0), switch(1)]
    );
    assert!(found.remarks.is_empty());
    assert!(
        matches!(import::read("x", SMALL).unwrap(), Topology::Infragraph(same) if same == found)
    );
}

/// NICs that an edge has no port for vanish, with a remark; ports without a NIC are usual.
#[test]
fn parts_without_a_partner_are_named() {
    let all = "ep1: {instance: \"server[0]\", component: nic}, ep2: {instance: \"leaf[0]\", component: port}";
    assert!(SMALL.contains(all));
    let one = all.replace("component: port", "component: \"port[0]\"");
    let found = read(&SMALL.replace(all, &one));
    assert!(
        found.remarks[0].ends_with("and are not there: line 29 (2 with 1)"),
        "{:?}",
        found.remarks
    );
    assert_eq!(
        line(&SMALL.replace("devices:", "devces:")),
        "x.yaml:3: \"devces\" is no key of an InfraGraph; remove it, or use one of name, description, devices, \
         links, instances, edges, annotations"
    );
}

/// With `infrastructure` around it, as InfraGraph's service gives it, and as JSON.
#[test]
fn the_same_in_other_clothes() {
    let inside: String = SMALL.lines().fold(String::new(), |mut all, line| {
        writeln!(all, "  {line}").unwrap();
        all
    });
    let wrapped = format!("annotations: {{}}\ninfrastructure:\n{inside}");
    assert_eq!(read(&wrapped), read(SMALL));
    let json = r#"{"devices": [{"name": "h", "components": [{"name": "nic", "count": 1, "choice": "nic"}]},
        {"name": "s", "components": [{"name": "port", "count": 2, "choice": "port"}]}],
        "links": [{"name": "l", "physical": {"bandwidth": {"gigabits_per_second": 100}}}],
        "instances": [{"name": "h", "device": "h", "count": 2}, {"name": "s", "device": "s", "count": 1}],
        "edges": [{"ep1": {"instance": "h", "component": "nic"}, "ep2": {"instance": "s", "component": "port"},
                   "scheme": "one2one", "link": "l"}]}"#;
    let Topology::Infragraph(found) = import::read("x", json).unwrap() else {
        panic!("another kind")
    };
    let link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };
    assert_eq!(clos(&found), Clos::leaf_spine(1, 1, 2, link));
    assert_eq!(found.remarks, ["links without latency have 500ns, as delay of [fabric] is: \"l\""]);
}

/// A NIC that is a device of its own: its ports are within it, and it is still a NIC of its server.
#[test]
fn nics_within_servers() {
    let text = SMALL
        .replace("- name: server\n  components:\n", "- name: cx5\n  components: [{name: port, count: 1, choice: port}]\n- name: server\n  components:\n  - {name: cx5, count: 2, choice: device}\n")
        .replace("component: nic}", "component: \"server.cx5[0:2].port[0]\"}")
        .replace("\"nic[0:2]\"", "\"cx5.port\"");
    let found = read(&text);
    assert_eq!(clos(&found), clos(&read(SMALL)));
    assert_eq!(found.names[1], "server.0.cx5.1");
}

/// A ring of three switches is a network all the same.
#[test]
fn what_is_no_clos_is_a_graph() {
    let text = SMALL.split("instances:").next().unwrap().to_owned()
        + r#"instances: [{name: s, device: server, count: 3}, {name: r, device: switch, count: 3}]
edges:
- {ep1: {instance: s, component: "nic[0]"}, ep2: {instance: r, component: "port[0]"}, scheme: one2one, link: host}
- {ep1: {instance: "r[0]", component: "port[1]"}, ep2: {instance: "r[1]", component: "port[1]"}, scheme: one2one, link: up}
- {ep1: {instance: "r[1]", component: "port[2]"}, ep2: {instance: "r[2]", component: "port[2]"}, scheme: one2one, link: up}
- {ep1: {instance: "r[2]", component: "port[3]"}, ep2: {instance: "r[0]", component: "port[3]"}, scheme: one2one, link: up}
"#;
    let found = read(&text);
    let Network::Graph { graph, why } = &found.network else { panic!("no Clos") };
    assert!(why.contains("both are of one tier"), "{why}");
    let fabric = Fabric::of_wiring(graph.wiring().unwrap()).unwrap();
    assert_eq!((fabric.hosts(), fabric.switches(), fabric.links().count()), (3, 3, 6));
    assert_eq!(found.names[3..], ["r.0", "r.1", "r.2"]);
}

#[test]
fn refused() {
    let with = |from: &str, to: &str| {
        let text = SMALL.replacen(from, to, 1);
        assert_ne!(text, SMALL, "{from}");
        line(&text)
    };
    let cases = [
        (
            "link: host}\n- {ep1: {instance: \"server[1]\"",
            "link: cable}\n- {ep1: {instance: \"server[1]\"",
            "x.yaml:29: link \"cable\" is not among the links; add it there",
        ),
        (
            "\"server[0]\"",
            "\"server[2]\"",
            "x.yaml:29: \"server[2]\", but there are 2 of \"server\"; correct one of them",
        ),
        (
            "\"server[0]\"",
            "\"server[0\"",
            "x.yaml:29: \"server[0\" is no name with a slice, such as nic[0:2]; correct it",
        ),
        ("\"server[0]\"", "\"client[0]\"", "x.yaml:29: \"client\" is no instance; add it there"),
        (
            "component: nic}",
            "component: gpu}",
            "x.yaml:29: device server has no component \"gpu\"; correct it",
        ),
        ("scheme: one2one", "scheme: ring", "x.yaml:29: scheme \"ring\"; use one2one or many2many"),
        (
            "device: server, count: 2",
            "device: sever, count: 2",
            "x.yaml:25: \"sever\" is no device; add it there",
        ),
        (
            "device: server, count: 2",
            "device: server, count: two",
            "x.yaml:25: count \"two\" of an instance is no whole number; correct it",
        ),
        (
            "latency: {choice: ns, ns: 250}",
            "latency: {choice: ns, ns: 0}",
            "x.yaml:19: a latency of 0ns; use more than 0, 1000s at most",
        ),
        (
            "{choice: gigabytes_per_second, gigabytes_per_second: 12.5}",
            "{choice: gigatransfers_per_second, gigatransfers_per_second: 8}",
            "x.yaml:22: gigatransfers_per_second of link \"up\", which say nothing of bits; use gigabits_per_second",
        ),
        (
            "\"leaf[1]\", component: \"port[:2]\"",
            "\"server[0]\", component: \"nic\"",
            "x.yaml:30: server.1.nic.0 and server.0.nic.0 are linked without a switch; only switched networks are read",
        ),
        (
            "\"server[1]\"",
            "\"server[0]\"",
            "x.yaml:30: server.0.nic.0 has another link on line 29; only NICs with one link are read",
        ),
        (
            "\"server[1]\"",
            "\"leaf[1]\"",
            "x.yaml:30: device switch has no component \"nic\"; correct it",
        ),
        (
            "- {name: leaf,",
            "- {name: spine,",
            "x.yaml:27: instance \"spine\" is there twice; rename one",
        ),
        (
            "edges:\n- {ep1",
            "connections:\n- {ep1",
            "x.yaml:29: connections, as InfraGraph had before its version 1; write edges with ep1 and ep2",
        ),
    ];
    for (from, to, expected) in cases {
        assert_eq!(with(from, to), expected);
    }
    // Slices make much of little, but not more than fits.
    let many =
        SMALL.replace("count: 2}", "count: 4000000000}").replace("count: 8,", "count: 4000000000,");
    assert!(line(&many).contains("more than 1048576"), "{}", line(&many));
    let none = SMALL.split("edges:\n- {ep1").next().unwrap();
    assert_eq!(line(none), "x.yaml:1: no edges: nothing is linked; add some, or fetch it again");
    let cut = line("devices: [");
    assert!(
        cut.starts_with("x.yaml:") && cut.contains(": this is neither YAML nor JSON: "),
        "{cut}"
    );
}
