//! Frames of a lane as bytes of a connection, without sockets.
//!
//! | module | what it does |
//! |---|---|
//! | [`outflow`] | headers and bodies from where they are, for one `writev` |
//! | [`inflow`] | bytes to where they belong, for one `readv` |
//! | [`sealed`] | the same bytes encrypted, where that is asked for |

pub mod inflow;
pub mod outflow;
pub mod sealed;
