//! `[failures]`: its keys, their defaults, sweeps over them, and every mistake in them.

use crate::common::{GOOD, expanded, find, mistake, settled};
use weft_experiment::value::Value;
use weft_fabric::{
    Direction, Failure, FailureKind, Failures, Groups, LinkChoice, Pick, Queued, Tier,
};
use weft_units::Time;

fn with(failure: &str) -> String {
    format!("{GOOD}[failures.x]\n{failure}\n")
}
/// Three tiers: two pods, each of two leaves, two aggregation switches and four links to cores.
fn pods() -> String {
    GOOD.replace("leaf-spine", "fat-tree")
        .replace("leaves = 4\nspines = 2\nhosts_per_leaf = 4", "k = 4")
}
fn only(text: &str) -> Failure {
    let resolved = settled(text, &[]);
    assert_eq!(resolved.failures.len(), 1);
    resolved.failures[0].clone()
}
/// The settled failure `x`.
fn written(text: &str) -> String {
    let all = expanded(text, &[]);
    let failures = all.runs[0].experiment.get("failures").expect("written out");
    let Value::Table(failures) = &failures.value else { panic!("a table") };
    failures.get("x").expect("its name").value.to_json()
}

#[test]
fn every_kind_with_its_defaults() {
    let leaf_up = LinkChoice::Of {
        tier: Tier::LeafUp,
        count: 1,
        groups: Groups::All,
        pick: Pick::Random,
        direction: Direction::Both,
        plane: None,
    };
    let usual = |kind| Failure { links: leaf_up.clone(), kind, start: Time::ZERO, end: Time::MAX };
    let common = r#"{"links":[],"switches":[],"planes":[],"tier":"leaf-up","count":1,"groups":"all","pick":"random","direction":"both","plane":"all","#;
    let always = r#""start":"0ns","duration":"forever"}"#;
    let cases = [
        (
            "kind = \"degraded\"\nlost = 0.9",
            FailureKind::Degraded { lost: 0.9 },
            r#""kind":"degraded","lost":0.9,"#,
        ),
        (
            "kind = \"flaky\"\nevery = \"100us\"\nlength = \"10us\"",
            FailureKind::Flaky { every: Time::us(100), length: Time::us(10), regular: false },
            r#""kind":"flaky","every":"100us","length":"10us","regular":false,"#,
        ),
        (
            "kind = \"down\"",
            FailureKind::down(Some(Time::ms(100))),
            r#""kind":"down","detect":"100ms","queued":"drains","hosts_know":true,"#,
        ),
    ];
    for (text, kind, shown) in cases {
        let text = with(&format!("tier = \"leaf-up\"\n{text}"));
        assert_eq!(only(&text), usual(kind));
        assert_eq!(written(&text), format!("{common}{shown}{always}"));
    }
}

#[test]
fn everything_that_can_be_said() {
    let text = with(
        "tier = \"leaf-up\"\ncount = 2\ngroups = [3, 1]\npick = \"first\"\ndirection = \"down\"\n\
         kind = \"flaky\"\nevery = \"1ms\"\nlength = \"5us\"\nregular = true\n\
         start = \"20us\"\nduration = \"300us\"",
    );
    let links = LinkChoice::Of {
        tier: Tier::LeafUp,
        count: 2,
        groups: Groups::Listed(vec![3, 1]),
        pick: Pick::First,
        direction: Direction::Down,
        plane: None,
    };
    let kind = FailureKind::Flaky { every: Time::ms(1), length: Time::us(5), regular: true };
    let expected = Failure { links, kind, start: Time::us(20), end: Time::us(320) };
    assert_eq!(only(&text), expected);
    let never = with("tier = \"leaf-up\"\nkind = \"down\"\ndetect = \"never\"\ndirection = \"up\"");
    assert_eq!(only(&never).kind, FailureKind::down(None));
    let at_once = with("tier = \"leaf-up\"\nkind = \"down\"\ndetect = \"0s\"");
    assert_eq!(only(&at_once).kind, FailureKind::down(Some(Time::ZERO)));
    let lost = with("tier = \"leaf-up\"\nkind = \"down\"\nqueued = \"lost\"");
    let (detect, queued) = (Some(Time::ms(100)), Queued::Lost);
    assert_eq!(only(&lost).kind, FailureKind::Down { detect, queued, hosts_know: true });
    let alone = with("tier = \"leaf-up\"\nkind = \"down\"\nhosts_know = false");
    let queued = Queued::Drains;
    assert_eq!(only(&alone).kind, FailureKind::Down { detect, queued, hosts_know: false });
}

