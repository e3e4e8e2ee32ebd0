//! Sweeps, defaults, keys and short forms.

use crate::common::{GOOD, mistake, settled};
use std::collections::BTreeSet;
use weft_balance::scheme::SCHEMES;
use weft_experiment::value::Value;
use weft_experiment::{Expansion, Format, Request, ShortKind, expand, read_run, shorthand};
use weft_workload::PATTERNS;

fn expanded(text: &str, overrides: &[(&str, &str)], seeds: Option<u64>) -> Expansion {
    let overrides: Vec<_> =
        overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let (format, source) = (Format::Toml, "fig.toml");
    let request = Request { text, format, source, overrides: &overrides, seeds };
    expand(&request).unwrap_or_else(|error| panic!("{error}"))
}

fn labels(expansion: &Expansion) -> Vec<&str> {
    expansion.runs.iter().map(|run| run.label.as_str()).collect()
}

/// The value at a dotted key of a resolved experiment, as a person would write it.
fn at(expansion: &Expansion, run: usize, dotted: &str) -> String {
    let mut value = Value::Table(expansion.runs[run].experiment.clone());
    for key in dotted.split('.') {
        let Value::Table(table) = &value else { panic!("{dotted} leads nowhere") };
        value = table.get(key).unwrap_or_else(|| panic!("no {dotted}")).value.clone();
    }
    value.to_label()
}

#[test]
fn a_sweep_is_a_product_in_file_order_with_the_last_key_fastest() {
    // "z" before "a": the order of the file, not of the alphabet.
    let sweep = "[sweep]\n\"workload.size\" = [\"1KB\", \"2KB\"]\n\
                 \"balance.scheme\" = [\"ecmp\", \"spray\"]\nseeds = [7, 3]\n";
    let all = expanded(&format!("{GOOD}{sweep}"), &[], None);
    let expected = ["1KB, ecmp", "1KB, ecmp", "1KB, spray", "1KB, spray", "2KB, ecmp", "2KB, ecmp"];
    assert_eq!(labels(&all)[..6], expected);
    assert_eq!(all.runs.len(), 8);
    let seeds: Vec<_> = all.runs.iter().map(|run| run.seed).collect();
    assert_eq!(seeds, [7, 3, 7, 3, 7, 3, 7, 3]);
    assert_eq!(at(&all, 7, "workload.size"), "2KB");
    assert_eq!(at(&all, 7, "balance.scheme"), "spray");
    let keys: BTreeSet<_> = all.runs.iter().map(|run| &run.key).collect();
    assert_eq!(keys.len(), 8, "every run has a key of its own");
}

#[test]
fn seeds_count_from_one_and_can_be_overridden() {
    let seeds = |text: &str, over| {
        let all = expanded(&format!("{GOOD}{text}"), &[], over);
        all.runs.iter().map(|run| run.seed).collect::<Vec<_>>()
    };
    assert_eq!(seeds("", None), [1]);
    assert_eq!(seeds("[sweep]\nseeds = 3\n", None), [1, 2, 3]);
    assert_eq!(seeds("[sweep]\nseeds = 3\n", Some(2)), [1, 2]);
}

#[test]
fn a_swept_table_is_merged_and_known_by_its_name() {
    let sweep = "[sweep]\nfabric = [{ name = \"bundled\", links_per_pair = 4 }, { spines = 8 }]\n";
    let all = expanded(&format!("{GOOD}{sweep}"), &[], None);
    assert_eq!(labels(&all), ["bundled", "spines=8"]);
    assert_eq!(
        (at(&all, 0, "fabric.links_per_pair"), at(&all, 0, "fabric.spines")),
        ("4".into(), "2".into())
    );
    assert_eq!(
        (at(&all, 1, "fabric.links_per_pair"), at(&all, 1, "fabric.spines")),
        ("1".into(), "8".into())
    );
    let sweep = "[sweep]\nvariant = [{ name = \"both\", fabric = { spines = 8 }, balance = { scheme = \"reps\" } }]\n";
    let all = expanded(&format!("{GOOD}{sweep}"), &[], None);
    assert_eq!(labels(&all), ["both"]);
    assert_eq!(
        (at(&all, 0, "fabric.spines"), at(&all, 0, "balance.scheme")),
        ("8".into(), "reps".into())
    );
}

