//! The variables of the environment: one table, and what stands in them.

use crate::{DeployError, Prometheus};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use weft_comm::Checksum;
use weft_units::{Time, parse_time};

/// A variable, as lists show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What holds without it.
    pub default: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

const fn variable(name: &'static str, default: &'static str, meaning: &'static str) -> Variable {
    Variable { name, default, meaning }
}

/// All of them.
pub const VARIABLES: &[Variable] = &[
    variable(
        "WEFT_CONFIG",
        "none",
        "CLUSTER.toml, or plan.json or its directory: which paths there are; with commas, one of each \
         plane. None: ecmp, from ports that the kernel picks",
    ),
    variable(
        "WEFT_PATHS",
        "none",
        "the table of weft discover: source ports are taken from it, and switches need no rules \
         (enforce=discovered); with commas, one of each plane",
    ),
    variable(
        "WEFT_PATHS_CHECK",
        "10s",
        "how often a port of every path of WEFT_PATHS is asked again, to notice changes of routing; 0: \
         never",
    ),
    variable("WEFT_SCHEME", "the plan's, else ethereal", "the load balancer"),
    variable(
        "WEFT_OPTIONS",
        "the plan's",
        "options of the scheme that differ, as batch=10us,group=size",
    ),
    variable(
        "WEFT_SEED",
        "the plan's, else 1",
        "where random choices come from; the same on all hosts",
    ),
    variable(
        "WEFT_CONNECTIONS",
        "uplinks of the leaf, else 4",
        "connections to a peer under schemes that leave it open (ecmp), 1 to 64",
    ),
    variable(
        "WEFT_BACKEND",
        "auto",
        "tcp; roce: RDMA verbs; auto: roce where the interface has an RDMA device and the \
         cluster's protocol is udp, else tcp",
    ),
    variable(
        "WEFT_ALLOW_TCP",
        "1 under auto, else 0",
        "1: tcp where verbs do not work; 0: an error",
    ),
    variable(
        "WEFT_PATH_TIMEOUT",
        "1s",
        "a path on which nothing comes back for so long is left, and what was on it sent again \
         over another",
    ),
    variable(
        "WEFT_GIVE_UP",
        "30s",
        "a peer that no path reaches for so long, or that says no word for so long though it is asked, is \
         taken for dead",
    ),
    variable(
        "WEFT_CHECKSUM",
        "1",
        "1: payload to other hosts carries a CRC32C over TCP, whose own check sum misses one error in 65536 \
         and is left out between virtual machines; all: also what stays in a host; 0: none does",
    ),
    variable(
        "WEFT_ENCRYPT",
        "0",
        "1: what goes over TCP is encrypted (AES-256-GCM, a key for each connection); the same on all hosts",
    ),
    variable(
        "WEFT_TCP_CONGESTION",
        "reno within a host, else the system's",
        "congestion control of TCP connections, as dctcp or cubic: one of sysctl \
         net.ipv4.tcp_allowed_congestion_control",
    ),
    variable(
        "WEFT_KEY_FILE",
        "none",
        "a file of 16 bytes or more that all processes of the job have and nobody else: who has seen how they \
         meet (NCCL's bootstrap is not encrypted) still cannot join",
    ),
    variable(
        "WEFT_HOST",
        "by the addresses of this machine",
        "which hosts of the cluster this machine is: names or numbers, with commas between NICs",
    ),
    variable(
        "WEFT_IFNAME",
        "all that are up",
        "interfaces without WEFT_CONFIG, as NCCL_SOCKET_IFNAME: eth,ib begin so; =eth0 is exactly \
         that; ^docker,lo all but those",
    ),
    variable(
        "WEFT_RDMA_DEVICE",
        "by the interface",
        "the RDMA device, as mlx5_0 or mlx5_0:1; with commas, one of each NIC",
    ),
    variable("WEFT_GID_INDEX", "the RoCEv2 one of the address", "which of its GIDs"),
    variable(
        "WEFT_STATS",
        "none",
        "statistics go into this file, as JSON; %h is the host, %p the process",
    ),
    variable(
        "WEFT_PROMETHEUS",
        "none",
        "statistics are served here, as 127.0.0.1:9400, or written into this directory, as \
         /run/weft-counters; processes of a host take one port or file each",
    ),
    variable(
        "WEFT_PROFILE",
        "none",
        "of the NCCL plugin: into this directory each process writes what happens to messages, with NCCL's own \
         events, as a trace for Perfetto and weft trace",
    ),
    variable("WEFT_LOG", "warn", "how much to say: error, warn, info, debug"),
];

