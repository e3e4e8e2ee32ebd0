//! The plan file: JSON, one object, whose keys `docs/plans.md` describes. It is written and read here.
//!
//! Two readers: hosts take the scheme and the cluster ([`PlanForHosts`]); commands that show or check a
//! plan take all of it as plain JSON, after [`check`].

use crate::cluster::{Cluster, PortSegments};
use crate::in_order::InOrder;
use crate::{ExperimentError, Origin};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use weft_units::parse_size;

/// The value of `format`.
pub const FORMAT: &str = "weft-plan";
/// The version that is written, and the only one that is read.
pub const VERSION: u64 = 1;
/// Stands for no source port, and for no persistent queue pair, in columns of numbers.
pub const NONE: u32 = u32::MAX;

/// A plan of a job on a cluster.
#[derive(Debug, Serialize)]
pub struct PlanFile {
    /// [`FORMAT`].
    pub format: &'static str,
    /// [`VERSION`].
    pub version: u64,
    /// Its name for people.
    pub title: String,
    /// The scheme that plans, as it is written (`dnlb-8`).
    pub scheme: String,
    /// The other keys of `[balance]`.
    pub options: Box<RawValue>,
    /// Of all that is random.
    pub seed: u64,
    /// Most payload of a packet, in bytes.
    pub mtu: u32,
    /// Names, addresses and links.
    pub cluster: Cluster,
    /// The same as an experiment with every default written out.
    pub experiment: Box<RawValue>,
    /// What makes packets take their paths: `segments`, `hash`, `path-id`; `none` where switches hash.
    pub enforce: &'static str,
    /// The ports of every uplink, by switch; nothing unless `enforce` is `segments`.
    pub segments: PortSegments,
    /// Every link of a direction.
    pub links: Links,
    /// Sum over all steps of what their busiest links take, in seconds.
    pub seconds: f64,
    /// Sum over all steps of their lower bounds, in seconds.
    pub steps_bound_s: f64,
    /// The lower bound of the whole job, in seconds.
    pub bound_s: f64,
    /// What is sent side by side, equal steps once.
    pub steps: Vec<Step>,
    /// What each host needs.
    pub hosts: Vec<HostTable>,
}

/// Links by column, in the order of the fabric's ports.
#[derive(Clone, Debug, Serialize)]
pub struct Links {
    /// `leaf-0 -> spine-1`, as failures name them.
    pub link: Vec<String>,
    /// What it carries, in bits per second.
    pub rate_bps: Vec<u64>,
    /// What is left of that now; 0: it is down.
    pub capacity_bps: Vec<u64>,
}

/// Messages that are sent side by side.
#[derive(Debug, Serialize)]
pub struct Step {
    /// What it is a part of.
    pub name: String,
    /// How many steps of the job are this one.
    pub times: u64,
    /// How many messages it has.
    pub messages: u64,
    /// Payload, in bytes.
    pub bytes: u64,
    /// How many subflows they are split into.
    #[serde(rename = "piece_count")]
    pub subflows: u64,
    /// How many messages are split.
    pub split: u64,
    /// The most queue pairs that a host sends on.
    pub queue_pairs: u64,
    /// The link that takes longest.
    pub congestion: Busiest,
    /// The least that the busiest link could take, in seconds.
    pub bound_s: f64,
    /// What a known routing needs, in seconds.
    pub reached_s: f64,
    /// Links that force the bound; nothing where nothing is sent.
    pub certificate: Option<Certificate>,
    /// Payload in bytes, in the order of [`Links`].
    pub loads: Vec<u64>,
    /// Every subflow, unless there are too many to be kept.
    #[serde(rename = "pieces")]
    pub placed: Option<Subflows>,
}

/// The link that takes longest over a step.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Busiest {
    /// Its name; nothing where nothing is sent.
    pub link: Option<String>,
    /// Payload, in bytes.
    pub bytes: u64,
    /// Payload over what is left of its rate, in seconds.
    pub seconds: f64,
}

/// The proof of a step's bound, by column: every demand crosses links of so much weight.
#[derive(Clone, Debug, Serialize)]
pub struct Certificate {
    /// The links, by name.
    pub link: Vec<String>,
    /// Whole numbers.
    pub weight: Vec<u64>,
    /// In bits per second.
    pub capacity_bps: Vec<u64>,
}

/// Subflows by column.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Subflows {
    /// Sending host.
    pub src: Vec<u32>,
    /// Receiving host.
    pub dst: Vec<u32>,
    /// Of which message of the step.
    pub message: Vec<u32>,
    /// Which part of that.
    pub part: Vec<u32>,
    /// Payload.
    pub bytes: Vec<u64>,
    /// Path id: the uplink of the leaf above that of the next switch.
    pub path: Vec<u32>,
    /// UDP source port, or [`NONE`].
    #[serde(serialize_with = "or_null")]
    pub source_port: Vec<u32>,
    /// Number of the persistent queue pair, or [`NONE`].
    #[serde(serialize_with = "or_null")]
    pub queue_pair: Vec<u32>,
}

/// What a host needs of a plan.
#[derive(Clone, Debug, Serialize)]
pub struct HostTable {
    /// Its name.
    pub host: String,
    /// Queue pairs, by destination.
    pub queue_pairs: Vec<QueuePairRow>,
    /// NCCL's variables.
    pub environment: InOrder<String>,
}

/// A queue pair of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QueuePairRow {
    /// The name of the host at the other end.
    pub to: String,
    /// Path id.
    pub path: u32,
    /// The address of that host for this path, where hosts have one for each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_address: Option<Ipv4Addr>,
    /// UDP source port, where switches go by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_port: Option<u32>,
    /// The flow label of which an RDMA driver makes this source port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_label: Option<u32>,
    /// The steps that use it, from zero.
    pub steps: Vec<usize>,
}

