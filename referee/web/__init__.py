"""Show a league as web pages: live from a server, or as a folder of files.

A page is made in three steps. `pages` reads rows of `reports` through `LeagueViews` and returns a `Page`: the name of a template and
its values. `templates` renders it with the addresses that it names. `app` serves the result, or `report` writes it to a file.
`ratings` computes the figures and `reports` makes rows of them. The pages only count, round and arrange them.
"""
