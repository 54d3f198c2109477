"""The transparency log as its operator keeps it: checkpoints, witnesses, checks, exports and restores."""
