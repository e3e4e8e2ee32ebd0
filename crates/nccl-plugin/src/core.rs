//! What a process has once, however many communicators NCCL makes: its NICs.

use crate::boundary::Failure;
use crate::nic::{Nic, Nics};
use crate::profile::{self, message::Messages};
use crate::watch::{self, Watch};
use crate::{forked, logger};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_int};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use weft_comm::{Connecting, Endpoint, HANDLE, Handle, Hint};
use weft_deploy::{Deployment, KeptPaths};
use weft_nccl_abi::Profiler;

/// NICs and whoever watches them. It goes when the last communicator does.
pub(crate) struct Core {
    nics: Arc<Nics>,
    /// The name of the scheme, for the log.
    scheme: String,
    connecting: Mutex<HashMap<Key, Connecting>>,
    /// Attempts to connect that were begun and not over at once.
    attempts: AtomicU64,
    hint: Mutex<Option<Hint>>,
    watch: Watch,
    /// Keeps discovered paths true, where ports come from a table of them.
    _paths: Vec<KeptPaths>,
}

/// Which attempt to connect: NCCL asks again with the handle as it was left, wherever that is by then.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    attempt: u64,
    device: i32,
    handle: [u8; HANDLE],
}

/// Where an attempt notes in the handle which one it is: bytes that are zero in a handle that is sent.
const NOTE: Range<usize> = 116..124;

/// Takes the note out of a handle; zero: there is none.
fn take_note(handle: &mut Handle) -> u64 {
    let note = handle.0[NOTE].try_into().expect("eight");
    handle.0[NOTE].fill(0);
    u64::from_ne_bytes(note)
}

/// How NCCL begins events of network plugins, from version 10 on.
static PROFILER: Mutex<Option<Profiler>> = Mutex::new(None);

/// Takes NCCL's function for events of network plugins.
pub(crate) fn set_profiler(profiler: Option<Profiler>) {
    let mut current = PROFILER.lock().unwrap_or_else(PoisonError::into_inner);
    *current = profiler.or(*current);
}

static CURRENT: Mutex<Weak<Core>> = Mutex::new(Weak::new());
/// Versions 8 to 10 have no `finalize`: theirs stays.
static FOREVER: OnceLock<Arc<Core>> = OnceLock::new();

impl Core {
    /// That of this process, made by the environment if there is none.
    pub(crate) fn acquire() -> Result<Arc<Core>, Failure> {
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(core) = current.upgrade() {
            return Ok(core);
        }
        let deployment =
            weft_deploy::of_this_process().map_err(|error| Failure::Setup(error.to_string()))?;
        let core = Arc::new(Core::new(deployment)?);
        *current = Arc::downgrade(&core);
        watch::before_exit(Core::end_of_process);
        Ok(core)
    }

    /// For versions without contexts: acquired by `init`, never let go. NCCL calls that once, before it
    /// makes virtual NICs: where it does again, it has forgotten those.
    pub(crate) fn acquire_forever() -> Result<(), Failure> {
        let core = Core::acquire()?;
        core.nics.forget_merged();
        FOREVER.get_or_init(|| core);
        Ok(())
    }

    /// Statistics of a job that ends without a word: versions 8 to 10 have none for it, and of the
    /// others not all applications say it.
    fn end_of_process() {
        let core = CURRENT.try_lock().ok().and_then(|current| current.upgrade());
        if let Some(core) = core {
            core.watch.end();
        }
    }

    /// That of this process, after some `init`.
    pub(crate) fn current() -> Result<Arc<Core>, Failure> {
        let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        current.ok_or_else(|| Failure::Usage("init has not been called".into()))
    }

