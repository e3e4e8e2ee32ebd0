//! `[quick]`, swept tables by name, and what is handed on to whoever shows the results.

use crate::common::GOOD;
use weft_experiment::value::{Table, Value};
use weft_experiment::{Expansion, Format, Request, expand, expand_quick};

const SWEEP: &str = r#"[sweep]
"balance.scheme" = ["ecmp", "spray"]
"workload.size" = ["1KB", "2KB", "3KB"]
variant = [{ name = "near", fabric = { delay = "1us" } }, { name = "far", fabric = { delay = "9us" } }]
seeds = [7, 9, 11]
"#;

fn request<'a>(text: &'a str, overrides: &'a [(String, String)]) -> Request<'a> {
    Request { text, format: Format::Toml, source: "fig.toml", overrides, seeds: None }
}

fn quick(section: &str) -> Expansion {
    let text = format!("{GOOD}{SWEEP}{section}");
    expand_quick(&request(&text, &[])).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(section: &str) -> String {
    let text = format!("{GOOD}{section}");
    expand_quick(&request(&text, &[])).unwrap_err().to_string()
}

fn label(swept: &Table, key: &str) -> Option<String> {
    swept.get(key).map(|item| item.value.to_label())
}

#[test]
fn a_quick_run_has_the_first_seed() {
    let quick = quick("");
    assert_eq!(quick.runs.len(), 12);
    assert!(quick.runs.iter().all(|run| run.seed == 7));
}

#[test]
fn quick_lists_replace_values_and_single_values_end_a_sweep() {
    let section = "[quick]\nseeds = 2\n\"workload.size\" = [\"2KB\"]\n\"balance.scheme\" = \"ecmp\"\n\
                   [quick.run]\nstall_after = \"3s\"\n";
    let quick = quick(section);
    let seeds: Vec<_> = quick.runs.iter().map(|run| run.seed).collect();
    assert_eq!(seeds, [7, 9, 7, 9]);
    assert_eq!(quick.ended, ["balance.scheme"]);
    for run in &quick.runs {
        assert_eq!(label(&run.swept, "workload.size").as_deref(), Some("2KB"));
        assert_eq!(label(&run.swept, "balance.scheme"), None);
        let Some(Value::Table(limits)) = run.experiment.get("run").map(|item| &item.value) else {
            panic!("no [run]")
        };
        assert_eq!(label(limits, "stall_after").as_deref(), Some("3s"));
    }
}

#[test]
fn a_quick_run_is_one_of_the_whole() {
    let section = "[quick]\nvariant = [\"far\"]\n";
    let text = format!("{GOOD}{SWEEP}{section}");
    let whole = expand(&request(&text, &[])).unwrap();
    assert_eq!(whole.runs.len(), 36, "without being asked for nothing is left out");
    let quick = quick(section);
    assert_eq!(quick.runs.len(), 6);
    for run in &quick.runs {
        assert_eq!(label(&run.swept, "variant").as_deref(), Some("far"));
        assert!(whole.runs.iter().any(|other| other.key == run.key));
    }
}

#[test]
fn one_name_keeps_a_table_swept() {
    let text = format!("{GOOD}{SWEEP}");
    let overrides = [("variant".to_owned(), "near".to_owned())];
    let near = expand(&request(&text, &overrides)).unwrap();
    assert_eq!(near.runs.len(), 18);
    assert!(near.ended.is_empty());
    assert_eq!(label(&near.runs[0].swept, "variant").as_deref(), Some("near"));
}

#[test]
fn swept_tables_are_called_by_names_that_they_have() {
    fn told(text: &str, overrides: &[(String, String)]) -> String {
        expand_quick(&request(text, overrides)).unwrap_err().to_string()
    }
    let of = |key: &str, value: &str| [(key.to_owned(), value.to_owned())];
    let text = format!("{GOOD}{SWEEP}[quick]\nvariant = [\"near\", \"fra\"]\n");
    let at = text.lines().count();
    let what = r#""fra" is not one of near, far; did you mean "far"?"#;
    assert_eq!(told(&text, &[]), format!("fig.toml: variant (line {at}): {what}"));
    let slow = r#"fabric = [{ name = "slow, 1us", delay = "1us" }]"#;
    let text = format!("{GOOD}{SWEEP}{slow}\n");
    for key in ["variant", "sweep.variant"] {
        let told = told(&text, &of(key, "middle"));
        assert!(told.contains(r#""middle" is not known; use one of near, far"#), "{told}");
    }
    let fast = told(&text, &of("fabric", "fast"));
    assert!(fast.contains(r#""fast" is not known; use one of "slow, 1us""#), "{fast}");
    // Schemes have names of their own.
    let schemes = r#""balance.scheme" = [{ name = "a", balance = { scheme = "reps" } }]"#;
    let text = format!("{GOOD}[sweep]\n{schemes}\n");
    let both = of("sweep.balance.scheme", r#"["a", "spray"]"#);
    assert_eq!(expand(&request(&text, &both)).unwrap().runs.len(), 2);
    // As files write it.
    let quoted = of("sweep.\"balance.scheme\"", r#"["a", "spray"]"#);
    assert_eq!(expand(&request(&text, &quoted)).unwrap().runs.len(), 2);
}

#[test]
fn mistakes_in_quick_take_one_line() {
    let zero = refused("[quick]\nseeds = 0\n");
    assert!(zero.starts_with("fig.toml: quick.seeds (line 1"), "{zero}");
    assert!(zero.contains("0 is out of range; use 1"), "{zero}");
    let through = refused("[quick]\n\"title.x\" = 1\n");
    assert!(
        through.contains("title: is not a table") || through.contains("title (line"),
        "{through}"
    );
    assert!(refused("quick = 3\n[run]\n").contains("quick"), "not a table");
    let unknown = refused("[quick]\n\"workload.sise\" = \"1KB\"\n");
    assert!(unknown.contains("workload.sise"), "{unknown}");
}

#[test]
fn what_is_shown_is_handed_on_as_written() {
    let section = "[report]\nx = \"workload.size\"\ncolumns = [\"drops\"]\n\
                   [best]\nover = \"workload.size\"\n\
                   [[printed]]\nvalue = 1.5\n[[printed]]\nvalue = 2\n";
    let text = format!("{GOOD}{SWEEP}{section}");
    let shown = Value::Table(expand(&request(&text, &[])).unwrap().shown).to_json();
    let expected = r#"{"report":{"x":"workload.size","columns":["drops"]},"best":{"over":"workload.size"},"printed":[{"value":1.5},{"value":2}]}"#;
    assert_eq!(shown, expected);
}
