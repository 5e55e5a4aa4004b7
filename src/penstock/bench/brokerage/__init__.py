"""The warehouse of a brokerage: its tables, generated, and its views, from staging to marts."""
