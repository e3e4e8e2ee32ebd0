//! The tags of the packets in one partition. Few schemes have any.

use crate::packet::BeneathTag;
use crate::places::Places;
use weft_balance::tor::Tag;
use weft_units::HostId;

/// A tag, and what the packet had in its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tagged {
    pub(crate) beneath: BeneathTag,
    /// Who sent it.
    pub(crate) src: HostId,
    pub(crate) tag: Tag,
}

/// All of them, by place.
pub(crate) type Tags = Places<Tagged>;
