"""Configurations of switches that steer by source port: `weft switch-config`.

| module | what it does |
|---|---|
| `segments` | which source ports go over which uplink |
| `steering` | what each switch has to do, the same for every platform |
| `platforms` | the platforms, their files and their limits |
| `config` | fills the templates of a platform (`templates`) |
"""
