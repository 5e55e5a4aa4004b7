"""When views refresh: triggers, lags, what is due, and the loop that does it."""
