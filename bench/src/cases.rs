//! The cases: what is simulated. How they are set up stands in [`crate::stage`].

use crate::traffic::Traffic;
use weft_fabric::{Clos, Fabric, FabricError, Link};
use weft_transport::{Coding, RecoveryConfig, Trim, Uet};
use weft_units::{Rate, Time};

/// One thing to time.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) fabric: fn() -> Result<Fabric, FabricError>,
    pub(crate) traffic: Traffic,
    /// Payload of every message; of a job, of the whole buffer.
    pub(crate) bytes: u64,
    pub(crate) network: Network,
    /// Whether scaling is measured without being asked for.
    pub(crate) scaling: bool,
}

/// What the cases differ in beside fabric and traffic.
pub(crate) struct Network {
    /// The load balancer's name; with its usual options.
    pub(crate) scheme: &'static str,
    pub(crate) recovery: RecoveryConfig,
    pub(crate) memory: Memory,
}

/// What switches do with packets, and how senders go with it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    /// 400 KB a port, DCTCP.
    Deep,
    /// PFC on a shared buffer, DCTCP.
    Shared,
    /// Eight packets a port, senders paced at the fair share (McClure et al., 2025).
    Shallow,
    /// The same, with PFC at that length.
    ShallowPaused,
    /// The same, with trimming.
    ShallowTrimmed,
    /// A window of memory a port, with trimming, NSCC; with control ahead of data, as in UEC htsim, or not.
    Trimmed { control_first: bool },
}

const SPRAY: Network =
    Network { scheme: "spray", recovery: RecoveryConfig::SELECTIVE_REPEAT, memory: Memory::Deep };
const ECMP: Network =
    Network { scheme: "ecmp", recovery: RecoveryConfig::GO_BACK_N, memory: Memory::Shared };
const ETHEREAL: Network =
    Network { scheme: "ethereal", recovery: RecoveryConfig::GO_BACK_N, memory: Memory::Shared };

const STUDY: Network = Network {
    scheme: "spray-label",
    recovery: RecoveryConfig::Coding(Coding { overhead: 0.0, extra: 0 }),
    memory: Memory::Shallow,
};
const STUDY_PAUSED: Network = Network {
    scheme: "spray-label",
    recovery: RecoveryConfig::GO_BACK_N,
    memory: Memory::ShallowPaused,
};
const STUDY_TRIMMED: Network = Network {
    scheme: "spray-label",
    recovery: RecoveryConfig::Trim(Trim),
    memory: Memory::ShallowTrimmed,
};

const UET: Network = Network {
    scheme: "spray-mixed",
    recovery: RecoveryConfig::Uet(Uet { threshold: 16384, sleek: false }),
    memory: Memory::Trimmed { control_first: false },
};

const UET_PRIORITY: Network = Network { memory: Memory::Trimmed { control_first: true }, ..UET };

const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::us(1) };
const FAST_LINK: Link = Link { rate: Rate::gbps(400), delay: Time::ns(500) };

