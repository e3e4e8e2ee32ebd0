"""Experiments: reading them, running what is missing, storing results, averaging over seeds.

| module | what it does |
|---|---|
| `inputs` | experiments from files, dicts, workload files and the command line |
| `default_fabric` | a fabric for a workload that names none |
| `fields` | typed reading of tables of an experiment file |
| `settings` | `[report]`, `[best]` and `[[printed]]`: how results are to be shown |
| `printed` | `[[printed]]`: results that a paper prints |
| `selection` | which runs have given values of keys |
| `study` | the experiments of one command, and the results in a directory |
| `sweep` | runs what is missing, several simulations side by side |
| `executor`, `cluster` | where runs are simulated: on threads here, or on workers of Dask |
| `merge` | results of several directories in one |
| `store` | results on disk and in memory |
| `best_value` | `[best]`: searches the best value of a swept key |
| `forecast`, `progress` | how long a sweep will still take; progress on standard error |
| `stats`, `averages` | means over seeds with confidence intervals; paired comparisons |
"""
