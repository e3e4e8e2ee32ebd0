//! The way from a GPU to its NIC, where it is slower than the NIC: PCIe, of 32 GB/s in the test
//! cluster of CTCCL (2025) (section 4.2).
//!
//! A GPU's packets leave in slots, as far apart as the way takes for each. A queue pair whose turn
//! it is at the NIC takes the GPU's next slot, and waits for it outside the round; the queue pairs
//! of a GPU so share it in turn. What this does not do: the way back, on which a GPU receives.

use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::ports::Ports;
use crate::queue::EventQueue;

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// Whether queue pair `id`, whose turn it is, may send now. If not it has a slot, for which it
    /// waits.
    #[cold]
    pub(super) fn may_leave_gpu(&mut self, id: u32) -> bool {
        let flow = &mut self.nics.senders[id as usize];
        if std::mem::take(&mut flow.granted) {
            return true;
        }
        let jobs = self.jobs.as_mut().expect("slots are those of ranks");
        let payload = flow.payload(flow.sender.peek(), self.config.packet.mtu);
        let size = u64::from(payload + self.config.packet.header);
        let slot = jobs.next_slot(self.now, flow.message, size);
        if slot == self.now {
            return true;
        }
        (flow.granted, flow.waiting) = (true, true);
        let host = flow.src;
        self.agenda.push_at_host(Event::new(slot, Class::Start, id), host);
        false
    }
}
