"""`rocsteady report`: rows of measures as one HTML page that needs no network.

`report` writes the page; `rows` reads rows, `data` packs them for the `page` (its HTML, style and scripts).
`html`, `measures`, `changes` and `worth` make the parts that need no script; `comparisons`,
`comparisons_html` and `cd_diagram` the comparison.
"""
