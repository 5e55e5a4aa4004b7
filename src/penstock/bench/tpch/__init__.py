"""TPC-H: its tables and its queries."""
