//! One case on one core: packet-hops per second, and the memory that it took.

use crate::cases::Case;
use crate::json;
use crate::machine::{Watch, median, peak_memory, remark_on};
use crate::stage::Stage;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use weft_sim::{RunConfig, Simulation, Totals};

/// A case repeats at least this often, however long it takes: all cases together, scaling
/// included, are to take some three minutes.
const LEAST_RUNS: usize = 2;

/// The heading of the rows.
pub(crate) fn heading() -> String {
    format!(
        "{:<26} {:>9} {:>8} {:>9} {:>9} {:>8} {:>9}",
        "case", "M hops/s", "ns/hop", "hops (M)", "set-up ms", "peak MB", "budget MB"
    )
}

/// What a case gave.
pub(crate) struct Speed {
    case: &'static Case,
    stage: Stage,
    totals: Totals,
    /// Seconds of the simulation loop, one for each repetition, in order.
    loop_s: Vec<f64>,
    /// Seconds of setting the simulation up, likewise.
    setup_s: Vec<f64>,
    peak_bytes: u64,
    /// Cores that others used.
    others: f64,
}

impl Speed {
    /// Repeats `case` until it has run for `seconds`.
    pub(crate) fn measure(case: &'static Case, seconds: f64) -> Speed {
        let stage = Stage::new(case);
        let config = stage.config(case);
        let watch = Watch::start();
        let (mut loop_s, mut setup_s) = (Vec::new(), Vec::new());
        let totals = loop {
            let (totals, setup, run) = run_once(&config);
            setup_s.push(setup);
            loop_s.push(run);
            if loop_s.iter().sum::<f64>() >= seconds && loop_s.len() >= LEAST_RUNS {
                break totals;
            }
        };
        let (peak_bytes, others) = (peak_memory(), watch.others());
        let least_hops = stage.least_hops();
        assert!(
            totals.packet_hops >= least_hops
                && (totals.packet_hops == least_hops
                    || totals.retransmits + totals.drops > 0
                    || !stage.answers_each),
            "{} packet-hops, but pencil and paper say {least_hops}",
            totals.packet_hops
        );
        Speed { case, stage, totals, loop_s, setup_s, peak_bytes, others }
    }

    fn hops_per_s(&self) -> f64 {
        self.totals.packet_hops as f64 / median(self.loop_s.iter().copied())
    }

    fn setup_s(&self) -> f64 {
        median(self.setup_s.iter().copied())
    }

    /// A row under [`heading`]. Set-up is that of fabric and simulation, not of the workload.
    pub(crate) fn row(&self) -> String {
        let budget = self.stage.memory_budget();
        format!(
            "{:<26} {:>9.2} {:>8.1} {:>9.2} {:>9.2} {:>8.1} {:>9.1} {:<7}  {}{}",
            self.case.name,
            self.hops_per_s() / 1e6,
            1e9 / self.hops_per_s(),
            self.totals.packet_hops as f64 / 1e6,
            (self.stage.fabric_s + self.setup_s()) * 1e3,
            self.peak_bytes as f64 / 1e6,
            budget as f64 / 1e6,
            if self.peak_bytes <= budget { "within" } else { "over" },
            self.case.about,
            remark_on(self.others),
        )
    }

    pub(crate) fn json(&self) -> String {
        let Totals { packet_hops, drops, retransmits, events, cct, .. } = self.totals;
        json::object(&[
            ("name", json::text(self.case.name)),
            ("hops_per_s", format!("{:.0}", self.hops_per_s())),
            ("packet_hops", packet_hops.to_string()),
            ("least_hops", self.stage.least_hops().to_string()),
            ("drops", drops.to_string()),
            ("retransmits", retransmits.to_string()),
            ("events", events.to_string()),
            ("cct_ps", cct.0.to_string()),
            ("fabric_s", json::seconds(self.stage.fabric_s)),
            ("build_s", json::seconds(self.stage.build_s)),
            ("setup_s", json::seconds(self.setup_s())),
            ("peak_bytes", self.peak_bytes.to_string()),
            ("budget_bytes", self.stage.memory_budget().to_string()),
            ("dependencies", self.stage.workload.dependency_count().to_string()),
            ("least_in_flight", self.stage.least_in_flight().to_string()),
            ("others_cores", format!("{:.2}", self.others)),
            ("loop_s", json::all_seconds(&self.loop_s)),
        ])
    }
}

/// One run: what it counted, and the seconds of its set-up and of its loop.
fn run_once(config: &RunConfig) -> (Totals, f64, f64) {
    let start = Instant::now();
    let simulation = Simulation::new(config);
    let setup = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let outcome = simulation.run(&AtomicBool::new(false)).expect("the cases finish");
    (outcome.totals, setup, start.elapsed().as_secs_f64())
}
