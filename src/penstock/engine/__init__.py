"""The epoch: defining what is maintained, planning a refresh, running it, publishing it, recovering from a crash."""
