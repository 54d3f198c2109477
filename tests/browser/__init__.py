"""A package, so that what its fixtures start ends with its tests: pytest scopes nothing to a folder alone."""
