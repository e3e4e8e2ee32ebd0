"""Path discovery: which source port takes which path, found out by probes of few hops.

`survey` asks the native core, which has the logic (`crates/discover`) and the sockets
(`crates/probe`); `peers` says who looks for whom, `table` keeps what was found, `named` knows it by
the names of a cluster, `everywhere` has all hosts of a cluster look, `show` prints.
"""
