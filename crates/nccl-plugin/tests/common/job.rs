//! Jobs of several ranks, each a process of its own with a plugin of its own, as NCCL has them. What NCCL's
//! bootstrap carries goes over the meeting of `weft bench-net`.

#![allow(dead_code, unreachable_pub, reason = "each test uses some of it")]

use super::{PATIENCE, Pair, environment, net, until};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use weft_nccl_abi::{HANDLE_BYTES, Version};
use weft_net_bench::meet::Meeting;
use weft_net_bench::table::Net;

const RANK: &str = "PLUGIN_TEST_RANK";
const MEET: &str = "PLUGIN_TEST_MEET";
/// No job here takes longer, whatever happens to it.
const LIMIT_S: u32 = 60;

/// A job: how many ranks, with which version of the plugin's interface, and what is particular to it.
pub struct Job<'a> {
    /// The test that runs it.
    pub test: &'a str,
    pub ranks: usize,
    pub version: Version,
    /// Variables of all ranks.
    pub variables: &'a [(&'a str, &'a str)],
    /// Ranks that somebody kills.
    pub killed: &'a [usize],
}

impl Job<'_> {
    pub const USUAL: Job<'static> =
        Job { test: "", ranks: 2, version: Version::V12, variables: &[], killed: &[] };

    /// Runs `work`, the only one of the test, in every rank, all of which are to end well; what each has said on standard error. In a
    /// rank it does not return.
    pub fn run(&self, work: impl FnOnce(&mut Rank, &Net)) -> Vec<String> {
        if let Ok(rank) = std::env::var(RANK) {
            be(&rank, work);
        }
        let meet = TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr());
        let meet = meet.expect("a port").to_string();
        let start = |rank: usize| {
            Command::new(std::env::current_exe().expect("a test"))
                .args([self.test, "--exact", "--nocapture"])
                .envs(self.variables.iter().copied())
                .env(RANK, format!("{rank} {} {}", self.ranks, self.version.name()))
                .env(MEET, &meet)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .expect("it starts")
        };
        let mut all: Vec<_> = (0..self.ranks).map(start).enumerate().collect();
        all.sort_by_key(|(rank, _)| self.killed.contains(rank));
        let mut ends = Vec::new();
        for (rank, mut process) in all {
            if self.killed.contains(&rank) {
                // Whatever became of the ranks that wanted to.
                process.kill().expect("it is ours");
            }
            ends.push((rank, process.wait_with_output().expect("it ends")));
        }
        ends.sort_by_key(|(rank, _)| *rank);
        ends.into_iter().map(|(rank, end)| self.said(rank, &end)).collect()
    }

    fn said(&self, rank: usize, end: &Output) -> String {
        let said = String::from_utf8_lossy(&end.stderr).into_owned();
        let well = match self.killed.contains(&rank) {
            true => end.status.signal() == Some(libc::SIGKILL),
            false => end.status.success(),
        };
        assert!(well, "{}: rank {rank} of {}: {}:\n{said}", self.test, self.ranks, end.status);
        said
    }
}

/// Is the rank that `which` tells of.
fn be(which: &str, work: impl FnOnce(&mut Rank, &Net)) -> ! {
    // SAFETY: it takes a number. Nobody waits for a rank that hangs.
    unsafe { libc::alarm(LIMIT_S) };
    environment(&[]);
    let [rank, ranks, version] = which.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{which}")
    };
    let [rank, ranks] = [rank, ranks].map(|number| number.parse().expect("a number"));
    let version = Version::ALL.into_iter().find(|one| one.name() == version).expect("it is there");
    let net = net(version);
    let meet = std::env::var(MEET).expect("where ranks meet");
    let meeting = Meeting::join(&meet, rank, ranks, PATIENCE).expect("all come");
    work(&mut Rank { rank, ranks, meeting }, &net);
    net.finalize().expect("it ends");
    std::process::exit(0);
}

/// One rank of a job.
pub struct Rank {
    pub rank: usize,
    pub ranks: usize,
    meeting: Meeting,
}

impl Rank {
    /// The rank so many places further on.
    pub fn after(&self, places: usize) -> usize {
        (self.rank + places) % self.ranks
    }
    /// Waits for all.
    pub fn barrier(&mut self) {
        self.meeting.barrier().expect("all are there");
    }
    /// What every rank says, by rank.
    pub fn share(&mut self, own: &[u8]) -> Vec<Vec<u8>> {
        self.meeting.share(own).expect("all are there")
    }
    /// The processes of all.
    pub fn processes(&mut self) -> Vec<i32> {
        let all = self.share(&std::process::id().to_le_bytes());
        all.iter().map(|id| i32::from_le_bytes(id[..].try_into().expect("four"))).collect()
    }

    /// A channel to the rank `places` further on and one from the rank as far back, with so many bytes of
    /// buffer: all listen, tell, connect and accept.
    pub fn ring<'a>(&mut self, net: &'a Net, places: usize, room: usize) -> Pair<'a> {
        let (handle, listener) = net.listen(0).expect("it listens");
        let all = self.share(&handle);
        let pair = join(net, handle_of(&all[self.after(places)]), listener, room);
        // SAFETY: it is open, and asked no more.
        unsafe { net.close_listen(listener).expect("it closes") };
        pair
    }
}

/// What a rank has said, as a handle.
pub fn handle_of(said: &[u8]) -> [u8; HANDLE_BYTES] {
    said.try_into().expect("a handle")
}

/// Connects to where `its` leads while it accepts whoever comes to the listener.
pub fn join(
    net: &Net,
    mut its: [u8; HANDLE_BYTES],
    listener: *mut std::ffi::c_void,
    room: usize,
) -> Pair<'_> {
    let mut send: *mut std::ffi::c_void = std::ptr::null_mut();
    let mut receive = send;
    until("connecting", || {
        if send.is_null() {
            send = net.connect(0, &mut its).expect("it connects");
        }
        if receive.is_null() {
            // SAFETY: the listener is open.
            receive = unsafe { net.accept(listener).expect("it accepts") };
        }
        (!send.is_null() && !receive.is_null()).then_some(())
    });
    Pair::of(net, (send, receive), room)
}

/// Sleeps.
pub fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// Sends a signal.
pub fn signal(process: i32, signal: i32) {
    // SAFETY: it takes numbers; the process is one of this job.
    assert_eq!(unsafe { libc::kill(process, signal) }, 0, "signal {signal}");
}
