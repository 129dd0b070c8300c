"""The explorer: the library as a local web page.

A page of plain modules asks a small server; the server checks who asks (`guard`), keeps the files
it was given (`session`), answers at once what needs no array, and hands everything else to worker
processes (`jobs`). `views` holds one module a view: what it shows, as JSON, with the Python and the
command that give the same answer. There is no mathematics here.
"""
