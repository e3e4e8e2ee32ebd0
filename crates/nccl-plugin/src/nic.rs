//! One NIC of the plugin, as NCCL counts them: one of this machine, or several of those as one.

use crate::boundary::Failure;
use crate::{logger, profile};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use weft_comm::{Backend, Endpoint, EndpointConfig, GpuAccess};
use weft_deploy::Device;
use weft_nccl_abi::{POINTER_CUDA, POINTER_DMABUF, POINTER_HOST};

/// One NIC.
pub(crate) struct Nic {
    /// Its name; of several, theirs with a plus sign between.
    pub(crate) name: String,
    /// What it consists of, and NCCL's numbers of those: itself, where it is one of this machine.
    pub(crate) devices: Vec<Device>,
    pub(crate) numbers: Vec<c_int>,
    endpoint: OnceLock<Arc<Endpoint>>,
    /// Which memory it reaches, once somebody has asked.
    gpu: OnceLock<GpuAccess>,
    opening: Mutex<()>,
}

impl Nic {
    fn new(devices: Vec<Device>, numbers: Vec<c_int>) -> Nic {
        let names: Vec<_> = devices.iter().map(|device| device.name.as_str()).collect();
        let name = names.join("+");
        let (endpoint, gpu) = (OnceLock::new(), OnceLock::new());
        Nic { name, devices, numbers, endpoint, gpu, opening: Mutex::new(()) }
    }

    /// What NCCL's log says of it.
    pub(crate) fn describe(&self, scheme: &str) -> String {
        let (name, speed) = (&self.name, self.speed_mbps());
        let [device] = &self.devices[..] else {
            let count = self.devices.len();
            let carrier = self.carrier();
            return format!(
                "{name}: {count} NICs as one, {speed} Mbps, {carrier}, scheme {scheme}"
            );
        };
        let Device { interface, endpoint, .. } = device;
        let (address, carrier) = (endpoint.address, self.carrier());
        format!("{name}: {interface}, {address}, {speed} Mbps, {carrier}, scheme {scheme}")
    }

    /// What carries its bytes: of several the same for all.
    fn carrier(&self) -> String {
        let (mut names, mut falls_back) = (Vec::new(), true);
        for one in &self.devices {
            let Backend::Roce { device, or_tcp, .. } = &one.endpoint.backend else {
                return "TCP".to_owned();
            };
            names.push(device.as_str());
            falls_back &= or_tcp;
        }
        let or_tcp = if falls_back { ", else TCP" } else { "" };
        format!("RoCE on {}{or_tcp}", names.join(" and "))
    }

    /// Its speed in Mbps: of several, of all together.
    pub(crate) fn speed_mbps(&self) -> u32 {
        self.devices.iter().map(|device| device.speed_mbps).fold(0, u32::saturating_add)
    }

    /// What `of` says of all that it consists of, if they say the same.
    pub(crate) fn common(&self, of: impl Fn(&Device) -> Option<u32>) -> Option<u32> {
        let first = of(&self.devices[0]);
        first.filter(|_| self.devices.iter().all(|device| of(device) == first))
    }

    /// Which memory it reaches, as bits of the interface.
    pub(crate) fn pointers(&self) -> i32 {
        let configs = self.devices.iter().map(|device| &device.endpoint);
        let gpu = self.gpu.get_or_init(|| GpuAccess::of(configs));
        let bit = |is_so, bit| if is_so { bit } else { 0 };
        POINTER_HOST | bit(gpu.by_address, POINTER_CUDA) | bit(gpu.by_dma_buf, POINTER_DMABUF)
    }

    /// Opens it. Whoever is first to need it does: processes of a server with many NICs use one or
    /// two each.
    pub(crate) fn open(&self) -> Result<Arc<Endpoint>, Failure> {
        let _one_at_a_time = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(endpoint) = self.endpoint.get() {
            return Ok(endpoint.clone());
        }
        let endpoint = Arc::new(Endpoint::open_merged(endpoints(&self.devices))?);
        if profile::recording().is_some() {
            endpoint.keep_notes();
        }
        if let Some(notice) = endpoint.notice() {
            logger::warn(notice);
        }
        Ok(self.endpoint.get_or_init(|| endpoint).clone())
    }

    /// Its endpoint, if anybody has needed it.
    pub(crate) fn opened(&self) -> Option<&Arc<Endpoint>> {
        self.endpoint.get()
    }
}

/// Whether NICs without a PCI device may be merged. NCCL puts a merged NIC at the PCI device of its first one,
/// and finds no way to it where there is none; it merges such NICs of its own accord, as two of a container. Asked
/// not to, it uses each by itself. Who drives the plugin without NCCL places nothing.
pub(crate) static MERGES_ANYWHERE: AtomicBool = AtomicBool::new(false);

fn endpoints(devices: &[Device]) -> Vec<EndpointConfig> {
    devices.iter().map(|device| device.endpoint.clone()).collect()
}

/// All NICs by NCCL's numbers: those of this machine, and behind them those that consist of several.
pub(crate) struct Nics(RwLock<Vec<Arc<Nic>>>);

impl Nics {
    pub(crate) fn new(devices: Vec<Device>) -> Nics {
        let one = |(device, number)| Arc::new(Nic::new(vec![device], vec![number]));
        Nics(RwLock::new(devices.into_iter().zip(0..).map(one).collect()))
    }

    /// Those that there are now.
    pub(crate) fn all(&self) -> Vec<Arc<Nic>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The one with a number.
    pub(crate) fn get(&self, number: c_int) -> Result<Arc<Nic>, Failure> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let found = usize::try_from(number).ok().and_then(|at| all.get(at)).cloned();
        let count = all.len();
        found.ok_or_else(|| Failure::Argument(format!("device {number}: there are {count}")))
    }

    /// Forgets those that consist of several.
    pub(crate) fn forget_merged(&self) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|nic| nic.numbers.len() == 1);
    }

    /// Those of `numbers` as one; its number, and itself if it is new.
    pub(crate) fn merge(&self, numbers: &[c_int]) -> Result<(c_int, Option<Arc<Nic>>), Failure> {
        let mut devices = Vec::new();
        for (at, number) in numbers.iter().enumerate() {
            devices.push(self.mergeable(*number)?);
            if numbers[..at].contains(number) {
                return Err(Failure::Usage(format!("device {number} is there twice")));
            }
        }
        let merges_anywhere = MERGES_ANYWHERE.load(Ordering::Relaxed);
        let unplaced = devices.first().filter(|first| first.pci_path.is_none() && !merges_anywhere);
        if let Some(first) = unplaced {
            return Err(Failure::Unplaced(first.name.clone()));
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().position(|nic| nic.numbers == numbers) {
            return Ok((known as c_int, None));
        }
        if devices.is_empty() {
            return Err(Failure::Usage("no devices; name two or more".into()));
        }
        Endpoint::can_merge(&endpoints(&devices))?;
        let nic = Arc::new(Nic::new(devices, numbers.to_vec()));
        all.push(nic.clone());
        Ok((all.len() as c_int - 1, Some(nic)))
    }

    /// A NIC that may be a part of another.
    fn mergeable(&self, number: c_int) -> Result<Device, Failure> {
        let nic = self.get(number)?;
        let [device] = &nic.devices[..] else {
            let what = "consists of several already; name those of this machine";
            return Err(Failure::Usage(format!("device {number}, {}, {what}", nic.name)));
        };
        Ok(device.clone())
    }
}
