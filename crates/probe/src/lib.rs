//! Path discovery over real sockets, without privileges: a probe leaves from a bound socket with a small
//! time to live, and the kernel keeps the ICMP answer for the socket that it belongs to (`IP_RECVERR`).
//!
//! | module | what it does |
//! |---|---|
//! | [`run`] | drives a [`Survey`] to its end |
//! | `sockets` | what probes leave from, over UDP and TCP |
//! | `answers` | the error queue of a socket |
//!
//! A UDP probe is a datagram to the port of the traffic; its payload is the header of a RoCEv2 packet with
//! a number behind, and no NIC takes it for one: there is no check sum. A TCP probe is the first packet of
//! a connection that is given up (Linux 5.10 and later answer without privileges).
//!
//! Linux only: other systems have no such queue.

#![cfg(target_os = "linux")]

mod answers;
mod sockets;

pub use sockets::{Prober, Protocol, Traffic};

use std::io;
use std::time::{Duration, Instant};
use weft_discover::{Step, Survey};
use weft_units::Time;

/// The longest time between two looks at what else there is to do.
const LOOK: Duration = Duration::from_millis(200);

/// Drives `survey` over the sockets of `prober` until all is known, or `go_on` says no, which is asked
/// every 200 ms at least. Returns how long it took.
///
/// # Errors
/// If sockets cannot be opened or polled: no descriptors, or an address that is not this host's.
pub fn run(
    survey: &mut Survey,
    prober: &mut Prober,
    mut go_on: impl FnMut(&Survey) -> bool,
) -> io::Result<Duration> {
    let start = Instant::now();
    let now = || Time(start.elapsed().as_nanos() as u64 * 1_000);
    let mut looked = Instant::now();
    loop {
        let wait = match survey.poll(now()) {
            Step::Send(probe) => {
                if !prober.send(probe)? {
                    survey.refused(probe);
                }
                Duration::ZERO
            }
            Step::Wait(until) => {
                Duration::from_nanos(now().until(until).0.div_ceil(1_000)).min(LOOK)
            }
            Step::Done => return Ok(start.elapsed()),
        };
        prober.wait(wait, |probe, reply| survey.answered(probe, reply))?;
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            if !go_on(survey) {
                return Ok(start.elapsed());
            }
        }
    }
}