#[test]
fn a_table_among_schemes_is_a_scheme_with_all_that_goes_with_it() {
    let sweep = "[sweep]\n\"balance.scheme\" = [\"ecmp\", { name = \"sprayed\", balance = { scheme = \"spray\" }, \
                 fabric = { spines = 8 } }]\n";
    let all = expanded(&format!("{GOOD}{sweep}"), &[], None);
    assert_eq!(labels(&all), ["ecmp", "sprayed"]);
    assert_eq!([at(&all, 0, "balance.scheme"), at(&all, 1, "balance.scheme")], ["ecmp", "spray"]);
    assert_eq!([at(&all, 0, "fabric.spines"), at(&all, 1, "fabric.spines")], ["2", "8"]);
}

#[test]
fn a_swept_choice_ignores_the_keys_of_its_siblings() {
    let text = GOOD.replace("scheme = \"ecmp\"", "entropies = 32");
    let sweep = "[sweep]\n\"balance.scheme\" = [\"ecmp\", \"reps\"]\n";
    let all = expanded(&format!("{text}{sweep}"), &[], None);
    assert_eq!(at(&all, 1, "balance.entropies"), "32");
    assert!(!Value::Table(all.runs[0].experiment.clone()).to_json().contains("entropies"));
}

#[test]
fn an_override_ends_a_sweep_and_a_list_replaces_it() {
    let text = format!("{GOOD}[sweep]\n\"balance.scheme\" = [\"ecmp\", \"spray\"]\n");
    let one = expanded(&text, &[("balance.scheme", "reps"), ("workload.size", "64KB")], None);
    assert_eq!(labels(&one), ["reps"]);
    assert_eq!(at(&one, 0, "workload.size"), "64KB");
    let other = expanded(&text, &[("balance.scheme", "[\"reps\", \"ethereal\"]")], None);
    assert_eq!(labels(&other), ["reps", "ethereal"]);
}

