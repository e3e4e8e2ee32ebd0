//! An experiment as what its hosts do on real sockets: the same fabric, scheme and messages that the
//! simulator takes, host by host.

use crate::flow::FlowConfig;
use crate::script::{Need, Task};
use crate::sender::SenderConfig;
use std::sync::Arc;
use weft_balance::scheme::SchemeConfig;
use weft_balance::scheme::platform::Platform;
use weft_experiment::{ExperimentError, Origin, Resolved, known_at_start};
use weft_fabric::Failures;
use weft_transport::{
    CONGESTION_CONTROLS, CongestionInfo, RECOVERIES, RecoveryInfo, TransportConfig,
};
use weft_units::{HostId, MessageId};
use weft_workload::{When, Workload};

/// What one host is to do.
#[derive(Clone, Debug)]
pub struct HostJob {
    /// Its sender.
    pub sender: SenderConfig,
    /// What it sends.
    pub tasks: Vec<Task>,
    /// Bytes that it will receive.
    pub expected: u64,
}

/// What `host` does in `experiment` under `seed`, told of links as failures have them at the start.
///
/// # Errors
/// If scheme or transport want more of switches than Linux does, the fabric has three tiers, or the
/// workload is ranks at work.
pub fn host_job(
    experiment: &Resolved,
    seed: u64,
    host: HostId,
) -> Result<HostJob, ExperimentError> {
    let wrong = |key: &str, what: String| ExperimentError::new(key, Origin::Unknown, what);
    let scheme = &experiment.balance.scheme;
    check_scheme(scheme).map_err(|what| wrong("balance.scheme", what))?;
    if experiment.fabric.tiers() == 3 {
        let what = "three tiers are more than the test bed has; use topology = \"leaf-spine\"";
        return Err(wrong("fabric.topology", what.into()));
    }
    let traffic = experiment.traffic(seed)?;
    if traffic.ranks.is_some() {
        let what = "a job of ranks does not run on the test bed; use a pattern, such as \
                    pattern = \"all-to-all\"";
        return Err(wrong("workload", what.into()));
    }
    let workload = &traffic.workload;
    let transport = experiment.transport_for(&traffic, &Failures::default());
    check_transport(&transport).map_err(|(key, what)| wrong(key, what))?;
    let failures = Failures::new(&experiment.fabric, &experiment.failures, seed)
        .map_err(|error| wrong("failures", error.0))?;
    let sender = SenderConfig {
        host,
        fabric: Arc::new(experiment.fabric.clone()),
        known: Arc::new(known_at_start(&experiment.fabric, &failures, scheme)),
        balance: experiment.balance.clone(),
        seed,
        flow: FlowConfig { mtu: experiment.packet.mtu, transport },
    };
    let into = workload.messages().iter().filter(|message| message.dst == host);
    let expected = into.map(|message| message.bytes).sum();
    let from = workload.messages().enumerate().filter(|(_, message)| message.src == host);
    let tasks = from.map(|(id, _)| task(workload, id)).collect::<Result<_, _>>();
    let tasks = tasks.map_err(|what| wrong("workload", what))?;
    Ok(HostJob { sender, tasks, expected })
}

fn check_scheme(scheme: &SchemeConfig) -> Result<(), String> {
    let info = scheme.info();
    let Some(what) = info.needs_beyond(Platform::TestBed) else { return Ok(()) };
    Err(format!(
        "{} needs {what}, which the switches and hosts of the test bed do not do; use one of {}",
        info.name,
        Platform::TestBed.schemes()
    ))
}

/// Refuses what real sockets cannot do, with the key that asks for it.
fn check_transport(transport: &TransportConfig) -> Result<(), (&'static str, String)> {
    let info = transport.congestion.info();
    if let Some(needs) = control_needs(info) {
        let fit = CONGESTION_CONTROLS.iter().filter(|info| control_needs(info).is_none());
        let fit = fit.map(|info| info.name).collect::<Vec<_>>().join(", ");
        return Err(("transport.congestion", lacking(info.name, needs, &fit)));
    }
    let info = transport.recovery.info();
    if let Some(needs) = recovery_needs(info) {
        let fit = RECOVERIES.iter().filter(|info| recovery_needs(info).is_none());
        let fit = fit.map(|info| info.name).collect::<Vec<_>>().join(", ");
        return Err(("transport.recovery", lacking(info.name, needs, &fit)));
    }
    Ok(())
}

fn control_needs(info: &CongestionInfo) -> Option<&'static str> {
    let paces = info.sets_rate.then_some("hosts that pace every packet");
    info.uses_marks.then_some("switches that mark packets (ECN)").or(paces)
}

fn recovery_needs(info: &RecoveryInfo) -> Option<&'static str> {
    let trims = info.trims.then_some("switches that trim packets");
    trims.or(info.rateless.then_some("hosts that code payload"))
}

fn lacking(name: &str, needs: &str, fit: &str) -> String {
    format!("{name} needs {needs}, which the test bed does not have; use one of {fit}")
}

fn task(workload: &Workload, id: MessageId) -> Result<Task, String> {
    let message = workload.messages()[id];
    let need = |dependency: &weft_workload::Dependency| {
        let on = workload.messages()[dependency.on];
        match dependency.when {
            When::Sent if on.src == message.src => Ok(Need::Sent(dependency.on)),
            When::Received if on.dst == message.src => Ok(Need::Received(dependency.on)),
            _ => Err(format!(
                "message {} waits for something that its sender, host {}, does not see; the test \
                 bed cannot tell it",
                id.0, message.src.0
            )),
        }
    };
    let after = workload.dependencies(id).iter().map(need).collect::<Result<_, _>>()?;
    let weft_workload::Message { dst, bytes, start, .. } = message;
    Ok(Task { message: id, dst, bytes, start, after, given: None })
}
