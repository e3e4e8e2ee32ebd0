"""What jobs move right now, by peer and path: `weft top`.

`sources` reads the counters of processes, `rates` makes bytes per second of two readings, `show`
makes lines of them, and `watch` does it again and again.
"""
