//! The catalogue lists what the decoders take: all of it, and nothing else.

use crate::common::{GOOD, mistake, settled};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use weft_balance::scheme::SCHEMES;
use weft_experiment::{Catalogue, Entry, OptionEntry, ShortKind, shorthand};
use weft_units::OptionInfo;
use weft_workload::collective::{ALGORITHMS, Algorithm, Operation};
use weft_workload::model::MODELS;
use weft_workload::trace::TRACE_FORMATS;

/// Any job, in the place of the pattern.
const WORKLOAD: &str = "pattern = \"all-to-all\"\nsize = \"16KB\"\n";

#[test]
fn what_is_listed_is_taken() {
    // What presets set, presets.rs tells.
    for (_, list) in Catalogue::NAMES.into_iter().filter(|(name, _)| *name != "presets") {
        for entry in list.entries().iter().filter(|entry| is_of_a_run(entry)) {
            // The name of a numbered scheme is listed as `subflows-N`.
            let name = entry.name.replace("-N", "-8");
            for option in &entry.options {
                assert!(!option.meaning.is_empty() && !option.kind.is_empty(), "{option:?}");
                // No file is a file without a name.
                assert!(!option.default.is_empty() || option.key == "fabric.file", "{option:?}");
                if !entry.name.starts_with('*') {
                    takes(&entry.key, &name, option);
                }
            }
        }
    }
}

/// Whether its keys are those of a run, each by its name: not of what is about all runs together. The
/// keys of workloads are told below.
fn is_of_a_run(entry: &Entry) -> bool {
    let beside = ["above all sections", "[sweep]", "[quick]", "[report]", "[workload]"];
    !entry.key.starts_with("workload.") && !beside.contains(&&*entry.name)
}

/// A table is no valid value but of a section, so a known key is blamed for it, an unknown one as such.
fn takes(chooser: &str, name: &str, option: &OptionEntry) {
    let (key, wrong) = (&*option.key, if option.kind == "a table" { "1" } else { "{}" });
    let error = match chooser {
        // Chosen by writing it.
        "section" => mistake(GOOD, &[(key, wrong)]),
        _ => mistake(GOOD, &[(chooser, name), (key, wrong)]),
    };
    // A topology that is only named lacks its counts, which are asked for first.
    let blamed = format!("fig.toml: {key} (command line): ");
    assert!(!error.contains("unknown key"), "{key}: {error}");
    assert!(error.starts_with(&blamed) || error.contains(": missing; add it"), "{key}: {error}");
}

#[test]
fn only_what_has_to_be_given_is_required() {
    let options = || Catalogue::Sections.entries().into_iter().flat_map(|entry| entry.options);
    let of = |key| options().find(|one| one.key == key).expect(key).default;
    assert_eq!(of("fabric.nic"), "empty");
    assert_eq!(of("balance.scheme"), "required");
    for (key, others) in [
        ("workload.file", "pattern, collective, trace, model, file, jobs"),
        ("failures.NAME.tier", "tier, links, switches, planes"),
    ] {
        assert_eq!(of(key), format!("required: one of {others}"));
    }
}

#[test]
fn every_listed_scheme_option_is_read() {
    for info in SCHEMES {
        let entries = Catalogue::Schemes.entries();
        let entry = entries.iter().find(|entry| entry.name == info.spelling()).expect("listed");
        for OptionInfo { key, default, .. } in info.options {
            let option = entry.options.iter().find(|o| o.key == format!("balance.{key}"));
            assert_eq!(option.map(|o| o.default.as_str()), Some(*default), "{} {key}", info.name);
        }
    }
}

#[test]
fn every_format_of_traces_is_listed_with_its_keys() {
    let entries = Catalogue::Workloads.entries();
    for info in TRACE_FORMATS {
        let name = format!("*{}", info.ends[0]);
        // Formats may share an end.
        let is_it = |entry: &&Entry| {
            entry.key == "workload.trace" && entry.name == name && entry.summary == info.summary
        };
        let entry = entries.iter().find(is_it).unwrap_or_else(|| panic!("{}", info.name));
        assert_eq!(&*entry.source, info.source);
        for OptionInfo { key, default, meaning, .. } in info.options {
            let option = entry.options.iter().find(|o| o.key == format!("workload.{key}"));
            let told = option.map(|o| (o.default.as_str(), o.meaning.as_str()));
            assert_eq!(told, Some((*default, *meaning)), "{} {key}", info.name);
        }
    }
}

