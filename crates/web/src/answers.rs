//! What a page may ask, and the answers.
//!
//! Experiments go through the page as text: JavaScript would not tell 1.0 from 1.

use crate::json::{Columns, Row};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::atomic::AtomicBool;
use weft_experiment::value::Value;
use weft_experiment::{
    CODE_VERSION, Catalogue, ExperimentError, Format, Request, Resolved, RunError, RunResult,
    Threads, expand, fabric_tables, least_time, parse, read_run, run, work,
};

/// A question.
#[derive(Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
enum Question {
    /// What there is to choose from.
    Choices,
    /// The runs of an experiment file.
    Runs { text: String },
    /// What one of them takes at least.
    Least(One),
    /// What comes of it.
    Run(One),
}

/// One of the runs, as [`Question::Runs`] gave it.
#[derive(Deserialize)]
struct One {
    experiment: String,
    swept: String,
    seed: String,
}

/// Why there is no answer.
#[derive(Serialize)]
struct Refusal {
    /// The one line for the reader.
    line: String,
    /// The dotted key that is wrong, if one is.
    key: Option<String>,
}

type Answer = Result<String, Refusal>;

/// The answer to a question, `{"answer": ...}` or `{"error": {line, key}}`.
pub(crate) fn to(question: &[u8]) -> String {
    match serde_json::from_slice(question).map_err(Refusal::from).and_then(answer) {
        Ok(answer) => format!("{{\"answer\":{answer}}}"),
        Err(refusal) => format!("{{\"error\":{}}}", json(&refusal)),
    }
}

fn answer(question: Question) -> Answer {
    match question {
        Question::Choices => Ok(choices()),
        Question::Runs { text } => runs(&text),
        Question::Least(one) => least(&one),
        Question::Run(one) => result(&one),
    }
}

/// The catalogue, list by list, and the version of the code.
fn choices() -> String {
    let lists = Catalogue::NAMES.map(|(name, list)| format!("{name:?}:{}", list.to_json()));
    format!("{{\"version\":{CODE_VERSION:?},{}}}", lists.join(","))
}

/// `title`, `warnings`, and `runs`: `label`, `key`, and what [`One`] has.
fn runs(text: &str) -> Answer {
    #[derive(Serialize)]
    struct Listed {
        label: String,
        key: String,
        experiment: String,
        swept: String,
        seed: String,
    }
    #[derive(Serialize)]
    struct All {
        title: String,
        warnings: Vec<String>,
        runs: Vec<Listed>,
    }
    let request = Request { text, format: Format::Toml, source: "", overrides: &[], seeds: None };
    let found = expand(&request)?;
    let runs = found.runs.into_iter().map(|run| Listed {
        label: run.label,
        key: run.key,
        experiment: Value::Table(run.experiment).to_json(),
        swept: Value::Table(run.swept).to_json(),
        seed: run.seed.to_string(),
    });
    Ok(json(&All { title: found.title, warnings: found.warnings, runs: runs.collect() }))
}

/// `bound_s`, `packet_hops`.
fn least(one: &One) -> Answer {
    #[derive(Serialize)]
    struct Least {
        bound_s: f64,
        packet_hops: u64,
    }
    let (experiment, seed) = one.read()?;
    let bound_s = least_time(&experiment, seed)?.as_secs_f64();
    Ok(json(&Least { bound_s, packet_hops: work(&experiment, seed)?.hops }))
}

/// `row`, `warnings`, `flows`, `links`, `series`, `fabric`.
fn result(one: &One) -> Answer {
    #[derive(Serialize)]
    struct Found<'a> {
        /// JSON in JSON, so that a page can hand on the very text.
        row: String,
        warnings: &'a [String],
        flows: Columns<'a>,
        links: Columns<'a>,
        series: Samples,
        fabric: Box<RawValue>,
    }
    let (experiment, seed) = one.read()?;
    let swept = parse::parse(&one.swept, Format::Json)?;
    let found = run(&experiment, seed, Threads::ONE, &AtomicBool::new(false))?;
    Ok(json(&Found {
        row: Row { cells: &found.row, swept: &swept }.text(),
        warnings: &found.warnings,
        flows: Columns(&found.flows),
        links: Columns(&found.links),
        series: Samples::of(&experiment, &found),
        fabric: fabric(&experiment, seed)?,
    }))
}

/// Samples by the numbers of ports, as links have them.
#[derive(Serialize)]
struct Samples {
    /// When each sample was taken, and the time from one to the next.
    time_s: Vec<f64>,
    interval_s: f64,
    /// Ports whose queues were sampled, and those of which it was sampled what they sent.
    queue_ports: Vec<u32>,
    sent_ports: Vec<u32>,
    /// Bytes, a list for each: the longest queue of an interval, and all that was sent in it.
    queues: Vec<Vec<u64>>,
    sent: Vec<Vec<u64>>,
}

/// More than can be told apart in a picture.
const MOST_SAMPLES: usize = 700;

impl Samples {
    fn of(experiment: &Resolved, found: &RunResult) -> Samples {
        let series = &found.series;
        let step = series.time_s.len().div_ceil(MOST_SAMPLES).max(1);
        let thinned = |kind: &str, of: fn(&[u64]) -> u64| {
            let both = series.kinds.iter().zip(&series.bytes);
            let those = both.filter(|(one, _)| **one == kind);
            those.map(|(_, bytes)| from_zero(bytes, step).map(of).collect()).collect()
        };
        let probes = &experiment.probes;
        Samples {
            time_s: from_zero(&series.time_s, step).map(|times| times[times.len() - 1]).collect(),
            interval_s: probes.interval.map_or(0.0, |time| time.as_secs_f64() * step as f64),
            queue_ports: probes.ports.iter().map(|port| port.0).collect(),
            sent_ports: probes.sent.iter().map(|port| port.0).collect(),
            queues: thinned("port", |bytes| bytes.iter().copied().max().unwrap_or(0)),
            sent: thinned("sent", |bytes| bytes.iter().sum()),
        }
    }
}

