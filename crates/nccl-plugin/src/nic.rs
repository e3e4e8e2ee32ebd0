//! One NIC of the plugin.

use crate::boundary::Failure;
use crate::{logger, profile};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use weft_comm::{Backend, Endpoint, GpuAccess};
use weft_deploy::Device;
use weft_nccl_abi::{POINTER_CUDA, POINTER_DMABUF, POINTER_HOST};

/// One NIC.
pub(crate) struct Nic {
    pub(crate) device: Device,
    endpoint: OnceLock<Arc<Endpoint>>,
    /// Which memory it reaches, once somebody has asked.
    gpu: OnceLock<GpuAccess>,
    opening: Mutex<()>,
}

impl Nic {
    pub(crate) fn new(device: Device) -> Nic {
        let (endpoint, gpu) = (OnceLock::new(), OnceLock::new());
        Nic { device, endpoint, gpu, opening: Mutex::new(()) }
    }

    /// What NCCL's log says of it.
    pub(crate) fn describe(&self, scheme: &str) -> String {
        let Device { name, interface, endpoint, speed_mbps, .. } = &self.device;
        let carrier = match &endpoint.backend {
            Backend::Tcp => "TCP".to_owned(),
            Backend::Roce { device, or_tcp: false, .. } => format!("RoCE on {device}"),
            Backend::Roce { device, .. } => format!("RoCE on {device}, else TCP"),
        };
        let address = endpoint.address;
        format!("{name}: {interface}, {address}, {speed_mbps} Mbps, {carrier}, scheme {scheme}")
    }

    /// Which memory it reaches, as bits of the interface.
    pub(crate) fn pointers(&self) -> i32 {
        let gpu = self.gpu.get_or_init(|| GpuAccess::of(&self.device.endpoint));
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
        let endpoint = Arc::new(Endpoint::open(self.device.endpoint.clone())?);
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
