"""Plans of jobs on clusters: which way every piece takes, and how good that is.

| module | what it does |
|---|---|
| `make` | a cluster and a job to a plan |
| `file` | the plan file |
| `network` | the ways of pieces and the loads of links, from a plan file alone |
| `verify` | recomputes loads, and compares |
| `certificate` | whether what forces a bound does |
| `described` | whether a plan is of the cluster and the job in its file |
| `optimum` | the exact optimum, by a linear program |
| `hosts` | queue pairs, source ports and environment of each host |
| `show` | what the command prints |
| `plot` | link loads as a picture |

The core plans (`crates/plan`); `network`, `verify` and `certificate` share no code with it.
"""
