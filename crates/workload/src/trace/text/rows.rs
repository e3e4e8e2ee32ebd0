//! The grammar of text workloads: header, declared count, one row a layer.

use crate::WorkloadError;
use weft_units::options::quoted;

/// How a job is parallelised, which decides what is issued when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Data,
    Model,
    DataModel,
    ModelData,
    Customized,
    Transformer,
    ForwardInBackward,
    Dlrm,
    DlrmEnhanced,
    Inference,
    Micro,
}

const POLICIES: [(&str, Policy); 11] = [
    ("DATA", Policy::Data),
    ("MODEL", Policy::Model),
    ("HYBRID_DATA_MODEL", Policy::DataModel),
    ("HYBRID_MODEL_DATA", Policy::ModelData),
    ("HYBRID_CUSTOMIZED", Policy::Customized),
    ("HYBRID_TRANSFORMER", Policy::Transformer),
    ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", Policy::ForwardInBackward),
    ("HYBRID_DLRM", Policy::Dlrm),
    ("HYBRID_DLRM_ENHANCED", Policy::DlrmEnhanced),
    ("DISTRIBUTED_INFERENCE", Policy::Inference),
    ("MICRO", Policy::Micro),
];

impl Policy {
    pub(super) fn named(name: &str) -> Option<Policy> {
        POLICIES.iter().find(|(known, _)| *known == name).map(|(_, policy)| *policy)
    }
}

/// What the first line says; zero or empty where it does not.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) policy: Policy,
    pub(super) tensor: u32,
    pub(super) expert: u32,
    pub(super) pipeline: u32,
    pub(super) ranks: u32,
    pub(super) pipeline_bytes: u64,
    pub(super) last_bottom_layer: usize,
    /// Layers whose inputs are kept, and those before which the forward pass is done again.
    pub(super) checkpoints: Vec<usize>,
    pub(super) initiates: Vec<usize>,
    /// How many layers the second line declares.
    pub(super) layers: u64,
}

impl Header {
    fn new(policy: Policy) -> Header {
        Header {
            policy,
            tensor: 0,
            expert: 0,
            pipeline: 0,
            ranks: 0,
            pipeline_bytes: 0,
            last_bottom_layer: 0,
            checkpoints: Vec::new(),
            initiates: Vec::new(),
            layers: 0,
        }
    }
}

/// A communication of a layer: its name in the file, and bytes.
#[derive(Clone, Debug)]
pub(super) struct Comm {
    pub(super) name: String,
    pub(super) bytes: u64,
}

/// A row of the file.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) line: u64,
    pub(super) name: String,
    /// Forward, input gradient, weight gradient: time, communication.
    pub(super) times: [u64; 3],
    pub(super) comms: [Comm; 3],
    pub(super) update: u64,
    /// Of its own, under `HYBRID_CUSTOMIZED`.
    pub(super) policy: Option<Policy>,
}

/// The lines of a file that are not empty, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (u64, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty())
}

/// Header and rows.
pub(super) fn parse(name: &str, text: &str) -> Result<(Header, Vec<Layer>), WorkloadError> {
    let mut lines = lines(text);
    let Some((number, first)) = lines.next() else {
        let what = "the file is empty; a text workload begins with its policy, such as DATA";
        return Err(WorkloadError::at(name, 1, what));
    };
    let mut header = header(first).map_err(|what| WorkloadError::at(name, number, what))?;
    let Some((number, count)) = lines.next() else {
        let what = "the file ends here; the next line must say how many layers follow";
        return Err(WorkloadError::at(name, number, what));
    };
    header.layers = whole(count, "the number of layers")
        .map_err(|what| WorkloadError::at(name, number, what))?;
    let layers: Result<Vec<Layer>, WorkloadError> = lines
        .map(|(line, row)| {
            layer(line, row, header.policy).map_err(|what| WorkloadError::at(name, line, what))
        })
        .collect();
    let layers = layers?;
    match layers.is_empty() {
        true => Err(WorkloadError::at(name, number, "no layer follows; the file is cut off")),
        false => Ok((header, layers)),
    }
}

fn whole(word: &str, what: &str) -> Result<u64, String> {
    word.parse()
        .map_err(|_| format!("{what} must be a whole number, not {}; correct it", quoted(word)))
}

