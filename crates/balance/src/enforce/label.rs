//! IPv6 flow labels that stand for UDP source ports: how RDMA verbs let an application choose one.
//!
//! A queue pair is given a flow label of 20 bits when it is set ready to receive; the kernel or NIC
//! makes a RoCEv2 source port of it (`ibv_flow_label_to_udp_sport`).

/// The source port that `label`, of which 20 bits count, stands for. Zero stands for none: then the
/// numbers of the queue pairs are hashed.
pub const fn port_of_label(label: u32) -> u16 {
    let label = label & 0xF_FFFF;
    ((label & 0x3FFF) ^ (label >> 14)) as u16 | 0xC000
}

/// The smallest flow label other than zero that stands for `port`; `None`: the port is below RoCE's,
/// 0xC000.
pub const fn label_of_port(port: u16) -> Option<u32> {
    match port {
        0..0xC000 => None,
        // Zero means that none was chosen: a label whose two parts cancel.
        0xC000 => Some(0x4001),
        _ => Some(port as u32 - 0xC000),
    }
}
