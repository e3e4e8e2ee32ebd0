//! What has ended, of all queue pairs that share a queue of completions.
#![expect(unsafe_code, reason = "calls into libibverbs")]

use crate::abi::{CompChannel, Cq, Wc, wc};
use crate::{Device, VerbsError};
use std::sync::Arc;

/// Where queue pairs say what has ended.
#[derive(Debug)]
pub struct CompletionQueue {
    pub(crate) device: Arc<Device>,
    pub(crate) cq: *mut Cq,
    channel: *mut CompChannel,
}

// SAFETY: the library allows calls about a completion queue from all threads.
unsafe impl Send for CompletionQueue {}
// SAFETY: as above.
unsafe impl Sync for CompletionQueue {}

/// Something that was posted has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The number that it was posted with.
    pub id: u64,
    /// The number of the queue pair.
    pub queue_pair: u32,
    /// Whether it worked. If not, the queue pair is of no more use, and `work` and `bytes` say nothing.
    pub outcome: Outcome,
    /// What it was.
    pub work: Work,
    /// Bytes that came, of what was received.
    pub bytes: u32,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Done,
    /// Nobody answered, as often as it was tried.
    NoAnswer,
    /// The queue pair had failed before it was its turn.
    Flushed,
    /// Anything else: a status of the library.
    Failed(u32),
}

/// What was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A message.
    Send,
    /// A write into the peer's memory.
    Write,
    /// A read from there.
    Read,
    /// A buffer for a message.
    Receive,
    /// A buffer that the peer used up with a number behind a write: this one.
    Written(u32),
    /// What we never post.
    Other,
}

impl CompletionQueue {
    /// Makes one for at least `entries` completions. It must never overflow: count what is posted.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn new(device: &Arc<Device>, entries: u32) -> Result<CompletionQueue, VerbsError> {
        let call = &device.verbs.call;
        // SAFETY: the device is open.
        let channel = unsafe { (call.create_comp_channel)(device.context) };
        if channel.is_null() {
            return Err(VerbsError::last(format!("a channel of {}", device.name())));
        }
        // SAFETY: the channel was just made; this changes a flag of its file.
        unsafe {
            let file = (*channel).fd;
            libc::fcntl(file, libc::F_SETFL, libc::fcntl(file, libc::F_GETFL) | libc::O_NONBLOCK);
        }
        let count = i32::try_from(entries).unwrap_or(i32::MAX);
        // SAFETY: the channel was just made, and lives as long as the queue.
        let cq =
            unsafe { (call.create_cq)(device.context, count, std::ptr::null_mut(), channel, 0) };
        if cq.is_null() {
            let what = format!("{entries} completions of {}", device.name());
            let error = VerbsError::last_pinning(&what);
            // SAFETY: nothing uses it.
            unsafe { (call.destroy_comp_channel)(channel) };
            return Err(error);
        }
        Ok(CompletionQueue { device: Arc::clone(device), cq, channel })
    }

    /// Adds what has ended to `found`, at most 64 at a time; says how many.
    ///
    /// # Errors
    /// If the queue is broken.
    pub fn poll(&self, found: &mut Vec<Completion>) -> Result<usize, VerbsError> {
        let mut entries = [Wc::default(); 64];
        // SAFETY: the queue and its context are alive; at most as many entries are written as there are.
        let count = unsafe {
            let poll = (*(*self.cq).context).ops.poll_cq;
            poll.map_or(-1, |poll| poll(self.cq, entries.len() as i32, entries.as_mut_ptr()))
        };
        let count = usize::try_from(count).map_err(|_| VerbsError::Call {
            call: format!("polling completions of {}", self.device.name()),
            why: "the queue is broken".into(),
        })?;
        found.extend(entries[..count].iter().map(completion));
        Ok(count)
    }

    /// The file that becomes readable when something ends after [`CompletionQueue::arm`].
    pub fn file(&self) -> i32 {
        // SAFETY: the channel lives as long as this.
        unsafe { (*self.channel).fd }
    }

    /// Asks for an event when the next thing ends. Poll once more afterwards, for what ended before.
    ///
    /// # Errors
    /// If the device refuses.
    pub fn arm(&self) -> Result<(), VerbsError> {
        // SAFETY: the queue and its context are alive.
        let code = unsafe {
            let arm = (*(*self.cq).context).ops.req_notify_cq;
            arm.map_or(-1, |arm| arm(self.cq, 0))
        };
        VerbsError::check(code, || format!("events of {}", self.device.name()))
    }

    /// Takes all events that made the file readable; it does not block. Whether there were any.
    pub fn take_events(&self) -> bool {
        let call = &self.device.verbs.call;
        let mut cq = std::ptr::null_mut();
        let mut context = std::ptr::null_mut();
        let mut count = 0;
        // SAFETY: the channel is alive, and has no queue but ours.
        while unsafe { (call.get_cq_event)(self.channel, &mut cq, &mut context) } == 0 {
            count += 1;
        }
        // SAFETY: so many were taken.
        unsafe { (call.ack_cq_events)(self.cq, count) };
        count > 0
    }

    /// The library's words for an outcome.
    pub fn words(&self, outcome: Outcome) -> String {
        match outcome {
            Outcome::Done => "done".into(),
            Outcome::NoAnswer => "no answer on this path".into(),
            Outcome::Flushed => "the queue pair had failed".into(),
            Outcome::Failed(status) => self.device.verbs.status(status),
        }
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: queue pairs hold this, and so are gone; no event is left unacknowledged.
        unsafe {
            (self.device.verbs.call.destroy_cq)(self.cq);
            (self.device.verbs.call.destroy_comp_channel)(self.channel);
        }
    }
}

fn completion(entry: &Wc) -> Completion {
    let outcome = match entry.status {
        wc::SUCCESS => Outcome::Done,
        wc::RETRY_EXC_ERR | wc::RNR_RETRY_EXC_ERR => Outcome::NoAnswer,
        wc::WR_FLUSH_ERR => Outcome::Flushed,
        status => Outcome::Failed(status),
    };
    let work = match entry.opcode {
        wc::OP_SEND => Work::Send,
        wc::OP_RDMA_WRITE => Work::Write,
        wc::OP_RDMA_READ => Work::Read,
        wc::OP_RECV => Work::Receive,
        wc::OP_RECV_RDMA_WITH_IMM => Work::Written(u32::from_be(entry.imm_data)),
        _ => Work::Other,
    };
    let (id, queue_pair, bytes) = (entry.wr_id, entry.qp_num, entry.byte_len);
    Completion { id, queue_pair, outcome, work, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    /// Drivers pin their queues, and a container that may pin 64 KiB fails there first.
    #[test]
    fn queues_that_cannot_be_pinned_say_so() {
        for (why, says) in [("ENOMEM", true), ("EIO", false)] {
            let source = format!(
                "static struct {{ void *of; int fd, count; }} channel = {{ .fd = -1 }};
                void *ibv_create_comp_channel(void *context) {{ return &channel; }}
                void *ibv_create_cq(void *context) {{ return errno = {why}, NULL; }}"
            );
            let defined = ["ibv_create_comp_channel", "ibv_create_cq"];
            let device = fake::device(fake::library(&source, &defined));
            let error = CompletionQueue::new(&device, 64).expect_err("there is none").to_string();
            assert!(error.starts_with("64 completions of fake"), "{error}");
            assert_eq!(error.contains("ulimit -l"), says, "{error}");
        }
    }
}