fn or_null<S: Serializer>(column: &[u32], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(column.iter().map(|value| (*value != NONE).then_some(*value)))
}

/// The text of a plan file, or of a part of one.
pub fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("names and numbers are JSON")
}

/// The part of a plan that hosts read: they plan their messages again, by the same scheme.
#[derive(Debug, Serialize, Deserialize)]
pub struct PlanForHosts {
    #[serde(skip_deserializing, default = "format")]
    format: &'static str,
    #[serde(skip_deserializing, default = "version")]
    version: u64,
    /// As [`PlanFile::scheme`].
    pub scheme: String,
    options: BTreeMap<String, serde_json::Value>,
    /// As [`PlanFile::seed`].
    pub seed: u64,
    /// As [`PlanFile::cluster`].
    pub cluster: Cluster,
    #[serde(skip_serializing, default)]
    experiment: serde_json::Value,
}

/// A collective that was planned: what a job does all the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedCollective {
    /// As `workload.collective`, as `all-reduce`.
    pub operation: String,
    /// As `workload.algorithm`, as `ring`.
    pub algorithm: String,
    /// How many ranks take part.
    pub ranks: u64,
    /// Of the whole buffer, in bytes.
    pub size: u64,
    /// Rings side by side, if the job says so.
    pub channels: Option<u32>,
}

fn format() -> &'static str {
    FORMAT
}
fn version() -> u64 {
    VERSION
}

impl PlanForHosts {
    /// A plan that says what hosts read and nothing else: `scheme` with its default options.
    pub fn new(scheme: String, seed: u64, cluster: Cluster) -> PlanForHosts {
        let (format, version, options) = (FORMAT, VERSION, BTreeMap::new());
        let experiment = serde_json::Value::Null;
        PlanForHosts { format, version, scheme, options, seed, cluster, experiment }
    }
    /// What hosts take of the plan in `text`, whose file is `source`.
    ///
    /// # Errors
    /// As [`check`]; and if a value is not what a plan has there.
    pub fn read(text: &str, source: &str) -> Result<PlanForHosts, ExperimentError> {
        check(text, source, &["scheme", "options", "seed", "cluster"])?;
        let read = || {
            let plan: PlanForHosts = serde_json::from_str(text)
                .map_err(|error| ExperimentError::not_as_written("", &error.to_string()))?;
            plan.cluster.check()?;
            Ok(plan)
        };
        read().map_err(|error: ExperimentError| error.in_source(source))
    }
    /// The other keys of `[balance]`, as text.
    pub fn options(&self) -> Vec<(String, String)> {
        let text = |(key, value): (&String, &serde_json::Value)| match value {
            serde_json::Value::String(text) => (key.clone(), text.clone()),
            other => (key.clone(), other.to_string()),
        };
        self.options.iter().map(text).collect()
    }
    /// The collectives that were planned: that of `[workload]`, or of each of its jobs. Models, traces and
    /// patterns have none, and those of a part of the ranks are left out.
    pub fn collectives(&self) -> Vec<PlannedCollective> {
        let workload = &self.experiment["workload"];
        match workload["jobs"].as_object() {
            Some(jobs) => jobs.values().filter_map(|job| self.collective(job)).collect(),
            None => self.collective(workload).into_iter().collect(),
        }
    }

    fn collective(&self, job: &serde_json::Value) -> Option<PlannedCollective> {
        let text = |key: &str| job[key].as_str();
        let server = &self.experiment["fabric"]["server"];
        let all = || {
            let servers =
                (self.cluster.hosts.len() as u64).checked_div(server["nics"].as_u64()?)?;
            servers.checked_mul(server["gpus"].as_u64()?)
        };
        text("group").filter(|group| *group == "all")?;
        Some(PlannedCollective {
            operation: text("collective")?.to_owned(),
            algorithm: text("algorithm")?.to_owned(),
            ranks: job["ranks"].as_u64().or_else(all)?,
            size: parse_size(text("size")?).ok()?,
            channels: job["channels"].as_u64().and_then(|count| u32::try_from(count).ok()),
        })
    }
}

/// Refuses a file that is no plan, is of another version, or lacks one of `keys`.
///
/// # Errors
/// One line: the file, the key and the mend.
pub fn check(text: &str, source: &str, keys: &[&str]) -> Result<(), ExperimentError> {
    let wrong = |key: &str, what: String| {
        ExperimentError::new(key, Origin::Unknown, what).in_source(source)
    };
    let outline: Result<BTreeMap<String, IgnoredAny>, _> = serde_json::from_str(text);
    let outline = match outline {
        Ok(outline) => outline,
        Err(error) if error.is_data() => BTreeMap::new(),
        Err(error) => {
            let what = format!("not JSON (line {}); name a plan.json of weft plan", error.line());
            return Err(wrong("", what));
        }
    };
    #[derive(Deserialize)]
    struct Head {
        format: String,
        version: serde_json::Value,
    }
    let head: Option<Head> = serde_json::from_str(text).ok();
    let Some(head) = head.filter(|head| head.format == FORMAT) else {
        return Err(wrong("format", "not a plan of weft; name what weft plan wrote".into()));
    };
    if head.version != VERSION {
        let what = format!("{} is not known; make the plan again", head.version);
        return Err(wrong("version", what));
    }
    match keys.iter().find(|key| !outline.contains_key(**key)) {
        Some(key) => Err(wrong(key, "is missing; make the plan again".into())),
        None => Ok(()),
    }
}
