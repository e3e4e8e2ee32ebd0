//! What the tests share.

use weft_experiment::value::{Table, Value};
use weft_experiment::{Expansion, Format, Request, Resolved, expand, read_run};

/// A correct experiment without sweep; tests change a line of it or add to it.
#[allow(unreachable_pub, dead_code)]
pub const GOOD: &str = r#"title = "A test"
[fabric]
topology = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 4
[workload]
pattern = "all-to-all"
size = "16KB"
[balance]
scheme = "ecmp"
"#;

type Overrides<'a> = &'a [(&'a str, &'a str)];

fn request<T>(text: &str, overrides: Overrides<'_>, then: impl Fn(&Request<'_>) -> T) -> T {
    let overrides: Vec<_> =
        overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let (format, source) = (Format::Toml, "fig.toml");
    then(&Request { text, format, source, overrides: &overrides, seeds: None })
}

/// All runs of `text`.
#[allow(dead_code)]
pub(crate) fn expanded(text: &str, overrides: Overrides<'_>) -> Expansion {
    request(text, overrides, expand).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// What is wrong with `text`.
#[allow(dead_code)]
pub(crate) fn mistake(text: &str, overrides: Overrides<'_>) -> String {
    match request(text, overrides, expand) {
        Ok(_) => panic!("accepted: {text} {overrides:?}"),
        Err(error) => error.to_string(),
    }
}

/// The first run of `text`, which reads back as the same, with the same key.
#[allow(dead_code)]
pub(crate) fn settled(text: &str, overrides: Overrides<'_>) -> Resolved {
    let all = expanded(text, overrides);
    let run = &all.runs[0];
    let json = Value::Table(run.experiment.clone()).to_json();
    let again = read_run(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(Value::Table(again.table().clone()).to_json(), json);
    assert_eq!(again.key(run.seed), run.key);
    again
}

/// The value at a dotted key, as a person would write it; none if it is not there.
#[allow(dead_code)]
pub(crate) fn find(table: &Table, dotted: &str) -> Option<String> {
    let mut value = Value::Table(table.clone());
    for key in dotted.split('.') {
        let Value::Table(table) = &value else { return None };
        value = table.get(key)?.value.clone();
    }
    Some(value.to_label())
}
