//! Reliable connections.
#![expect(unsafe_code, reason = "calls into libibverbs")]

use crate::abi::{
    AhAttr, GlobalRoute, QPT_RC, Qp, QpAttr, QpCap, QpInitAttr, RecvWr, SendWr, Sge, access, mask,
    send, state,
};
use crate::{CompletionQueue, Device, VerbsError};
use std::sync::Arc;
use std::time::Duration;

/// A queue pair of the reliable kind.
#[derive(Debug)]
pub struct QueuePair {
    // Dropped after the queue pair itself, which `drop` ends.
    completions: Arc<CompletionQueue>,
    qp: *mut Qp,
    number: u32,
    port: u8,
    inline: u32,
}

// SAFETY: the library allows calls about a queue pair from all threads.
unsafe impl Send for QueuePair {}
// SAFETY: as above.
unsafe impl Sync for QueuePair {}

/// How much a queue pair holds at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Posts that send or write.
    pub sends: u32,
    /// Buffers for messages.
    pub receives: u32,
    /// Bytes of a message that are copied when it is posted, so that its memory need not be known to
    /// the device.
    pub inline: u32,
}

/// The other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub gid: [u8; 16],
    /// The number of its queue pair.
    pub number: u32,
    /// The packet number that it starts with, of 24 bits.
    pub first_packet: u32,
}

/// What packets look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The place of our address in the port's table.
    pub address: u8,
    /// Stands for the UDP source port; zero: a hash of the two queue pairs' numbers.
    pub flow_label: u32,
    /// DSCP times four.
    pub traffic_class: u8,
    /// How many routers they may pass.
    pub hop_limit: u8,
}

/// How long and how often it is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The wait for an answer: 4.096 us times two to the power of this, 1 to 31.
    pub exponent: u8,
    /// How often it is tried again: 0 to 7.
    pub retries: u8,
}

impl Timing {
    /// The longest wait with which `retries` repetitions end within `total`, with a millisecond or more.
    pub fn within(total: Duration, retries: u8) -> Timing {
        let wait = total.as_nanos() / (u128::from(retries) + 1);
        let exponent = (8..=31).rev().find(|&power| (4096_u128 << power) <= wait).unwrap_or(8);
        Timing { exponent, retries }
    }
}

/// A range of our memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRange {
    /// Its address.
    pub start: u64,
    /// Its length, in bytes.
    pub len: u32,
    /// The local key of the region that holds it.
    pub key: u32,
}

