//! What an endpoint has counted.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddrV4};
use weft_fabric::PathId;

/// What an endpoint has counted since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The name of the endpoint.
    pub name: String,
    /// Where it listens.
    pub address: Option<SocketAddrV4>,
    /// What was sent, by peer, path and source port.
    pub paths: Vec<PathStatistics>,
    /// Payload that came, by peer.
    pub received: Vec<(Ipv4Addr, u64)>,
    /// Connections that said nothing, nonsense or a wrong secret.
    pub refused_connections: u64,
    /// Frames whose check sum was wrong.
    pub damaged: u64,
    /// Connections that this host had no room for, and why the last of them.
    pub starved: u64,
    /// Empty where there were none.
    pub starved_why: String,
}

/// What went one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStatistics {
    /// The address of the host that receives.
    pub peer: Ipv4Addr,
    /// The host of the fabric, if it is one.
    pub host: Option<u32>,
    /// The path, if it was chosen.
    pub path: Option<PathId>,
    /// The source port; zero for all that are no longer in use, where nobody chose them.
    pub port: u16,
    /// What was counted.
    pub counts: PathCounts,
}

/// What is counted of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// Payload handed to the system, each byte once.
    pub bytes: u64,
    /// Parts of messages.
    pub subflows: u64,
    /// Times that nothing came back for too long.
    pub time_outs: u64,
    /// Times that a lane left this path for another one.
    pub re_routes: u64,
    /// Connections that were lost.
    pub reconnects: u64,
    /// Connections that are open.
    pub open: u64,
}

impl PathCounts {
    fn add(&mut self, other: &PathCounts) {
        self.bytes += other.bytes;
        self.subflows += other.subflows;
        self.time_outs += other.time_outs;
        self.re_routes += other.re_routes;
        self.reconnects += other.reconnects;
        self.open += other.open;
    }
}

/// Peer, path and source port.
pub(crate) type Place = (Ipv4Addr, Option<PathId>, u16);

/// The counters of an engine.
#[derive(Debug)]
pub(crate) struct Counts {
    name: String,
    address: SocketAddrV4,
    paths: BTreeMap<Place, (Option<u32>, PathCounts)>,
    pub(crate) received: BTreeMap<Ipv4Addr, u64>,
    pub(crate) refused_connections: u64,
    pub(crate) damaged: u64,
    starved: (u64, String),
}

impl Counts {
    pub(crate) fn new(name: String, address: SocketAddrV4) -> Counts {
        let (paths, received) = (BTreeMap::new(), BTreeMap::new());
        let (refused_connections, damaged, starved) = Default::default();
        Counts { name, address, paths, received, refused_connections, damaged, starved }
    }
    /// This host had no room for a connection.
    pub(crate) fn starve(&mut self, why: String) {
        self.starved = (self.starved.0 + 1, why);
    }
    pub(crate) fn at(&mut self, place: Place, host: Option<u32>) -> &mut PathCounts {
        &mut self.paths.entry(place).or_insert((host, PathCounts::default())).1
    }
    /// A connection there is closed.
    pub(crate) fn close(&mut self, place: Place, host: Option<u32>) {
        let counts = self.at(place, host);
        counts.open = counts.open.saturating_sub(1);
        self.fold(place, host);
    }
    /// Ports that nobody chose are forgotten when nothing is open there: they would become ever more.
    /// What was counted goes to port zero.
    pub(crate) fn fold(&mut self, place: Place, host: Option<u32>) {
        let (peer, path, port) = place;
        let closed = self.paths.get(&place).is_some_and(|(_, counts)| counts.open == 0);
        if path.is_none()
            && port > 0
            && closed
            && let Some((_, old)) = self.paths.remove(&place)
        {
            self.at((peer, None, 0), host).add(&old);
        }
    }
    pub(crate) fn snapshot(&self) -> Statistics {
        let path = |((peer, path, port), (host, counts)): (&Place, &(Option<u32>, PathCounts))| {
            let (peer, path, port, host, counts) = (*peer, *path, *port, *host, *counts);
            PathStatistics { peer, host, path, port, counts }
        };
        Statistics {
            name: self.name.clone(),
            address: Some(self.address),
            paths: self.paths.iter().map(path).collect(),
            received: self.received.iter().map(|(peer, bytes)| (*peer, *bytes)).collect(),
            refused_connections: self.refused_connections,
            damaged: self.damaged,
            starved: self.starved.0,
            starved_why: self.starved.1.clone(),
        }
    }
}

