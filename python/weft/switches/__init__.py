"""Configurations of switches that steer by source port: `weft switch-config`.

| module | what it does |
|---|---|
| `segments` | which source ports go over which uplink |
| `steering` | what each switch has to do, the same for every platform |
| `platform` | what a platform says of itself: its files and its limits |
| `platforms` | the platforms, a folder each with its templates |
| `config` | fills the templates of a platform |
"""
