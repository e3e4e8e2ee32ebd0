//! A proxy between two endpoints that does to connections what bad networks do.

#![allow(dead_code, reason = "each test file uses some of it")]

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weft_comm::Handle;
use weft_comm::handle::Parts;

/// Bytes that are kept.
const MOST_HEARD: usize = 200_000;

/// What befalls a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// After so many bytes either way it is closed.
    Cut(u64),
    /// After so many bytes it is reset: what was not delivered is lost.
    Reset(u64),
    /// After so many bytes one bit is the wrong one.
    Flip(u64),
    /// After so many bytes nothing comes for a while.
    Stall(u64, Duration),
    /// What comes without a pause of so long arrives all at once.
    Gather(Duration),
}

/// A proxy, as long as the process lives.
#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    /// Connections taken, and faults done.
    pub(crate) taken: Arc<AtomicU64>,
    pub(crate) done: Arc<AtomicU64>,
    /// The first bytes of what senders said.
    pub(crate) heard: Arc<Mutex<Vec<u8>>>,
    /// The first bytes of what receivers answered.
    pub(crate) answered: Arc<Mutex<Vec<u8>>>,
}

impl Proxy {
    /// To where `handle` leads; `fault` says what befalls the n-th connection. Returns a handle
    /// that leads to the proxy.
    pub(crate) fn before(
        handle: &Handle,
        fault: impl Fn(u64) -> Fault + Send + 'static,
    ) -> (Proxy, Handle) {
        let parts = Parts::decode(handle).expect("a handle");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let SocketAddr::V4(address) = listener.local_addr().expect("bound") else {
            panic!("IPv4 was asked for");
        };
        let (taken, done) = Default::default();
        let (heard, answered) = Default::default();
        let proxy = Proxy { taken, done, heard, answered };
        let Proxy { taken, done, heard, answered } = proxy.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let fault = fault(taken.fetch_add(1, Ordering::SeqCst));
                let Ok(far) = TcpStream::connect(parts.address) else { continue };
                let there = (near.try_clone().expect("cloned"), far.try_clone().expect("cloned"));
                let done = done.clone();
                let done_too = done.clone();
                let (heard, answered) = (heard.clone(), answered.clone());
                std::thread::spawn(move || carry(there.0, there.1, (fault, Some(&heard)), &done));
                // Answers are few: faults come early, or never.
                let back = match fault {
                    Fault::Cut(at) => Fault::Cut(at / 20),
                    Fault::Flip(at) => Fault::Flip(at / 20),
                    _ => Fault::None,
                };
                std::thread::spawn(move || carry(far, near, (back, Some(&answered)), &done_too));
            }
        });
        (proxy, Parts { address, ..parts }.encode())
    }
}

fn carry(
    mut from: TcpStream,
    mut to: TcpStream,
    (fault, heard): (Fault, Option<&Mutex<Vec<u8>>>),
    done: &AtomicU64,
) {
    match fault {
        Fault::Gather(pause) => gather(&mut from, &mut to, pause, done),
        _ => forward(&mut from, &mut to, (fault, heard), done),
    }
    if matches!(fault, Fault::None | Fault::Stall(..)) {
        // The other way goes on.
        let _ = to.shutdown(Shutdown::Write);
        return;
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

fn forward(
    from: &mut TcpStream,
    to: &mut TcpStream,
    (mut fault, heard): (Fault, Option<&Mutex<Vec<u8>>>),
    done: &AtomicU64,
) {
    let mut buffer = vec![0; 64 << 10];
    let mut all = 0;
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if let Some(heard) = heard {
            let mut heard = heard.lock().expect("nobody panics with it");
            let room = MOST_HEARD.saturating_sub(heard.len());
            heard.extend_from_slice(&buffer[..count.min(room)]);
        }
        let (mut start, end) = (0, count);
        let within = |at: u64| (all..all + count as u64).contains(&at).then(|| (at - all) as usize);
        match fault {
            Fault::Cut(at) | Fault::Reset(at) if within(at).is_some() => {
                let keep = within(at).expect("just seen");
                let _ = to.write_all(&buffer[..keep]);
                done.fetch_add(1, Ordering::SeqCst);
                if matches!(fault, Fault::Reset(_)) {
                    for stream in [&*from, &*to] {
                        let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
                    }
                }
                break;
            }
            Fault::Flip(at) => {
                if let Some(place) = within(at) {
                    buffer[place] ^= 1 << (at % 8);
                    done.fetch_add(1, Ordering::SeqCst);
                }
            }
            Fault::Stall(at, time) => {
                if let Some(place) = within(at) {
                    let _ = to.write_all(&buffer[..place]);
                    start = place;
                    done.fetch_add(1, Ordering::SeqCst);
                    std::thread::sleep(time);
                    fault = Fault::None;
                }
            }
            _ => {}
        }
        if to.write_all(&buffer[start..end]).is_err() {
            break;
        }
        all += count as u64;
    }
}

fn gather(from: &mut TcpStream, to: &mut TcpStream, pause: Duration, done: &AtomicU64) {
    let (mut buffer, mut have) = (vec![0; 64 << 20], 0);
    from.set_read_timeout(Some(pause)).expect("a pause");
    loop {
        match from.read(&mut buffer[have..]) {
            Ok(count @ 1..) => have += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                done.fetch_add(u64::from(have > 0), Ordering::SeqCst);
                if to.write_all(&buffer[..std::mem::take(&mut have)]).is_err() {
                    break;
                }
            }
            _ => break,
        }
    }
}
