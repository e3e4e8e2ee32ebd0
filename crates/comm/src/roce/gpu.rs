//! Whether a device reaches the memory of GPUs.

use super::nic;
use crate::{Backend, Checksum, EndpointConfig};
use std::path::Path;

/// Files that are there where a kernel module hands memory of NVIDIA GPUs to RDMA devices.
const PEER_MEMORY: [&str; 3] = [
    "kernel/mm/memory_peers/nv_mem/version",
    "kernel/mm/memory_peers/nv_mem_nc/version",
    "module/nvidia_peermem/version",
];

/// How memory of GPUs may be handed to a NIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuAccess {
    /// By its address, which a module of the kernel knows.
    pub by_address: bool,
    /// As a DMA-BUF.
    pub by_dma_buf: bool,
}

impl GpuAccess {
    /// What an endpoint of these configurations will take: what the devices of all of them do. None over TCP,
    /// and none where the processor is to read all payload for check sums. It opens the devices and closes them.
    pub fn of<'c>(configs: impl IntoIterator<Item = &'c EndpointConfig>) -> GpuAccess {
        let both = |one: GpuAccess, other: GpuAccess| GpuAccess {
            by_address: one.by_address && other.by_address,
            by_dma_buf: one.by_dma_buf && other.by_dma_buf,
        };
        configs.into_iter().map(GpuAccess::of_one).reduce(both).unwrap_or_default()
    }

    fn of_one(config: &EndpointConfig) -> GpuAccess {
        let Backend::Roce { device, port, gid_index, .. } = &config.backend else {
            return GpuAccess::default();
        };
        if config.checksum == Checksum::All {
            return GpuAccess::default();
        }
        let Ok((device, ..)) = nic::find(config, (device, *port, *gid_index)) else {
            return GpuAccess::default();
        };
        let by_address = has_peer_memory(Path::new("/sys"));
        GpuAccess { by_address, by_dma_buf: device.takes_dma_bufs() }
    }
}

fn has_peer_memory(sys: &Path) -> bool {
    PEER_MEMORY.iter().any(|file| sys.join(file).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_of_the_kernel_is_known_by_its_files() {
        let sys = std::env::temp_dir().join(format!("weft-peer-memory-{}", std::process::id()));
        assert!(!has_peer_memory(&sys));
        for file in PEER_MEMORY {
            let file = sys.join(file);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("it is made");
            std::fs::write(&file, "1.0\n").expect("it is written");
            assert!(has_peer_memory(&sys));
            std::fs::remove_dir_all(&sys).expect("it is ours");
        }
    }
}
