"""Plan files: which path every piece of a job takes on a cluster, and how good that is.

| module | what it does |
|---|---|
| `make` | plans a job on a cluster |
| `file`, `folder` | reads and writes the plan file, and what else `weft plan -o` leaves |
| `network` | the paths of pieces and the loads of links, from a plan file alone |
| `verify` | computes loads and bounds again, and compares |
| `certificate` | checks the proof of the lower bound of a step |
| `consistency` | checks a plan against the cluster and the job in its file |
| `for_switches` | what switches need of a plan, or of a cluster and a scheme |
| `hosts` | queue pairs, source ports and environment of each host |
| `show`, `plot` | what `weft plan` prints, and link loads as a picture |

The core plans (`crates/plan`); `network`, `verify` and `certificate` share no code with it.
"""