/// An experiment with these lines as its workload.
fn with(workload: &str) -> String {
    GOOD.replace(WORKLOAD, &format!("{workload}\n"))
}

/// The entries that `key` of `[workload]` chooses.
fn workloads(key: &str) -> Vec<Entry> {
    let all = Catalogue::Workloads.entries().into_iter();
    all.filter(|entry| entry.key == format!("workload.{key}")).collect()
}

/// The keys of entries, without their section.
fn keys<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> BTreeSet<String> {
    let options = entries.into_iter().flat_map(|entry| &entry.options);
    options.map(|option| option.key.trim_start_matches("workload.").to_owned()).collect()
}

/// The keys that `[workload]` with these lines takes, as it says itself of one that it does not.
fn taken(workload: &str) -> BTreeSet<String> {
    let stray = "something_nobody_asks_for";
    let error = mistake(&with(&format!("{workload}\n{stray} = 1")), &[]);
    let (_, known) = error.split_once("use one of ").unwrap_or_else(|| panic!("{error}"));
    known.split(", ").map(str::to_owned).collect()
}

/// Beside `chooser`, exactly these.
fn takes_exactly(chooser: &str, workload: &str, listed: BTreeSet<String>) {
    let chooser = chooser.split(' ').map(str::to_owned);
    assert_eq!(taken(workload), listed.into_iter().chain(chooser).collect(), "{workload}");
}

#[test]
fn patterns_take_what_is_listed() {
    let entries = workloads("pattern");
    assert!(!entries.is_empty());
    for entry in &entries {
        let workload = format!("pattern = {:?}\nsize = \"1KB\"", entry.name);
        takes_exactly("pattern", &workload, keys([entry]));
    }
}

#[test]
fn collectives_take_what_is_listed() {
    let (entries, algorithms) = (workloads("collective"), workloads("algorithm"));
    let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let (usual, moe) = names.split_at(Operation::ALL.len());
    assert_eq!(usual, Operation::ALL.map(Operation::name));
    assert_eq!(moe, ["moe-dispatch", "moe-combine"]);
    assert_eq!(algorithms.len(), ALGORITHMS.len());
    for entry in &entries[usual.len()..] {
        let workload = format!("collective = {:?}", entry.name);
        takes_exactly("collective", &workload, keys([entry]));
    }
    for entry in &entries[..usual.len()] {
        let algorithm = entry.options.iter().find(|option| option.key == "workload.algorithm");
        let words = &algorithm.expect("it has one").words;
        for algorithm in &algorithms {
            let (collective, algorithm_name) = (&entry.name, &algorithm.name);
            let workload = format!(
                "collective = {collective:?}\nalgorithm = {algorithm_name:?}\nsize = \"1KB\""
            );
            let text = with(&workload);
            if words.contains(algorithm_name) {
                let operation = Operation::ALL.into_iter().find(|one| one.name() == collective);
                let is_of_use = |key: &String| {
                    Algorithm::has_use_for(algorithm_name, key, operation.expect("it is one"))
                };
                let keys = keys([entry, algorithm]).into_iter().filter(is_of_use).collect();
                takes_exactly("collective", &workload, keys);
                settled(&text, &[]);
            } else {
                assert!(mistake(&text, &[]).contains("workload.algorithm"), "{workload}");
            }
        }
    }
}

#[test]
fn models_take_what_is_listed_and_have_these_numbers() {
    let (entries, algorithms) = (workloads("model"), workloads("algorithm"));
    assert_eq!(entries.len(), MODELS.len());
    for entry in &entries {
        let model = format!("model = {:?}\nglobal_batch = 16", entry.name);
        takes_exactly("model", &model, keys([entry]));
        for algorithm in &algorithms {
            let workload = format!("{model}\nalgorithm = {:?}", algorithm.name);
            takes_exactly("model", &workload, keys([entry, algorithm]));
        }
        // Saying its numbers changes nothing but the words.
        let traffic = |workload: &str| {
            let job = settled(&with(workload), &[]);
            job.traffic(1).expect("traffic").volume()
        };
        let numbers = ["layers", "hidden", "sequence", "vocabulary", "tied", "gated"].map(|key| {
            let key = format!("workload.{key}");
            let option = entry.options.iter().find(|option| option.key == key).expect("listed");
            format!("{} = {}", key.trim_start_matches("workload."), option.default)
        });
        assert_eq!(traffic(&model), traffic(&format!("{model}\n{}", numbers.join("\n"))));
    }
}

