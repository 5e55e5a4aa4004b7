"""A warehouse of ten thousand views, on paper: ``python -m penstock.bench.ten_thousand`` prints what it comes to.

The real pieces are measured on a catalog of that size (``pieces``), and with what they take, days of schedulers are
played (``play``). No Spark and no data: only definitions, states, moments and logs of tables. docs/deploy.md draws the
conclusions.
"""
