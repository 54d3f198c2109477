"""What is handed to third parties: evidence bundles, and the log in files."""
