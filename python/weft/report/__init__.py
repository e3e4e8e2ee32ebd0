"""Results for readers: tables, summaries, `report.html`, timelines. Figures are in `figures`.

| module | what it does |
|---|---|
| `grouping` | which runs belong together in tables and figures |
| `views` | the results of one experiment in the shape in which they are shown |
| `column_text` | titles, units and numbers of result columns |
| `usual_columns` | the usual columns of the table |
| `tables` | the table of results |
| `overview` | one table and one heat map of all scenarios |
| `printed_comparison`, `printed_table` | printed results compared with measured ones; the table |
| `summary` | `summary.json` |
| `html` | `report.html` |
| `timeline` | what every rank did when, for the Perfetto UI |
"""
