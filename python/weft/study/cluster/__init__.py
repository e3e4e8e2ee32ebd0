"""Sweeps on workers of Dask: the same runs, the same store, other machines.

| module | what it does |
|---|---|
| `places` | finds or starts the scheduler and the workers that `--on` names |
| `dispatcher` | hands out runs to workers, and takes their results |
| `worker` | what a worker does |
| `files` | files that experiments name, for workers that do not have them |

Dask's scheduler carries messages and knows which workers there are. Which run goes where is decided
here: only this side knows how long runs take, and which workers have the same version of Weft.
"""
