"""The tables and figures of the four papers, as data (papers.toml), and the one driver that makes them all.

tables.py reads what is printed and how each row is made; scale.py says on what data and with which settings;
making.py makes trainings, vectors and refiners, each once; measuring.py scores a row; results.py keeps what was
measured; drawing.py draws what the papers show as figures; tables become Markdown in markdown.py; driver.py does all of
it for one table, row by row.
"""