/// The degree, size or layer that follows a key.
fn value<T: TryFrom<u64>>(words: &[&str], at: usize) -> Result<T, String> {
    let key = words[at - 1].trim_end_matches(':');
    let word = words.get(at).ok_or(format!("{key}: a number must follow; add it"))?;
    T::try_from(whole(word, key)?).map_err(|_| format!("{key}: {word} is too large; correct it"))
}

/// A count, and as many numbers of layers, after the key at `at - 1`.
fn list(words: &[&str], at: usize) -> Result<Vec<usize>, String> {
    let count: usize = value(words, at)?;
    let key = words[at - 1].trim_end_matches(':');
    let given = words.len() - at - 1;
    if given < count {
        return Err(format!("{key} announces {count} layers, but only {given} follow; list all"));
    }
    words[at + 1..=at + count]
        .iter()
        .map(|word| {
            let layer = whole(word, key)?;
            usize::try_from(layer).map_err(|_| format!("{key} {layer} is too large; correct it"))
        })
        .collect()
}

/// The first line.
fn header(line: &str) -> Result<Header, String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let policy = Policy::named(words[0]).ok_or_else(|| {
        let known: Vec<&str> = POLICIES.iter().map(|(name, _)| *name).collect();
        format!("unknown policy {}; known are {}", quoted(words[0]), known.join(", "))
    })?;
    let mut header = Header::new(policy);
    if matches!(policy, Policy::Dlrm | Policy::DlrmEnhanced)
        && words.get(1).is_some_and(|word| word.parse::<u64>().is_ok())
    {
        header.last_bottom_layer = value(&words, 1)?;
    }
    for at in 1..words.len() {
        match words[at].trim_end_matches(':') {
            "model_parallel_NPU_group" => header.tensor = value(&words, at + 1)?,
            "ep" => header.expert = value(&words, at + 1)?,
            "pp" => header.pipeline = value(&words, at + 1)?,
            "all_gpus" => header.ranks = value(&words, at + 1)?,
            "pp_comm" => header.pipeline_bytes = value(&words, at + 1)?,
            "DLRM_LAST_BOTTOM_LAYER" => header.last_bottom_layer = value(&words, at + 1)?,
            "checkpoints" => header.checkpoints = list(&words, at + 1)?,
            "checkpoint_initiates" => header.initiates = list(&words, at + 1)?,
            _ => {}
        }
    }
    Ok(header)
}

const COLUMNS: [&str; 12] = [
    "name",
    "reserved",
    "forward time",
    "forward communication",
    "forward bytes",
    "input-gradient time",
    "input-gradient communication",
    "input-gradient bytes",
    "weight-gradient time",
    "weight-gradient communication",
    "weight-gradient bytes",
    "update time",
];

/// Whether a row has as many columns as it needs.
fn check_width(words: &[&str], needed: usize) -> Result<(), String> {
    if words.len() < needed {
        let next = COLUMNS.get(words.len()).unwrap_or(&"policy of the layer");
        return Err(format!(
            "the row ends before its {next} ({} of {needed} columns); it is cut off: complete it",
            words.len()
        ));
    }
    match words.get(needed) {
        None => Ok(()),
        Some(extra) => {
            let extra = quoted(extra);
            Err(format!("{extra} follows the last of {needed} columns; remove it"))
        }
    }
}

/// A row.
fn layer(line: u64, row: &str, policy: Policy) -> Result<Layer, String> {
    let words: Vec<&str> = row.split_ascii_whitespace().collect();
    check_width(&words, COLUMNS.len() + usize::from(policy == Policy::Customized))?;
    let number = |column: usize| whole(words[column], COLUMNS[column]);
    let comm = |column: usize| -> Result<Comm, String> {
        Ok(Comm { name: words[column].into(), bytes: number(column + 1)? })
    };
    let own = match words.get(COLUMNS.len()) {
        None => None,
        Some(word) => match Policy::named(word) {
            Some(policy) => Some(policy),
            None => return Err(format!("unknown policy {}; correct it", quoted(word))),
        },
    };
    Ok(Layer {
        line,
        name: words[0].into(),
        times: [number(2)?, number(5)?, number(8)?],
        comms: [comm(3)?, comm(6)?, comm(9)?],
        update: number(11)?,
        policy: own,
    })
}
