//! One run: builds it, simulates, and turns the outcome into columns.

use crate::background;
use crate::bound::bound;
use crate::clock::Moment;
use crate::collectives;
use crate::columns::{Columns, Row};
use crate::experiment::Resolved;
use crate::fidelity::{Fidelity, Source};
use crate::hints;
use crate::measure;
use crate::memory::{self, Need};
use crate::progress::Progress;
use crate::section::run::patience;
use crate::segments;
use crate::threads::Threads;
use crate::time_out;
use crate::traffic::Traffic;
use std::sync::atomic::AtomicBool;
use weft_balance::enforce::{Enforce, HashFunction};
use weft_config::{ExperimentError, Origin};
use weft_fabric::{Failures, Node};
use weft_sim::{Halt, MOST_SAMPLES, Outcome, ProbeConfig, RunConfig, Simulation, Work, least_work};
use weft_transport::{MOST_BACKED_OFF, TransportConfig};
use weft_units::{PortId, Time};

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The experiment is wrong.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// Nothing made progress any more: since when, who waits for what, which key would help.
    #[error("the run stalled: {0}")]
    Stalled(String),
    /// Somebody asked for it.
    #[error("cancelled")]
    Cancelled,
}

/// What one run found.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// One value for each result column; the same for the same experiment and seed.
    pub row: Row,
    /// How long it took here: differs from run to run.
    pub timing: Timing,
    /// One row a message.
    pub flows: Columns,
    /// One row a collective that ranks took part in.
    pub collectives: Columns,
    /// One row a node of a rank, with `probe.timeline`.
    pub nodes: Columns,
    /// One row a message between ranks over the fabric, with `probe.timeline`.
    pub messages: Columns,
    /// One row a port.
    pub links: Columns,
    /// Sampled queues and buffers.
    pub series: Series,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Wall-clock times, and the engine's own measure of work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing {
    /// The simulation loop, in seconds.
    pub wall_s: f64,
    /// Everything before it: fabric, workload, bound, set-up; in seconds.
    pub build_s: f64,
    /// Events that the engine handled.
    pub events: u64,
    /// Threads that the simulation was given.
    pub threads: u32,
}

/// Samples over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// When the samples were taken, in seconds.
    pub time_s: Vec<f64>,
    /// Of what, one for each probe.
    pub names: Vec<String>,
    /// `"port"`, `"switch"`, `"sent"` or `"goodput"`, one for each probe.
    pub kinds: Vec<&'static str>,
    /// Bytes, one list for each probe; of `"sent"` and `"goodput"` those of the interval that ends at that
    /// time.
    pub bytes: Vec<Vec<u64>>,
}

/// Runs `experiment` under `seed` until the end, or until `cancel` is set. All but
/// [`RunResult::timing`] is the same for any `threads`.
///
/// # Errors
/// If the workload cannot be built, or the run stalls or is cancelled.
pub fn run(
    experiment: &Resolved,
    seed: u64,
    threads: Threads,
    cancel: &AtomicBool,
) -> Result<RunResult, RunError> {
    run_watched(experiment, seed, threads, cancel, None)
}

/// What `experiment` takes at least under `seed`; it is not run.
///
/// # Errors
/// If the workload cannot be built.
pub fn work(experiment: &Resolved, seed: u64) -> Result<Work, ExperimentError> {
    let traffic = experiment.traffic(seed).map_err(|error| error.in_source("experiment"))?;
    let failures = failures(experiment, seed)?;
    Ok(least_work(&experiment.run_config(&traffic, failures, seed), u64::MAX))
}

/// The time that `experiment` takes at least under `seed`, whatever the scheme: its `bound_s`.
///
/// # Errors
/// If the workload cannot be built.
pub fn least_time(experiment: &Resolved, seed: u64) -> Result<Time, ExperimentError> {
    let traffic = experiment.traffic(seed).map_err(|error| error.in_source("experiment"))?;
    let failures = failures(experiment, seed)?;
    Ok(bound(&experiment.fabric, &failures, &traffic, &experiment.packet))
}

fn failures(experiment: &Resolved, seed: u64) -> Result<Failures, ExperimentError> {
    Failures::new(&experiment.fabric, &experiment.failures, seed)
        .map_err(|error| ExperimentError::new("failures", Origin::Unknown, error.0))
}

