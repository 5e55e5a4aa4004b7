"""The benchmark: workloads, the contenders that run them, and what is said about the results."""
