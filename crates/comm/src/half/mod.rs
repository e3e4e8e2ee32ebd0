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
//! **Eager** frames are small messages that go before a buffer for them was announced (MPI's eager protocol). The
//! sends with a tag fill the buffers with that tag in the order of posting, whatever else there is: so the receiver
//! knows the buffer of the n-th, keeps what comes before it was posted, and the sender knows which of the buffers
//! that it hears of later have their message. A sender that waits for buffers asks for announcements, and as long as
//! it waits nothing is eager; else they need not be in time.
//!
//! Neither half knows what carries frames: a connection does (`stream`), or RDMA may.

pub mod receiver;
pub mod sender;