#[test]
fn defaults_are_written_out_and_read_back_as_the_same() {
    // Some schemes can do with rates only.
    let schemes = |shares: bool| -> Vec<_> {
        SCHEMES.iter().filter(|info| info.shares == shares).map(|info| info.name).collect()
    };
    let patterns = PATTERNS.iter().map(|info| format!("{{ pattern = \"{}\" }}", info.name));
    let told = [
        "{ pattern = \"all-to-all\", launch = \"same-rank\" }",
        "{ pattern = \"incast\", senders = 3 }",
        "{ pattern = \"ring\", channels = 4 }",
    ];
    let workloads: Vec<_> = told.map(str::to_owned).into_iter().chain(patterns).collect();
    let sweep = |schemes: Vec<&str>, controls: &[&str]| {
        let workloads = workloads.join(", ");
        format!(
            "[sweep]\nrefused = \"left-out\"\n\"balance.scheme\" = {schemes:?}\nworkload = [{workloads}]\n\
             \"transport.congestion\" = {controls:?}\n"
        )
    };
    let sweeps = [
        sweep(schemes(false), &["dctcp", "fixed-rate", "swift", "dcqcn"]),
        sweep(schemes(true), &["dctcp-rate", "fixed-rate", "dcqcn"]),
    ];
    let fabrics = [
        GOOD.to_owned(),
        GOOD.replace("leaf-spine", "fat-tree")
            .replace("leaves = 4\nspines = 2\nhosts_per_leaf = 4", "k = 4"),
    ];
    for (fabric, sweep) in fabrics.iter().flat_map(|one| sweeps.iter().map(move |two| (one, two))) {
        for run in expanded(&format!("{fabric}{sweep}"), &[], None).runs {
            let json = Value::Table(run.experiment.clone()).to_json();
            let again = read_run(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
            assert_eq!(Value::Table(again.table().clone()).to_json(), json);
            assert_eq!(again.key(run.seed), run.key);
            assert_ne!(again.key(run.seed + 1), run.key);
        }
    }
}

#[test]
fn defaults_are_the_documented_ones() {
    let all = expanded(GOOD, &[], None);
    let expected = [
        ("fabric.link", "100Gbps"),
        ("fabric.delay", "500ns"),
        ("fabric.uplink", "100Gbps"),
        ("fabric.links_per_pair", "1"),
        ("fabric.nic.mtu", "4096B"),
        ("fabric.nic.header", "48B"),
        ("fabric.nic.ack", "60B"),
        ("fabric.switch.buffer", "64MB"),
        ("fabric.switch.buffer_kind", "shared"),
        ("fabric.switch.pfc", "true"),
        ("fabric.switch.pfc_alpha", "1.0"),
        ("fabric.switch.pfc_reserve", "4096B"),
        ("fabric.switch.pfc_headroom", "auto"),
        ("fabric.switch.pfc_resume_offset", "8288B"),
        ("fabric.switch.ecn_kmin", "65KB"),
        ("fabric.switch.ecn_kmax", "65KB"),
        ("fabric.switch.ecn_pmax", "1.0"),
        ("workload.start", "0ns"),
        ("workload.launch", "successor"),
        ("balance.start_jitter", "0ns"),
        ("balance.random_position", "false"),
        ("transport.congestion", "dctcp"),
        ("transport.recovery", "go-back-n"),
        ("transport.rto", "auto"),
        ("transport.dctcp_gain", "0.0625"),
        ("transport.dctcp_initial_alpha", "0.0"),
        ("transport.dctcp_initial_window", "1bdp"),
        ("transport.dctcp_max_window", "8bdp"),
        ("probe.interval", "1us"),
        ("run.stall_after", "auto"),
    ];
    for (key, value) in expected {
        assert_eq!(at(&all, 0, key), value, "{key}");
    }
    let ethereal =
        expanded(GOOD, &[("balance.scheme", "ethereal"), ("fabric.link", "400Gbps")], None);
    assert_eq!(at(&ethereal, 0, "balance.start_jitter"), "50ns");
    assert_eq!(at(&ethereal, 0, "balance.random_position"), "true");
    assert_eq!(at(&ethereal, 0, "balance.batch"), "100ns");
    assert_eq!(at(&ethereal, 0, "fabric.switch.ecn_kmin"), "260KB");
    let spray = expanded(GOOD, &[("balance.scheme", "spray")], None);
    assert_eq!(at(&spray, 0, "transport.recovery"), "selective-repeat");
    let per_port = expanded(GOOD, &[("fabric.switch.buffer_kind", "per-port")], None);
    assert_eq!(at(&per_port, 0, "fabric.switch.pfc"), "false");
}

#[test]
fn windows_are_bandwidth_delay_products() {
    // Four links of 80 ps a byte and 500 ns each way: a full packet takes
    // 4 * (4144 * 80 ps + 500 ns), its acknowledgement 4 * (60 * 80 ps + 500 ns); together
    // 5,345.28 ns, which is 66,816 bytes at 100 Gb/s.
    let all = expanded(GOOD, &[], None);
    let json = Value::Table(all.runs[0].experiment.clone()).to_json();
    let run = read_run(&json).expect("resolved");
    assert_eq!(run.balance.bdp, 66_816);
    let weft_transport::CongestionConfig::Dctcp(dctcp) = run.transport.congestion else {
        panic!("dctcp is the default")
    };
    assert_eq!((dctcp.initial_window, dctcp.max_window), (66_816, 8 * 66_816));
}

#[test]
fn spray_over_go_back_n_is_warned_of_once() {
    let sweep = "[sweep]\n\"balance.scheme\" = [\"ecmp\", \"spray\", \"ethereal\"]\nseeds = 3\n";
    let all = expanded(&format!("{GOOD}{sweep}"), &[("transport.recovery", "go-back-n")], None);
    assert_eq!(all.warnings.len(), 1);
    assert!(all.warnings[0].contains("spray over go-back-N without a reorder buffer"));
    assert!(expanded(&format!("{GOOD}{sweep}"), &[], None).warnings.is_empty());
}

#[test]
fn a_workload_file_counts_by_content_and_not_by_place() {
    let folder = std::env::temp_dir().join(format!("weft-expansion-{}", std::process::id()));
    let places = [folder.join("a"), folder.join("b")];
    let text = GOOD.replace("pattern = \"all-to-all\"\nsize = \"16KB\"", "file = \"flows.csv\"");
    let key_in = |place: &std::path::Path, flows: &str| {
        std::fs::create_dir_all(place).expect("a temporary folder");
        std::fs::write(place.join("flows.csv"), flows).expect("a temporary file");
        let source = place.join("fig.toml").to_string_lossy().into_owned();
        let format = Format::Toml;
        let request = Request { text: &text, format, source: &source, overrides: &[], seeds: None };
        expand(&request).unwrap_or_else(|error| panic!("{error}")).runs[0].key.clone()
    };
    let first = key_in(&places[0], "src,dst,size\n0,5,4096\n");
    assert_eq!(key_in(&places[1], "src,dst,size\n0,5,4096\n"), first);
    assert_ne!(key_in(&places[1], "src,dst,size\n0,5,8192\n"), first);
    std::fs::remove_dir_all(&folder).expect("the temporary folder");
}

#[test]
fn short_forms_are_tables() {
    let fabric =
        "leaf-spine:leaves=16,spines=16,hosts=16,link=400Gbps,delay=500ns,switch.pfc=false";
    let table = shorthand(ShortKind::Fabric, fabric).expect("valid");
    assert_eq!(
        Value::Table(table).to_json(),
        r#"{"topology":"leaf-spine","leaves":16,"spines":16,"hosts_per_leaf":16,"link":"400Gbps","delay":"500ns","switch":{"pfc":false}}"#
    );
    let workload =
        |text| Value::Table(shorthand(ShortKind::Workload, text).expect("valid")).to_json();
    assert_eq!(workload("permutation:size=2MB"), r#"{"pattern":"permutation","size":"2MB"}"#);
    assert_eq!(workload("a/x.cm"), r#"{"file":"a/x.cm"}"#);
    let torus = shorthand(ShortKind::Fabric, "torus:sizes=0x3").expect("valid");
    assert_eq!(torus.get("sizes").map(|item| &item.value), Some(&Value::Text("0x3".into())));
    let clos = shorthand(ShortKind::Fabric, "clos:tiers=3,pods=2,leaves=2,aggs=2,cores=4,hosts=2");
    assert!(clos.is_ok());
    assert!(shorthand(ShortKind::Fabric, "clos:leaves=2,spines=2,hosts=2").is_ok());
}

/// What two people write for the same is the same experiment, with the same key.
#[test]
fn options_are_written_out_in_one_form() {
    let key = |overrides: &[(&str, &str)]| {
        let all = expanded(GOOD, overrides, None);
        all.runs[0].key.clone()
    };
    let reps = |entropies| key(&[("balance.scheme", "reps"), ("balance.entropies", entropies)]);
    assert_eq!(reps("\"64\""), reps("64"));
    assert_ne!(reps("64"), reps("256"));
    assert_eq!(reps("256"), key(&[("balance.scheme", "reps")]));
    let ethereal = |batch| key(&[("balance.scheme", "ethereal"), ("balance.batch", batch)]);
    assert_eq!(ethereal("0.1us"), ethereal("100ns"));
    assert_eq!(ethereal("100ns"), key(&[("balance.scheme", "ethereal")]));
}

/// A folder of its own for a test's files.
fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("weft-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn an_experiment_extends_another_and_replaces_its_sweep() {
    let folder = folder("extends");
    let sweep = "[sweep]\n\"balance.scheme\" = [\"ecmp\", \"spray\"]\nseeds = 2\n";
    std::fs::write(folder.join("base.toml"), format!("{GOOD}{sweep}")).unwrap();
    let source = folder.join("child.toml").display().to_string();
    let run = |text: &str| {
        let (format, overrides) = (Format::Toml, &[]);
        expand(&Request { text, format, source: &source, overrides, seeds: None })
    };
    let same = run("extends = \"base.toml\"\ntitle = \"Child\"\n").unwrap();
    assert_eq!((same.title.as_str(), same.runs.len()), ("Child", 4));
    let child = run("extends = \"base.toml\"\n[workload]\nsize = \"9KB\"\n[sweep]\nseeds = 1\n");
    let child = child.unwrap();
    assert_eq!(child.runs.len(), 1, "the sweep of the base is gone");
    assert_eq!(at(&child, 0, "workload.size"), "9KB");
    assert_eq!(at(&child, 0, "fabric.leaves"), "4");

    let wrong = |text: &str| run(text).unwrap_err().to_string();
    assert!(wrong("extends = \"none.toml\"").contains("extends (line 1): none.toml cannot be"));
    std::fs::write(folder.join("child.toml"), "extends = \"child.toml\"").unwrap();
    assert!(wrong("extends = \"child.toml\"").contains("leads in a circle"));
    std::fs::write(folder.join("bad.toml"), "[fabric]\nleafs = 1\n").unwrap();
    let error = wrong("extends = [\"base.toml\", \"bad.toml\"]");
    assert!(error.contains("fabric.leafs (bad.toml, line 2): "), "{error}");
    std::fs::write(folder.join("far.toml"), "extends = \"bad.toml\"\n").unwrap();
    let error = wrong("extends = [\"base.toml\", \"far.toml\"]");
    assert!(error.contains("fabric.leafs (bad.toml, line 2): "), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_star_probes_every_port_that_it_matches() {
    let fabric = GOOD.replace("spines = 2", "spines = 2\nlinks_per_pair = 3");
    let probed = |name: &str| {
        let all = expanded(&format!("{fabric}[probe]\nports = [\"{name}\"]\n"), &[], Some(1));
        let run = read_run(&Value::Table(all.runs[0].experiment.clone()).to_json()).unwrap();
        run.probes.ports.len()
    };
    assert_eq!(probed("leaf-0 -> spine-1"), 1);
    assert_eq!(probed("leaf-0 -> spine-1#2"), 1);
    assert_eq!(probed("leaf-0 -> spine-*"), 6);
    assert_eq!(probed("leaf-* -> spine-*"), 24);
    assert_eq!(probed("spine-* -> leaf-3"), 6);
    assert_eq!(probed("leaf-1 -> host-*"), 4);
}

#[test]
fn a_start_beyond_all_reason_is_refused() {
    let folder = folder("late");
    std::fs::write(folder.join("late.csv"), "src,dst,size,start\n0,1,9,0\n1,2,9,2000s\n").unwrap();
    let text = GOOD.replace("pattern = \"all-to-all\"\nsize = \"16KB\"", "file = \"late.csv\"");
    let source = folder.join("late.toml").display().to_string();
    let request =
        Request { text: &text, format: Format::Toml, source: &source, overrides: &[], seeds: None };
    let error = expand(&request).unwrap_err().to_string();
    assert!(error.contains("message 1 starts after 2000s"), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn keys_of_two_names_are_one_key() {
    let usual = settled(GOOD, &[]);
    let named = GOOD.replace("hosts_per_leaf", "hosts");
    assert_eq!(settled(&named, &[]).key(1), usual.key(1));
    let eight = [("fabric.hosts", "8")];
    for text in [GOOD, &named] {
        assert_eq!(settled(text, &eight).fabric.hosts_per_leaf(), Some(8));
    }
    let swept = format!("{GOOD}[sweep]\n\"fabric.hosts\" = [2, 4, 8]\n");
    assert_eq!(expanded(&swept, &[], None).runs.len(), 3);
    let both = GOOD.replace("hosts_per_leaf = 4", "hosts_per_leaf = 4\nhosts = 4");
    let told = "fig.toml: fabric.hosts (line 7): is there as hosts_per_leaf, too; remove one";
    assert_eq!(mistake(&both, &[]), told);
}

#[test]
fn what_schemes_refuse_is_left_out_where_asked() {
    let text = |refused: &str, schemes: &str| {
        format!(
            "[fabric]\ntopology = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\nlink = \"100Gbps\"\n\
             [workload]\npattern = \"permutation\"\nsize = \"1KB\"\n\
             [sweep]\n{refused}\"balance.scheme\" = {schemes}\n\"fabric.planes\" = [1, 2]\n"
        )
    };
    let runs = |refused: &str, schemes: &str| {
        let (text, format) = (text(refused, schemes), Format::Toml);
        let request =
            Request { text: &text, format, source: "a.toml", overrides: &[], seeds: None };
        expand(&request).map_err(|error| error.to_string())
    };
    let asked = "refused = \"left-out\"\n";
    let expansion = runs(asked, "[\"ecmp\", \"dnlb\"]").unwrap();
    assert_eq!(expansion.runs.len(), 3);
    let told = |one: &String| one.contains("left out") && one.contains("planes = 1");
    assert!(expansion.warnings.iter().any(told), "{:?}", expansion.warnings);
    for refused in ["", "refused = \"error\"\n"] {
        let error = runs(refused, "[\"ecmp\", \"dnlb\"]").unwrap_err();
        assert!(error.contains("dnlb cannot run here"), "{error}");
    }
    // A name that there is not is a mistake whatever was asked.
    let error = runs(asked, "[\"ecmp\", \"dnlc\"]").unwrap_err();
    assert!(error.contains("did you mean"), "{error}");
    let error = runs("refused = \"skip\"\n", "[\"ecmp\"]").unwrap_err();
    assert!(error.contains("sweep.refused") && error.contains("error, left-out"), "{error}");
}

#[test]
fn control_characters_are_refused_but_lines_of_a_text() {
    let sweep = |name: &str| format!("{GOOD}[sweep]\nvariant = [{{ name = {name} }}]\n");
    let error = mistake(&sweep(r#""a\u0007b""#), &[]);
    assert!(error.contains(r#"sweep.variant.name (line "#), "{error}");
    assert!(error.contains(r#""a\u{7}b" has a control character (U+0007); remove it"#), "{error}");
    let error = mistake(&format!("{GOOD}[failures.\"\\u001B[31m\"]\nkind = \"down\"\n"), &[]);
    assert!(error.contains("(U+001B)") && !error.contains('\u{1b}'), "{error}");
    assert!(mistake(&sweep("\"two\\nlines\""), &[]).contains("(U+000A)"));
    let error = mistake(&format!("notes = \"a\\u0000\"\n{GOOD}"), &[]);
    assert!(error.contains("notes (line 1)"), "{error}");
    let lines = expanded(&format!("notes = \"c\\n\\td\"\n{GOOD}"), &[], None);
    assert_eq!(lines.notes, "c\n\td");
}
