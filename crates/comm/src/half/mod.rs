//! The two halves of a channel, without clock and without sockets.
//!
//! | module | what it does |
//! |---|---|
//! | [`sender`] | matches sends with the receives of the other side, cuts them into the frames of lanes, keeps what is not acknowledged |
//! | [`receiver`] | tells the other side which buffers there are, says where each frame belongs, notices when all has come |
//!
//! A **lane** is a stream of numbered frames that outlives its connection: when a new one is there,
//! the receiver says how many frames it has, and the sender goes on with the next. So a byte is
//! never lost and never counted twice, whatever happens to connections. What the receiver has to
//! say needs no numbers: "clear to send" for a group of buffers may come twice, and is said again
//! over any lane until something shows that it has arrived.
//!
//! Neither half knows what carries frames: a connection does (`stream`), or RDMA may.

pub mod receiver;
pub mod sender;
