//! One thread that looks at statistics once a second: what changed goes to NCCL's log; all of it to a
//! file, at the end too, and to Prometheus at a port or in a directory, where somebody asked for that.

use crate::boundary::Failure;
use crate::changes::StatisticsChanges;
use crate::directory::Slot;
use crate::http::Pages;
use crate::nic::{Nic, Nics};
use crate::{http, logger};
use std::fs::{File, Permissions};
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weft_comm::Statistics;
use weft_deploy::Prometheus;

/// How often the port is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How often there is changes, and the file is written.
const WRITE: Duration = Duration::from_secs(1);
/// Processes of a server that ask for one port each get one of so many.
const PORTS: u16 = crate::directory::SLOTS as u16;

/// The thread; it ends with this.
pub(crate) struct Watch {
    /// What tells the thread to stop when it is dropped, and the thread.
    running: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
    /// A child that was forked has no such thread.
    process: u32,
}

/// Statistics of all NICs that have been used.
fn each(nics: &[Arc<Nic>]) -> impl Iterator<Item = Statistics> {
    nics.iter().filter_map(|nic| nic.opened()).map(|endpoint| endpoint.statistics())
}

fn json(nics: &[Arc<Nic>]) -> String {
    let all: Vec<_> = each(nics).map(|one| one.json()).collect();
    format!("[{}]\n", all.join(",\n"))
}

/// A metric may be described once, so samples of all NICs go under the description of the first.
fn prometheus(nics: &[Arc<Nic>], process: Option<usize>) -> String {
    let texts: Vec<String> = each(nics).map(|one| one.prometheus(process)).collect();
    let mut metrics: Vec<(&str, String)> = Vec::new();
    for line in texts.iter().flat_map(|text| text.lines()) {
        let name = line.trim_start_matches("# HELP ").trim_start_matches("# TYPE ");
        let name = &name[..name.find([' ', '{']).unwrap_or(name.len())];
        let place = match metrics.iter().position(|(known, _)| *known == name) {
            Some(known) => known,
            None => {
                metrics.push((name, String::new()));
                metrics.len() - 1
            }
        };
        let text = &mut metrics[place].1;
        if !(line.starts_with('#') && text.contains(line)) {
            text.push_str(line);
            text.push('\n');
        }
    }
    metrics.into_iter().map(|(_, text)| text).collect()
}

struct Task {
    file: Option<PathBuf>,
    port: Option<TcpListener>,
    slot: Option<Slot>,
    nics: Arc<Nics>,
}

impl Watch {
    /// Starts the thread.
    pub(crate) fn start(
        file: Option<PathBuf>,
        shown: Option<Prometheus>,
        nics: Arc<Nics>,
    ) -> Result<Watch, Failure> {
        let (port, slot) = match shown {
            Some(Prometheus::Served(address)) => (Some(listen(address)?), None),
            Some(Prometheus::Directory(directory)) => (None, Some(Slot::take(&directory)?)),
            None => (None, None),
        };
        let file = file.map(|file| of_process(&file));
        if let Some(file) = &file {
            // What cannot be written is said now, not at the end of the job.
            write_statistics(file, &nics.all())?;
        }
        let task = Task { file, port, slot, nics };
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name("weft-statistics".into())
            .spawn(move || task.run(&stopped))
            .map_err(|error| Failure::Setup(format!("statistics: no thread: {error}")))?;
        Ok(Watch { running: Mutex::new(Some((stop, thread))), process: std::process::id() })
    }

