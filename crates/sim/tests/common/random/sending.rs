//! Random ways to send: congestion control, loss recovery, pacing, sub-flows.

use super::super::dctcp;
use weft_sim::{Pacing, Rates};
use weft_transport::{
    Coding, CongestionConfig, DcqcnConfig, DctcpRateConfig, FixedRateConfig, GoBackN, MpRdmaConfig,
    PathScale, RecoveryConfig, Rewind, SwiftConfig, Tcp, TransportConfig, unfit,
};
use weft_trial::prelude::*;
use weft_units::{Rate, Time};

pub fn transport() -> impl Strategy<Value = TransportConfig> {
    let rto = (prop_oneof![20u64..300, Just(1000)], any::<bool>());
    (congestion(), recovery(), rto).prop_map(|(congestion, recovery, (rto, backs_off))| {
        let recovery = match unfit(&congestion, &recovery) {
            Some(_) => RecoveryConfig::read("uet", &[]).unwrap(),
            None => recovery,
        };
        // Time-outs that double.
        let is_tcp = matches!(recovery, RecoveryConfig::Tcp(_));
        let rto = Time::us(if is_tcp || backs_off { rto.min(100) } else { rto });
        TransportConfig { congestion, recovery, rto, backs_off }
    })
}

/// All that are registered, and some that are told otherwise.
fn congestion() -> impl Strategy<Value = CongestionConfig> {
    let path = PathScale {
        bdp: 20_000,
        line: Rate::gbps(100),
        round_trip: Time::us(5),
        oversubscribed: false,
    };
    prop_oneof![
        3 => any_of(CongestionConfig::all(&path)),
        3 => (1000u64..100_000, 1000u64..300_000).prop_map(|(first, max)| dctcp(first, max)),
        1 => Just(CongestionConfig::FixedRate(FixedRateConfig::default())),
        1 => prop::sample::select(&[3u64, 10, 50])
            .prop_map(|gbps| CongestionConfig::FixedRate(FixedRateConfig { rate: Some(Rate::gbps(gbps)) })),
        1 => (1000u64..50_000, 1000u64..100_000, 1u32..40).prop_map(
            |(initial_window, max_window, reordering)| {
                CongestionConfig::MpRdma(MpRdmaConfig { initial_window, max_window, reordering })
            },
        ),
        1 => (1u64..40, 1u64..20).prop_map(|(least, increase)| {
            CongestionConfig::DctcpRate(DctcpRateConfig {
                gain: 0.0625,
                initial_alpha: 1.0,
                line: Rate::gbps(100),
                least: Rate::gbps(least),
                increase: Rate::gbps(increase),
            })
        }),
        1 => (0u64..50, 1u64..60, any::<bool>(), 1u64..20).prop_map(|(cnp, timer, nic, steps)| {
            CongestionConfig::Dcqcn(DcqcnConfig {
                cnp_interval: Time::us(cnp),
                increase_timer: Time::us(timer),
                byte_counter: (!nic).then_some(70_000),
                increase: Rate::gbps(steps),
                least: Rate::gbps(1),
                clamp: !nic,
                gaps: nic,
                ..DcqcnConfig::published(Rate::gbps(100))
            })
        }),
        1 => (500u64..50_000, 1000u64..100_000, 1u64..60).prop_map(|(first, max, target)| {
            let base_target = Time::us(target);
            CongestionConfig::Swift(SwiftConfig {
                base_target,
                // A closed window is not to look like a stall.
                min_window: 500,
                ..SwiftConfig::with_windows(first, max)
            })
        }),
    ]
}

/// All that are registered, and some that are told otherwise.
pub fn recovery() -> impl Strategy<Value = RecoveryConfig> {
    prop_oneof![
        3 => any_of(RecoveryConfig::all()),
        2 => go_back_n(),
        2 => tcp(),
        1 => (0.0f64..0.3, 0u32..30)
            .prop_map(|(overhead, extra)| RecoveryConfig::Coding(Coding { overhead, extra })),
    ]
}

fn go_back_n() -> impl Strategy<Value = RecoveryConfig> {
    let options = (any::<bool>(), any::<bool>(), prop_oneof![Just(0), 1u64..40]);
    let any_kind = options.prop_map(|(message, repeat, quiet)| {
        let rewind = if message { Rewind::Message } else { Rewind::Gap };
        RecoveryConfig::GoBackN(GoBackN { rewind, repeat, quiet: Time::us(quiet) })
    });
    prop_oneof![Just(RecoveryConfig::GO_BACK_N), any_kind]
}

fn tcp() -> impl Strategy<Value = RecoveryConfig> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (1u32..8, flags, 10u64..100).prop_map(
        |(dup_acks, (fast_retransmit, sack, adaptive_rto), min_rto)| {
            let min_rto = Time::us(min_rto);
            RecoveryConfig::Tcp(Tcp { dup_acks, fast_retransmit, sack, adaptive_rto, min_rto })
        },
    )
}

/// Random numbers for pacing; how many messages there are is not known yet.
#[derive(Clone, Debug)]
pub struct PacingChoice {
    /// Gb/s, for the messages in turn; none: no rates of their own.
    rates: Vec<u64>,
    pacing: Pacing,
}

impl PacingChoice {
    /// For a run of so many messages.
    pub fn config(&self, messages: usize) -> Pacing {
        let rates = self.rates.iter().cycle().map(|gbps| Rate::gbps(*gbps));
        let rates = match self.rates.is_empty() {
            true => Rates::Line,
            false => Rates::Each(rates.take(messages).collect()),
        };
        Pacing { rates, ..self.pacing.clone() }
    }
}

pub fn pacing() -> impl Strategy<Value = PacingChoice> {
    let rates = prop_oneof![
        1 => Just(Vec::new()),
        1 => prop::collection::vec(prop::sample::select(&[1u64, 7, 30, 100]), 1..4),
    ];
    let share = |most: f64| prop_oneof![Just(0.0), 0.0..most];
    let subflows = prop_oneof![2 => Just(1u32), 1 => 2u32..13];
    (rates, share(3.0), share(1.0), any::<bool>(), subflows).prop_map(
        |(rates, start_gaps, gap_jitter, desynchronise, subflows)| {
            let pacing =
                Pacing { rates: Rates::Line, start_gaps, gap_jitter, desynchronise, subflows };
            PacingChoice { rates, pacing }
        },
    )
}
