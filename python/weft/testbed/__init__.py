"""A leaf-spine of network namespaces on one machine, with real traffic: `weft testbed`.

| module | what it does |
|---|---|
| `layout` | the namespaces, links, addresses and routes of a cluster, as lines for `ip` and `tc` |
| `failures` | how links fail and how they are repaired, likewise |
| `rules` | makes leaves follow source ports, with the files of `weft switch-config` |
| `bed` | builds, changes and removes a test bed |
| `operations` | `up`, `down`, `fail` and `run` |
| `session` | one run, in a process of its own |
| `host_processes` | the hosts of a run; their sockets are those of `crates/net` |
| `counters`, `metrics` | what the kernel counted at links; the results of a run |
| `bench`, `bench_session`, `rank_processes` | collectives over the NCCL plugin |
| `plan_input`, `scheme_options` | plan files, and options of schemes, as hosts need them |
| `show` | what the commands print |
| `system` | calls of Linux: `ip`, `tc`, `nft`, namespaces |

Nothing outside the namespaces is touched. Linux, root and iproute2 are needed.
"""