impl QueuePair {
    /// Makes one, ready to be connected (state INIT), whose ends go to `completions`. Its peer may write.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn new(
        completions: &Arc<CompletionQueue>,
        port: u8,
        capacity: Capacity,
    ) -> Result<QueuePair, VerbsError> {
        QueuePair::with(completions, port, capacity, access::REMOTE_WRITE)
    }

    /// The same for [`QueuePair::read`]: its peer may read, and not write.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn for_reads(
        completions: &Arc<CompletionQueue>,
        port: u8,
        capacity: Capacity,
    ) -> Result<QueuePair, VerbsError> {
        QueuePair::with(completions, port, capacity, access::REMOTE_READ)
    }

    /// With what the peer may do.
    fn with(
        completions: &Arc<CompletionQueue>,
        port: u8,
        capacity: Capacity,
        rights: i32,
    ) -> Result<QueuePair, VerbsError> {
        let device = &completions.device;
        let cap = QpCap {
            max_send_wr: capacity.sends,
            max_recv_wr: capacity.receives,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: capacity.inline,
        };
        let mut init = QpInitAttr {
            qp_context: std::ptr::null_mut(),
            send_cq: completions.cq,
            recv_cq: completions.cq,
            srq: std::ptr::null_mut(),
            cap,
            qp_type: QPT_RC,
            sq_sig_all: 0,
        };
        // SAFETY: domain and completion queue are alive, and held by what is returned.
        let qp = unsafe { (device.verbs.call.create_qp)(device.pd, &mut init) };
        if qp.is_null() {
            return Err(VerbsError::last_pinning(&format!("a queue pair of {}", device.name())));
        }
        // SAFETY: it was just made.
        let number = unsafe { (*qp).qp_num };
        let inline = capacity.inline.min(init.cap.max_inline_data);
        let made = QueuePair { completions: Arc::clone(completions), qp, number, port, inline };
        let mut attr = QpAttr {
            qp_state: state::INIT,
            port_num: port,
            qp_access_flags: rights as u32,
            ..QpAttr::default()
        };
        made.modify(
            &mut attr,
            mask::STATE | mask::PKEY_INDEX | mask::PORT | mask::ACCESS_FLAGS,
            "INIT",
        )?;
        Ok(made)
    }

    /// Its number, which the peer must know.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Connects it: from now on it sends and answers. Packets go by `route`, whose flow label counts
    /// here and only here (InfiniBand 11.2.5: the address vector is set on the way to RTR).
    ///
    /// # Errors
    /// If the system refuses, as when the peer's address cannot be resolved.
    pub fn connect(
        &self,
        peer: Peer,
        first_packet: u32,
        route: Route,
        mtu: u32,
        timing: Timing,
    ) -> Result<(), VerbsError> {
        let grh = GlobalRoute {
            dgid: peer.gid,
            flow_label: route.flow_label,
            sgid_index: route.address,
            hop_limit: route.hop_limit,
            traffic_class: route.traffic_class,
            align: [],
        };
        let ah_attr = AhAttr { grh, is_global: 1, port_num: self.port, ..AhAttr::default() };
        let mut attr = QpAttr {
            qp_state: state::RTR,
            ah_attr,
            path_mtu: mtu.clamp(256, 4096).ilog2() - 7,
            dest_qp_num: peer.number,
            rq_psn: peer.first_packet & 0xFF_FFFF,
            max_dest_rd_atomic: 1,
            // 0.64 ms until a peer that found no buffer tries again.
            min_rnr_timer: 12,
            ..QpAttr::default()
        };
        let bits = mask::STATE | mask::AV | mask::PATH_MTU | mask::DEST_QPN | mask::RQ_PSN;
        let bits = bits | mask::MAX_DEST_RD_ATOMIC | mask::MIN_RNR_TIMER;
        self.modify(&mut attr, bits, "RTR")?;
        attr.qp_state = state::RTS;
        attr.sq_psn = first_packet & 0xFF_FFFF;
        attr.timeout = timing.exponent;
        attr.retry_cnt = timing.retries;
        // Seven stands for: without end.
        attr.rnr_retry = 7;
        attr.max_rd_atomic = 1;
        let bits = mask::STATE | mask::TIMEOUT | mask::RETRY_CNT | mask::RNR_RETRY;
        self.modify(&mut attr, bits | mask::SQ_PSN | mask::MAX_QP_RD_ATOMIC, "RTS")
    }

    /// Stops it: everything posted ends, most of it flushed.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn stop(&self) -> Result<(), VerbsError> {
        let mut attr = QpAttr { qp_state: state::ERR, ..QpAttr::default() };
        self.modify(&mut attr, mask::STATE, "ERR")
    }

    /// Gives packets another UDP source port while connected: mlx5 only.
    ///
    /// # Errors
    /// If the library or the device cannot.
    pub fn set_source_port(&self, port: u16) -> Result<(), VerbsError> {
        let Some(modify) = self.device().verbs.modify_source_port else {
            let why = "there is no libmlx5.so.1 with mlx5dv_modify_qp_udp_sport".to_owned();
            return Err(VerbsError::Library { library: "libmlx5.so.1", why });
        };
        // SAFETY: the queue pair is alive; the library refuses those of other drivers.
        let code = unsafe { modify(self.qp, port) };
        VerbsError::check(code, || format!("source port {port} for queue pair {}", self.number))
    }

    /// Writes a range into the peer's memory. With `number`, the peer gets a completion
    /// ([`crate::Work::Written`]) behind it, which takes one of its buffers. `signaled`: we get one too.
    ///
    /// # Safety
    /// The range lies in a region with its key, and stays readable and unchanged until a later completion
    /// of this queue pair, or until the queue pair is dropped.
    ///
    /// # Errors
    /// If too much is posted.
    pub unsafe fn write(
        &self,
        id: u64,
        range: MemoryRange,
        to: u64,
        remote_key: u32,
        number: Option<u32>,
        signaled: bool,
    ) -> Result<(), VerbsError> {
        let opcode = if number.is_some() { send::RDMA_WRITE_WITH_IMM } else { send::RDMA_WRITE };
        let flags = if signaled { send::SIGNALED } else { 0 };
        let imm_data = number.unwrap_or(0).to_be();
        // SAFETY: as the caller says.
        unsafe { self.post(id, range, opcode, flags, imm_data, to, remote_key) }
    }

    /// Reads from the peer's memory into a range of ours, and gives a completion ([`crate::Work::Read`]).
    ///
    /// # Safety
    /// The range lies in a region with its key, and stays writable and nobody else's until the completion
    /// with this `id`, or until the queue pair is dropped.
    ///
    /// # Errors
    /// If too much is posted.
    pub unsafe fn read(
        &self,
        id: u64,
        into: MemoryRange,
        from: u64,
        remote_key: u32,
    ) -> Result<(), VerbsError> {
        // SAFETY: as the caller says.
        unsafe { self.post(id, into, send::RDMA_READ, send::SIGNALED, 0, from, remote_key) }
    }

    /// Sends a message of at most [`Capacity::inline`] bytes, which are copied at once.
    ///
    /// # Errors
    /// If it is longer, or too much is posted.
    pub fn send(&self, id: u64, message: &[u8], signaled: bool) -> Result<(), VerbsError> {
        if message.len() > self.inline as usize {
            return Err(VerbsError::Device(format!(
                "{} sends at most {} bytes at once, not {}",
                self.device().name(),
                self.inline,
                message.len()
            )));
        }
        let flags = send::INLINE | if signaled { send::SIGNALED } else { 0 };
        let range =
            MemoryRange { start: message.as_ptr() as u64, len: message.len() as u32, key: 0 };
        // SAFETY: the message is there during the call, which copies it.
        unsafe { self.post(id, range, send::SEND, flags, 0, 0, 0) }
    }

    /// Sends a message from where it is.
    ///
    /// # Safety
    /// The range lies in a region with its key, and stays readable and unchanged until its completion, or
    /// until the queue pair is dropped.
    ///
    /// # Errors
    /// If too much is posted.
    pub unsafe fn send_range(&self, id: u64, range: MemoryRange) -> Result<(), VerbsError> {
        // SAFETY: as the caller says.
        unsafe { self.post(id, range, send::SEND, send::SIGNALED, 0, 0, 0) }
    }

    /// Lends a range of memory to the next message that comes.
    ///
    /// # Safety
    /// The range lies in a region with its key, and stays writable and nobody else's until the completion
    /// with this `id`, or until the queue pair is dropped.
    ///
    /// # Errors
    /// If too much is posted.
    pub unsafe fn receive(&self, id: u64, range: MemoryRange) -> Result<(), VerbsError> {
        let mut entry = Sge { addr: range.start, length: range.len, lkey: range.key };
        let sg_list = &raw mut entry;
        let num_sge = i32::from(range.len > 0);
        let mut request = RecvWr { wr_id: id, next: std::ptr::null_mut(), sg_list, num_sge };
        let mut bad = std::ptr::null_mut();
        // SAFETY: queue pair and context are alive; the request is read during the call only.
        let code = unsafe {
            let post = (*(*self.qp).context).ops.post_recv;
            post.map_or(-1, |post| post(self.qp, &mut request, &mut bad))
        };
        VerbsError::check(code, || format!("a buffer for queue pair {}", self.number))
    }

    /// # Safety
    /// The range stays readable and unchanged: during the call where it is inline, else until its
    /// completion, or until the queue pair is dropped.
    #[expect(clippy::too_many_arguments, reason = "the fields of a work request")]
    unsafe fn post(
        &self,
        wr_id: u64,
        range: MemoryRange,
        opcode: u32,
        send_flags: u32,
        imm_data: u32,
        remote_addr: u64,
        rkey: u32,
    ) -> Result<(), VerbsError> {
        let mut entry = Sge { addr: range.start, length: range.len, lkey: range.key };
        let mut request = SendWr {
            wr_id,
            next: std::ptr::null_mut(),
            sg_list: &mut entry,
            num_sge: i32::from(range.len > 0),
            opcode,
            send_flags,
            imm_data,
            remote_addr,
            rkey,
            unions: [0; 9],
        };
        let mut bad = std::ptr::null_mut();
        // SAFETY: queue pair and context are alive; the request is read during the call only, and what it
        // points to is vouched for by the caller.
        let code = unsafe {
            let post = (*(*self.qp).context).ops.post_send;
            post.map_or(-1, |post| post(self.qp, &mut request, &mut bad))
        };
        VerbsError::check(code, || format!("posting to queue pair {}", self.number))
    }

    fn modify(&self, attr: &mut QpAttr, bits: i32, to: &str) -> Result<(), VerbsError> {
        // SAFETY: the queue pair is alive; the library reads the attributes that the mask names.
        let code = unsafe { (self.device().verbs.call.modify_qp)(self.qp, attr, bits) };
        VerbsError::check(code, || {
            format!("queue pair {} of {} to {to}", self.number, self.device().name())
        })
    }

    fn device(&self) -> &Arc<Device> {
        &self.completions.device
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        // SAFETY: made in `new`, ended once. Afterwards the device touches none of its memory.
        unsafe { (self.device().verbs.call.destroy_qp)(self.qp) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_end_within_the_time() {
        for millis in [20, 100, 1_000, 4_000, 60_000] {
            let total = Duration::from_millis(millis);
            let Timing { exponent, retries } = Timing::within(total, 7);
            let wait = Duration::from_nanos(4_096 << exponent);
            let all = wait * (u32::from(retries) + 1);
            assert!(all <= total && 2 * all > total, "{millis} ms: {wait:?}");
        }
    }

    #[test]
    fn no_wait_is_shorter_than_a_millisecond_and_none_longer_than_there_is() {
        assert_eq!(Timing::within(Duration::ZERO, 7).exponent, 8);
        assert_eq!(Timing::within(Duration::from_secs(1 << 40), 0).exponent, 31);
    }
}
