//! Extended headers: what packets say that have more to say than three words. A packet has the place of
//! its header where its number was.
//!
//! Answers have one where loss recovery reports ([`weft_transport::RecoveryConfig::reports`]), data where
//! receivers grant credit, too.

use crate::config::RunConfig;
use crate::losses::Losses;
use crate::packet::{Kind, Packet};
use crate::partition::ReceiverId;
use crate::places::Places;
use weft_transport::Report;

/// An extended header.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Header {
    /// Of an acknowledgement or a NACK.
    Report {
        /// Number of the packet that it answers.
        seq: u32,
        /// That had left before.
        is_resent: bool,
        /// What is here.
        report: Report,
        /// What the request that it answers was for.
        request: Option<Ask>,
    },
    /// Of data that wants credit.
    Data {
        /// Its number.
        seq: u32,
        /// All the credit that its queue pair wants.
        target: u32,
    },
    /// A packet of its own for a sender: all the credit that it was granted.
    Pull(u32),
    /// A packet of its own for a receiver, which is to report.
    Request {
        /// Which.
        receiver: ReceiverId,
        /// The credit that its sender wants.
        target: Option<u32>,
        /// What for.
        ask: Ask,
    },
}

/// Why a sender asks its receiver to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// It has something to send, and must not, with so many packets out.
    Stuck(u32),
    /// A probe of what is missing, with its number.
    Probe(u32),
    /// A probe of a path.
    Path,
}

/// Those of the packets in one partition.
#[derive(Debug)]
pub(crate) struct Headers {
    places: Places<Header>,
    on_data: bool,
}

impl Headers {
    /// `None`: no packet of the run has any.
    pub(crate) fn new(config: &RunConfig) -> Option<Headers> {
        let on_data = config.transport.congestion.grants_credit();
        let places = Places::default();
        config.transport.recovery.reports().then_some(Headers { places, on_data })
    }
    /// Whether data has one.
    #[inline(always)]
    pub(crate) fn are_on_data(&self) -> bool {
        self.on_data
    }
    /// Whether `packet` has one.
    #[inline(always)]
    pub(crate) fn are_on(&self, packet: &Packet) -> bool {
        match packet.kind() {
            Kind::Data => self.on_data && !packet.is_segment(),
            Kind::Ack | Kind::Nack => true,
            Kind::TorControl | Kind::Pfc => false,
        }
    }
    /// The number of a data packet that has one.
    pub(crate) fn number(&mut self, packet: &Packet) -> Option<u32> {
        match self.are_on_data().then(|| self.places.get(packet.header())) {
            Some(Header::Data { seq, .. }) => Some(*seq),
            _ => None,
        }
    }
    /// Returns the place.
    #[inline]
    pub(crate) fn put(&mut self, header: Header) -> u32 {
        self.places.put(header)
    }
    /// Takes it away.
    #[inline]
    pub(crate) fn take(&mut self, place: u32) -> Header {
        self.places.take(place)
    }
    /// Those of packets that were lost, off what was `lost`.
    pub(crate) fn count_but(&self, lost: usize) -> usize {
        self.places.count() - lost
    }
    /// Packets have been lost, and their headers with them.
    pub(crate) fn forget(&mut self, lost: &mut Losses) {
        while let Some(place) = lost.take_header() {
            self.places.take(place);
        }
    }
}
