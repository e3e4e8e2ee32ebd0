//! What can go wrong.

use std::io;

/// Why a channel, listener or endpoint does not work. Each says what to do in one line.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum CommError {
    /// What was asked for makes no sense: a handle of somebody else, too many buffers.
    #[error("{0}")]
    Invalid(String),
    /// The system refused: no port, no memory, no device.
    #[error("{0}")]
    System(String),
    /// The other side is gone, or did what it must not.
    #[error("{0}")]
    Remote(String),
}

impl CommError {
    /// What the system refused, where, and what helps.
    pub(crate) fn system(what: impl std::fmt::Display, error: &io::Error) -> CommError {
        CommError::System(format!("{what}: {}", explain(error)))
    }
    /// Of a child of the process that opened the network.
    pub fn forked() -> CommError {
        CommError::System(
            "this process was forked from the one that opened the network, whose threads it does not \
             have; open it after the fork, or start processes anew (spawn)"
                .into(),
        )
    }
}

/// Whether it is this host that refuses, and no path or peer: trying elsewhere does not help.
pub(crate) fn is_local(error: &io::Error) -> bool {
    remedy(error).is_some()
}

/// An error of the system by name, and what helps.
pub(crate) fn explain(error: &io::Error) -> String {
    match remedy(error) {
        Some((name, remedy)) => format!("{name} ({error}); {remedy}"),
        None => error.to_string(),
    }
}

fn remedy(error: &io::Error) -> Option<(&'static str, &'static str)> {
    Some(match error.raw_os_error()? {
        libc::EMFILE => (
            "EMFILE",
            "this process has as many files and connections as it may: raise its limit (ulimit -n), or \
             use fewer channels or connections",
        ),
        libc::ENFILE => ("ENFILE", "this host has as many files as it may: raise fs.file-max"),
        libc::ENOBUFS => ("ENOBUFS", "this host has no memory for sockets: raise net.ipv4.tcp_mem"),
        libc::ENOMEM => ("ENOMEM", "this host has no memory left"),
        libc::ENOSPC => ("ENOSPC", "too much is watched: raise fs.epoll.max_user_watches"),
        libc::EADDRINUSE => ("EADDRINUSE", NO_PORT),
        libc::EADDRNOTAVAIL => ("EADDRNOTAVAIL", NO_PORT),
        libc::EACCES => ("EACCES", "this process may not do so: see the rules of this host"),
        libc::EPERM => ("EPERM", "this host does not let it leave: see its firewall"),
        libc::EFAULT => (
            "EFAULT",
            "the memory of a message is not there, or may not be written: keep it until its request is \
             done",
        ),
        _ => return None,
    })
}

const NO_PORT: &str = "no port is left, or the address is this host's no more: widen the range (of the \
                       cluster file, or net.ipv4.ip_local_port_range), or use fewer channels or \
                       connections";