/// The directory of [`WEFT_PROFILE`](VARIABLES), if it is set.
pub fn profile_directory() -> Option<PathBuf> {
    of_this_process("WEFT_PROFILE").text.map(PathBuf::from)
}

/// The files of [`WEFT_CONFIG`](VARIABLES), one of each plane.
pub(crate) fn config_files() -> Vec<PathBuf> {
    of_this_process("WEFT_CONFIG").files()
}

fn of_this_process(name: &'static str) -> Text {
    Text::of(name, std::env::var(name).ok())
}

/// A key that is shorter can be guessed, and one that is longer than this is none, but a device that never ends.
const LEAST_KEY: usize = 16;
const MOST_KEY: usize = 64 << 10;

/// How much to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Log {
    /// What ends a job.
    Error,
    /// What the user should mend.
    #[default]
    Warn,
    /// What was chosen, and paths that are left.
    Info,
    /// Everything.
    Debug,
}

/// What carries the bytes, as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Auto,
    Tcp,
    Roce,
}

/// What stands in them.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    /// A file of each plane.
    pub(crate) configs: Vec<PathBuf>,
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) paths_check: Option<Duration>,
    pub(crate) scheme: Option<String>,
    pub(crate) options: Vec<(String, String)>,
    pub(crate) seed: Option<u64>,
    pub(crate) connections: Option<u32>,
    pub(crate) backend: Wanted,
    pub(crate) allow_tcp: Option<bool>,
    pub(crate) path_time_out: Duration,
    pub(crate) give_up: Duration,
    pub(crate) checksum: Checksum,
    pub(crate) encrypt: bool,
    pub(crate) congestion: Option<Arc<str>>,
    pub(crate) key: Arc<[u8]>,
    /// What to say of a key that others may read.
    pub(crate) key_is_open: Option<String>,
    pub(crate) hosts: Vec<String>,
    pub(crate) ifname: Option<String>,
    /// One for all NICs, or one of each; none where interfaces tell.
    pub(crate) rdma_devices: Vec<(String, u8)>,
    pub(crate) gid_index: Option<u8>,
    pub(crate) stats: Option<PathBuf>,
    pub(crate) prometheus: Option<Prometheus>,
    pub(crate) log: Log,
}

/// Those of `names` that begin like a variable and are none, each as a line for the user.
pub fn unknown<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let ours = names.filter(|name| name.starts_with("WEFT_"));
    let unknown = ours.filter(|name| VARIABLES.iter().all(|known| known.name != *name));
    // `nearest` compares small letters.
    let small: Vec<String> = VARIABLES.iter().map(|known| known.name.to_lowercase()).collect();
    let line =
        |name: &str| match weft_config::nearest::nearest(name, small.iter().map(String::as_str)) {
            Some(near) => {
                format!("{name}: no such variable; did you mean {}?", near.to_uppercase())
            }
            None => {
                let known: Vec<_> = VARIABLES.iter().map(|known| known.name).collect();
                format!("{name}: no such variable; use one of {}", known.join(", "))
            }
        };
    unknown.map(line).collect()
}