#[test]
fn links_by_name_need_no_tier() {
    let text = with(
        "links = [\"leaf-0 -> spine-1\", \"leaf-2 <-> spine-0\", \"host-3 -> leaf-0\"]\n\
         kind = \"down\"",
    );
    let resolved = settled(&text, &[]);
    let names = |links: &LinkChoice| {
        let ports = links.resolve(&resolved.fabric, 1).unwrap();
        let mut names: Vec<_> =
            ports.into_iter().map(|port| resolved.fabric.port_name(port)).collect();
        names.sort();
        names
    };
    let expected =
        ["host-3 -> leaf-0", "leaf-0 -> spine-1", "leaf-2 -> spine-0", "spine-0 -> leaf-2"];
    assert_eq!(names(&resolved.failures[0].links), expected);
}

/// All links of two switches, by name or as all of their tier.
#[test]
fn whole_switches() {
    let named = |text: &str| {
        let resolved = settled(text, &[]);
        let ports = resolved.failures[0].links.resolve(&resolved.fabric, 1).unwrap();
        ports.iter().map(|port| resolved.fabric.port_name(*port)).collect::<Vec<_>>()
    };
    let spines = with("switches = [\"spine-0\", \"spine-1\"]\nkind = \"down\"");
    let links = only(&spines).links;
    assert_eq!(links, LinkChoice::Switches(vec!["spine-0".into(), "spine-1".into()]));
    assert_eq!(named(&spines).len(), 2 * 2 * 4);
    assert_eq!(
        written(&spines),
        "{\"links\":[],\"switches\":[\"spine-0\",\"spine-1\"],\"kind\":\"down\",\
         \"detect\":\"100ms\",\"queued\":\"drains\",\"hosts_know\":true,\
         \"start\":\"0ns\",\"duration\":\"forever\"}"
    );
    let drawn = with("tier = \"spines\"\ncount = 2\nkind = \"down\"");
    assert_eq!(named(&drawn), named(&spines));
    let words = [("aggs", Tier::Spines), ("cores", Tier::Cores), ("leaves", Tier::Leaves)];
    for (word, tier) in words {
        let text = format!(
            "{}[failures.x]\ntier = \"{word}\"\nkind = \"down\"\nduration = \"5ms\"\n",
            pods()
        );
        let LinkChoice::Of { tier: read, count: 1, .. } = only(&text).links else { panic!() };
        assert_eq!(read, tier);
        let from_seed = named(&text).len();
        // One core, one aggregation switch of each pod, and one leaf of each pod with its hosts.
        assert_eq!(from_seed, 2 * 4 * if tier == Tier::Cores { 1 } else { 4 });
    }
}

/// A file may leave it to a sweep which switch it is.
#[test]
fn a_sweep_over_switches() {
    let text = with("switches = [\"spine-0\"]\nkind = \"down\"");
    let sweep = "[sweep]\n\"failures.x.switches\" = [[\"spine-0\"], [\"spine-0\", \"spine-1\"]]\n";
    let all = expanded(&format!("{text}{sweep}"), &[]);
    assert_eq!(all.runs.len(), 2);
    assert_ne!(all.runs[0].key, all.runs[1].key);
    assert_eq!(all.runs[0].key, expanded(&text, &[]).runs[0].key);
}

#[test]
fn several_stand_side_by_side_in_the_order_of_the_file() {
    let text = format!(
        "{}[failures.slow]\ntier = \"pod-up\"\ncount = 2\nkind = \"degraded\"\nlost = 0.9\n\
         [failures.dead]\nlinks = [\"leaf-0 <-> pod-0-agg-1\"]\nkind = \"down\"\n",
        pods()
    );
    let resolved = settled(&text, &[]);
    assert_eq!(resolved.failures.len(), 2);
    assert_eq!(resolved.failures[1].kind, FailureKind::down(Some(Time::ms(100))));
    let failures = Failures::new(&resolved.fabric, &resolved.failures, 7).unwrap();
    // Two links of each of four pods and one more, both ways.
    assert_eq!(failures.ports().count(), 2 * (2 * 4 + 1));
    assert!(settled(GOOD, &[]).failures.is_empty());
}

