//! What changed since last time, as lines for NCCL's log.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use weft_comm::Statistics;
use weft_comm::statistics::{PathCounts, PathStatistics};

/// Lines of one NIC at a time; when a switch dies there is more to say than anybody reads.
const MOST_LINES: usize = 8;

/// What was known of a NIC.
#[derive(Debug, Default)]
pub(crate) struct StatisticsChanges {
    paths: BTreeMap<(Ipv4Addr, Option<u16>, u16), PathCounts>,
    refused_connections: u64,
    damaged: u64,
    starved: u64,
}

impl StatisticsChanges {
    /// What is new, a line each.
    pub(crate) fn lines(&mut self, now: &Statistics) -> Vec<String> {
        let mut lines: Vec<String> =
            now.paths.iter().filter_map(|path| self.path(&now.name, path)).collect();
        if lines.len() > MOST_LINES {
            let more = lines.len() - MOST_LINES;
            lines.truncate(MOST_LINES);
            lines.push(format!("{}: the same of {more} other paths", now.name));
        }
        let name = &now.name;
        let before = std::mem::replace(&mut self.refused_connections, now.refused_connections);
        let refused = now.refused_connections.saturating_sub(before);
        if refused > 0 {
            lines.push(format!("{name}: {refused} connections were refused: who opened them did not know the secret"));
        }
        let before = std::mem::replace(&mut self.damaged, now.damaged);
        let damaged = now.damaged.saturating_sub(before);
        if damaged > 0 {
            lines.push(format!("{name}: {damaged} frames came damaged and were sent again"));
        }
        lines
    }

    /// What the user of this host should mend, if it is new.
    pub(crate) fn warning(&mut self, now: &Statistics) -> Option<String> {
        let before = std::mem::replace(&mut self.starved, now.starved);
        let starved = now.starved.saturating_sub(before);
        let Statistics { name, starved_why: why, .. } = now;
        let line = format!("{name}: {starved} connections could not be opened: {why}");
        (starved > 0).then_some(line)
    }

    fn path(&mut self, name: &str, path: &PathStatistics) -> Option<String> {
        let PathStatistics { peer, path: id, port, counts, .. } = path;
        let place = (*peer, id.map(|id| id.0), *port);
        let before = self.paths.insert(place, *counts).unwrap_or_default();
        let happened: Vec<String> = [
            (counts.time_outs.saturating_sub(before.time_outs), "time-outs"),
            (counts.re_routes.saturating_sub(before.re_routes), "lanes moved to other paths"),
            (counts.reconnects.saturating_sub(before.reconnects), "connections lost"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        if happened.is_empty() {
            return None;
        }
        let way = id.map_or(String::new(), |id| format!(" over path {}", id.0));
        Some(format!("{name}: to {peer}{way} from port {port}: {}", happened.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(time_outs: &[u64]) -> Statistics {
        let path = |(port, time_outs): (usize, &u64)| PathStatistics {
            peer: Ipv4Addr::new(10, 0, 0, 2),
            host: None,
            path: None,
            port: port as u16,
            counts: PathCounts { time_outs: *time_outs, ..PathCounts::default() },
        };
        let paths = time_outs.iter().enumerate().map(path).collect();
        Statistics { name: "eth0".into(), paths, ..Statistics::default() }
    }

    #[test]
    fn only_what_changed_is_said() {
        let mut changes = StatisticsChanges::default();
        assert!(changes.lines(&statistics(&[0, 0])).is_empty());
        let lines = changes.lines(&statistics(&[0, 2]));
        assert_eq!(lines, ["eth0: to 10.0.0.2 from port 1: 2 time-outs"]);
        assert!(changes.lines(&statistics(&[0, 2])).is_empty());
        let refused = Statistics { refused_connections: 3, damaged: 1, ..statistics(&[0, 2]) };
        assert_eq!(changes.lines(&refused).len(), 2);
        assert!(changes.lines(&refused).is_empty());
    }

    #[test]
    fn what_is_to_be_mended_is_said_once() {
        let mut changes = StatisticsChanges::default();
        assert_eq!(changes.warning(&statistics(&[0])), None);
        let starved = Statistics { starved: 2, starved_why: "EMFILE".into(), ..statistics(&[0]) };
        let line = changes.warning(&starved).unwrap();
        assert_eq!(line, "eth0: 2 connections could not be opened: EMFILE");
        assert_eq!(changes.warning(&starved), None);
    }

    #[test]
    fn much_news_is_cut_short() {
        let lines = StatisticsChanges::default().lines(&statistics(&[1; 100]));
        assert_eq!(lines.len(), MOST_LINES + 1);
        assert_eq!(lines[MOST_LINES], "eth0: the same of 92 other paths");
    }
}
