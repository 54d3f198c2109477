"""The page that checks a bundle in a browser, without a server: its program, and how one file is assembled of it."""
