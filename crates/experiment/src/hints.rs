//! What a result, or a run that stalled, says about its experiment: which key would help.

use crate::experiment::Resolved;
use weft_fabric::{Fabric, Failure, FailureKind, Queued};
use weft_sim::{Buffer, Outcome, Stall, Totals};
use weft_transport::{RecoveryConfig, Rewind};
use weft_units::Time;

/// What the fabric says of the scheme, before a run.
pub(crate) fn of_fabric(experiment: &Resolved, fabric: &Fabric) -> Option<String> {
    let scheme = &experiment.balance.scheme;
    let info = scheme.info();
    if info.wants_reports
        && !experiment.transport.recovery.reports()
        && !experiment.failures.is_empty()
    {
        return Some(format!(
            "{}: without transport.recovery = \"uet\" and switches that trim (fabric.switch.trim = true, pfc = false) \
             it learns of losses by time-outs only",
            scheme.name()
        ));
    }
    let has_groups = fabric.clos().is_none() && fabric.pods() > 2;
    (info.over_groups && !has_groups).then(|| {
        format!(
            "{}: this fabric has no groups of switches to go over, so that packets take random shortest \
             paths, as under spray; they are made for dragonflies",
            scheme.name()
        )
    })
}

/// More than one packet in so many sent again for nothing is worth a word.
const SPURIOUS_SHARE: u64 = 100;

/// What the result of a run with time-out `rto` says about the experiment.
pub(crate) fn of_result(experiment: &Resolved, rto: Time, outcome: &Outcome) -> Option<String> {
    let Totals { packets, spurious, reordered, full_buffers, held, .. } = outcome.totals;
    let scheme = &experiment.balance.scheme;
    if held > 0 {
        return Some(format!(
            "{}: a PFC deadlock: {held} packets wait for good at ports whose pauses wait for each other; nothing \
             needs them any more, but a longer run would have stalled: {UNPAUSE}",
            scheme.name()
        ));
    }
    if full_buffers > 0 {
        let what = if experiment.switch.pfc.is_some() { "pauses (PFC)" } else { "losses" };
        return Some(format!(
            "{}: queues would fill the buffers of switches; rates tell only roughly, or not at all, what {what} cost \
             then: see run.fidelity = \"packet\"",
            scheme.name()
        ));
    }
    // A failed link that loses acknowledgements makes senders repeat what has arrived, too.
    let loses = |failure: &Failure| !matches!(failure.kind, FailureKind::Degraded { .. });
    if spurious <= packets / SPURIOUS_SHARE || experiment.failures.iter().any(loses) {
        return None;
    }
    let recovery = experiment.transport.recovery.info();
    let why = match recovery.resends_overtaken {
        // Of this all are warned before they run.
        true if !recovery.keeps_order && scheme.is_multipath() => return None,
        true if reordered > 0 => {
            "they came behind later ones, which this recovery takes for a loss; set \
             transport.recovery = \"selective-repeat\""
                .to_owned()
        }
        _ => format!("they queued for longer than transport.rto ({rto}); raise it"),
    };
    let name = scheme.name();
    Some(format!(
        "{name}: over 1 % of all packets were sent again although they had arrived: {why}"
    ))
}

/// What ends a deadlock of pauses.
const UNPAUSE: &str = "set fabric.switch.pfc = false, or raise fabric.switch.buffer";

/// What most probably keeps a run from its end, and the key that would help.
pub(crate) fn of_stall(experiment: &Resolved, rto: Time, stall: &Stall) -> String {
    let (totals, packet) = (&stall.totals, experiment.packet.largest());
    let transport = &experiment.transport;
    let begins_anew = matches!(&transport.recovery, RecoveryConfig::GoBackN(config)
        if config.rewind == Rewind::Message);
    let unordered =
        !transport.recovery.info().keeps_order && experiment.balance.scheme.is_multipath();
    match experiment.switch.buffer {
        Buffer::PerPort { bytes } | Buffer::Shared { bytes, .. } if bytes < packet => {
            return format!(
                "fabric.switch.buffer ({bytes}B) has no room for a packet of {packet}B; raise it"
            );
        }
        _ => {}
    }
    let throws_away =
        |failure: &Failure| matches!(failure.kind, FailureKind::Down { queued: Queued::Lost, .. });
    // Without PFC they may have found full queues.
    let flushed = experiment.switch.pfc.is_some() && experiment.failures.iter().any(throws_away);
    let at_ports = if flushed { totals.drops } else { 0 };
    let by_links = totals.wire_drops + at_ports;
    if by_links > 0 {
        return format!(
            "links that failed lost {by_links} packets: have routing learn of it (failures.*.detect), end \
             the failure (failures.*.duration), or use a scheme that leaves dead paths"
        );
    }
    if begins_anew && totals.drops > 0 {
        return "a message that loses a packet begins anew, and loses one again: set \
                transport.nack_rewind = \"gap\""
            .into();
    }
    if unordered {
        return "packets that overtake each other look lost to this recovery: set \
                transport.recovery = \"selective-repeat\""
            .into();
    }
    if totals.spurious > totals.retransmits / 2 {
        return format!(
            "most of what was sent again had arrived and was only late: raise transport.rto ({rto})"
        );
    }
    if totals.drops + totals.trims > 0 {
        return format!(
            "full queues dropped or trimmed {} packets: raise fabric.switch.buffer, turn PFC on \
             (fabric.switch.pfc = true), or use a transport.congestion that slows down",
            totals.drops + totals.trims
        );
    }
    if totals.pauses > 0 {
        return format!("ports wait for each other's pauses to end: {UNPAUSE}");
    }
    "to wait for longer, raise run.stall_after or run.stall_packets".into()
}