/// The first sample, at time zero, and then `step` at a time.
fn from_zero<T>(samples: &[T], step: usize) -> impl Iterator<Item = &[T]> {
    let (first, rest) = samples.split_at(samples.len().min(1));
    first.chunks(1).chain(rest.chunks(step))
}

/// Switches, links and failures.
fn fabric(experiment: &Resolved, seed: u64) -> Result<Box<RawValue>, Refusal> {
    #[derive(Serialize)]
    struct Fabric<'a> {
        hosts: u32,
        switches: Columns<'a>,
        links: Columns<'a>,
        failures: Columns<'a>,
    }
    let found = fabric_tables(experiment, seed)?;
    let text = json(&Fabric {
        hosts: found.hosts,
        switches: Columns(&found.switches),
        links: Columns(&found.links),
        failures: Columns(&found.failures),
    });
    Ok(RawValue::from_string(text).expect("JSON"))
}

impl One {
    fn read(&self) -> Result<(Resolved, u64), Refusal> {
        let seed = self.seed.parse().map_err(|_| Refusal::of(format!("seed: {:?}", self.seed)))?;
        Ok((read_run(&self.experiment)?, seed))
    }
}

impl Refusal {
    fn of(line: String) -> Refusal {
        Refusal { line, key: None }
    }
}

impl From<ExperimentError> for Refusal {
    fn from(error: ExperimentError) -> Refusal {
        let mut line = error.to_string();
        // All that is said of files ends so, and a page has none, whatever their path.
        if line.ends_with(" the path") {
            line.push_str(", and use weft run: a page reads no files");
        }
        Refusal { key: Some(error.key().to_owned()), ..Refusal::of(line) }
    }
}

impl From<RunError> for Refusal {
    fn from(error: RunError) -> Refusal {
        match error {
            RunError::Experiment(error) => error.into(),
            RunError::Stalled(_) | RunError::Cancelled => Refusal::of(error.to_string()),
        }
    }
}

impl From<serde_json::Error> for Refusal {
    fn from(error: serde_json::Error) -> Refusal {
        Refusal::of(format!("question: {error}"))
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("results are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    const SMALL: &str = "[fabric]\ntopology = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
                         [workload]\npattern = \"permutation\"\nsize = \"64KB\"\n\
                         [probe]\ninterval = \"10ns\"\nports = [\"* -> *\"]\nsent = [\"* -> *\"]\n\
                         [sweep]\n\"balance.scheme\" = [\"ecmp\", \"twill\"]\n\"fabric.delay\" = [\"1us\"]\n";

    fn asked(question: &Json) -> Json {
        serde_json::from_str(&to(question.to_string().as_bytes())).expect("JSON")
    }

    fn first_of(text: &str) -> Json {
        let found = asked(&json!({"ask": "runs", "text": text}));
        let mut run = found["answer"]["runs"][0].clone();
        run["ask"] = json!("run");
        run
    }

    #[test]
    fn a_run_has_its_row_its_swept_keys_and_thinned_samples() {
        let found = asked(&first_of(SMALL));
        let row: Json =
            serde_json::from_str(found["answer"]["row"].as_str().expect("a text")).expect("JSON");
        assert_eq!((&row["scheme"], &row["fabric.delay"]), (&json!("ecmp"), &json!("1us")));
        let series = &found["answer"]["series"];
        let times = series["time_s"].as_array().expect("times");
        assert!(
            times.len() > MOST_SAMPLES / 2 && times.len() <= MOST_SAMPLES + 1,
            "{}",
            times.len()
        );
        assert!(
            row["cct_s"].as_f64().expect("a time") / 10e-9 > times.len() as f64,
            "none was left out"
        );
        let (sent, bytes) = (&series["sent"], &found["answer"]["links"]["bytes"]);
        for (sent, bytes) in
            sent.as_array().expect("ports").iter().zip(bytes.as_array().expect("ports"))
        {
            let sum: u64 = sent.as_array().expect("samples").iter().filter_map(Json::as_u64).sum();
            let bytes = bytes.as_u64().expect("bytes");
            assert!(sum <= bytes && bytes - sum <= 4 * 60, "{sum} of {bytes}");
        }
    }

    #[test]
    fn mistakes_are_one_line_with_their_key() {
        let wrong = asked(&json!({"ask": "runs", "text": SMALL.replace("64KB", "64")}));
        assert_eq!(wrong["error"]["key"], json!("workload.size"));
        let line = wrong["error"]["line"].as_str().expect("a line");
        assert!(line.starts_with("workload.size (line 8): ") && !line.contains('\n'), "{line}");
        let stalled = SMALL.replace(
            "[probe]",
            "[failures.dead]\nlinks = [\"host-0 -> leaf-0\"]\nkind = \"down\"\n[probe]",
        );
        let line = asked(&first_of(&stalled.replace("10ns", "10ms")))["error"]["line"].to_string();
        assert!(line.contains("the run stalled"), "{line}");
        let other = format!("extends = \"other.toml\"\n{SMALL}");
        for text in [other, SMALL.replace("pattern = \"permutation\"", "trace = \"a.csv\"")] {
            let line = asked(&json!({"ask": "runs", "text": text}))["error"]["line"].to_string();
            assert!(
                line.ends_with("the path, and use weft run: a page reads no files\""),
                "{line}"
            );
        }
        assert!(asked(&json!({"ask": "nothing"}))["error"]["line"].is_string());
    }
}
