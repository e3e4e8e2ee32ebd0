//! Devices, their ports and addresses.
#![expect(unsafe_code, reason = "calls into libibverbs")]

use crate::abi::{Context, GID_TYPE_ROCE_V2, GidEntry, PORT_ACTIVE, Pd, PortAttr};
use crate::{Verbs, VerbsError};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// An open device with one protection domain.
#[derive(Debug)]
pub struct Device {
    pub(crate) verbs: Arc<Verbs>,
    pub(crate) context: *mut Context,
    pub(crate) pd: *mut Pd,
    pub(crate) name: String,
}

// SAFETY: the library allows calls about a context or domain from all threads.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// How a port of a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Whether its link is up.
    pub active: bool,
    /// The most bytes of payload in a packet that the interface's MTU allows: 256 to 4096.
    pub mtu: u32,
    /// How many addresses its table can hold.
    pub addresses: u32,
}

/// An address of a device: a GID of RoCEv2, which is an IP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Its place in the port's table.
    pub index: u8,
    /// As it is sent: an IPv6 address, or an IPv4 address mapped into one.
    pub gid: [u8; 16],
}

impl Address {
    /// The IPv4 address, if it is one.
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        std::net::Ipv6Addr::from(self.gid).to_ipv4_mapped()
    }
}

impl Device {
    /// Opens the device called `name`.
    ///
    /// # Errors
    /// If there is none, or the system does not let us.
    pub fn open(verbs: &Arc<Verbs>, name: &str) -> Result<Arc<Device>, VerbsError> {
        let call = &verbs.call;
        let (context, names) = verbs.with_devices(|list| {
            let found = list.iter().find(|&&device| verbs.name(device) == name);
            // SAFETY: the device is of a list that is not freed yet.
            let context = found.map(|&device| unsafe { (call.open_device)(device) });
            (context, list.iter().map(|&device| verbs.name(device)).collect::<Vec<_>>())
        })?;
        let Some(context) = context else {
            let there = if names.is_empty() { "none".into() } else { names.join(", ") };
            return Err(VerbsError::Device(format!(
                "there is no RDMA device {name} (there: {there})"
            )));
        };
        if context.is_null() {
            return Err(VerbsError::last(format!("opening RDMA device {name}")));
        }
        // SAFETY: the context was just opened.
        let pd = unsafe { (call.alloc_pd)(context) };
        if pd.is_null() {
            let error = VerbsError::last(format!("a protection domain of {name}"));
            // SAFETY: nothing was made of it.
            unsafe { (call.close_device)(context) };
            return Err(error);
        }
        Ok(Arc::new(Device { verbs: Arc::clone(verbs), context, pd, name: name.into() }))
    }

    /// The device, port and RoCEv2 address that stand for `address`; the first, if there are several.
    ///
    /// # Errors
    /// If no device has it.
    pub fn find(
        verbs: &Arc<Verbs>,
        address: Ipv4Addr,
    ) -> Result<(Arc<Device>, u8, Address), VerbsError> {
        let names = verbs.devices()?;
        for name in &names {
            // One that cannot be opened, as without the right, is none that has the address.
            let Ok(device) = Device::open(verbs, name) else { continue };
            for port in 1..=2 {
                let Ok(found) = device.address(port, address) else { continue };
                return Ok((device, port, found));
            }
        }
        let there = if names.is_empty() { "none".into() } else { names.join(", ") };
        Err(VerbsError::Device(format!("no RDMA device has address {address} (there: {there})")))
    }

    /// What the system calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether queue pairs can be given another source port while they are connected, as far as the
    /// library goes: it refuses those of other drivers, and the device may, too.
    pub fn moves_queue_pairs(&self) -> bool {
        self.verbs.modify_source_port.is_some()
    }

    /// Whether it can be given memory as a DMA-BUF. Asked with a file that is none: who can looks at the
    /// file first.
    pub fn takes_dma_bufs(&self) -> bool {
        let Some(register) = self.verbs.reg_dma_buf else { return false };
        // SAFETY: the domain is alive; there is no memory in it.
        let mr = unsafe { register(self.pd, 0, 0, 0, -1, 0) };
        let error = std::io::Error::last_os_error().raw_os_error();
        mr.is_null() && !matches!(error, Some(libc::EOPNOTSUPP | libc::EPROTONOSUPPORT))
    }

    /// How a port is; they count from one.
    ///
    /// # Errors
    /// If there is none.
    pub fn port(&self, port: u8) -> Result<Port, VerbsError> {
        let mut attr = PortAttr::default();
        // SAFETY: the context is open; the library writes at most this struct, of which it knows an
        // older, shorter form.
        let code = unsafe { (self.verbs.call.query_port)(self.context, port, &mut attr) };
        VerbsError::check(code, || format!("port {port} of {}", self.name))?;
        Ok(Port {
            active: attr.state == PORT_ACTIVE,
            mtu: 128 << attr.active_mtu.clamp(1, 5),
            addresses: attr.gid_tbl_len.max(0) as u32,
        })
    }

    /// The address at a place of a port's table; `None`: it is empty, or none of RoCEv2.
    pub fn address_at(&self, port: u8, index: u8) -> Option<Address> {
        let mut entry = GidEntry::default();
        // SAFETY: the context is open; the library writes as many bytes as it is told.
        let code = unsafe {
            let size = size_of::<GidEntry>();
            let (port, index) = (u32::from(port), u32::from(index));
            (self.verbs.call.query_gid_ex)(self.context, port, index, &mut entry, 0, size)
        };
        let usable = code == 0 && entry.gid_type == GID_TYPE_ROCE_V2;
        usable.then_some(Address { index, gid: entry.gid })
    }

    /// Where in a port's table an IPv4 address stands, for RoCEv2.
    ///
    /// # Errors
    /// If it is not there.
    pub fn address(&self, port: u8, address: Ipv4Addr) -> Result<Address, VerbsError> {
        self.find_address(port, &address, |found| found.ipv4() == Some(address))
    }

    /// The same of an address that stood there before: it may have gone, and come back at another place.
    ///
    /// # Errors
    /// As [`Device::address`].
    pub fn address_again(&self, port: u8, address: Address) -> Result<Address, VerbsError> {
        if self.address_at(port, address.index) == Some(address) {
            return Ok(address);
        }
        let ip = std::net::Ipv6Addr::from(address.gid).to_canonical();
        self.find_address(port, &ip, |found| found.gid == address.gid)
    }

    fn find_address(
        &self,
        port: u8,
        address: &dyn std::fmt::Display,
        is_it: impl Fn(&Address) -> bool,
    ) -> Result<Address, VerbsError> {
        let count = self.port(port)?.addresses.min(256);
        let mut all = (0..count).filter_map(|index| self.address_at(port, index as u8));
        all.find(is_it).ok_or_else(|| {
            VerbsError::Device(format!(
                "port {port} of {} has no RoCEv2 address {address}: is it an address of its interface?",
                self.name
            ))
        })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: whatever was made of them holds this, and so is gone.
        unsafe {
            (self.verbs.call.dealloc_pd)(self.pd);
            (self.verbs.call.close_device)(self.context);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fake;

    /// Systems name them by their place, as rocep1s0, whatever their driver is.
    #[test]
    fn queue_pairs_are_moved_whatever_a_device_is_called() {
        let of = |source| fake::device(fake::library(source, &[]));
        let moves = "int mlx5dv_modify_qp_udp_sport(void *qp, short port) { return qp && port; }";
        assert!(of(moves).moves_queue_pairs());
        assert!(!of("").moves_queue_pairs());
    }
}
