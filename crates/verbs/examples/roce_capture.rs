//! Counts RoCEv2 packets that come in over the interfaces of this namespace, until a file appears.
//!
//!     roce_capture FILE SECONDS
//!
//! Prints a line for all packets alike: `packets INTERFACE SOURCE-ADDRESS SOURCE-PORT QUEUE-PAIR KIND
//! COUNT BYTES`; the queue pair is the receiving one, the kind `data` or `answer`.
#![expect(unsafe_code, reason = "a packet socket")]

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Error as SystemError;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant};

/// Packets that are alike.
type Kind = (String, Ipv4Addr, u16, u32, &'static str);

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [stop, seconds] = words.as_slice() else {
        return Err("usage: roce_capture FILE SECONDS".into());
    };
    let limit = Duration::from_secs(seconds.parse()?);
    let socket = open()?;
    let mut seen: BTreeMap<Kind, (u64, u64)> = BTreeMap::new();
    let start = Instant::now();
    let mut quiet = false;
    // What is still in the socket when the file appears counts too.
    while start.elapsed() < limit && !(quiet && Path::new(stop).exists()) {
        quiet = match next(socket)? {
            None => true,
            Some((interface, packet)) => {
                if let Some((address, port, pair, kind)) = roce(&packet) {
                    let count = seen.entry((interface, address, port, pair, kind)).or_default();
                    *count = (count.0 + 1, count.1 + packet.len() as u64);
                }
                false
            }
        };
    }
    for ((interface, address, port, pair, kind), (count, bytes)) in seen {
        println!("packets {interface} {address} {port} {pair} {kind} {count} {bytes}");
    }
    println!("packets lost by the capture: {}", lost(socket)?);
    Ok(())
}

/// A packet socket on all interfaces, without link headers, for what comes in, whose reads wait a tenth of a second.
fn open() -> Result<i32, SystemError> {
    let ip = (libc::ETH_P_IP as u16).to_be();
    // SAFETY: a plain system call.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM, i32::from(ip)) };
    if socket < 0 {
        return Err(SystemError::last_os_error());
    }
    let wait = libc::timeval { tv_sec: 0, tv_usec: 100_000 };
    let room: libc::c_int = 64 << 20;
    set(socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &wait)?;
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &room)?;
    Ok(socket)
}

fn set<T>(socket: i32, level: i32, name: i32, value: &T) -> Result<(), SystemError> {
    // SAFETY: `value` is read during the call only, for its own size.
    let code = unsafe {
        let start = std::ptr::from_ref(value).cast();
        libc::setsockopt(socket, level, name, start, size_of::<T>() as u32)
    };
    if code == 0 { Ok(()) } else { Err(SystemError::last_os_error()) }
}

/// The next packet that comes in over an interface, with that interface's name; `None`: none came.
fn next(socket: i32) -> Result<Option<(String, Vec<u8>)>, SystemError> {
    let mut packet = vec![0_u8; 9000];
    // SAFETY: zeros are a valid address.
    let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut size = size_of::<libc::sockaddr_ll>() as u32;
    // SAFETY: both buffers are as long as they are said to be.
    let len = unsafe {
        let address = (&raw mut from).cast();
        libc::recvfrom(socket, packet.as_mut_ptr().cast(), packet.len(), 0, address, &mut size)
    };
    if len < 0 {
        let error = SystemError::last_os_error();
        return if error.kind() == std::io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
    }
    packet.truncate(len as usize);
    let mut name = [0_u8; libc::IF_NAMESIZE];
    // SAFETY: the buffer is as long as names can be.
    unsafe { libc::if_indextoname(from.sll_ifindex as u32, name.as_mut_ptr().cast()) };
    let len = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    Ok(Some((String::from_utf8_lossy(&name[..len]).into_owned(), packet)))
}

/// Source address and port, receiving queue pair and kind of a RoCEv2 packet (IPv4, UDP to port 4791;
/// InfiniBand's base transport header behind it).
fn roce(packet: &[u8]) -> Option<(Ipv4Addr, u16, u32, &'static str)> {
    let header = usize::from(packet.first()? & 15) * 4;
    let udp = packet.get(header..header + 8)?;
    let bth = packet.get(header + 8..header + 20)?;
    if packet[9] != 17 || udp[2..4] != 4791_u16.to_be_bytes() {
        return None;
    }
    let address = Ipv4Addr::new(packet[12], packet[13], packet[14], packet[15]);
    let port = u16::from_be_bytes([udp[0], udp[1]]);
    let pair = u32::from_be_bytes([0, bth[5], bth[6], bth[7]]);
    // Opcode 17 of reliable connections: acknowledgement.
    let kind = if bth[0] == 17 { "answer" } else { "data" };
    Some((address, port, pair, kind))
}

fn lost(socket: i32) -> Result<u32, SystemError> {
    let mut found = [0_u32; 2];
    let mut size = size_of_val(&found) as u32;
    // SAFETY: the buffer holds the two numbers that the option has.
    let code = unsafe {
        let start = found.as_mut_ptr().cast();
        libc::getsockopt(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, start, &mut size)
    };
    if code == 0 { Ok(found[1]) } else { Err(SystemError::last_os_error()) }
}
