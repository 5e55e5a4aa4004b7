"""Text to typed statements. This room knows grammar only: no catalog, no Spark.

``parser.parse`` reads a statement, ``query.parse_query`` a query. Nothing is imported here: sqlglot takes longer to
load than ``penstock status`` takes to answer.
"""