/// Reads them. One that is empty is not there.
pub(crate) fn read(get: &dyn Fn(&str) -> Option<String>) -> Result<Given, DeployError> {
    let get = |name: &'static str| {
        assert!(VARIABLES.iter().any(|known| known.name == name), "{name} is in the table");
        Text::of(name, get(name))
    };
    let (key, key_is_open) = get("WEFT_KEY_FILE").secret()?;
    let path_time_out = get("WEFT_PATH_TIMEOUT").span(Duration::from_secs(1))?;
    let give_up = get("WEFT_GIVE_UP").span(Duration::from_secs(30))?;
    if give_up < path_time_out {
        let (given, why) = (get("WEFT_GIVE_UP"), "no second path would be tried");
        // What the user has set is named.
        return Err(match given.text {
            Some(_) => given.wrong(&format!("shorter than WEFT_PATH_TIMEOUT; {why}, use more")),
            None => get("WEFT_PATH_TIMEOUT").wrong(&format!(
                "longer than WEFT_GIVE_UP, which is {}s unless set; {why}, use less, or set both",
                give_up.as_secs()
            )),
        });
    }
    Ok(Given {
        configs: get("WEFT_CONFIG").files(),
        paths: get("WEFT_PATHS").files(),
        paths_check: match get("WEFT_PATHS_CHECK") {
            Text { text: Some(text), .. } if text == "0" => None,
            given => Some(given.span(Duration::from_secs(10))?),
        },
        scheme: get("WEFT_SCHEME").text,
        options: get("WEFT_OPTIONS").pairs()?,
        seed: get("WEFT_SEED").number(0, u64::MAX)?,
        connections: get("WEFT_CONNECTIONS").number(1, 64)?.map(|count| count as u32),
        backend: get("WEFT_BACKEND")
            .word(&[("auto", Wanted::Auto), ("tcp", Wanted::Tcp), ("roce", Wanted::Roce)])?
            .unwrap_or(Wanted::Auto),
        allow_tcp: get("WEFT_ALLOW_TCP").flag()?,
        path_time_out,
        give_up,
        checksum: get("WEFT_CHECKSUM")
            .word(&[("0", Checksum::None), ("1", Checksum::BetweenHosts), ("all", Checksum::All)])?
            .unwrap_or(Checksum::BetweenHosts),
        encrypt: get("WEFT_ENCRYPT").flag()?.unwrap_or(false),
        congestion: get("WEFT_TCP_CONGESTION").congestion()?,
        key,
        key_is_open,
        hosts: get("WEFT_HOST").list(),
        ifname: get("WEFT_IFNAME").text,
        rdma_devices: get("WEFT_RDMA_DEVICE").devices()?,
        gid_index: get("WEFT_GID_INDEX").number(0, 255)?.map(|index| index as u8),
        stats: get("WEFT_STATS").text.map(|text| of_host(&text).into()),
        prometheus: get("WEFT_PROMETHEUS").prometheus()?,
        log: get("WEFT_LOG")
            .word(&[
                ("error", Log::Error),
                ("warn", Log::Warn),
                ("info", Log::Info),
                ("debug", Log::Debug),
            ])?
            .unwrap_or_default(),
    })
}

/// A name of a file with the name of this host in place of `%h`. `%p` stays: processes fork.
fn of_host(file: &str) -> String {
    let name = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if file.contains("%h") { file.replace("%h", name().trim()) } else { file.into() }
}

/// The text of a variable, if it is there.
struct Text {
    name: &'static str,
    text: Option<String>,
}

impl Text {
    fn of(name: &'static str, text: Option<String>) -> Text {
        let text = text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        Text { name, text }
    }

    fn wrong(&self, what: &str) -> DeployError {
        let text = self.text.as_deref().unwrap_or_default();
        DeployError(format!("{}: {text:?}: {what}", self.name))
    }