/// As [`run`]; what is known of it while it goes on is told to `progress`.
///
/// # Errors
/// As [`run`].
pub fn run_watched(
    experiment: &Resolved,
    seed: u64,
    threads: Threads,
    cancel: &AtomicBool,
    progress: Option<&Progress>,
) -> Result<RunResult, RunError> {
    let started = Moment::now();
    let fabric = &experiment.fabric;
    let traffic = experiment.traffic(seed).map_err(|error| error.in_source("experiment"))?;
    let failures = failures(experiment, seed)?;
    let bound = bound(fabric, &failures, &traffic, &experiment.packet);
    if bound > LONGEST_RUN {
        let what = format!("the run takes {} s at least; shorten it", bound.as_secs_f64());
        return Err(ExperimentError::new("workload", Origin::Unknown, what).into());
    }
    samples(&experiment.probes, bound)?;
    hashes_addresses(experiment)?;
    let beside = match &experiment.background {
        Some(section) => Some(background::beside(experiment, section, &traffic, bound, seed)?),
        None => None,
    };
    let all = beside.as_ref().map_or(&traffic, |beside| &beside.traffic);
    let config = experiment.config_beside(all, &traffic, failures, seed);
    let threads = threads.of(&config);
    let looping;
    let halted = |halt| halted(experiment, config.transport.rto, halt);
    let tried = Moment::now();
    let by_rates = match experiment.fidelity {
        Fidelity::Packet => None,
        // Rates know nothing of what switches do.
        Fidelity::Fast if experiment.workload.in_network().is_some() => None,
        Fidelity::Fast if experiment.probes.interval.is_some() => None,
        Fidelity::Fast => weft_fluid::run_alone(&config, bound, cancel).map_err(halted)?,
        Fidelity::Fluid => Some(weft_fluid::run(&config, cancel).map_err(halted)?),
    };
    let (source, mut outcome) = match by_rates {
        Some(outcome) => {
            looping = tried;
            (Source::Rates, outcome)
        }
        None => {
            let simulation = Simulation::on_threads(&config, threads);
            if let Some(progress) = progress {
                let work = least_work(&config, u64::MAX);
                progress.begin(work, all.volume().bytes, simulation.accepted());
            }
            looping = match experiment.fidelity {
                Fidelity::Packet => Moment::now(),
                _ => tried,
            };
            (Source::Packets, simulation.run(cancel).map_err(halted)?)
        }
    };
    let timing = Timing {
        wall_s: looping.seconds_until(Moment::now()),
        build_s: started.seconds_until(looping),
        events: outcome.totals.events,
        threads,
    };
    let others = beside.as_ref().map(|beside| beside.part(&mut outcome));
    let hints = hints::of_result(experiment, config.transport.rto, &outcome);
    let said = experiment.warnings.iter().cloned();
    let unbalanced = segments::warnings(&experiment.balance.scheme, fabric, &traffic);
    let beforehand = said.chain(hints::of_fabric(experiment, fabric));
    let warnings = beforehand.chain(remarks(&traffic)).chain(unbalanced).chain(hints).collect();
    let done = collectives::done(&traffic, &outcome);
    let mut row = measure::row(experiment, &traffic, &config, (&outcome, source), &done, bound);
    let mut warnings: Vec<String> = warnings;
    if let Some(others) = others {
        others.columns(&mut row);
        warnings.extend(others.warning(measure::end(experiment.completion, &traffic, &outcome)));
    }
    Ok(RunResult {
        row,
        timing,
        flows: source.known(measure::flows(experiment.completion, &traffic, &outcome)),
        collectives: collectives::collectives(&traffic, &done),
        nodes: collectives::nodes(experiment.timeline, &traffic, &outcome),
        messages: collectives::messages(experiment.timeline, &outcome),
        links: source.known(measure::links(fabric, &outcome)),
        series: series(experiment, source, outcome),
        warnings,
    })
}

/// Refuses hosts that find out ports by their addresses, under a hash that looks at none.
fn hashes_addresses(experiment: &Resolved) -> Result<(), ExperimentError> {
    let finds = experiment.balance.scheme.enforce() == Some(Enforce::Discovered);
    if !finds || experiment.switch.hash.is_some() {
        return Ok(());
    }
    let known = HashFunction::NAMED.map(|(name, _)| name).join(", ");
    let what = format!(
        "balance.enforce = \"discovered\" is simulated over switches that hash addresses and ports; \
         use one of {known}"
    );
    Err(ExperimentError::new("fabric.switch.hash", Origin::Unknown, what))
}

