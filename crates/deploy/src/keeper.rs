//! A table of discovered paths, kept true while a job runs: a thread asks some ports of every path again, and
//! finds out anew what has changed. Lanes take ports of the new table from their next messages on.

use crate::DeployError;
use std::net::Ipv4Addr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use weft_comm::{Process, SharedPorts};
use weft_config::cluster::{Cluster, Protocol, discovered};
use weft_config::paths_file::{PathsFile, SourcePaths};
use weft_discover::{Rules, Survey};
use weft_probe::{Prober, Traffic};
use weft_units::Time;

/// Probes leave no faster than this: jobs have the links, and switches answer others too.
const INTERVAL: Time = Time::ms(50);
/// Ports of each path that are asked again each time; others the next time.
const SENTINELS: u32 = 1;

/// What is kept: a table, and the ports that endpoints have of it.
#[derive(Clone, Debug)]
pub struct PathKeeper {
    pub(crate) table: PathsFile,
    pub(crate) cluster: std::sync::Arc<Cluster>,
    /// Addresses of this machine in the table.
    pub(crate) sources: Vec<Ipv4Addr>,
    pub(crate) ports: SharedPorts,
    pub(crate) dscp: u8,
    pub(crate) every: Duration,
}

/// The thread that keeps a table; it ends with this.
#[derive(Debug)]
pub struct KeptPaths {
    running: Option<(Sender<()>, JoinHandle<()>)>,
    /// A child that was forked has no such thread.
    process: Process,
}

impl PathKeeper {
    /// For these of the addresses of this machine.
    #[must_use]
    pub fn only(mut self, addresses: &[Ipv4Addr]) -> PathKeeper {
        self.sources.retain(|one| addresses.contains(one));
        self
    }

    /// Begins to look. What it notices goes to `tell`, a line each.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn start(self, tell: impl Fn(&str) + Send + 'static) -> Result<KeptPaths, DeployError> {
        let (sender, receiver) = channel();
        let work = move || self.keep(&receiver, &tell);
        let thread = std::thread::Builder::new()
            .name("weft-paths".into())
            .spawn(work)
            .map_err(|error| DeployError(format!("WEFT_PATHS: no thread for it: {error}")))?;
        Ok(KeptPaths { running: Some((sender, thread)), process: Process::current() })
    }

    fn keep(mut self, stop: &Receiver<()>, tell: &dyn Fn(&str)) {
        let mut round = 0;
        while stop.recv_timeout(self.every) == Err(RecvTimeoutError::Timeout) {
            round += 1;
            for source in self.sources.clone() {
                let Some(place) = self.table.sources.iter().position(|one| one.address == source)
                else {
                    continue;
                };
                match self.look(place, round, stop) {
                    Ok(changed) if changed.is_empty() => {}
                    Ok(changed) => {
                        self.ports.replace(discovered(&self.cluster, &self.table).ports);
                        tell(&format!(
                            "{source}: paths to {} have changed; ports of the new ones are used",
                            changed.iter().map(Ipv4Addr::to_string).collect::<Vec<_>>().join(", ")
                        ));
                    }
                    Err(error) => tell(&format!("{source}: paths cannot be looked at: {error}")),
                }
            }
        }
    }

    /// Asks some ports of a source again; the targets that have changed, which the table has anew. Of a survey
    /// that was stopped nothing is taken.
    fn look(
        &mut self,
        place: usize,
        round: u64,
        stop: &Receiver<()>,
    ) -> std::io::Result<Vec<Ipv4Addr>> {
        let PathsFile { protocol, port, sources, .. } = &self.table;
        let source = &sources[place];
        let targets: Vec<Ipv4Addr> = source.targets.iter().map(|one| one.address).collect();
        let rules = Rules { interval: INTERVAL, sentinels: SENTINELS, ..Rules::default() };
        let ports: Vec<u16> =
            (self.cluster.first_port..=self.cluster.last_port.min(65_534)).collect();
        let mut survey = Survey::new(rules, &ports, round, targets.len());
        for (number, known) in (0..).zip(&source.targets) {
            known.hops.into_iter().for_each(|hops| survey.expect(number, hops));
            survey.need(number, known.needs());
            survey.restore(number, known.known());
        }
        let traffic = Traffic {
            source: source.address,
            protocol: match protocol {
                Protocol::Udp => weft_probe::Protocol::Udp,
                Protocol::Tcp => weft_probe::Protocol::Tcp,
            },
            port: *port,
            dscp: self.dscp,
        };
        let mut stopped = false;
        let took =
            weft_probe::run(&mut survey, &mut Prober::new(traffic, targets.clone()), |_| {
                stopped = stop.try_recv() != Err(std::sync::mpsc::TryRecvError::Empty);
                !stopped
            })?;
        let states = (0..).zip(&targets).map(|(number, address)| (*address, survey.state(number)));
        let states: Vec<_> = states.collect();
        let changed = states.iter().filter(|(_, state)| state.changed > 0).map(|(one, _)| *one);
        let changed: Vec<Ipv4Addr> = if stopped { Vec::new() } else { changed.collect() };
        if !changed.is_empty() {
            let (seconds, count) = (took.as_secs_f64(), survey.count());
            self.table.sources[place] =
                SourcePaths::new(source.address, seconds, count, states.into_iter());
        }
        Ok(changed)
    }
}

impl Drop for KeptPaths {
    fn drop(&mut self) {
        let Some((stop, thread)) = self.running.take() else { return };
        drop(stop);
        if self.process.is_current() {
            // A panic in there has been told already.
            let _ = thread.join();
        }
    }
}
