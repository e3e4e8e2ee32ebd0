"""Figures: what they show, and drawing them with Matplotlib (files) and Plotly (`report.html`).

| module | what it does |
|---|---|
| `model` | what a figure shows, as plain data |
| `all_figures` | which figures an experiment gets |
| `metrics` | figures of result columns: completion times, losses, queues |
| `fct` | distributions of flow completion times |
| `collectives`, `queues`, `goodput`, `link_load` | one kind of figure each |
| `fabric` | the fabric itself, with what fails and how busy links are |
| `time_series` | units of curves over time |
| `axes`, `palette`, `subset` | limits and ticks, colours, which series and panels are shown |
| `draw_matplotlib`, `draw_plotly` | drawing; `drawing_matplotlib`, `drawing_plotly` drawings |
"""