    /// Looks a last time, and ends the thread.
    pub(crate) fn end(&self) {
        if self.process != std::process::id() {
            return;
        }
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((stop, thread)) = running {
            drop(stop);
            // A panic of the thread has been reported by then, and costs statistics only.
            let _ = thread.join();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

/// What [`before_exit`] was given.
static LAST: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

/// Has `last` called when the process exits by itself, once.
pub(crate) fn before_exit(last: fn()) {
    extern "C" fn run() {
        // A child that was forked may find it locked.
        for last in LAST.try_lock().iter().flat_map(|all| all.iter()) {
            // It must not unwind into C.
            let _ = std::panic::catch_unwind(last);
        }
    }
    let mut all = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let is_first = all.is_empty();
    if !all.iter().any(|known| std::ptr::fn_addr_eq(*known, last)) {
        all.push(last);
    }
    if is_first {
        #[expect(unsafe_code, reason = "std has nothing for it")]
        // SAFETY: `run` is there until the end: the library is never unloaded (`-z nodelete`). If there
        // is no room for it statistics are as old as their last look.
        unsafe {
            libc::atexit(run);
        }
    }
}

impl Task {
    fn run(self, stopped: &Receiver<()>) {
        let mut looked = Instant::now();
        let mut changes = Vec::new();
        let wait = if self.port.is_some() { LOOK } else { WRITE };
        loop {
            let over = stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
            if over || looked.elapsed() >= WRITE {
                looked = Instant::now();
                self.look(&mut changes);
            }
            if over {
                return;
            }
            if let Some(port) = &self.port {
                let metrics = || prometheus(&self.nics.all(), None);
                let json = || json(&self.nics.all());
                http::answer(port, &Pages { metrics: &metrics, json: &json });
            }
        }
    }

    fn look(&self, changes: &mut Vec<StatisticsChanges>) {
        let nics = self.nics.all();
        changes.resize_with(nics.len(), StatisticsChanges::default);
        for (nic, changes) in nics.iter().zip(changes) {
            if let Some(endpoint) = nic.opened() {
                let now = endpoint.statistics();
                changes.lines(&now).iter().for_each(|line| logger::info(line));
                changes.warning(&now).iter().for_each(|line| logger::warn(line));
            }
        }
        if let Some(file) = &self.file
            && let Err(failure) = write_statistics(file, &nics)
        {
            failure.say("statistics");
        }
        if let Some(slot) = &self.slot
            && let Err(failure) = slot.write(&prometheus(&nics, Some(slot.number)), &json(&nics))
        {
            failure.say("statistics");
        }
    }
}

/// Takes the port, or if another process of this server has it, one of the next.
fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    let mut tried = address;
    loop {
        match TcpListener::bind(tried) {
            Ok(port) => {
                let broken = |error| Failure::Setup(format!("WEFT_PROMETHEUS: {tried}: {error}"));
                port.set_nonblocking(true).map_err(broken)?;
                // Of port 0 the system has picked one.
                let taken = port.local_addr().map_err(broken)?;
                logger::info(&format!("statistics at http://{taken}/metrics"));
                return Ok(port);
            }
            Err(error) => {
                let next = tried.port().checked_add(1);
                match next.filter(|port| port - address.port() < PORTS) {
                    Some(port) => tried.set_port(port),
                    None => {
                        return Err(Failure::Setup(format!("WEFT_PROMETHEUS: {address}: {error}")));
                    }
                }
            }
        }
    }
}

/// `%p` in the name is the number of the process: several of a server share their environment.
fn of_process(file: &Path) -> PathBuf {
    PathBuf::from(file.to_string_lossy().replace("%p", &std::process::id().to_string()))
}

fn write_statistics(file: &Path, nics: &[Arc<Nic>]) -> Result<(), Failure> {
    write(file, &json(nics), None)
        .map_err(|error| Failure::Setup(format!("WEFT_STATS: {}: {error}", file.display())))
}

/// Whole or not at all: readers never see a half. `mode` has the permissions, else they are what files
/// of this process have.
pub(crate) fn write(file: &Path, text: &str, mode: Option<u32>) -> std::io::Result<()> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    // One may be left of a process of this number.
    let _ = std::fs::remove_file(&beside);
    // A new file, never what a link leads to: others may write into the directory, too.
    let mut new = File::create_new(&beside)?;
    let written = new
        .write_all(text.as_bytes())
        .and_then(|()| match mode {
            Some(mode) => new.set_permissions(Permissions::from_mode(mode)),
            None => Ok(()),
        })
        .and_then(|()| std::fs::rename(&beside, file));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}
