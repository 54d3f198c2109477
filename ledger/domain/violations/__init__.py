"""What breaks an objective: violations, recovery from them, and the budget that is left before one."""