    fn new(deployment: Deployment) -> Result<Core, Failure> {
        let Deployment { devices, scheme, stats, prometheus, log, paths, warnings } = deployment;
        logger::alone(log);
        warnings.iter().for_each(|warning| logger::warn(warning));
        let nics = Arc::new(Nics::new(devices));
        for nic in nics.all() {
            logger::info(&nic.describe(&scheme));
        }
        profile::start()?;
        let watch = Watch::start(stats, prometheus, nics.clone())?;
        let paths = paths.into_iter().map(|paths| paths.start(logger::warn));
        let paths =
            paths.collect::<Result<_, _>>().map_err(|error| Failure::Setup(error.to_string()))?;
        let (connecting, attempts, hint) = Default::default();
        forked::has_core();
        Ok(Core { nics, scheme, connecting, attempts, hint, watch, _paths: paths })
    }

    pub(crate) fn devices(&self) -> usize {
        self.nics.all().len()
    }

    /// All NICs that there are now.
    pub(crate) fn nics(&self) -> Vec<Arc<Nic>> {
        self.nics.all()
    }

    /// A NIC by NCCL's number.
    pub(crate) fn nic(&self, device: c_int) -> Result<Arc<Nic>, Failure> {
        self.nics.get(device)
    }

    /// Makes one NIC of several; its number.
    pub(crate) fn merge(&self, devices: &[c_int]) -> Result<c_int, Failure> {
        let (number, made) = self.nics.merge(devices)?;
        if let Some(nic) = made {
            logger::info(&nic.describe(&self.scheme));
        }
        Ok(number)
    }

    /// The endpoint of a NIC, opened if need be.
    pub(crate) fn endpoint(&self, device: i32) -> Result<Arc<Endpoint>, Failure> {
        let nic = self.nic(device)?;
        if let Some(endpoint) = nic.opened() {
            return Ok(endpoint.clone());
        }
        let endpoint = nic.open()?;
        if let Some(hint) = *self.hint.lock().unwrap_or_else(PoisonError::into_inner) {
            endpoint.hint(hint);
        }
        Ok(endpoint)
    }

    /// How messages of a NIC are recorded, if they are.
    pub(crate) fn messages(&self, device: i32) -> Option<Messages> {
        let recorder = profile::recording()?;
        let profiler = *PROFILER.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Messages::new(recorder, profiler, self.nic(device).ok()?))
    }

    /// Tells all NICs what traffic is to come, those too that are opened later.
    pub(crate) fn hint(&self, hint: Hint) {
        *self.hint.lock().unwrap_or_else(PoisonError::into_inner) = Some(hint);
        for nic in self.nics.all() {
            nic.opened().into_iter().for_each(|endpoint| endpoint.hint(hint));
        }
    }

    /// Begins to connect, or goes on with what was begun with this handle, which is left as it is to be
    /// given next time. Its packets have `dscp`, if they shall have another than those of the NIC.
    pub(crate) fn connect(
        &self,
        device: i32,
        dscp: Option<u8>,
        handle: &mut Handle,
    ) -> Result<Option<(weft_comm::SendChannel, Arc<Endpoint>)>, Failure> {
        let attempt = take_note(handle);
        let endpoint = self.endpoint(device)?;
        let mut key = Key { attempt, device, handle: handle.0 };
        let mut all = self.connecting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut connecting = match all.remove(&key) {
            Some(begun) => begun,
            None => {
                key.attempt = 1 + self.attempts.fetch_add(1, Ordering::Relaxed);
                endpoint.connect_as(handle, dscp)?
            }
        };
        match connecting.try_finish()? {
            Some(channel) => Ok(Some((channel, endpoint))),
            None => {
                handle.0[NOTE].copy_from_slice(&key.attempt.to_ne_bytes());
                all.insert(key, connecting);
                Ok(None)
            }
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        forked::core_is_gone();
    }
}

/// Text that stays until the process ends, as NCCL wants names; each is kept once.
pub(crate) fn forever(text: &str) -> &'static CStr {
    static KEPT: Mutex<Vec<&'static CStr>> = Mutex::new(Vec::new());
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(same) = kept.iter().find(|one| **one == text.as_c_str()) {
        return same;
    }
    let text: &'static CStr = Box::leak(text.into_boxed_c_str());
    kept.push(text);
    text
}