/// Refuses probes that would take more memory than there is, as far as the bound tells.
fn samples(probes: &ProbeConfig, bound: Time) -> Result<(), ExperimentError> {
    let Some(interval) = probes.interval else { return Ok(()) };
    let count = (bound.0 / interval.0).saturating_mul(probes.series() as u64);
    if count > MOST_SAMPLES as u64 {
        let what = format!("more than {MOST_SAMPLES} samples of queues (at least {count})");
        return Err(too_many_samples(&what));
    }
    Need::of("probe.interval", count, "samples", memory::SAMPLE).check().map(drop)
}

fn too_many_samples(how_many: &str) -> ExperimentError {
    let what = format!("leads to {how_many}; sample less often, or fewer ports");
    ExperimentError::new("probe.interval", Origin::Unknown, what)
}

/// What an early end means to who asked for the run.
fn halted(experiment: &Resolved, rto: Time, halt: Halt) -> RunError {
    match halt {
        Halt::Cancelled => RunError::Cancelled,
        Halt::Stalled(stall) => {
            RunError::Stalled(format!("{stall}; {}", hints::of_stall(experiment, rto, &stall)))
        }
        Halt::TooManySamples => too_many_samples(&halt.to_string()).into(),
    }
}

/// Far from where picoseconds in 64 bits end, so that nothing wraps before a run ends.
const LONGEST_RUN: Time = Time::secs(4_000_000);

/// What was left out of traces, or taken otherwise than written.
fn remarks(traffic: &Traffic) -> Vec<String> {
    let jobs = traffic.ranks.iter().flat_map(|ranks| &ranks.jobs);
    let remarks = jobs.flat_map(|job| {
        let trace = job.trace();
        trace.remarks.iter().map(|remark| format!("{}: {}", trace.name, remark.what))
    });
    remarks.collect()
}

impl Resolved {
    /// Loss recovery and congestion control for `traffic`, with the time-out that suits both.
    pub fn transport_for(&self, traffic: &Traffic, failures: &Failures) -> TransportConfig {
        self.transport.with(time_out::suited(self, traffic, failures))
    }

    /// This experiment over `traffic`, as the simulator takes it.
    pub fn run_config<'a>(
        &'a self,
        traffic: &'a Traffic,
        failures: Failures,
        seed: u64,
    ) -> RunConfig<'a> {
        self.config_beside(traffic, traffic, failures, seed)
    }

    /// The same, where only `alone` is the workload, whose transport all have.
    fn config_beside<'a>(
        &'a self,
        traffic: &'a Traffic,
        alone: &Traffic,
        failures: Failures,
        seed: u64,
    ) -> RunConfig<'a> {
        let transport = self.transport_for(alone, &failures);
        let growth = if transport.backs_off { MOST_BACKED_OFF } else { 1 };
        let stall_after = self.stall_after.unwrap_or_else(|| patience(transport.rto, growth));
        let pacing = self.pace.pacing(&self.fabric, &traffic.workload, &self.packet, &self.switch);
        RunConfig {
            fabric: &self.fabric,
            workload: &traffic.workload,
            job: traffic.job_config(self.completion),
            switch: self.switch,
            packet: self.packet,
            service: self.service,
            transport,
            pacing,
            balance: self.balance.clone(),
            failures,
            probes: self.probes.clone(),
            seed,
            stall_after,
            stall_packets: self.stall_packets,
            force_queues: false,
            least_in_window: RunConfig::LEAST_IN_WINDOW,
            audit: false,
        }
    }
}

/// The probes' samples with their names: the ports, the switches, what ports sent, goodput.
fn series(experiment: &Resolved, source: Source, outcome: Outcome) -> Series {
    let probes = &experiment.probes;
    let Some(interval) = probes.interval else { return Series::default() };
    if source == Source::Rates {
        return Series::default();
    }
    let fabric = &experiment.fabric;
    let ports = |all: &[PortId]| all.iter().map(|port| fabric.port_name(*port)).collect::<Vec<_>>();
    let switches = probes.switches.iter().map(|switch| fabric.name(Node::Switch(*switch)));
    let samples = outcome.series.iter().map(|series| series.bytes.len()).max().unwrap_or(0);
    let time = |sample: usize| Time(interval.0 * sample as u64).as_secs_f64();
    let goodput = probes.goodput.then_some(("all hosts".to_owned(), "goodput"));
    let named = ports(&probes.ports).into_iter().map(|name| (name, "port"));
    let named = named.chain(switches.map(|name| (name, "switch")));
    let named = named.chain(ports(&probes.sent).into_iter().map(|name| (name, "sent")));
    let named = named.chain(goodput);
    let (names, kinds) = named.unzip();
    Series {
        time_s: (0..samples).map(time).collect(),
        names,
        kinds,
        bytes: outcome.series.into_iter().map(|series| series.bytes).collect(),
    }
}
