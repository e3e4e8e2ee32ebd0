"""A picture of a fabric: its switches and links, what fails, and what each link carries.

| module | what it does |
|---|---|
| `network` | the fabric as arrays: links between the same two ends summed up |
| `picture` | chooses how it is drawn, by its kind and size |
| `tiers` | a Clos, or another network in tiers, with every switch |
| `blocks` | a Clos of many switches: a block a pod, links as matrices |
| `ring` | a dragonfly with every switch |
| `torus` | a torus or mesh in perspective, or by layers |
| `graph` | any network by distances; as a matrix where there is too much to draw |
| `sketch` | collects the parts of a drawing |
| `of_results` | the picture of an experiment in its report |
"""