#[test]
fn a_failure_changes_the_key_of_a_run() {
    let key = |text: &str| expanded(text, &[]).runs[0].key.clone();
    let one = with("tier = \"leaf-up\"\nkind = \"down\"");
    let long = with(
        "tier = \"leaf-up\"\nkind = \"down\"\ncount = 1\ngroups = \"all\"\nstart = \"0us\"\n\
         duration = \"forever\"\ndetect = \"0.1s\"",
    );
    assert_eq!(key(&one), key(&long), "written out or not");
    assert_ne!(key(&one), key(GOOD));
    assert_ne!(key(&one), key(&with("tier = \"leaf-up\"\nkind = \"down\"\ncount = 2")));
}

#[test]
fn a_name_is_enough_to_change_one() {
    let text =
        format!("{}[failures.slow]\ntier = \"pod-up\"\nkind = \"degraded\"\nlost = 0.9\n", pods());
    let sweep = format!("{text}[sweep]\n\"failures.slow.count\" = [1, 2, 4]\n");
    let all = expanded(&sweep, &[]);
    let labels: Vec<_> = all.runs.iter().map(|run| run.label.as_str()).collect();
    assert_eq!(labels, ["1", "2", "4"]);
    let counts: Vec<_> =
        all.runs.iter().map(|run| find(&run.experiment, "failures.slow.count").unwrap()).collect();
    assert_eq!(counts, ["1", "2", "4"]);
    let set = expanded(&text, &[("failures.slow.count", "3"), ("failures.slow.lost", "0.2")]);
    assert_eq!(find(&set.runs[0].experiment, "failures.slow.count").unwrap(), "3");
    assert_eq!(find(&set.runs[0].experiment, "failures.slow.lost").unwrap(), "0.2");
    // One that the file does not have.
    let added =
        expanded(&text, &[("failures.more.tier", "leaf-up"), ("failures.more.kind", "down")]);
    assert_eq!(find(&added.runs[0].experiment, "failures.more.detect").unwrap(), "100ms");
    let whole = "[sweep]\nfailures = [{ name = \"none\" }, { name = \"dead\", x = \
                 { tier = \"leaf-up\", kind = \"down\" } }]\n";
    let all = expanded(&format!("{GOOD}{whole}"), &[]);
    let dead: Vec<_> = all
        .runs
        .iter()
        .map(|run| (run.label.as_str(), find(&run.experiment, "failures.x.kind")))
        .collect();
    assert_eq!(dead, [("none", None), ("dead", Some("down".to_owned()))]);
}

#[test]
fn a_swept_kind_ignores_the_keys_of_its_siblings() {
    let text = with("tier = \"leaf-up\"\nlost = 0.5\nevery = \"1ms\"\nlength = \"9us\"");
    let sweep =
        format!("{text}[sweep]\n\"failures.x.kind\" = [\"degraded\", \"flaky\", \"down\"]\n");
    let all = expanded(&sweep, &[]);
    let lost: Vec<_> =
        all.runs.iter().map(|run| find(&run.experiment, "failures.x.lost")).collect();
    assert_eq!(lost, [Some("0.5".to_owned()), None, None]);
}

