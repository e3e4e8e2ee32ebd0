//! What hosts read, for `weft list variables`.

use crate::{DIFFERENT, VARIABLES};
use weft_config::{Entry, OptionEntry};

/// The variables, and the options of schemes whose default is another on hosts.
pub fn catalogue() -> Vec<Entry> {
    let variables = VARIABLES.iter().map(|one| option(one.name, one.default, one.meaning));
    let different = DIFFERENT.iter().map(|one| option(one.key, one.default, one.reason));
    vec![
        entry(
            "variables",
            "of the NCCL plugin and the PyTorch back end",
            "docs/nccl.md",
            variables.collect(),
        ),
        entry(
            "schemes",
            "options of WEFT_OPTIONS that have another default than in the simulator",
            "each with its reason",
            different.collect(),
        ),
    ]
}

fn entry(name: &str, summary: &str, source: &str, options: Vec<OptionEntry>) -> Entry {
    let [key, name, summary, source] = ["environment", name, summary, source].map(str::to_owned);
    Entry { key, name, summary, source, options, ..Entry::default() }
}

fn option(key: &str, default: &str, meaning: &str) -> OptionEntry {
    let [key, default, meaning] = [key, default, meaning].map(str::to_owned);
    OptionEntry { key, default, words: Vec::new(), kind: String::new(), meaning }
}
