"""A leaf-spine of network namespaces on one machine, with real traffic: `weft testbed`.

`layout` says which namespaces, links and routes a cluster is, `failures` how links die. `rules`
makes leaves follow source ports, `bed` makes all that so. `session` runs a workload
through it: `agents` are its hosts, whose sockets are `crates/net`'s, `counters` what its links
carried, `measure` what to say about it.

`bench` measures collectives over the NCCL plugin on a bed of its own: `bench_session` conducts,
`ranks` are its processes.

Nothing outside the namespaces is touched. Linux, root and iproute2 are needed.
"""