#[test]
fn one_file_may_add_to_the_failures_of_another() {
    let folder = std::env::temp_dir().join(format!("weft-failures-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let base = with("tier = \"leaf-up\"\nkind = \"degraded\"\nlost = 0.9");
    std::fs::write(folder.join("base.toml"), base).unwrap();
    let source = folder.join("child.toml").display().to_string();
    let text = "extends = \"base.toml\"\n[failures.x]\nlost = 0.2\n[failures.y]\n\
                tier = \"leaf-up\"\nkind = \"down\"\n";
    let request = weft_experiment::Request {
        text,
        format: weft_experiment::Format::Toml,
        source: &source,
        overrides: &[],
        seeds: None,
    };
    let all = weft_experiment::expand(&request).unwrap();
    let run = &all.runs[0].experiment;
    assert_eq!(find(run, "failures.x.lost").unwrap(), "0.2");
    assert_eq!(find(run, "failures.x.kind").unwrap(), "degraded");
    assert_eq!(find(run, "failures.y.kind").unwrap(), "down");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn each_mistake_names_the_failure_and_the_mend() {
    let cases = [
        (
            "kind = \"down\"",
            "fig.toml: failures.x.tier: missing; add it, for example tier = \"leaf-up\"",
        ),
        (
            "tier = \"leaf-up\"",
            "fig.toml: failures.x.kind: missing; add it, for example kind = \"degraded\"",
        ),
        (
            "tier = \"leaf-up\"\nkind = \"flakey\"",
            "fig.toml: failures.x.kind (line 14): \"flakey\" is not one of degraded, flaky, down; \
             did you mean \"flaky\"?",
        ),
        (
            "tier = \"leaf\"\nkind = \"down\"",
            "fig.toml: failures.x.tier (line 13): \"leaf\" is not one of leaf-up, pod-up, leaves, \
             spines, aggs, cores; did you mean \"leaf-up\"?",
        ),
        (
            "tier = \"leaf-up\"\nkind = \"degraded\"",
            "fig.toml: failures.x.lost: missing; add it, for example lost = 0.5",
        ),
        (
            "tier = \"leaf-up\"\nkind = \"degraded\"\nlost = 90",
            "fig.toml: failures.x.lost (line 15): 90 is out of range; use 0.000000001 to 0.999999999",
        ),
        (
            "tier = \"leaf-up\"\nkind = \"degraded\"\nlost = 1",
            "fig.toml: failures.x.lost (line 15): 1 is out of range; use 0.000000001 to 0.999999999",
        ),
        (
            "tier = \"leaf-up\"\nkind = \"flaky\"\nevery = \"1ms\"",
            "fig.toml: failures.x.length: missing; add it, for example length = \"1us\"",
        ),
        (
            "tier = \"leaf-up\"\nkind = \"flaky\"\nevery = \"0s\"\nlength = \"1us\"",
            "fig.toml: failures.x.every (line 15): \"0ns\" is out of range; use \"1ns\" to \"1000s\"",
        ),
        (
            "tier = \"leaf-up\"\nkind = \"down\"\nlost = 0.5",
            "fig.toml: failures.x.lost (line 15): belongs to kind = \"degraded\", not \"down\"; \
             remove it",
        ),
        (
            "tier = \"leaf-up\"\nkind = \"down\"\ndetect = \"soon\"",
            "fig.toml: failures.x.detect (line 15): \"soon\" is not a time; write one such as \
             \"500ns\", or \"never\"",
        ),
        (
            "tier = \"leaf-up\"\nkind = \"down\"\nqueued = \"flushed\"",
            "fig.toml: failures.x.queued (line 15): \"flushed\" is not known; use one of drains, lost",
        ),
        (
            "tier = \"leaf-up\"\nkind = \"degraded\"\nlost = 0.5\nqueued = \"lost\"",
            "fig.toml: failures.x.queued (line 16): belongs to kind = \"down\", not \"degraded\"; \
             remove it",
        ),
        (
            "tier = \"leaf-up\"\nkind = \"down\"\nduration = \"0us\"",
            "fig.toml: failures.x.duration (line 15): \"0ns\" is out of range; use \"1ps\" to \
             \"1000s\", or \"forever\"",
        ),
        (
            "tier = \"leaf-up\"\nkind = \"down\"\nstart = 5",
            "fig.toml: failures.x.start (line 15): 5 has no unit; write \"5ns\" or \"5us\"",
        ),
        (
            "tier = \"leaf-up\"\nkind = \"down\"\ncount = 0",
            "fig.toml: failures.x.count (line 15): 0 is out of range; use 1 to 65536",
        ),
        (
            "tier = \"leaf-up\"\nkind = \"down\"\ngroups = 1",
            "fig.toml: failures.x.groups (line 15): 1 is a whole number, not a list of whole \
             numbers; write one such as [0], or \"all\"",
        ),
        (
            "tier = \"leaf-up\"\nkind = \"down\"\npick = \"last\"",
            "fig.toml: failures.x.pick (line 15): \"last\" is not known; use one of \
             random, first",
        ),
        (
            "tier = \"leaf-up\"\nkind = \"down\"\ncont = 2",
            "fig.toml: failures.x.cont (line 15): unknown key; did you mean \"count\"?",
        ),
        (
            "tier = \"leaf-up\"\nlinks = [\"leaf-0 -> spine-1\"]\nkind = \"down\"",
            "fig.toml: failures.x.tier (line 13): stands beside links; remove one of them",
        ),
        (
            "switches = [\"spine-0\"]\ndirection = \"up\"\nkind = \"down\"",
            "fig.toml: failures.x.direction (line 14): stands beside switches; remove one of them",
        ),
        (
            "links = [\"leaf-0 -> spine-1\"]\nswitches = [\"spine-0\"]\nkind = \"down\"",
            "fig.toml: failures.x.switches (line 14): stands beside links; remove one of them",
        ),
        (
            "switch = [\"spine-0\"]\nkind = \"down\"",
            "fig.toml: failures.x.switch (line 13): unknown key; did you mean \"switches\"?",
        ),
        // What depends on the fabric.
        (
            "switches = [\"spine-2\"]\nkind = \"down\"",
            "fig.toml: failures.x.switches (line 13): \"spine-2\" is not a switch of the fabric; \
             did you mean \"spine-0\"?",
        ),
        (
            "switches = [\"leaf-2\"]\nkind = \"down\"",
            "fig.toml: failures.x.duration: a leaf that stays down cuts off its hosts for ever; \
             let it come back",
        ),
        (
            "tier = \"leaves\"\nkind = \"down\"\nduration = \"forever\"",
            "fig.toml: failures.x.duration (line 15): a leaf that stays down cuts off its hosts \
             for ever; let it come back",
        ),
        (
            "tier = \"spines\"\ncount = 3\nkind = \"down\"",
            "fig.toml: failures.x.count (line 14): 3 spines cannot fail in a fabric of 2; use 1 to 2",
        ),
        (
            "tier = \"cores\"\nkind = \"down\"",
            "fig.toml: failures.x.tier (line 13): a fabric of two tiers has no cores; choose spines",
        ),
        (
            "tier = \"leaf-up\"\ncount = 3\nkind = \"down\"",
            "fig.toml: failures.x.count (line 14): 3 links cannot fail in leaf 0, which has 2 up; use 1 to 2",
        ),
        (
            "tier = \"pod-up\"\nkind = \"down\"",
            "fig.toml: failures.x.tier (line 13): a fabric of two tiers has no links from pods to \
             cores; choose links from leaves to spines",
        ),
        (
            "tier = \"leaf-up\"\ngroups = [4]\nkind = \"down\"",
            "fig.toml: failures.x.groups (line 14): there is no leaf 4; use 0 to 3",
        ),
        (
            "tier = \"leaf-up\"\ngroups = []\nkind = \"down\"",
            "fig.toml: failures.x.groups (line 14): no leaf is listed; list at least one",
        ),
        (
            "links = [\"leaf-0 -> spine-2\"]\nkind = \"down\"",
            "fig.toml: failures.x.links (line 13): \"leaf-0 -> spine-2\" names \"spine-2\", which is \
             not in the fabric; did you mean \"spine-0\"?",
        ),
        (
            "links = [\"leaf-0 -> leaf-1\"]\nkind = \"down\"",
            "fig.toml: failures.x.links (line 13): leaf-0 has no link to leaf-1; it has links to \
             host-0, host-1, host-2, host-3, ...",
        ),
        (
            "planes = []\nkind = \"down\"",
            "fig.toml: failures.x.planes (line 13): is empty; name some, or use tier",
        ),
        (
            "plane = 1\nkind = \"down\"",
            "fig.toml: failures.x.plane (line 13): says where links of a tier fail; add tier = \"leaf-up\", or use \
             planes = [0] for a whole plane",
        ),
        (
            "links = [\"leaf-0\"]\nkind = \"down\"",
            "fig.toml: failures.x.links (line 13): \"leaf-0\" is not a link; write \"leaf-0 -> \
             spine-1\", or <-> for both directions",
        ),
    ];
    let mut wrong = Vec::new();
    for (text, expected) in cases {
        let got = mistake(&with(text), &[]);
        assert!(!got.contains('\n'));
        if got != expected {
            wrong.push(format!("for {text:?}\n  got  {got}\n  want {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let got = mistake(&format!("{GOOD}[failures]\ncount = 2\n"), &[]);
    assert_eq!(
        got,
        "fig.toml: failures.count (line 13): is a whole number, not a table; write [failures.count]"
    );
    let text = with("tier = \"leaf-up\"\nkind = \"down\"");
    let got = mistake(&text, &[("failures.x.count", "9")]);
    let expected = "fig.toml: failures.x.count (command line): 9 links cannot fail in leaf 0, which has \
                    2 up; use 1 to 2";
    assert_eq!(got, expected);
}

/// A torus of more switches than tables hold: ways around dead links would be such tables.
#[test]
fn nothing_leads_around_dead_links_of_a_huge_torus() {
    let large = |failure: &str| {
        with(failure)
            .replace("leaf-spine", "torus")
            .replace("leaves = 4\nspines = 2\nhosts_per_leaf = 4", "sizes = \"24x24x16\"")
            .replace("all-to-all", "permutation")
    };
    let down = "links = [\"switch-0-0-0 -> switch-1-0-0\"]\nkind = \"down\"\n";
    assert_eq!(
        mistake(&large(down), &[]),
        "fig.toml: failures.x.detect: ways around dead links of 9216 switches are too many to keep; use \"never\", or \
         fewer switches"
    );
    assert_eq!(only(&large(&format!("{down}detect = \"never\""))).kind, FailureKind::down(None));
}
