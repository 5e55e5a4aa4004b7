"""Text to typed statements. This room knows grammar only: no catalog, no Spark."""

from penstock.sql.parser import parse, split_script
from penstock.sql.query import parse_query, substitute_tables, table_names

__all__ = ["parse", "parse_query", "split_script", "substitute_tables", "table_names"]
