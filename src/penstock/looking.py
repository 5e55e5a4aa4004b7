"""What a database tells of itself: how views stand, what was done to them, and how they are maintained.

Nothing here changes anything, and little of it starts Spark.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock.catalog import Catalog, HistoryRecord
from penstock.catalog.alerts import Alert
from penstock.errors import NotSupportedError
from penstock.observe.alerting import current_alerts
from penstock.observe.epochs import EpochSummary
from penstock.observe.epochs import epochs as view_epochs
from penstock.observe.explain import Explanation
from penstock.observe.graph import Graph
from penstock.observe.graph import graph as view_graph
from penstock.observe.statistics import ViewStatistics
from penstock.observe.statistics import statistics as view_statistics
from penstock.observe.status import ViewStatus
from penstock.observe.status import status as view_status
from penstock.observe.timeline import Timeline
from penstock.observe.timeline import timeline as epoch_timeline
from penstock.sql import statements as s
from penstock.warehouse import Warehouse

if TYPE_CHECKING:
    from penstock.observe.column_lineage import ColumnOrigin
    from penstock.observe.news import Follower
    from penstock.observe.verify import Verification


class Looking:
    """The part of a ``Database`` that only looks."""

    _at: Warehouse
    _catalog: Catalog

    def follow(self) -> Follower:
        """One who can be asked what is new: epochs, refreshes and alerts, whichever process made them."""
        from penstock.observe.news import Follower

        self._at.check_open()
        return Follower(self._catalog)

    def knows(self, name: str) -> bool:
        """Whether there is a table or view of a name here, be it the one that Spark's catalogs give to it."""
        self._at.check_open()
        return self._catalog.world().known_key(self._at.meant(name)) is not None

    def status(self) -> list[ViewStatus]:
        """One record a view, inputs before readers."""
        self._at.check_open()
        return view_status(self._catalog)

    def history(self, name: str | None = None, limit: int | None = None) -> list[HistoryRecord]:
        """What refreshes did, newest first."""
        self._at.check_open()
        return self._catalog.history(self._view_key(name), limit)

    def _view_key(self, name: str | None) -> str | None:
        return None if name is None else self._catalog.world().view_key(self._at.meant(name))

    def alerts(self, name: str | None = None) -> list[Alert]:
        """What somebody should know of, of one view or of all: first what goes on, then what is over."""
        self._at.check_open()
        return current_alerts(self._catalog, self._view_key(name))

    def statistics(self) -> dict[str, ViewStatistics]:
        """What the refreshes of each view came to, as far back as the history goes; by the view's name."""
        self._at.check_open()
        world = self._catalog.world()
        return {world.display_name(key): found for key, found in view_statistics(self._catalog).items()}

    def epochs(self, limit: int | None = None, before: int | None = None) -> list[EpochSummary]:
        """What each epoch was, newest first: what was due and why, what was done to each node, where the time went.

        ``before``: only those of a smaller number.
        """
        self._at.check_open()
        return view_epochs(self._catalog, limit, before)

    def timeline(self, epoch: int) -> Timeline:
        """One epoch in full: when each node was worked on, and on which of them the end hung."""
        self._at.check_open()
        return epoch_timeline(self._catalog, epoch)

    def verify(self, *names: str, sample: float | None = None) -> list[Verification]:
        """Compare views (all without names) with their queries, on the versions that they were computed from.

        ``sample`` is the share of rows to compare, such as 0.01; without it, all are.
        """
        from penstock.observe.verify import verify_views

        return verify_views(
            self._at.spark.session(), self._catalog.world(), [self._at.meant(name) for name in names], sample
        )

    def graph(self) -> Graph:
        """Tables and views and who reads whom; ``print`` it."""
        self._at.check_open()
        return view_graph(self._catalog)

    def column_lineage(self, name: str) -> dict[str, list[ColumnOrigin] | None]:
        """For each column of a view, where its values come from; None where its query has no plan."""
        from penstock.observe.column_lineage import columns_of

        self._at.check_open()
        world = self._catalog.world()
        view = world.views[world.view_key(self._at.meant(name))]
        known = columns_of(world, view)
        return {column: None if known is None else known[column] for column, _, _ in view.columns}

    def explain(self, name: str) -> Explanation:
        """How a view is maintained, or would be: takes a name or CREATE MATERIALIZED VIEW ..; ``print`` the answer."""
        from penstock.observe.explained import explain_known, explain_planned
        from penstock.sql.parser import parse

        self._at.check_open()
        world = self._catalog.world()
        if re.match(r"\s*CREATE\s", name, re.IGNORECASE):
            statement = parse(name, self._at.current)
            if not isinstance(statement, s.CreateView):
                raise NotSupportedError("explain takes the name of a view, or CREATE MATERIALIZED VIEW ..")
            self._at.progress("planning")
            return explain_planned(*self._at.engine.views.planned(world, statement))
        return explain_known(self._catalog, world, self._at.meant(name))
