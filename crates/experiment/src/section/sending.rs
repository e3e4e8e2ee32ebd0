//! The congestion controls of `[transport]`, each with its keys; those of rates without a window are
//! in `rates`.

mod rates;

use super::transport::Context;
use crate::error::ExperimentError;
use crate::kind::{Flag, Integer, Number, Or, Size, Span, Speed, WindowSize, WindowSizes};
use crate::pace::{Base, PaceConfig};
use crate::reader::{Choice, Reader};
use weft_transport::{CongestionConfig, DctcpConfig, MpRdmaConfig, SwiftConfig};

type Result<T> = std::result::Result<T, ExperimentError>;

/// How much and how fast queue pairs send.
#[derive(Clone, Debug)]
pub(crate) struct Sending {
    pub(crate) congestion: CongestionConfig,
    pub(crate) pace: PaceConfig,
}

impl From<CongestionConfig> for Sending {
    fn from(congestion: CongestionConfig) -> Sending {
        Sending { congestion, pace: PaceConfig::NONE }
    }
}

/// All congestion controls.
pub(crate) const CONGESTION: &[Choice<Context, Sending>] = &[
    Choice {
        name: "dctcp",
        summary: "window cut in proportion to the share of marked bytes; starts at one BDP",
        source: "Alizadeh et al. (SIGCOMM 2010); Ethereal (2024, 2025)",
        decode: dctcp,
    },
    Choice {
        name: "dctcp-rate",
        summary: "DCTCP as a rate without a window; starts at line rate",
        source: "the code behind Ethereal (2025)",
        decode: rates::dctcp_rate,
    },
    Choice {
        name: "dcqcn",
        summary: "rate that notifications cut, and timer and byte counter raise; starts at line rate",
        source: "Zhu et al. (SIGCOMM 2015)",
        decode: rates::dcqcn,
    },
    Choice {
        name: "fixed-rate",
        summary: "always the same rate, whatever happens",
        source: "McClure et al. (2025)",
        decode: fixed_rate,
    },
    Choice {
        name: "swift",
        summary: "window that follows the round-trip time towards a target; paced below a packet",
        source: "Kumar et al. (SIGCOMM 2020); McClure et al. (2025)",
        decode: swift,
    },
    Choice {
        name: "mp-rdma",
        summary: "window that grows and shrinks with every acknowledgement, late ones too",
        source: "MP-RDMA (Lu et al., NSDI 2018)",
        decode: mp_rdma,
    },
];

const SHARE: Number = Number { min: 0.0, max: 1.0 };

fn dctcp(r: &mut Reader<'_>, context: &Context) -> Result<Sending> {
    let gain =
        r.get("dctcp_gain", SHARE, Some(0.0625), "weight of the newest window in the average")?;
    let initial_alpha =
        r.get("dctcp_initial_alpha", SHARE, Some(0.0), "share of marked bytes assumed at first")?;
    let windows = Edges {
        initial: (
            "dctcp_initial_window",
            "window at the start and after a time-out; a size, or times the BDP",
        ),
        most: "dctcp_max_window",
    };
    let (initial_window, max_window) = windows.read(r, context)?;
    let config = DctcpConfig { gain, initial_alpha, initial_window, max_window };
    Ok(CongestionConfig::Dctcp(config).into())
}

/// The keys of the first and the largest window.
struct Edges {
    initial: (&'static str, &'static str),
    most: &'static str,
}

impl Edges {
    fn read(&self, r: &mut Reader<'_>, context: &Context) -> Result<(u64, u64)> {
        let (key, meaning) = self.initial;
        let first = r.get(key, WindowSizes, Some(WindowSize::Bdp(1.0)), meaning)?;
        let most = r.get(
            self.most,
            WindowSizes,
            Some(WindowSize::Bdp(8.0)),
            "the window never grows beyond; a size, or times the BDP",
        )?;
        let (initial, max) = (first.bytes(context.bdp), most.bytes(context.bdp));
        if max < initial {
            return Err(match r.has(self.most) {
                true => r.wrong(self.most, format!("is below {key}; raise it or lower that")),
                false => r.wrong(key, format!("is above {}; lower it or raise that", self.most)),
            });
        }
        Ok((initial, max))
    }
}

