"""Show a league as web pages: live from a server, or as a folder of files.

A page is made in three steps. `pages` reads rows of `reports` through `LeagueViews` and returns a `Page`: the name of a template and
its values. `templates` renders the page, and makes the addresses in it. `app` serves the result, or `report` writes it to a file.
`ratings` computes all figures, and `reports` makes the rows from them. The pages only count, round and arrange these figures.
"""
