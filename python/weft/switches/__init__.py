"""Configurations of switches that keep packets to planned paths: `weft switch-config`.

| module | what it does |
|---|---|
| `ways` | the ways of `--enforce` |
| `segments` | which source ports go over which uplink |
| `addresses` | plain routes, and an address of each host for each path (RLB) |
| `port_names` | names of ports on platforms that count lanes |
| `advice` | what else a scheme wants of switches |
| `srv6` | micro segments, and how hosts wrap packets |
| `steering` | what each switch has to do, the same for every platform |
| `platform` | what a platform says of itself: its files and its limits |
| `platforms` | the platforms, a folder each with its templates |
| `config` | fills the templates of a platform |
"""
