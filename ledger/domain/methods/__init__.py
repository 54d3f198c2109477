"""The published ways to turn counts per window into one result for a period, each named and versioned.

Every method is a pure function of the windows' counts and gives whole numbers: how much is good of how much is valid,
in the method's own unit. They are made so that every comparison with a threshold in parts per billion is exact.
"""