    fn number(self, least: u64, most: u64) -> Result<Option<u64>, DeployError> {
        let Some(text) = &self.text else { return Ok(None) };
        match text.parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ if most == u64::MAX => Err(self.wrong("is no whole number; use 0 or more")),
            _ => Err(self.wrong(&format!("is out of range; use {least} to {most}"))),
        }
    }

    /// The bytes of a file, none where it is not given; and what to say if others may read it.
    fn secret(self) -> Result<(Arc<[u8]>, Option<String>), DeployError> {
        let Some(path) = &self.text else { return Ok(Default::default()) };
        let make = format!("(umask 077; head -c 32 /dev/urandom > {path})");
        let (mut bytes, most) = (Vec::new(), MOST_KEY as u64 + 1);
        let mode = File::open(path)
            .and_then(|file| {
                let mode = file.metadata()?.permissions().mode();
                file.take(most).read_to_end(&mut bytes).map(|_| mode)
            })
            .map_err(|error| self.wrong(&format!("cannot be read: {error}; give a file")))?;
        if bytes.len() < LEAST_KEY {
            let what = format!("has {} bytes; make {LEAST_KEY} or more: {make}", bytes.len());
            return Err(self.wrong(&what));
        }
        if bytes.len() > MOST_KEY {
            let what = format!("has more than {MOST_KEY} bytes; make a file of a few: {make}");
            return Err(self.wrong(&what));
        }
        let open = format!(
            "{}: {path}: other users of this host may read it (mode {:03o}); chmod o= {path}",
            self.name,
            mode & 0o777
        );
        Ok((bytes.into(), (mode & 0o004 > 0).then_some(open)))
    }

    fn word<T: Copy>(self, words: &[(&str, T)]) -> Result<Option<T>, DeployError> {
        let Some(text) = &self.text else { return Ok(None) };
        let found = words.iter().find(|(word, _)| text.eq_ignore_ascii_case(word));
        let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        let found =
            found.ok_or_else(|| self.wrong(&format!("is not known; use one of {}", known())));
        found.map(|(_, value)| Some(*value))
    }

    fn flag(self) -> Result<Option<bool>, DeployError> {
        self.word(&[("0", false), ("1", true)])
    }

    fn span(self, default: Duration) -> Result<Duration, DeployError> {
        let Some(text) = &self.text else { return Ok(default) };
        let span = parse_time(text).ok().map(|Time(all)| Duration::from_nanos(all / 1_000));
        let what = "is no time from 1ms on; write it with its unit, as 500ms or 2s";
        span.filter(|span| *span >= Duration::from_millis(1)).ok_or_else(|| self.wrong(what))
    }

    fn list(self) -> Vec<String> {
        let text = self.text.unwrap_or_default();
        let parts = text.split(',').map(|part| part.trim().to_owned());
        parts.filter(|part| !part.is_empty()).collect()
    }

    /// Files with commas between; one, if its name has commas.
    fn files(self) -> Vec<PathBuf> {
        let whole = PathBuf::from(self.text.clone().unwrap_or_default());
        match whole.exists() {
            true => vec![whole],
            false => self.list().into_iter().map(PathBuf::from).collect(),
        }
    }

    fn pairs(self) -> Result<Vec<(String, String)>, DeployError> {
        let Some(text) = &self.text else { return Ok(Vec::new()) };
        let pair = |part: &str| match part.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                Ok((key.trim().to_owned(), value.trim().to_owned()))
            }
            _ => Err(self.wrong("is no list of options; write it as batch=10us,group=size")),
        };
        text.split(',').map(pair).collect()
    }

    /// The name of a congestion control that the system has.
    fn congestion(self) -> Result<Option<Arc<str>>, DeployError> {
        let Some(name) = &self.text else { return Ok(None) };
        weft_comm::try_congestion(name).map_err(|error| {
            self.wrong(&format!(
                "{error}; use one of sysctl net.ipv4.tcp_allowed_congestion_control"
            ))
        })?;
        Ok(Some(name.as_str().into()))
    }

    fn prometheus(self) -> Result<Option<Prometheus>, DeployError> {
        let Some(text) = &self.text else { return Ok(None) };
        if text.contains('/') {
            return Ok(Some(Prometheus::Directory(PathBuf::from(text))));
        }
        let what =
            "is no address; write it as 127.0.0.1:9400, or a directory as /run/weft-counters";
        let found = text.parse().map_err(|_| self.wrong(what))?;
        Ok(Some(Prometheus::Served(found)))
    }

    /// Names and ports with commas between.
    fn devices(self) -> Result<Vec<(String, u8)>, DeployError> {
        let Some(text) = &self.text else { return Ok(Vec::new()) };
        let device = |part: &str| {
            let (name, port) = part.split_once(':').unwrap_or((part, "1"));
            match port.parse() {
                Ok(port) if port > 0 && !name.is_empty() => Ok((name.to_owned(), port)),
                _ => Err(self.wrong("is no device; write it as mlx5_0 or mlx5_0:1")),
            }
        };
        text.split(',').map(str::trim).map(device).collect()
    }
}
