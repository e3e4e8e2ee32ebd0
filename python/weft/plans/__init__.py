"""Plans of jobs on clusters: which way every piece takes, and how good that is.

| module | what it does |
|---|---|
| `make` | a cluster and a job to a plan |
| `file` | the plan file |
| `network` | the ways of pieces and the loads of links, from a plan file alone |
| `verify` | recomputes loads and bounds, and compares |
| `optimum` | the exact optimum, by a linear program |
| `hosts` | queue pairs, source ports and environment of each host |
| `show` | what the command prints |
| `plot` | link loads as a picture |

The core plans (`crates/plan`); `network` and `verify` share no code with it.
"""