#[test]
fn traces_take_what_is_listed() {
    let (entries, algorithms) = (workloads("trace"), workloads("algorithm"));
    let path = file("layers.txt", "DATA\n1\none -1 3 NONE 0 0 NONE 0 0 ALLREDUCE 1000 5\n");
    let trace = format!("trace = {:?}", path.to_string_lossy());
    // Which keys a file has use for is known no sooner than when it is read.
    takes_exactly("trace", &trace, keys(&entries));
    for algorithm in &algorithms {
        let workload = format!("{trace}\nalgorithm = {:?}", algorithm.name);
        takes_exactly("trace", &workload, keys(entries.iter().chain([algorithm])));
    }
}

#[test]
fn several_jobs_and_files_take_what_is_listed() {
    let job = "jobs = { one = { collective = \"reduce\", size = \"1KB\" } }";
    takes_exactly("jobs", job, keys(&workloads("jobs")));
    let matrix = file("two.cm", "Nodes 2\nConnections 1\n0->1 id 1 start 0 size 2000\n");
    let matrix = format!("file = {:?}", matrix.to_string_lossy());
    assert_eq!(keys(&workloads("file")), BTreeSet::new());
    let stray = with(&format!("{matrix}\nsize = \"1KB\""));
    assert!(mistake(&stray, &[]).contains("workload.size"));
    let list = file("a.csv", "comm_type,comm_group,comm_group_size,msg_size,stage\n");
    let error = mistake(&with(&format!("file = {:?}", list.to_string_lossy())), &[]);
    assert!(error.contains("workload.file") && error.contains("write trace = "), "{error}");
}

#[test]
fn short_forms_take_what_is_listed() {
    let algorithms = workloads("algorithm");
    let of = |key: &str| workloads(key).into_iter();
    for entry in of("collective").chain(of("model")).chain(of("pattern")) {
        // Of names that are there twice the pattern counts.
        let is_pattern = workloads("pattern").iter().any(|pattern| pattern.name == entry.name);
        if is_pattern && entry.key != "workload.pattern" {
            continue;
        }
        let own = keys([&entry]);
        let more = if own.contains("algorithm") { keys(&algorithms) } else { BTreeSet::new() };
        for key in own.iter().chain(&more) {
            let short = format!("{}:{key}=1", entry.name);
            assert!(shorthand(ShortKind::Workload, &short).is_ok(), "{short}");
        }
        let stray = format!("{}:something_nobody_asks_for=1", entry.name);
        let error = shorthand(ShortKind::Workload, &stray).expect_err("unknown").to_string();
        let (_, known) = error.split_once("use one of ").expect("says which");
        let known: BTreeSet<_> = known.split(", ").map(str::to_owned).collect();
        assert_eq!(known, own.union(&more).cloned().collect(), "{}", entry.name);
    }
    assert!(shorthand(ShortKind::Workload, "a.txt:passes=2,algorithm=direct,window=4").is_ok());
    assert!(shorthand(ShortKind::Workload, "a.0.et:passes=2").is_err());
    let none = shorthand(ShortKind::Workload, "a.csv:passes=2").expect_err("no keys").to_string();
    assert!(none.ends_with("passes: unknown key; remove it"), "{none}");
    // A list of communications ends as a list of flows does, and all of a Chakra trace as nothing.
    let list = file("list.csv", "comm_type,comm_group,comm_group_size,msg_size,stage\n");
    let prefix = file("all.0.et", "").with_file_name("all");
    for (path, key) in [(list, "ranks"), (prefix, "start_times")] {
        let short = format!("{}:{key}=2", path.display());
        let table = shorthand(ShortKind::Workload, &short).expect("a trace");
        assert!(table.get("trace").is_some(), "{short}");
    }
}

#[test]
fn a_usual_algorithm_has_no_options() {
    let model = with("model = \"gpt2-small\"\nglobal_batch = 16\nwindow = 4");
    let said = "belongs to algorithm = \"direct\", not \"usual\"; remove it";
    assert!(mistake(&model, &[]).contains(said));
}

/// A file for a test.
fn file(name: &str, text: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("weft-catalogue-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join(name);
    fs::write(&path, text).expect("a file");
    path
}