/// A metric of paths as Prometheus has it: its name, its type, what it means, and where it is.
type Metric = (&'static str, &'static str, &'static str, fn(&PathCounts) -> u64);

const METRICS: [Metric; 7] = [
    ("sent_bytes_total", "counter", "Payload handed to the system, each byte once.", |counts| {
        counts.bytes
    }),
    ("subflows_total", "counter", "Parts of messages.", |counts| counts.subflows),
    ("pieces_total", "counter", "Old name of weft_subflows_total, until 0.3.", |counts| {
        counts.subflows
    }),
    ("time_outs_total", "counter", "Times that nothing came back for too long.", |counts| {
        counts.time_outs
    }),
    ("re_routes_total", "counter", "Times that a lane left the path for another one.", |counts| {
        counts.re_routes
    }),
    ("reconnects_total", "counter", "Connections that were lost.", |counts| counts.reconnects),
    ("connections", "gauge", "Connections that are open.", |counts| counts.open),
];

impl Statistics {
    /// As text for Prometheus, names beginning with `weft_`, each series with the label `process` if
    /// there is a number for it. Source ports of a path are counted together: series would become
    /// ever more.
    pub fn prometheus(&self, process: Option<usize>) -> String {
        let mut out = String::new();
        let process = process.map_or(String::new(), |number| format!("process=\"{number}\","));
        let device = format!("{process}device=\"{}\"", label(&self.name));
        let paths = self.by_path();
        for (name, kind, meaning, value) in METRICS {
            head(&mut out, name, meaning, kind);
            for ((peer, path), (host, counts)) in &paths {
                let (host, path) = (or_empty(*host), path.map_or(String::new(), path_name));
                let labels = format!("{device},peer=\"{peer}\",host=\"{host}\",path=\"{path}\"");
                write_line(&mut out, name, &labels, value(counts));
            }
        }
        head(&mut out, "received_bytes_total", "Payload that came.", "counter");
        for (peer, bytes) in &self.received {
            let labels = format!("{device},peer=\"{peer}\"");
            write_line(&mut out, "received_bytes_total", &labels, *bytes);
        }
        for (name, old_name, meaning, value) in [
            (
                "refused_connections_total",
                "strangers_total",
                "Connections that were turned away.",
                self.refused_connections,
            ),
            (
                "damaged_frames_total",
                "damaged_total",
                "Frames with a wrong check sum.",
                self.damaged,
            ),
            (
                "starved_connections_total",
                "starved_total",
                "Connections that this host had no room for.",
                self.starved,
            ),
        ] {
            head(&mut out, name, meaning, "counter");
            write_line(&mut out, name, &device, value);
            let renamed = format!("Old name of weft_{name}, until 0.3.");
            head(&mut out, old_name, &renamed, "counter");
            write_line(&mut out, old_name, &device, value);
        }
        out
    }

    /// What was sent, by peer and path.
    fn by_path(&self) -> BTreeMap<(Ipv4Addr, Option<PathId>), (Option<u32>, PathCounts)> {
        let mut all = BTreeMap::new();
        for PathStatistics { peer, host, path, counts, .. } in &self.paths {
            let (_, sum) =
                all.entry((*peer, *path)).or_insert_with(|| (*host, PathCounts::default()));
            sum.add(counts);
        }
        all
    }

    /// As one JSON object.
    pub fn json(&self) -> String {
        let path = |one: &PathStatistics| {
            let PathStatistics { peer, host, path, port, counts } = one;
            let PathCounts { bytes, subflows: pieces, time_outs, re_routes, reconnects, open } =
                counts;
            let host = host.map_or("null".into(), |host| host.to_string());
            let path = path.map_or("null".into(), |path| format!("\"{}\"", path_name(path)));
            format!(
                "{{\"peer\":\"{peer}\",\"host\":{host},\"path\":{path},\"port\":{port},\
                 \"bytes\":{bytes},\"pieces\":{pieces},\"time_outs\":{time_outs},\
                 \"re_routes\":{re_routes},\"reconnects\":{reconnects},\"open\":{open}}}"
            )
        };
        let received =
            |(peer, bytes): &(Ipv4Addr, u64)| format!("{{\"peer\":\"{peer}\",\"bytes\":{bytes}}}");
        let paths: Vec<_> = self.paths.iter().map(path).collect();
        let received: Vec<_> = self.received.iter().map(received).collect();
        let address = self.address.map_or("null".into(), |address| format!("\"{address}\""));
        format!(
            "{{\"device\":\"{}\",\"address\":{address},\"paths\":[{}],\"received\":[{}],\
             \"strangers\":{},\"damaged\":{},\"starved\":{},\"starved_why\":\"{}\"}}",
            label(&self.name),
            paths.join(","),
            received.join(","),
            self.refused_connections,
            self.damaged,
            self.starved,
            label(&self.starved_why)
        )
    }
}

fn head(out: &mut String, name: &str, meaning: &str, kind: &str) {
    let _ = writeln!(out, "# HELP weft_{name} {meaning}\n# TYPE weft_{name} {kind}");
}
fn write_line(out: &mut String, name: &str, labels: &str, value: u64) {
    let _ = writeln!(out, "weft_{name}{{{labels}}} {value}");
}
fn or_empty(number: Option<u32>) -> String {
    number.map_or(String::new(), |number| number.to_string())
}
/// A path as people and files have it: `3.0`.
pub fn path_name(path: PathId) -> String {
    format!("{}.{}", path.first(), path.second())
}
/// A name between quotes, in Prometheus and in JSON alike.
pub fn label(name: &str) -> String {
    let plain = |c: char| !c.is_control();
    name.chars()
        .filter(|c| plain(*c))
        .collect::<String>()
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics() -> Statistics {
        let address = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4_791);
        let peer = Ipv4Addr::new(10, 0, 0, 2);
        let mut counts = Counts::new("a \"NIC\"".into(), address);
        let path = counts.at((peer, Some(PathId::new(3, 0)), 61_440), Some(7));
        *path = PathCounts {
            bytes: 5,
            subflows: 4,
            time_outs: 3,
            re_routes: 2,
            reconnects: 1,
            open: 9,
        };
        counts.at((peer, Some(PathId::new(3, 0)), 61_441), Some(7)).bytes = 7;
        counts.at((peer, None, 40_000), None).bytes = 6;
        counts.received.insert(peer, 8);
        counts.refused_connections = 11;
        counts.starve("ENFILE".into());
        counts.starve("EMFILE".into());
        counts.snapshot()
    }

    /// Of the two ports of a path together.
    #[test]
    fn prometheus_has_a_line_for_every_number() {
        let text = statistics().prometheus(None);
        let labels = r#"device="a \"NIC\"",peer="10.0.0.2",host="7",path="3.0""#;
        for (name, value) in [
            ("sent_bytes_total", 12),
            ("subflows_total", 4),
            ("pieces_total", 4),
            ("time_outs_total", 3),
            ("re_routes_total", 2),
            ("reconnects_total", 1),
            ("connections", 9),
        ] {
            let line = format!("weft_{name}{{{labels}}} {value}");
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
        for line in [
            r#"weft_received_bytes_total{device="a \"NIC\"",peer="10.0.0.2"} 8"#,
            r#"weft_refused_connections_total{device="a \"NIC\""} 11"#,
            r#"weft_strangers_total{device="a \"NIC\""} 11"#,
            r#"weft_starved_connections_total{device="a \"NIC\""} 2"#,
            r#"weft_sent_bytes_total{device="a \"NIC\"",peer="10.0.0.2",host="",path=""} 6"#,
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
    }

    /// Each metric is described once, before its samples; a counter's name ends as counters' do.
    #[test]
    fn prometheus_metrics_are_described() {
        let text = statistics().prometheus(Some(3));
        let mut described = None;
        for line in text.lines() {
            let words: Vec<_> = line.split([' ', '{']).collect();
            match words[..] {
                ["#", "HELP", name, ..] => {
                    assert!(text.matches(&format!("HELP {name} ")).count() == 1)
                }
                ["#", "TYPE", name, kind] => {
                    assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                    described = Some(name);
                }
                [name, labels, ..] => {
                    assert_eq!(described, Some(name), "{line}");
                    assert!(labels.starts_with("process=\"3\",device=\""), "{line}");
                }
                _ => panic!("{line}"),
            }
        }
    }

    /// Reconnecting for weeks from ports that the kernel picks must not fill memory.
    #[test]
    fn closed_ports_that_nobody_chose_are_counted_together() {
        let address = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4_791);
        let peer = Ipv4Addr::new(10, 0, 0, 2);
        let mut counts = Counts::new("nic".into(), address);
        let planned = (peer, Some(PathId::new(3, 0)), 61_440);
        let places = (40_000..41_000).map(|port| (peer, None, port)).chain([planned]);
        for place in places {
            let one = counts.at(place, Some(7));
            (one.open, one.bytes, one.reconnects) = (1, 5, 2);
            counts.close(place, Some(7));
        }
        counts.at((peer, None, 50_000), Some(7)).open = 1;
        counts.fold((peer, None, 50_000), Some(7));
        let found = counts.snapshot().paths;
        let rows: Vec<_> = found.iter().map(|it| (it.path, it.port, it.counts.bytes)).collect();
        assert_eq!(rows, [(None, 0, 5_000), (None, 50_000, 0), (planned.1, 61_440, 5)]);
        assert_eq!((found[0].host, found[0].counts.reconnects), (Some(7), 2_000));
    }

    #[test]
    fn json_says_the_same() {
        let text = statistics().json();
        let first = r#"{"device":"a \"NIC\"","address":"10.0.0.1:4791","paths":["#;
        assert!(text.starts_with(first), "{text}");
        let path = r#"{"peer":"10.0.0.2","host":7,"path":"3.0","port":61440,"bytes":5,"pieces":4,"time_outs":3,"re_routes":2,"reconnects":1,"open":9}"#;
        assert!(text.contains(path), "{text}");
        assert!(text.contains(r#""host":null,"path":null,"port":40000,"bytes":6"#), "{text}");
        assert!(text.ends_with(
            r#""received":[{"peer":"10.0.0.2","bytes":8}],"strangers":11,"damaged":0,"starved":2,"starved_why":"EMFILE"}"#
        ));
    }
}
