// Scenarios to begin with: each differs from the first in what it says.

import { FAILURES } from "weft/scenario";

const collective = (name, algorithm, size) => ({ kind: "collective", name, keys: { algorithm, size } });
const leaf_spine = (leaves, spines, hosts_per_leaf) => ({
  name: "leaf-spine",
  keys: { leaves, spines, hosts_per_leaf, link: "400Gbps", delay: "500ns" },
});

/** `words` for the button; the rest goes over the first scenario. */
export const EXAMPLES = [
  { words: "64 GPUs, nothing fails" },
  {
    words: "a slow link",
    failure: { name: "slow", keys: FAILURES.slow.keys },
  },
  {
    words: "a link dies",
    failure: { name: "dead", keys: FAILURES.dead.keys },
    schemes: ["ecmp", "spray", "ethereal", "twill"],
  },
  {
    words: "256 GPUs",
    fabric: leaf_spine("16", "16", "16"),
    workload: collective("all-reduce", "recursive-doubling", "2MB"),
  },
  {
    words: "all-to-all on a fat-tree",
    fabric: { name: "fat-tree", keys: { k: "8", link: "400Gbps", delay: "500ns" } },
    workload: collective("all-to-all", "direct", "1MB"),
  },
  {
    words: "incast",
    workload: { kind: "pattern", name: "incast", keys: { size: "256KB", senders: "32" } },
    schemes: ["ecmp", "spray"],
  },
];
