//! Topology files in SimAI's format, numbered as its generator does: GPUs, NVSwitches, leaves, spines.

// The tests of two crates share it.
#![allow(unreachable_pub, dead_code)]

/// A leaf-spine with servers, or several.
#[derive(Clone, Copy, Debug)]
pub struct SimaiFile {
    pub servers: u32,
    /// GPUs of a server.
    pub gpus: u32,
    /// NVSwitches of a server.
    pub nvswitches: u32,
    /// Whether the GPUs of a server are at different leaves.
    pub rails: bool,
    /// GPUs of a leaf.
    pub under: u32,
    /// Spines of each plane.
    pub spines: u32,
    /// Leaves that each GPU is at.
    pub tors: u32,
    /// Whether these meet in the same spines.
    pub meet: bool,
}

/// Two servers of two GPUs on rails, under two spines.
pub const SMALL: SimaiFile = SimaiFile {
    servers: 2,
    gpus: 2,
    nvswitches: 1,
    rails: true,
    under: 2,
    spines: 2,
    tors: 1,
    meet: true,
};

impl SimaiFile {
    /// The leaf of a GPU among those of one of its ports.
    pub fn leaf(&self, gpu: u32) -> u32 {
        match self.rails {
            true => gpu / self.gpus / self.under * self.gpus + gpu % self.gpus,
            false => gpu / self.under,
        }
    }

    /// The file, with links of 400 and 200 Gb/s between GPUs and to leaves, 800 Gb/s above.
    pub fn text(&self) -> String {
        let SimaiFile { servers, gpus, nvswitches, spines, tors, .. } = *self;
        let all = servers * gpus;
        let leaves = 1 + self.leaf(all - 1);
        let planes = if self.meet { 1 } else { tors };
        let first_leaf = all + servers * nvswitches;
        let first_spine = first_leaf + leaves * tors;
        let mut links = Vec::new();
        for gpu in 0..all {
            for nvswitch in 0..nvswitches {
                let nvswitch = all + gpu / gpus * nvswitches + nvswitch;
                links.push(format!("{gpu} {nvswitch} 400Gbps 0.000025ms 0"));
            }
            for tor in 0..tors {
                let leaf = first_leaf + tor * leaves + self.leaf(gpu);
                links.push(format!("{gpu} {leaf} 200Gbps 0.0005ms 0"));
            }
        }
        for leaf in 0..leaves * tors {
            let plane = leaf / leaves % planes;
            for spine in plane * spines..(plane + 1) * spines {
                let (leaf, spine) = (first_leaf + leaf, first_spine + spine);
                links.push(format!("{leaf} {spine} 800Gbps 0.001ms 0"));
            }
        }
        let nodes = first_spine + spines * planes;
        let switches: Vec<String> = (all..nodes).map(|switch| switch.to_string()).collect();
        let counts = format!("{nodes} {gpus} {} {}", servers * nvswitches, nodes - first_leaf);
        format!("{counts} {} H100\n{} \n{}\n", links.len(), switches.join(" "), links.join("\n"))
    }
}
