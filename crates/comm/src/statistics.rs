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
            let all = self.at((peer, None, 0), host);
            all.bytes += old.bytes;
            all.subflows += old.subflows;
            all.time_outs += old.time_outs;
            all.re_routes += old.re_routes;
            all.reconnects += old.reconnects;
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

/// A counter as Prometheus has it: its name, what it means, and where it is.
type Metric = (&'static str, &'static str, fn(&PathCounts) -> u64);

const METRICS: [Metric; 5] = [
    ("sent_bytes_total", "payload handed to the system", |counts| counts.bytes),
    ("pieces_total", "parts of messages", |counts| counts.subflows),
    ("time_outs_total", "times that nothing came back for too long", |counts| counts.time_outs),
    ("re_routes_total", "times that a lane left the path", |counts| counts.re_routes),
    ("reconnects_total", "connections that were lost", |counts| counts.reconnects),
];

impl Statistics {
    /// As text for Prometheus, names beginning with `weft_`.
    pub fn prometheus(&self) -> String {
        let mut out = String::new();
        for (name, meaning, value) in METRICS {
            head(&mut out, name, meaning, "counter");
            for path in &self.paths {
                self.line(&mut out, name, path, value(&path.counts));
            }
        }
        head(&mut out, "connections", "connections that are open", "gauge");
        for path in &self.paths {
            self.line(&mut out, "connections", path, path.counts.open);
        }
        head(&mut out, "received_bytes_total", "payload that came", "counter");
        let device = label(&self.name);
        for (peer, bytes) in &self.received {
            let labels = format!("device=\"{device}\",peer=\"{peer}\"");
            write_line(&mut out, "received_bytes_total", &labels, *bytes);
        }
        let rest = [
            ("strangers_total", "connections that were turned away", self.refused_connections),
            ("damaged_total", "frames with a wrong check sum", self.damaged),
            ("starved_total", "connections that this host had no room for", self.starved),
        ];
        for (name, meaning, value) in rest {
            head(&mut out, name, meaning, "counter");
            write_line(&mut out, name, &format!("device=\"{device}\""), value);
        }
        out
    }

    fn line(&self, out: &mut String, name: &str, path: &PathStatistics, value: u64) {
        let PathStatistics { peer, host, path, port, .. } = path;
        let device = label(&self.name);
        let (host, path) = (or_empty(*host), path.map_or(String::new(), path_name));
        let labels = format!(
            "device=\"{device}\",peer=\"{peer}\",host=\"{host}\",path=\"{path}\",port=\"{port}\""
        );
        write_line(out, name, &labels, value);
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
fn path_name(path: PathId) -> String {
    format!("{}.{}", path.first(), path.second())
}
/// A name between quotes, in Prometheus and in JSON alike.
fn label(name: &str) -> String {
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
        counts.at((peer, None, 40_000), None).bytes = 6;
        counts.received.insert(peer, 8);
        counts.refused_connections = 11;
        counts.starve("ENFILE".into());
        counts.starve("EMFILE".into());
        counts.snapshot()
    }

    #[test]
    fn prometheus_has_a_line_for_every_number() {
        let text = statistics().prometheus();
        let labels = r#"device="a \"NIC\"",peer="10.0.0.2",host="7",path="3.0",port="61440""#;
        for (name, value) in [
            ("sent_bytes_total", 5),
            ("pieces_total", 4),
            ("time_outs_total", 3),
            ("re_routes_total", 2),
            ("reconnects_total", 1),
            ("connections", 9),
        ] {
            let line = format!("weft_{name}{{{labels}}} {value}");
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
            let named = |one: &&str| one.starts_with(&format!("# TYPE weft_{name} "));
            assert_eq!(text.lines().filter(named).count(), 1, "{text}");
        }
        assert!(
            text.contains(
                "weft_received_bytes_total{device=\"a \\\"NIC\\\"\",peer=\"10.0.0.2\"} 8"
            )
        );
        assert!(text.contains("weft_strangers_total{device=\"a \\\"NIC\\\"\"} 11"));
        assert!(text.contains("weft_starved_total{device=\"a \\\"NIC\\\"\"} 2"), "{text}");
        assert!(text.contains("host=\"\",path=\"\",port=\"40000\"} 6"));
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
