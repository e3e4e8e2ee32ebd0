"""What Weft says without simulating anything.

| module | what it does |
|---|---|
| `keys` | what each key of an experiment means, and what it may be |
| `capacity` | the share of all demands that a fabric with failures carries |
| `paralet` | queue pairs and flowlets of ParaLet for a fabric |
| `trace_info` | what is in a trace, and whether it can run |
| `topology_info` | what is in a topology file, and whether it can be a fabric |
"""