/// All cases, in the order in which they run.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "permutation-128",
        about: "permutation of 2 MB, 128 hosts (k = 8), DCTCP, host spray",
        fabric: || Fabric::build(&Clos::fat_tree(8, LINK)),
        traffic: Traffic::Permutation,
        bytes: 2_000_000,
        network: SPRAY,
        scaling: true,
    },
    Case {
        name: "permutation-1024",
        about: "permutation of 2 MB, 1024 hosts (k = 16), DCTCP, host spray",
        fabric: || Fabric::build(&Clos::fat_tree(16, LINK)),
        traffic: Traffic::Permutation,
        bytes: 2_000_000,
        network: SPRAY,
        scaling: true,
    },
    Case {
        name: "permutation-8192",
        about: "permutation of 2 MB, 8192 hosts (k = 32), DCTCP, host spray",
        fabric: || Fabric::build(&Clos::fat_tree(32, LINK)),
        traffic: Traffic::Permutation,
        bytes: 2_000_000,
        network: SPRAY,
        scaling: true,
    },
    Case {
        name: "all-to-all-128",
        about: "all-to-all of 200 KB a pair, 128 hosts (k = 8), DCTCP, host spray",
        fabric: || Fabric::build(&Clos::fat_tree(8, LINK)),
        traffic: Traffic::AllToAll,
        bytes: 200_000,
        network: SPRAY,
        scaling: true,
    },
    Case {
        name: "all-to-all-2mb-128",
        about: "all-to-all of 2 MB a pair, 128 hosts (k = 8), DCTCP, host spray",
        fabric: || Fabric::build(&Clos::fat_tree(8, LINK)),
        traffic: Traffic::AllToAll,
        bytes: 2_000_000,
        network: SPRAY,
        // Takes more than a minute; the smaller messages above tell the same.
        scaling: false,
    },
    Case {
        name: "lossless-permutation-128",
        about: "permutation of 2 MB, 128 hosts (k = 8), DCTCP, ECMP, go-back-N, PFC",
        fabric: || Fabric::build(&Clos::fat_tree(8, LINK)),
        traffic: Traffic::Permutation,
        bytes: 2_000_000,
        network: ECMP,
        scaling: true,
    },
    Case {
        name: "ethereal-256",
        about: "all-to-all of 200 KB a pair, 256 hosts (16 x 16 x 16), 400G, Ethereal, PFC",
        fabric: || Fabric::build(&Clos::leaf_spine(16, 16, 16, FAST_LINK)),
        traffic: Traffic::AllToAll,
        bytes: 200_000,
        network: ETHEREAL,
        scaling: true,
    },
    Case {
        name: "ethereal-all-reduce-256",
        about: "all-to-all all-reduce of 64 MB, 256 hosts (16 x 16 x 16), 400G, Ethereal, PFC",
        fabric: || Fabric::build(&Clos::leaf_spine(16, 16, 16, FAST_LINK)),
        traffic: Traffic::DirectAllReduce,
        // 64 MB over 256 hosts. Of the memory 200 MB are the 16.6 million dependencies, 8 bytes
        // each in the workload and 4 in the engine, which the budget knows nothing of.
        bytes: 250_000,
        network: ETHEREAL,
        scaling: false,
    },
    Case {
        name: "study-128",
        about: "all-to-all of 200 KB a pair, 128 hosts (k = 8), paced, coding, 8-packet buffers",
        fabric: || Fabric::build(&Clos::fat_tree(8, LINK)),
        traffic: Traffic::AllToAll,
        bytes: 200_000,
        network: STUDY,
        scaling: false,
    },
    Case {
        name: "study-1024",
        about: "permutation of 2 MB, 1024 hosts (k = 16), paced, coding, 8-packet buffers",
        fabric: || Fabric::build(&Clos::fat_tree(16, LINK)),
        traffic: Traffic::Permutation,
        bytes: 2_000_000,
        network: STUDY,
        scaling: false,
    },
    Case {
        name: "study-paused-128",
        about: "the same under PFC, with go-back-N",
        fabric: || Fabric::build(&Clos::fat_tree(8, LINK)),
        traffic: Traffic::AllToAll,
        bytes: 200_000,
        network: STUDY_PAUSED,
        scaling: false,
    },
    Case {
        name: "study-trimmed-128",
        about: "the same with trimming",
        fabric: || Fabric::build(&Clos::fat_tree(8, LINK)),
        traffic: Traffic::AllToAll,
        bytes: 200_000,
        network: STUDY_TRIMMED,
        scaling: false,
    },
    Case {
        name: "job-1024",
        about: "all-reduce of 16 MB by 1024 ranks, recursive doubling (k = 16), DCTCP, host spray",
        fabric: || Fabric::build(&Clos::fat_tree(16, LINK)),
        traffic: Traffic::RecursiveDoubling,
        bytes: 16_000_000,
        network: SPRAY,
        scaling: false,
    },
    Case {
        name: "one-plane-128",
        about: "permutation of 8 MB, 128 hosts (8 x 16 x 16), DCTCP, host spray",
        fabric: one_plane,
        traffic: Traffic::Permutation,
        bytes: 8_000_000,
        network: SPRAY,
        scaling: false,
    },
    Case {
        name: "one-plane-512",
        about: "the same hops over as many links as four planes have: 2 MB, 512 hosts (32 x 16 x 16)",
        fabric: || Fabric::build(&Clos::leaf_spine(32, 16, 16, LINK)),
        traffic: Traffic::Permutation,
        bytes: 2_000_000,
        network: SPRAY,
        scaling: false,
    },
    Case {
        name: "four-planes-128",
        about: "8 MB, 128 hosts (8 x 16 x 16) in four planes, DCTCP, host spray",
        fabric: || one_plane()?.in_planes(4),
        traffic: Traffic::Permutation,
        bytes: 8_000_000,
        network: SPRAY,
        scaling: false,
    },
    Case {
        name: "nscc-128",
        about: "permutation of 8 MB, 128 hosts (k = 8), UET: NSCC, mixed spray, trimming armed",
        fabric: || Fabric::build(&Clos::fat_tree(8, LINK)),
        traffic: Traffic::Permutation,
        bytes: 8_000_000,
        network: UET,
        scaling: false,
    },
    Case {
        name: "nscc-priority-128",
        about: "the same, with control ahead of data",
        fabric: || Fabric::build(&Clos::fat_tree(8, LINK)),
        traffic: Traffic::Permutation,
        bytes: 8_000_000,
        network: UET_PRIORITY,
        scaling: false,
    },
];

fn one_plane() -> Result<Fabric, FabricError> {
    Fabric::build(&Clos::leaf_spine(8, 16, 16, LINK))
}