fn fixed_rate(r: &mut Reader<'_>, _: &Context) -> Result<Sending> {
    let base = r.get(
        "rate",
        Or(Or(Speed, "fair"), "line"),
        Some(None),
        "of a flow, headers included; \"line\": the NIC's own; \"fair\": its share of the fabric, \
         computed from topology and workload",
    )?;
    let base = match base {
        None => Base::Line,
        Some(None) => Base::Fair,
        Some(Some(rate)) => Base::Fixed(rate),
    };
    let coefficient = r.get(
        "rate_coefficient",
        Number { min: 0.001, max: 100.0 },
        Some(1.0),
        "flows send at this times that rate",
    )?;
    let start_gaps = r.get(
        "start_gaps",
        Number { min: 0.0, max: 1_000.0 },
        Some(0.0),
        "every flow starts later by up to so many of its packet gaps, at random",
    )?;
    let gap_jitter = r.get(
        "gap_jitter",
        SHARE,
        Some(0.0),
        "every gap between packets is longer by up to this share of it, at random",
    )?;
    let desynchronise = r.get(
        "desynchronise",
        Flag,
        Some(true),
        "after a NACK the next gap is random, so that senders that lost together part",
    )?;
    let pace = PaceConfig {
        is_paced: true,
        base,
        coefficient,
        start_gaps,
        gap_jitter,
        desynchronise,
        ..PaceConfig::NONE
    };
    Ok(Sending { congestion: CongestionConfig::FixedRate { rate: None }, pace })
}

fn swift(r: &mut Reader<'_>, context: &Context) -> Result<Sending> {
    let usual = SwiftConfig::with_windows(1, 1);
    let base_target = r.get(
        "swift_base_target",
        Span::ANY,
        Some(usual.base_target),
        "round trip to aim at before the other terms are added",
    )?;
    let per_hop =
        r.get("swift_per_hop", Span::ANY, Some(usual.per_hop), "added for every link of the path")?;
    let scaling_range = r.get(
        "swift_scaling_range",
        Span::ANY,
        Some(usual.scaling_range),
        "the most that is added for small windows",
    )?;
    let packets = Number { min: 0.001, max: 1e6 };
    let scaling_min = r.get(
        "swift_scaling_min",
        packets,
        Some(usual.scaling_min),
        "window in packets at which all of that is added",
    )?;
    let scaling_max = r.get(
        "swift_scaling_max",
        packets,
        Some(usual.scaling_max),
        "window in packets from which on nothing is added",
    )?;
    if scaling_max <= scaling_min {
        let what = "is not above swift_scaling_min; raise it or lower that";
        return Err(r.wrong("swift_scaling_max", what));
    }
    let increase =
        r.get("swift_increase", packets, Some(usual.increase), "packets more a round trip")?;
    let decrease = r.get(
        "swift_decrease",
        SHARE,
        Some(usual.decrease),
        "how much of the relative excess over the target is cut",
    )?;
    let max_cut = r.get(
        "swift_max_cut",
        SHARE,
        Some(usual.max_cut),
        "the largest share of the window that one cut takes",
    )?;
    let reset_after = r.get(
        "swift_reset_after",
        Integer { min: 1, max: 1_000 },
        Some(usual.reset_after),
        "time-outs in a row after which the window is at its least",
    )?;
    let min_window = r.get(
        "swift_min_window",
        Size { min: 1, max: 1_000_000_000 },
        Some(usual.min_window),
        "the window never falls below",
    )?;
    let windows = Edges {
        initial: ("swift_initial_window", "window at the start; a size, or times the BDP"),
        most: "swift_max_window",
    };
    let (initial_window, max_window) = windows.read(r, context)?;
    Ok(CongestionConfig::Swift(SwiftConfig {
        base_target,
        per_hop,
        scaling_range,
        scaling_min,
        scaling_max,
        increase,
        decrease,
        max_cut,
        reset_after,
        min_window,
        initial_window,
        max_window,
    })
    .into())
}

fn mp_rdma(r: &mut Reader<'_>, context: &Context) -> Result<Sending> {
    let reordering = r.get(
        "mp_rdma_reordering",
        Integer { min: 1, max: 1_000_000 },
        Some(32),
        "packets behind the latest from which on a path is too slow and is left",
    )?;
    let windows = Edges {
        initial: ("mp_rdma_initial_window", "window at the start; a size, or times the BDP"),
        most: "mp_rdma_max_window",
    };
    let (initial_window, max_window) = windows.read(r, context)?;
    let config = MpRdmaConfig { initial_window, max_window, reordering };
    Ok(CongestionConfig::MpRdma(config).into())
}
