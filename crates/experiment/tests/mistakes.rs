//! Every mistake in an experiment gives one line with the source, the key and the mend.

use crate::common::GOOD;
use weft_experiment::{Format, Request, ShortKind, expand, shorthand};
use weft_trial::prelude::*;
use weft_workload::PATTERNS;

fn message(text: &str) -> String {
    message_with(text, &[])
}

fn message_with(text: &str, overrides: &[(&str, &str)]) -> String {
    let overrides: Vec<_> =
        overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let (format, source) = (Format::Toml, "fig.toml");
    let request = Request { text, format, source, overrides: &overrides, seeds: None };
    match expand(&request) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_good_experiment_is_good() {
    let (format, source) = (Format::Toml, "fig.toml");
    let request = Request { text: GOOD, format, source, overrides: &[], seeds: None };
    assert_eq!(expand(&request).map(|e| e.runs.len()), Ok(1));
}

#[test]
fn each_mistake_names_source_key_and_mend() {
    let unknown_scheme =
        "fig.toml: balance.scheme (line 11): \"ecpm\" is not known; did you mean \"ecmp\"?";
    let patterns: Vec<_> = PATTERNS.iter().map(|info| info.name).collect();
    let unknown_pattern = format!(
        "fig.toml: workload.pattern (line 8): \"all-to-al\" is not one of {}; did you mean \
         \"all-to-all\"?",
        patterns.join(", ")
    );
    // What to replace, by what, and the whole message.
    let cases = [
        (
            "leaves = 4",
            "leafs = 4",
            r#"fig.toml: fabric.leafs (line 4): unknown key; did you mean "leaves"?"#,
        ),
        ("leaves = 4\n", "", "fig.toml: fabric.leaves: missing; add it, for example leaves = 2"),
        (
            "leaves = 4",
            "leaves = 0",
            "fig.toml: fabric.leaves (line 4): 0 is out of range; use 1 to 65536",
        ),
        (
            "leaves = 4",
            "leaves = \"4\"",
            r#"fig.toml: fabric.leaves (line 4): "4" is text, not a whole number; write one such as 2"#,
        ),
        (
            "leaf-spine",
            "leafspine",
            r#"fig.toml: fabric.topology (line 3): "leafspine" is not one of leaf-spine, fat-tree, clos, rail-only, dragonfly, dragonfly+, torus, graph; did you mean "leaf-spine"?"#,
        ),
        (
            "\"leaf-spine\"",
            "\"hypercube\"",
            r#"fig.toml: fabric.topology (line 3): "hypercube" is not known; use one of leaf-spine, fat-tree, clos, rail-only, dragonfly, dragonfly+, torus, graph"#,
        ),
        (
            "topology = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4",
            "topology = \"dragonfly\"\ngroups = 8\nrouters = 4\nglobal_ports = 2\nhosts_per_leaf = 2",
            r#"fig.toml: fabric.groups (line 4): a group has 8 global links, which 7 other groups cannot share equally; use groups = 9, or other global_ports"#,
        ),
        (
            "topology = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4",
            "topology = \"graph\"\nhost_switches = [0, 1]\nlinks = [\"0 1 fast\"]",
            r#"fig.toml: fabric.links (line 5): "0 1 fast": "fast" is not a rate: write one such as "400Gbps""#,
        ),
        (
            "topology = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4",
            "topology = \"graph\"\nhost_switches = [0, 1, 0]\nlinks = [\"0 1\"]",
            "fig.toml: fabric.host_switches (line 4): hosts of switch 0 are apart from each other; list them side by side",
        ),
        (
            "topology = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4",
            "topology = \"graph\"\nhost_switches = [0, 1, 4]\nlinks = [\"0 1\"]",
            "fig.toml: fabric.links (line 5): no path leads from switch-0 to switch-4; add a link",
        ),
        (
            "topology = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4",
            "topology = \"torus\"\nsizes = \"4,4\"",
            r#"fig.toml: fabric.sizes (line 4): "4,4" is no list of sizes; write "4x4" or "4x4x4""#,
        ),
        (
            "topology = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4",
            "topology = \"torus\"\nsizes = 0x3",
            r#"fig.toml: fabric.sizes (line 4): "0x3" has a dimension of 0; use 1 or more for each"#,
        ),
        (
            "topology = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4",
            "topology = \"rail-only\"\nrails = 4\nhosts_per_leaf = 4\nleaves = 2",
            "fig.toml: fabric.spines: the 2 leaves of a rail need some to meet; use at least 1",
        ),
        (
            "topology = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4",
            "topology = \"rail-only\"\nrails = 4\nhosts_per_leaf = 4\nspines = 2",
            "fig.toml: fabric.spines (line 6): a rail of one leaf has none; use 0, or more leaves",
        ),
        (
            "topology = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4",
            "topology = \"rail-only\"\nrails = 4\nhosts_per_leaf = 4\nserver = { nics = 2 }",
            "fig.toml: fabric.server.nics (line 6): 2, where each of 4 rails has a NIC of every server; use 4",
        ),
        (
            "topology = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4",
            "topology = \"rail-only\"\nrails = 4\nhosts_per_leaf = 4\nserver = { rails = false }",
            "fig.toml: fabric.server.rails (line 6): false, where every NIC of a server is in a rail of its own; remove it",
        ),
        (
            "leaves = 4",
            "leaves = 4\nhomes = 3",
            "fig.toml: fabric.homes (line 5): 3 homes do not divide 4 leaves; use a divisor",
        ),
        (
            "leaves = 4",
            "leaves = 4\nhomes = 2\nplanes = 2",
            "fig.toml: fabric.homes (line 5): stands beside planes; remove one of them",
        ),
        (
            "topology = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4",
            "topology = \"graph\"\nhost_switches = [0, 0, 1]\nother_switches = [\"2\", \"3\", \"3\"]\nlinks = [\"0 1\", \"2 3\"]",
            "fig.toml: fabric.other_switches (line 5): hosts of switch 0 have it in common, but host 1 has other ones beside it; give them the same",
        ),
        (
            "spines = 2",
            "spines = 2\nk = 4",
            r#"fig.toml: fabric.k (line 6): belongs to topology = "fat-tree", not "leaf-spine"; remove it"#,
        ),
        (
            "\"16KB\"",
            "16384",
            r#"fig.toml: workload.size (line 9): 16384 has no unit; write "16384B" or "16KB""#,
        ),
        (
            "\"16KB\"",
            "\"16\"",
            r#"fig.toml: workload.size (line 9): size "16" has no unit; write "16B""#,
        ),
        (
            "\"16KB\"",
            "\"0B\"",
            r#"fig.toml: workload.size (line 9): "0B" is out of range; use "1B" to "1000TB""#,
        ),
        ("\"all-to-all\"", "\"all-to-al\"", &unknown_pattern),
        (
            "size =",
            "launch = \"sucessor\"\nsize =",
            r#"fig.toml: workload.launch (line 9): unknown value "sucessor"; use one of successor, same-rank"#,
        ),
        (
            "size =",
            "channels = 2\nsize =",
            r#"fig.toml: workload.channels (line 9): belongs to pattern = "ring", not "all-to-all"; remove it"#,
        ),
        (
            "pattern = \"all-to-all\"\nsize = \"16KB\"",
            "file = \"none.cm\"",
            "fig.toml: workload.file (line 8): there is no file none.cm; correct the path",
        ),
        (
            "[workload]",
            "[worklod]",
            r#"fig.toml: worklod (line 7): unknown key; did you mean "workload"?"#,
        ),
        (
            "[balance]\nscheme = \"ecmp\"\n",
            "",
            r#"fig.toml: balance.scheme: missing; add it, for example scheme = "ecmp""#,
        ),
        ("\"ecmp\"", "\"ecpm\"", unknown_scheme),
        (
            "\"ecmp\"",
            "\"reps\"\nentropies = 0",
            "fig.toml: balance.entropies (line 12): 0 is out of range; use 1 to 65536",
        ),
        (
            "\"ecmp\"",
            "\"reps\"\nentropies = \"many\"",
            r#"fig.toml: balance.entropies (line 12): "many" is not a whole number; write one such as 256"#,
        ),
        (
            "\"ecmp\"",
            "\"ethereal\"\nbatch = 100",
            r#"fig.toml: balance.batch (line 12): time "100" has no unit; write "100ns""#,
        ),
        (
            "\"ecmp\"",
            "\"ethereal\"\nbad_for = \"2000s\"",
            r#"fig.toml: balance.bad_for (line 12): "2000s" is out of range; use "0ns" to "1000s""#,
        ),
        (
            "\"ecmp\"",
            "\"ethereal\"\ngroup = \"sizes\"",
            r#"fig.toml: balance.group (line 12): unknown value "sizes"; use one of leaf, size"#,
        ),
        (
            "\"ecmp\"",
            "\"ecmp\"\ngroup = \"size\"",
            r#"fig.toml: balance.group (line 12): belongs to scheme = "ethereal", not "ecmp"; remove it"#,
        ),
        (
            "\"ecmp\"",
            "\"ethereal\"\nbatch = [\"1us\"]",
            r#"fig.toml: balance.batch (line 12): is a list; write one value such as 100ns"#,
        ),
        (
            "\"ecmp\"",
            "\"ecmp\"\nstart_jitter = 50",
            r#"fig.toml: balance.start_jitter (line 12): 50 has no unit; write "50ns" or "50us""#,
        ),
        (
            "\"ecmp\"",
            "\"spray-counter\"\nentropies = 3",
            "fig.toml: balance.entropies (line 12): 3 is out of range; use a power of two up to 65536",
        ),
        (
            "hosts_per_leaf = 4",
            "hosts_per_leaf = 4\nlink = 100",
            r#"fig.toml: fabric.link (line 7): 100 has no unit; write "100Gbps""#,
        ),
        (
            "hosts_per_leaf = 4",
            "hosts_per_leaf = 4\n[fabric.switch]\nbuffer_kind = \"per-port\"\npfc = true\n\
             pfc_threshold = \"dynamic\"",
            "fig.toml: fabric.switch.pfc_threshold (line 10): with per-port buffers there is \
             nothing to share; give a size",
        ),
        (
            "hosts_per_leaf = 4",
            "hosts_per_leaf = 4\n[fabric.switch]\necn_kmin = \"2MB\"\necn_kmax = \"1MB\"",
            "fig.toml: fabric.switch.ecn_kmax (line 9): is below ecn_kmin; raise it to ecn_kmin or more",
        ),
        (
            "hosts_per_leaf = 4",
            "hosts_per_leaf = 4\n[fabric.switch]\necn_pmax = 2",
            "fig.toml: fabric.switch.ecn_pmax (line 8): 2 is out of range; use 0 to 1",
        ),
        (
            "hosts_per_leaf = 4",
            "hosts_per_leaf = 4\nswitch = 3",
            "fig.toml: fabric.switch (line 7): is a whole number, not a table; write [fabric.switch]",
        ),
        (
            "[balance]",
            "[transport]\nrate = \"1Gbps\"\n[balance]",
            r#"fig.toml: transport.rate (line 11): belongs to congestion = "fixed-rate", not "dctcp"; remove it"#,
        ),
        (
            "[balance]",
            "[transport]\ndctcp_initial_window = \"2xbdp\"\n[balance]",
            r#"fig.toml: transport.dctcp_initial_window (line 11): "2xbdp" is not a window; write one such as "1bdp""#,
        ),
        (
            "[balance]",
            "[transport]\ndctcp_max_window = \"1KB\"\n[balance]",
            "fig.toml: transport.dctcp_max_window (line 11): is below dctcp_initial_window; raise it or lower that",
        ),
        (
            "[balance]",
            "[probe]\nports = [\"leaf-0 > host-0\"]\n[balance]",
            r#"fig.toml: probe.ports (line 11): "leaf-0 > host-0" is no port; write "leaf-0 -> host-0", or "leaf-0 -> spine-0#1" for a second parallel link"#,
        ),
        (
            "[balance]",
            "[probe]\nports = [\"leaf-0 -> host-9\"]\n[balance]",
            r#"fig.toml: probe.ports (line 11): there is no link "leaf-0 -> host-9"; write "leaf-0 -> host-0", or "leaf-0 -> spine-0#1" for a second parallel link"#,
        ),
        (
            "[balance]",
            "[probe]\nports = [\"leaf-0 -> spine-0#1\"]\n[balance]",
            r#"fig.toml: probe.ports (line 11): "leaf-0 -> spine-0#1" is one of 1 links, counted from #0; use a lower number"#,
        ),
        (
            "[balance]",
            "[probe]\nswitches = [\"leaf-4\"]\n[balance]",
            r#"fig.toml: probe.switches (line 11): "leaf-4" does not exist; switches are named leaf-0 to spine-1"#,
        ),
        (
            "[balance]",
            "[sweep]\n\"workload.sise\" = [\"1KB\"]\n[balance]",
            r#"fig.toml: workload.sise (sweep, line 11): unknown key; did you mean "size"?"#,
        ),
        (
            "[balance]",
            "[sweep]\n\"workload.size\" = []\n[balance]",
            "fig.toml: sweep.workload.size (line 11): has no values; list at least one",
        ),
        (
            "[balance]",
            "[sweep]\n\"workload.size\" = \"1KB\"\n[balance]",
            r#"fig.toml: sweep.workload.size (line 11): is text, not a list; write ["1KB"]"#,
        ),
        (
            "[balance]",
            "[sweep]\nseeds = 0\n[balance]",
            "fig.toml: sweep.seeds (line 11): 0 is out of range; use 1 to 1000000",
        ),
        (
            "[balance]",
            "[report]\nx = \"workload.size\"\n[balance]",
            r#"fig.toml: report.x (line 11): "workload.size" is not swept; nothing is; remove it"#,
        ),
        (
            "[balance]",
            "[report]\ny = 1\n[balance]",
            "fig.toml: report.y (line 11): unknown key; remove it or use one of x, \
             series, columns, figures, overview",
        ),
        (
            "title = \"A test\"",
            "title = 3",
            "fig.toml: title (line 1): is a whole number, not text; put it in quotes",
        ),
        (
            "spines = 2",
            "spines = 2000000",
            "fig.toml: fabric.spines (line 5): 2000000 is out of range; use 1 to 65536",
        ),
        (
            "leaves = 4\nspines = 2",
            "leaves = 60000\nspines = 60000",
            "fig.toml: fabric.spines (line 5): 3600240000 links are more than 16777216; use smaller counts",
        ),
        (
            "pattern = \"all-to-all\"",
            "pattern = \"incast\"\nsenders = 16",
            "fig.toml: workload.senders (line 9): 16 is not between 1 and the 15 hosts beside the \
             receiver; change it or the number of hosts",
        ),
        (
            "[balance]",
            "[sweep]\n\"workload.start_rank\" = [3]\n[balance]",
            "fig.toml: workload.start_rank (sweep, line 11): needs launch = \"same-rank\"; set that \
             or remove it",
        ),
        (
            "\"16KB\"",
            "\"900TB\"\n[fabric.nic]\nmtu = \"100B\"",
            "fig.toml: workload.size (line 9): a message has 9000000000000 packets, more than \
             1073741824; make it smaller or fabric.nic.mtu larger",
        ),
        (
            "hosts_per_leaf = 4",
            "hosts_per_leaf = 4\ndelay = \"1000000s\"",
            "fig.toml: fabric.delay (line 7): \"1000000s\" is out of range; use \"1ps\" to \"1000s\"",
        ),
        (
            "hosts_per_leaf = 4",
            "hosts_per_leaf = 4\nlink = \"1Kbps\"",
            "fig.toml: fabric.link (line 7): \"1Kbps\" is out of range; use \"1Mbps\" to \"8000Gbps\"",
        ),
        (
            "[balance]",
            "[transport]\nrto = \"1us\"\n[balance]",
            "fig.toml: transport.rto (line 11): 1us is below the round trip of an idle path \
             (5345280ps), so that every packet would time out; raise it",
        ),
        (
            "[balance]",
            "[transport]\nrto = \"2s\"\n[run]\nstall_after = \"1s\"\n[balance]",
            "fig.toml: run.stall_after (line 13): 1s is not above transport.rto (2s), so that any \
             loss would count as a stall; raise it",
        ),
        (
            "[workload]",
            "[fabric.switch]\nbuffer_kind = \"per-port\"\nbuffer = \"4000B\"\n[workload]",
            "fig.toml: fabric.switch.buffer (line 9): leaves a queue 4000 bytes, less than a packet \
             of 4144; enlarge buffer, or raise buffer_alpha, or lower fabric.nic.mtu",
        ),
        (
            "[balance]",
            "[sweep]\n\"balance.scheme\" = [\"ecmp\", \"spray\", \"ecmp\"]\n[balance]",
            "fig.toml: sweep.balance.scheme (line 11): lists ecmp twice; remove one",
        ),
        (
            "[balance]",
            "[sweep]\nseeds = [3, 4, 3]\n[balance]",
            "fig.toml: sweep.seeds (line 11): lists 3 twice; remove one",
        ),
        (
            "title = \"A test\"",
            "sweeps = 3",
            "fig.toml: sweeps (line 1): unknown key; did you mean \"sweep\"?",
        ),
    ];
    for (from, to, expected) in cases {
        assert!(GOOD.contains(from), "{from}");
        let got = message(&GOOD.replacen(from, to, 1));
        assert_eq!(got, expected, "for {to:?}");
        assert!(!got.contains('\n'));
    }
}

#[test]
fn text_that_is_not_toml_names_the_line() {
    let got = message("[fabric]\ntopology = \"leaf-spine\nleaves = 4\n");
    assert!(got.starts_with("fig.toml (line 2): not TOML: "), "{got}");
    assert!(got.ends_with("; mend this line") && !got.contains('\n'), "{got}");
    let twice = message(&GOOD.replace("spines = 2", "leaves = 2"));
    assert_eq!(twice, "fig.toml (line 5): not TOML: leaves is there twice; remove one");
}

#[test]
fn text_that_is_not_json_names_the_line() {
    let json = |text| {
        let format = Format::Json;
        let request = Request { text, format, source: "dict", overrides: &[], seeds: None };
        expand(&request).expect_err("a mistake").to_string()
    };
    assert_eq!(json("[1]"), "dict: an experiment is an object, not a list; write {...}");
    let twice = json("{\"title\": \"a\",\n \"title\": \"b\"}");
    assert!(twice.starts_with("dict (line 2): not JSON: key \"title\" is there twice"), "{twice}");
    assert!(json("{").starts_with("dict (line 1): not JSON: "));
    let unknown = json(r#"{"fabric": {"topology": "fat-tree", "kk": 4}}"#);
    assert_eq!(unknown, r#"dict: fabric.kk: unknown key; did you mean "k"?"#);
}

#[test]
fn overrides_are_blamed_as_such() {
    let cases = [
        (
            "fabric.leafs",
            "4",
            r#"fig.toml: fabric.leafs (command line): unknown key; did you mean "leaves"?"#,
        ),
        (
            "transport.gain",
            "0.1",
            r#"fig.toml: transport.gain (command line): unknown key; did you mean "dctcp_gain"?"#,
        ),
        (
            "workload.size",
            "16384",
            r#"fig.toml: workload.size (command line): 16384 has no unit; write "16384B" or "16KB""#,
        ),
        (
            "fabric..leaves",
            "4",
            "fig.toml: fabric..leaves (command line): not a dotted key; write --set balance.scheme=reps",
        ),
        (
            "quick.seeds",
            "1",
            "fig.toml: quick.seeds (command line): is read before --set and [quick]; write it into the \
             experiment itself",
        ),
        (
            "extends",
            "x.toml",
            "fig.toml: extends (command line): is read before --set and [quick]; write it into the \
             experiment itself",
        ),
        (
            "fabric.leaves.x",
            "4",
            "fig.toml: fabric.leaves (command line): is not a table, so nothing can be set in it; correct the key",
        ),
    ];
    for (key, value, expected) in cases {
        assert_eq!(message_with(GOOD, &[(key, value)]), expected);
    }
}

#[test]
fn bursts_with_nothing_between_them_are_refused() {
    let text = format!(
        "{GOOD}[failures.up]\ntier = \"leaf-up\"\ncount = 1\nkind = \"flaky\"\nevery = \"10us\"\n\
         length = \"1us\"\n"
    );
    let blamed = |key, value| message_with(&text, &[(key, value)]);
    assert_eq!(
        blamed("failures.up.every", "100ns"),
        "fig.toml: failures.up.every (command line): bursts of 1us every 100ns leave next to nothing between \
         them; use kind = \"down\", or shorter ones"
    );
    assert!(
        blamed("failures.up.length", "81us")
            .starts_with("fig.toml: failures.up.length (command line): ")
    );
    let as_it_is = text.replace("1us", "200us");
    assert!(message(&as_it_is).starts_with("fig.toml: failures.up.length (line "));
    assert!(blamed("failures.up.every", "1ps").contains("is out of range"));
}

#[test]
fn ethereal_is_refused_where_path_ids_cannot_name_the_links() {
    let clos = r#"
        balance.scheme = "ethereal"
        workload = { pattern = "all-to-all", size = "16KB" }
        [fabric]
        topology = "clos"
        tiers = 3
        pods = 2
        leaves = 2
        aggs = 2
        cores = 2
        hosts_per_leaf = 2
        links_per_pair = 2
    "#;
    let got = message(clos);
    assert!(
        got.starts_with("fig.toml: balance.scheme (line 2): ethereal cannot run here: "),
        "{got}"
    );
    assert!(got.contains("members of a bundle cannot be named"), "{got}");
    assert!(got.ends_with("; change the fabric or the scheme"), "{got}");
}

/// What path ids cannot name, ports can; and what a hash must be for hosts to choose by it.
#[test]
fn paths_by_port_are_refused_where_ports_cannot_name_them() {
    let text = |fabric: &str, balance: &str, hash: &str| {
        format!(
            "workload = {{ pattern = \"all-to-all\", size = \"16KB\" }}\n\
             balance = {{ {balance} }}\n\
             [fabric]\n{fabric}\nswitch = {{ {hash} }}\n"
        )
    };
    let (tree, by_hash) =
        ("topology = \"fat-tree\"\nk = 4", "scheme = \"ethereal\", enforce = \"hash\"");
    let known = "crc16, crc16-ccitt, crc32, crc32c, xor, toeplitz";
    let cases = [
        (
            text(tree, by_hash, ""),
            format!(
                "fabric.switch.hash: with balance.enforce = \"hash\" hosts must know what switches do \
                 with addresses and ports; use one of {known}"
            ),
        ),
        (
            text(tree, by_hash, "hash = \"crc32\", same_salt = true"),
            "fabric.switch.hash (line 6): ethereal cannot run here: no source port of 16384 leads from host-0 \
             to host-15 by path 0.1 under this hash; use segments, or another hash"
                .into(),
        ),
        (
            text(tree, "scheme = \"conga\"", "hash = \"xor\""),
            "fabric.switch.hash (line 6): under conga leaves tell flows apart by a number of their own; use \
             \"weft\""
                .into(),
        ),
        (
            text(tree, "scheme = \"ethereal\", enforce = \"port\"", ""),
            "balance.enforce (line 2): unknown value \"port\"; use one of path-id, segments, hash, \
             discovered".into(),
        ),
        (
            text(
                "topology = \"leaf-spine\"\nleaves = 2\nspines = 300\nhosts_per_leaf = 2",
                "scheme = \"ethereal\", enforce = \"segments\"",
                "",
            ),
            "balance.scheme (line 2): ethereal cannot run here: a switch has 300 uplinks, but a path \
             names 256 at most; change the fabric or the scheme"
                .into(),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(message(&text), format!("fig.toml: {expected}"));
    }
}

#[test]
fn a_buffer_that_is_all_headroom_is_refused_with_the_numbers() {
    // A leaf has 6 ports, each with 4096 bytes of reserve and 10 kB of headroom.
    let switch = "hosts_per_leaf = 4\n[fabric.switch]\nbuffer = \"84KB\"\npfc_headroom = \"10KB\"";
    let got = message(&GOOD.replace("hosts_per_leaf = 4", switch));
    let expected = "fig.toml: fabric.switch.buffer (line 8): the buffer has 84000 bytes, and reserves and \
         headroom of the largest switch alone take 84576; enlarge fabric.switch.buffer, or lower \
         pfc_headroom or pfc_reserve, or what makes links hold much, or set pfc = false";
    assert_eq!(got, expected);
}

#[test]
fn short_forms_are_checked_where_they_stand() {
    let wrong = |kind, text| shorthand(kind, text).expect_err("a mistake").to_string();
    let fabric = |text| wrong(ShortKind::Fabric, text);
    assert_eq!(
        fabric("leaf-spin:leaves=4"),
        r#"topology: "leaf-spin" is not one of leaf-spine, fat-tree, clos, rail-only, dragonfly, dragonfly+, torus, graph; did you mean "leaf-spine"?"#
    );
    assert_eq!(fabric("leaf-spine:leafs=4"), r#"leafs: unknown key; did you mean "leaves"?"#);
    assert_eq!(fabric("fat-tree:8"), "8: has no value; write key=value");
    let workload = wrong(ShortKind::Workload, "all-to-all:sice=1KB");
    assert_eq!(workload, r#"sice: unknown key; did you mean "size"?"#);
}

#[test]
fn mistakes_in_workload_files_name_file_and_line() {
    let folder = std::env::temp_dir().join(format!("weft-mistakes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let source = folder.join("fig.toml").to_string_lossy().into_owned();
    let blamed = |name: &str, content: &str| {
        std::fs::write(folder.join(name), content).expect("a temporary file");
        let file = format!("file = \"{name}\"");
        let text = GOOD.replace("pattern = \"all-to-all\"\nsize = \"16KB\"", &file);
        let (format, source) = (Format::Toml, source.as_str());
        let request = Request { text: &text, format, source, overrides: &[], seeds: None };
        let error = expand(&request).expect_err("a mistake").to_string();
        let start = format!("{source}: workload.file (line 8): ");
        error.strip_prefix(&start).unwrap_or_else(|| panic!("{error}")).to_owned()
    };
    let csv = blamed("a.csv", "src,dst,size\n0,1,64KB\n0,0,64KB\n");
    assert!(csv.starts_with("a.csv:3: "), "{csv}");
    let truncated = blamed("a.cm", "Nodes 16\nConnections 2\n0->1 start 0 size 4096\n");
    assert!(truncated.starts_with("a.cm:"), "{truncated}");
    let large = blamed("b.csv", "src,dst,size\n0,99,64KB\n");
    assert!(large.contains("100 hosts but the fabric only 16"), "{large}");
    std::fs::remove_dir_all(&folder).expect("the temporary folder");
}

/// Everything that an experiment may say, so that damage can hit any of it.
const RICH: &str = r#"notes = "n"
[fabric]
topology = "clos"
tiers = 3
pods = 2
leaves = 2
aggs = 2
cores = 4
hosts_per_leaf = 2
uplink = "400Gbps"
core_delay = "1.5us"
switch = { buffer = "9MB", ecn_kmin = "10KB", pfc_headroom = "auto" }
nic = { mtu = "1000B" }
[workload]
pattern = "all-to-all"
size = "16KB"
launch = "same-rank"
start_rank = 3
[failures.slow]
tier = "pod-up"
groups = [0, 1]
kind = "degraded"
lost = 0.9
start = "1us"
[failures.dead]
links = ["leaf-0 -> pod-0-agg-1"]
kind = "down"
detect = "never"
[transport]
congestion = "swift"
swift_max_window = "2bdp"
recovery = "tcp"
dup_acks = 6
subflows = "auto"
[balance]
scheme = "ethereal"
batch = "100ns"
[probe]
ports = ["leaf-0 -> pod-0-agg-1"]
[sweep]
"balance.scheme" = ["ecmp", "subflows-2"]
"failures.slow.count" = [1, 2]
variant = [{ name = "a", fabric = { pods = 3 } }]
seeds = [1, 2]
[report]
x = "balance.scheme"
[run]
completion = "acknowledged"
"#;

trials! {
    #![cases(2000)]

    /// Damaged text either still makes sense or gives one line; it never panics.
    fn damage_gives_one_line(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..4, "[a-z0-9\"=.,#\\[\\]{}\n -]{0,3}"), 1..4),
    ) {
        let mut text = RICH.to_owned();
        for (at, length, insert) in cuts {
            let at = at.index(text.len());
            text.replace_range(at..(at + length).min(text.len()), &insert);
        }
        let (format, source) = (Format::Toml, "fig.toml");
        let request = Request { text: &text, format, source, overrides: &[], seeds: None };
        if let Err(error) = expand(&request) {
            let line = error.to_string();
            prop_assert!(line.starts_with("fig.toml") && !line.contains('\n'), "{line}");
        }
    }
}

#[test]
fn the_rich_experiment_is_good() {
    let (format, source) = (Format::Toml, "fig.toml");
    let request = Request { text: RICH, format, source, overrides: &[], seeds: None };
    let runs = expand(&request).unwrap_or_else(|error| panic!("{error}")).runs;
    assert_eq!(runs.len(), 8);
}
