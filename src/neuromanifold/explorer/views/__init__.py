"""One module a view: what it shows, as JSON, and the code that gives the same answer."""
