//! The keys of `[transport]`, `[fabric.switch]`, `[balance]` and `[run]`: defaults, what they
//! become, one settled form each, and every mistake in them.

use crate::common::{GOOD, expanded, find, mistake, settled};
use weft_balance::scheme::SCHEMES;
use weft_experiment::completion::Completion;
use weft_sim::{Buffer, MarkAt, TrimConfig, Victim};
use weft_transport::{
    Coding, CongestionConfig, DcqcnConfig, GoBackN, MpRdmaConfig, RECOVERIES, RecoveryConfig,
    Rewind, SwiftConfig, Tcp,
};
use weft_units::{Rate, Time};

type Set<'a> = &'a [(&'a str, &'a str)];

fn value(overrides: Set<'_>, key: &str) -> Option<String> {
    find(settled(GOOD, overrides).table(), key)
}
fn key(overrides: Set<'_>) -> String {
    expanded(GOOD, overrides).runs[0].key.clone()
}

/// What the file has to say for each group of keys, and what holds then.
const DEFAULTS: &[(Set<'_>, &[(&str, &str)])] = &[
    (
        &[("transport.congestion", "fixed-rate")],
        &[
            ("transport.rate", "line"),
            ("transport.rate_coefficient", "1.0"),
            ("transport.start_gaps", "0.0"),
            ("transport.gap_jitter", "0.0"),
        ],
    ),
    (
        &[("transport.congestion", "swift")],
        &[
            ("transport.swift_base_target", "auto"),
            ("transport.swift_per_hop", "3053435ps"),
            ("transport.swift_scaling_range", "100us"),
            ("transport.swift_scaling_min", "0.1"),
            ("transport.swift_scaling_max", "100.0"),
            ("transport.swift_increase", "1.0"),
            ("transport.swift_decrease", "0.8"),
            ("transport.swift_max_cut", "0.5"),
            ("transport.swift_reset_after", "5"),
            ("transport.swift_min_window", "10B"),
            ("transport.swift_initial_window", "1bdp"),
            ("transport.swift_max_window", "8bdp"),
        ],
    ),
    (
        &[("transport.congestion", "dcqcn")],
        &[
            ("transport.dcqcn_cnp_interval", "50us"),
            ("transport.dcqcn_alpha_timer", "55us"),
            ("transport.dcqcn_increase_timer", "55us"),
            ("transport.dcqcn_byte_counter", "10MB"),
            ("transport.dcqcn_fast_recovery", "5"),
            ("transport.dcqcn_increase", "40Mbps"),
            ("transport.dcqcn_hyper_increase", "100Mbps"),
            ("transport.dcqcn_gain", "0.00390625"),
            ("transport.dcqcn_clamp", "true"),
            ("transport.dcqcn_gaps", "false"),
            ("transport.dcqcn_least", "100Mbps"),
        ],
    ),
    (
        &[],
        &[
            ("transport.recovery", "go-back-n"),
            ("transport.nack_rewind", "gap"),
            ("transport.nack_repeat", "false"),
            ("transport.nack_quiet", "0ns"),
            ("transport.subflows", "1"),
            ("fabric.switch.mark", "enqueue"),
            ("fabric.switch.mark_control", "false"),
            ("fabric.switch.pfc_threshold", "dynamic"),
            ("fabric.switch.trim", "auto"),
            ("fabric.switch.trim_size", "64B"),
            ("fabric.switch.trim_queue", "64MB"),
            ("fabric.switch.trim_return_to_sender", "false"),
            ("fabric.switch.trim_victim", "either"),
            ("run.completion", "received"),
            ("transport.rto", "auto"),
            ("run.stall_after", "auto"),
        ],
    ),
    (
        &[("transport.recovery", "tcp")],
        &[
            ("transport.dup_acks", "3"),
            ("transport.fast_retransmit", "true"),
            ("transport.sack", "false"),
            ("transport.adaptive_rto", "true"),
            ("transport.min_rto", "100us"),
        ],
    ),
    (
        &[("transport.recovery", "coding")],
        &[("transport.coding_overhead", "0.0"), ("transport.coding_extra", "0")],
    ),
    (
        &[("fabric.switch.buffer_kind", "per-port"), ("fabric.switch.buffer", "100KB")],
        &[
            ("fabric.switch.pfc", "false"),
            ("fabric.switch.pfc_threshold", "100KB"),
            ("fabric.switch.trim_queue", "100KB"),
        ],
    ),
    // Four time-outs, where that is more.
    (&[("transport.rto", "400ms")], &[("run.stall_after", "1600ms")]),
];

#[test]
fn defaults_are_the_documented_ones() {
    for (given, expected) in DEFAULTS {
        for (key, expected) in *expected {
            assert_eq!(value(given, key).as_deref(), Some(*expected), "{key} under {given:?}");
        }
    }
}

/// What stands in the file as it would be by default changes nothing, not even the key.
#[test]
fn writing_a_default_out_changes_nothing() {
    for (given, expected) in DEFAULTS {
        for default in *expected {
            let both = [given, &[*default][..]].concat();
            assert_eq!(key(&both), key(given), "{default:?} under {given:?}");
        }
    }
}

/// Every other value of every key is settled, reads back as the same, and makes another key.
#[test]
fn every_key_counts() {
    const FIXED: (&str, &str) = ("transport.congestion", "fixed-rate");
    const SWIFT: (&str, &str) = ("transport.congestion", "swift");
    const DCQCN: (&str, &str) = ("transport.congestion", "dcqcn");
    const TCP: (&str, &str) = ("transport.recovery", "tcp");
    const CODING: (&str, &str) = ("transport.recovery", "coding");
    const PER_PORT: (&str, &str) = ("fabric.switch.buffer_kind", "per-port");
    let cases: &[(Set<'_>, &str, &str)] = &[
        (&[FIXED], "transport.rate", "fair"),
        (&[FIXED], "transport.rate", "25Gbps"),
        (&[FIXED], "transport.rate_coefficient", "0.85"),
        (&[FIXED], "transport.start_gaps", "1.0"),
        (&[FIXED], "transport.gap_jitter", "0.1"),
        (&[SWIFT], "transport.swift_base_target", "25us"),
        (&[SWIFT], "transport.swift_per_hop", "1us"),
        (&[SWIFT], "transport.swift_scaling_range", "0ns"),
        (&[SWIFT], "transport.swift_scaling_min", "0.5"),
        (&[SWIFT], "transport.swift_scaling_max", "50.0"),
        (&[SWIFT], "transport.swift_increase", "2.0"),
        (&[SWIFT], "transport.swift_decrease", "0.4"),
        (&[SWIFT], "transport.swift_max_cut", "0.3"),
        (&[SWIFT], "transport.swift_reset_after", "3"),
        (&[SWIFT], "transport.swift_min_window", "1KB"),
        (&[SWIFT], "transport.swift_initial_window", "2bdp"),
        (&[SWIFT], "transport.swift_max_window", "4MB"),
        (&[DCQCN], "transport.dcqcn_cnp_interval", "0ns"),
        (&[DCQCN], "transport.dcqcn_alpha_timer", "1us"),
        (&[DCQCN], "transport.dcqcn_increase_timer", "300us"),
        (&[DCQCN], "transport.dcqcn_byte_counter", "none"),
        (&[DCQCN], "transport.dcqcn_byte_counter", "150KB"),
        (&[DCQCN], "transport.dcqcn_fast_recovery", "1"),
        (&[DCQCN], "transport.dcqcn_increase", "5Gbps"),
        (&[DCQCN], "transport.dcqcn_hyper_increase", "10Gbps"),
        (&[DCQCN], "transport.dcqcn_gain", "0.0625"),
        (&[DCQCN], "transport.dcqcn_clamp", "false"),
        (&[DCQCN], "transport.dcqcn_gaps", "true"),
        (&[DCQCN], "transport.dcqcn_least", "1Gbps"),
        (&[], "transport.nack_rewind", "message"),
        (&[], "transport.nack_repeat", "true"),
        (&[], "transport.nack_quiet", "10ms"),
        (&[], "transport.subflows", "4"),
        (&[], "transport.subflows", "auto"),
        (&[TCP], "transport.dup_acks", "6"),
        (&[TCP], "transport.fast_retransmit", "false"),
        (&[TCP], "transport.sack", "true"),
        (&[TCP], "transport.adaptive_rto", "false"),
        (&[TCP], "transport.min_rto", "1ms"),
        (&[CODING], "transport.coding_overhead", "0.05"),
        (&[CODING], "transport.coding_extra", "25"),
        (&[], "fabric.switch.mark", "dequeue"),
        (&[], "fabric.switch.mark_control", "true"),
        (&[], "fabric.switch.pfc_threshold", "48KB"),
        (&[PER_PORT], "fabric.switch.pfc", "true"),
        (&[PER_PORT], "fabric.switch.trim", "true"),
        (&[PER_PORT], "fabric.switch.trim_size", "full"),
        (&[PER_PORT], "fabric.switch.trim_size", "128B"),
        (&[PER_PORT], "fabric.switch.trim_queue", "32KB"),
        (&[PER_PORT], "fabric.switch.trim_return_to_sender", "true"),
        (&[PER_PORT], "fabric.switch.trim_victim", "tail"),
        (&[], "run.completion", "acknowledged"),
        (&[], "run.stall_after", "2s"),
        (&[], "run.stall_packets", "100000"),
        (&[], "transport.rto", "2ms"),
    ];
    for (given, dotted, other) in cases {
        let all = [given, &[(*dotted, *other)][..]].concat();
        assert_eq!(value(&all, dotted).as_deref(), Some(*other), "{dotted} under {given:?}");
        assert_ne!(key(&all), key(given), "{dotted} = {other}");
    }
}

#[test]
fn what_the_simulator_is_told() {
    let swift = settled(GOOD, &[("transport.congestion", "swift")]);
    let usual = SwiftConfig::with_windows(66_816, 8 * 66_816);
    assert_eq!(swift.transport.congestion, CongestionConfig::Swift(usual));
    let dcqcn = settled(GOOD, &[("transport.congestion", "dcqcn")]).transport.congestion;
    let published = DcqcnConfig::published(Rate::gbps(100));
    assert_eq!(dcqcn, CongestionConfig::Dcqcn(published));
    let recovery = |set: Set<'_>| settled(GOOD, set).transport.recovery;
    let told = recovery(&[
        ("transport.nack_rewind", "message"),
        ("transport.nack_repeat", "true"),
        ("transport.nack_quiet", "9us"),
    ]);
    let expected = GoBackN { rewind: Rewind::Message, repeat: true, quiet: Time::us(9) };
    assert_eq!(told, RecoveryConfig::GoBackN(expected));
    let tcp = recovery(&[
        ("transport.recovery", "tcp"),
        ("transport.dup_acks", "32"),
        ("transport.sack", "true"),
        ("transport.fast_retransmit", "false"),
        ("transport.adaptive_rto", "false"),
        ("transport.min_rto", "7us"),
    ]);
    let expected = Tcp {
        dup_acks: 32,
        fast_retransmit: false,
        sack: true,
        adaptive_rto: false,
        min_rto: Time::us(7),
    };
    assert_eq!(tcp, RecoveryConfig::Tcp(expected));
    let code = recovery(&[
        ("transport.recovery", "coding"),
        ("transport.coding_overhead", "0.05"),
        ("transport.coding_extra", "1"),
    ]);
    assert_eq!(code, RecoveryConfig::Coding(Coding { overhead: 0.05, extra: 1 }));
    let completion = |set: Set<'_>| settled(GOOD, set).completion;
    assert_eq!(completion(&[]), Completion::Received);
    assert_eq!(completion(&[("run.completion", "acknowledged")]), Completion::Acknowledged);
    let switch = settled(GOOD, &[("fabric.switch.mark_control", "true")]).switch;
    assert!(switch.mark_control && !settled(GOOD, &[]).switch.mark_control);
    let mark = |set: Set<'_>| settled(GOOD, set).switch.mark;
    let leaving = [("fabric.switch.mark", "dequeue")];
    assert_eq!([mark(&[]), mark(&leaving)], [MarkAt::Enqueue, MarkAt::Dequeue]);
}

#[test]
fn fixed_thresholds_pause_ports() {
    let pfc = |set: Set<'_>| settled(GOOD, set).switch.pfc;
    assert_eq!(pfc(&[]).unwrap().threshold, None);
    let fixed = pfc(&[("fabric.switch.pfc_threshold", "48KB")]).unwrap();
    assert_eq!(fixed.threshold, Some(48_000));
    let own = pfc(&[
        ("fabric.switch.buffer_kind", "per-port"),
        ("fabric.switch.buffer", "32KB"),
        ("fabric.switch.pfc", "true"),
    ]);
    assert_eq!(own.unwrap().threshold, Some(32_000));
    // Who does not pause may say what he likes.
    let kind = ("fabric.switch.buffer_kind", "per-port");
    assert_eq!(pfc(&[kind, ("fabric.switch.pfc_threshold", "dynamic")]), None);
}

const PER_PORT: [(&str, &str); 2] =
    [("fabric.switch.buffer_kind", "per-port"), ("fabric.switch.buffer", "32KB")];

fn trim(more: Set<'_>) -> Option<TrimConfig> {
    settled(GOOD, &[&PER_PORT[..], more].concat()).switch.trim
}

#[test]
fn switches_trim_for_the_recovery_that_is_made_for_it() {
    for info in RECOVERIES {
        let trims = trim(&[("transport.recovery", info.name)]);
        assert_eq!(trims.is_some(), info.trims, "{}", info.name);
        let told = [("transport.recovery", info.name), ("fabric.switch.trim", "true")];
        assert!(trim(&told).is_some(), "{}", info.name);
        let told = [("transport.recovery", info.name), ("fabric.switch.trim", "false")];
        assert_eq!(trim(&told), None, "{}", info.name);
    }
    let usual = trim(&[("transport.recovery", "trim")]).unwrap();
    let expected = TrimConfig {
        size: Some(64),
        queue: 32_000,
        return_to_sender: false,
        victim: Victim::Either,
    };
    assert_eq!(usual, expected);
    let told = trim(&[
        ("fabric.switch.trim", "true"),
        ("fabric.switch.trim_size", "full"),
        ("fabric.switch.trim_queue", "9KB"),
        ("fabric.switch.trim_return_to_sender", "true"),
        ("fabric.switch.trim_victim", "arriving"),
    ]);
    let (size, queue, victim) = (None, 9_000, Victim::Arriving);
    assert_eq!(told, Some(TrimConfig { size, queue, return_to_sender: true, victim }));
    let tail = [("fabric.switch.trim", "true"), ("fabric.switch.trim_victim", "tail")];
    assert_eq!(trim(&tail).unwrap().victim, Victim::Tail);
    // What trims is not what is settled: another recovery over the same switches leaves it.
    assert_eq!(value(&PER_PORT, "fabric.switch.trim").unwrap(), "auto");
    assert_eq!(settled(GOOD, &PER_PORT).switch.buffer, Buffer::PerPort { bytes: 32_000 });
}

/// Each recovery takes its own options, and refuses those of all others.
#[test]
fn options_belong_to_their_recovery() {
    for info in RECOVERIES {
        for other in RECOVERIES {
            for option in other.options {
                let text = GOOD.replace(
                    "[balance]",
                    &format!(
                        "[transport]\nrecovery = {:?}\n{} = {:?}\n[balance]",
                        info.name, option.key, option.default
                    ),
                );
                if info.name == other.name {
                    let per_port = [("fabric.switch.buffer_kind", "per-port")];
                    expanded(&text, if info.trims { &per_port } else { &[] });
                    continue;
                }
                let expected = format!(
                    "fig.toml: transport.{} (line 12): belongs to recovery = {:?}, not {:?}; \
                     remove it",
                    option.key, other.name, info.name
                );
                assert_eq!(mistake(&text, &[]), expected);
            }
        }
    }
    // A file may serve several: then options wait for their recovery.
    let several = GOOD.replace(
        "[balance]",
        "[transport]\ndup_acks = 6\ncoding_extra = 9\n[sweep]\n\"transport.recovery\" = \
         [\"tcp\", \"coding\", \"selective-repeat\"]\n[balance]",
    );
    let all = expanded(&several, &[]);
    let found = |key| -> Vec<_> {
        all.runs.iter().map(|run| find(&run.experiment, key).unwrap_or_default()).collect()
    };
    assert_eq!(found("transport.dup_acks"), ["6", "", ""]);
    assert_eq!(found("transport.coding_extra"), ["", "9", ""]);
}

#[test]
fn every_recovery_and_congestion_reads_back_with_every_scheme_s_natural_choice() {
    for info in RECOVERIES {
        for congestion in ["dctcp", "dctcp-rate", "dcqcn", "swift", "fixed-rate", "mp-rdma"] {
            let set = [
                PER_PORT[0],
                PER_PORT[1],
                ("transport.recovery", info.name),
                ("transport.congestion", congestion),
            ];
            assert_eq!(settled(GOOD, &set).transport.recovery.name(), info.name);
        }
    }
}

#[test]
fn every_scheme_gets_the_congestion_control_that_it_is_made_for() {
    for info in SCHEMES {
        let named = [("balance.scheme", info.name)];
        assert_eq!(value(&named, "transport.congestion").as_deref(), Some(info.congestion));
        let other = if info.shares { "fixed-rate" } else { "swift" };
        let told = [named[0], ("transport.congestion", other)];
        assert_eq!(value(&told, "transport.congestion").as_deref(), Some(other));
    }
    let windows = [("balance.scheme", "paralet"), ("transport.congestion", "dctcp")];
    assert!(mistake(GOOD, &windows).contains("use dctcp-rate, dcqcn or fixed-rate"));
    let cut = [("balance.scheme", "dnlb"), ("transport.subflows", "2")];
    assert!(mistake(GOOD, &cut).contains("dnlb has queue pairs of its own; leave it at 1"));
    let natural = settled(GOOD, &[("balance.scheme", "mp-rdma")]).transport;
    assert_eq!(natural.recovery, RecoveryConfig::SELECTIVE_REPEAT);
    let (initial_window, max_window) = (66_816, 8 * 66_816);
    let window = MpRdmaConfig { initial_window, max_window, reordering: 32 };
    assert_eq!(natural.congestion, CongestionConfig::MpRdma(window));
}

#[test]
fn numbers_at_the_end_of_a_scheme_s_name_are_options() {
    let named = [("balance.scheme", "subflows-8")];
    let told = [("balance.scheme", "subflows"), ("balance.count", "8")];
    let both = [("balance.scheme", "subflows-8"), ("balance.count", "8")];
    assert_eq!(key(&named), key(&told));
    assert_eq!(key(&named), key(&both));
    assert_eq!(key(&[("balance.scheme", "subflows")]), key(&[("balance.scheme", "subflows-4")]));
    assert_ne!(key(&named), key(&[("balance.scheme", "subflows-9")]));
    assert_eq!(value(&told, "balance.scheme").unwrap(), "subflows-8");
    assert_eq!(value(&named, "balance.count").unwrap(), "8");
    let adaptive = [("balance.scheme", "subflows-adaptive-2")];
    assert_eq!(value(&adaptive, "balance.scheme").unwrap(), "subflows-adaptive-2");
    let sweep = "[sweep]\n\"balance.scheme\" = [\"subflows-2\", \"subflows-4\", \"ecmp\"]\n";
    let all = expanded(&format!("{GOOD}{sweep}"), &[]);
    let labels: Vec<_> = all.runs.iter().map(|run| run.label.as_str()).collect();
    assert_eq!(labels, ["subflows-2", "subflows-4", "ecmp"]);
}

#[test]
fn each_mistake_names_key_and_mend() {
    let ecmp_4 = "balance.scheme (command line): \"ecmp-4\" is not known; did you mean \"ecmp\"?";
    let recoveries: Vec<_> = RECOVERIES.iter().map(|info| info.name).collect();
    let roce = format!(
        "transport.recovery (command line): \"roce\" is not known; use one of natural, {}",
        recoveries.join(", ")
    );
    const FIXED: (&str, &str) = ("transport.congestion", "fixed-rate");
    const SWIFT: (&str, &str) = ("transport.congestion", "swift");
    const DCQCN: (&str, &str) = ("transport.congestion", "dcqcn");
    const TCP: (&str, &str) = ("transport.recovery", "tcp");
    const CODING: (&str, &str) = ("transport.recovery", "coding");
    const TRIM: (&str, &str) = ("transport.recovery", "trim");
    const PORTS: (&str, &str) = ("fabric.switch.buffer_kind", "per-port");
    let cases: &[(Set<'_>, &str)] = &[
        (
            &[FIXED, ("transport.rate", "fast")],
            "transport.rate (command line): \"fast\" is not a rate; write one such as \"400Gbps\", or \
             \"fair\", or \"line\"",
        ),
        (
            &[FIXED, ("transport.rate", "100")],
            "transport.rate (command line): 100 has no unit; write \"100Gbps\", or \"fair\", or \"line\"",
        ),
        (
            &[FIXED, ("transport.rate_coefficient", "0")],
            "transport.rate_coefficient (command line): 0 is out of range; use 0.001 to 100",
        ),
        (
            &[FIXED, ("transport.start_gaps", "-1")],
            "transport.start_gaps (command line): -1 is out of range; use 0 to 1000",
        ),
        (
            &[FIXED, ("transport.gap_jitter", "1.5")],
            "transport.gap_jitter (command line): 1.5 is out of range; use 0 to 1",
        ),
        (
            &[FIXED, ("transport.desynchronise", "true")],
            "transport.desynchronise (command line): is gone: after a NACK the next gap is always random; \
             remove it",
        ),
        (
            &[SWIFT, ("transport.swift_scaling_min", "200")],
            "transport.swift_scaling_max: is not above swift_scaling_min; raise it or lower that",
        ),
        (
            &[SWIFT, ("transport.swift_scaling_min", "5"), ("transport.swift_scaling_max", "5")],
            "transport.swift_scaling_max (command line): is not above swift_scaling_min; raise it or \
             lower that",
        ),
        (
            &[SWIFT, ("transport.swift_max_window", "1KB")],
            "transport.swift_max_window (command line): is below swift_initial_window; raise it or \
             lower that",
        ),
        (
            &[SWIFT, ("transport.swift_reset_after", "0")],
            "transport.swift_reset_after (command line): 0 is out of range; use 1 to 1000",
        ),
        (
            &[SWIFT, ("transport.swift_min_window", "0B")],
            "transport.swift_min_window (command line): \"0B\" is out of range; use \"1B\" to \"1GB\"",
        ),
        (
            &[SWIFT, ("transport.swift_decrease", "2")],
            "transport.swift_decrease (command line): 2 is out of range; use 0 to 1",
        ),
        (
            &[SWIFT, ("transport.swift_base_target", "20")],
            "transport.swift_base_target (command line): time \"20\" has no unit; write \"20ns\", or \
             \"auto\"",
        ),
        (
            &[DCQCN, ("transport.dcqcn_byte_counter", "1500B")],
            "transport.dcqcn_byte_counter (command line): \"1500B\" is out of range; use \"65536B\" to \
             \"1TB\", or \"none\"",
        ),
        (
            &[DCQCN, ("transport.dcqcn_increase_timer", "0us")],
            "transport.dcqcn_increase_timer (command line): \"0ns\" is out of range; use \"1ns\" to \
             \"1000s\"",
        ),
        (&[("transport.recovery", "roce")], &roce),
        (
            &[TCP, ("transport.dup_acks", "0")],
            "transport.dup_acks (command line): 0 is out of range; use 1 to 1000000",
        ),
        (
            &[TCP, ("transport.sack", "maybe")],
            "transport.sack (command line): unknown value \"maybe\"; use one of true, false",
        ),
        (
            &[TCP, ("transport.min_rto", "0s")],
            "transport.min_rto (command line): 0s is no time to wait; use at least 1ns",
        ),
        (
            &[CODING, ("transport.coding_overhead", "-0.1")],
            "transport.coding_overhead (command line): -0.1 is out of range; use 0 to 10",
        ),
        (
            &[CODING, ("transport.coding_extra", "some")],
            "transport.coding_extra (command line): \"some\" is not a whole number; write one such as 0",
        ),
        (
            &[("transport.nack_rewind", "start")],
            "transport.nack_rewind (command line): unknown value \"start\"; use one of gap, message",
        ),
        (
            &[("transport.nack_quiet", "10")],
            "transport.nack_quiet (command line): time \"10\" has no unit; write \"10ns\"",
        ),
        (
            &[("transport.subflows", "0")],
            "transport.subflows (command line): 0 is out of range; use 1 to 65536, or \"auto\"",
        ),
        (
            &[("transport.subflows", "many")],
            "transport.subflows (command line): \"many\" is text, not a whole number; write one such as \
             2, or \"auto\"",
        ),
        (
            &[("fabric.switch.trim", "true")],
            "fabric.switch.trim (command line): needs per-port buffers; set buffer_kind = \"per-port\"",
        ),
        (
            &[PORTS, ("fabric.switch.trim", "true"), ("fabric.switch.pfc", "true")],
            "fabric.switch.trim (command line): never happens under PFC; set pfc = false",
        ),
        (
            &[TRIM],
            "transport.recovery (command line): trim has switches trim, which needs per-port buffers; \
             set buffer_kind = \"per-port\"",
        ),
        (
            &[TRIM, PORTS, ("fabric.switch.pfc", "true")],
            "transport.recovery (command line): trim has switches trim, which never happens under PFC; \
             set pfc = false",
        ),
        (
            &[PORTS, ("fabric.switch.trim", "yes")],
            "fabric.switch.trim (command line): \"yes\" is text, not a boolean; write one such as true, \
             or \"auto\"",
        ),
        (
            &[PORTS, ("fabric.switch.trim_size", "0B")],
            "fabric.switch.trim_size (command line): \"0B\" is out of range; use \"1B\" to \"65535B\", or \
             \"full\"",
        ),
        (
            &[PORTS, ("fabric.switch.trim_victim", "head")],
            "fabric.switch.trim_victim (command line): \"head\" is not known; use one of either, \
             arriving, tail",
        ),
        (
            &[PORTS, ("fabric.switch.trim_queue", "63B")],
            "fabric.switch.trim_queue (command line): holds no trimmed packet; use trim_size, 64 bytes, or \
             more",
        ),
        (
            &[("fabric.switch.pfc_threshold", "1")],
            "fabric.switch.pfc_threshold (command line): 1 has no unit; write \"1B\", or \"dynamic\"",
        ),
        (
            &[("run.completion", "sent")],
            "run.completion (command line): \"sent\" is not known; use one of received, acknowledged",
        ),
        (
            &[("balance.scheme", "subflows-8"), ("balance.count", "4")],
            "balance.count (command line): contradicts the name \"subflows-8\"; remove one of them",
        ),
        (
            &[("balance.scheme", "subflows-0")],
            "balance.scheme (command line): \"subflows-0\": 0 is out of range; use 1 to 1024",
        ),
        (
            &[("balance.scheme", "subflows-N")],
            "balance.scheme (command line): \"subflows-N\": N stands for a number; write one such as \"subflows-8\"",
        ),
        (&[("balance.scheme", "ecmp-4")], ecmp_4),
        (
            &[("balance.scheme", "subflows"), ("balance.count", "0")],
            "balance.count (command line): 0 is out of range; use 1 to 1024",
        ),
    ];
    let mut wrong = Vec::new();
    for (set, expected) in cases {
        let (got, expected) = (mistake(GOOD, set), format!("fig.toml: {expected}"));
        assert!(!got.contains('\n'));
        if got != expected {
            wrong.push(format!("for {set:?}\n  got  {got}\n  want {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
