//! What passes from one partition to another between two epochs.

use crate::event::Event;
use crate::headers::Header;
use crate::partition::ReceivingId;
use crate::tor::Tagged;
use weft_units::{HostId, MessageId, Time};
use weft_workload::job::Receipt;

/// From one partition to another, within one epoch.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    /// At the receiving partition, not before the epoch's end.
    pub(crate) events: Vec<Event>,
    /// Messages of ranks, before their queue pairs.
    pub(crate) announcements: Vec<Announcement>,
    pub(crate) openings: Vec<Opening>,
    /// Of the packets among the events that have one.
    pub(crate) tags: Vec<Tagged>,
    /// The same for extended headers.
    pub(crate) headers: Vec<Header>,
    /// When the first of the events is.
    first: Option<Time>,
}

/// A queue pair has been opened: what its receiving half is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) src: HostId,
    /// The sending half, as the partition of `src` numbers it.
    pub(crate) sender: u32,
    /// The place of the receiving half among those of its partition pair.
    pub(crate) number: u32,
    pub(crate) message: ReceivingId,
    /// Payload, in bytes.
    pub(crate) bytes: u64,
}

/// A rank posts a message to one in another partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Announcement {
    /// Its place among the messages between the two partitions.
    pub(crate) number: u32,
    pub(crate) message: MessageId,
    /// Payload, in bytes.
    pub(crate) bytes: u64,
    pub(crate) posted: Time,
    /// The receiving rank, numbered through all jobs.
    pub(crate) rank: u32,
    pub(crate) receipt: Receipt,
    /// The GPU that passes it on to that rank, if one does.
    pub(crate) relay: Option<u32>,
}

impl Mail {
    #[inline(always)]
    pub(crate) fn push(&mut self, event: Event) {
        if self.first.is_none_or(|first| event.time < first) {
            self.first = Some(event.time);
        }
        self.events.push(event);
    }
    /// A packet with this tag goes too. Returns the place of the tag.
    pub(crate) fn add_tag(&mut self, tag: Tagged) -> u32 {
        self.tags.push(tag);
        self.tags.len() as u32 - 1
    }
    /// A packet with this extended header goes too. Returns the place of the header.
    pub(crate) fn add_header(&mut self, header: Header) -> u32 {
        self.headers.push(header);
        self.headers.len() as u32 - 1
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.openings.is_empty() && self.announcements.is_empty()
    }
    /// When the first event is, if there is one.
    pub(crate) fn first(&self) -> Option<Time> {
        self.first
    }
    /// Forgets everything, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.events.clear();
        self.openings.clear();
        self.tags.clear();
        self.headers.clear();
        self.announcements.clear();
        self.first = None;
    }
}
