"""The windows of a period: what state each has, what was counted in it, what is left out."""
