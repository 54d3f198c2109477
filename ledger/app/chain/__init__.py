"""What stands on a chain: terms, proved statements and batch roots, watched until they are final."""
