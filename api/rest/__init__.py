"""REST: the routes, and the shapes they answer with."""
