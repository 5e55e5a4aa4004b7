"""SHOW, DESCRIBE and EXPLAIN: what this room knows, as DataFrames of text columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from penstock.catalog import Catalog, Definition, World
from penstock.catalog.checkpoints import Checkpoints
from penstock.engine.relations import as_frame, spark_plan
from penstock.engine.settings import in_force
from penstock.errors import InternalError
from penstock.frames.settings import own
from penstock.frames.spark.session import SparkOnDemand
from penstock.observe import creation, listings, models
from penstock.observe.alerting import current_alerts
from penstock.observe.explained import explain_known, explain_planned
from penstock.observe.listings import Listing
from penstock.observe.status import status
from penstock.sql import statements as s


@dataclass(frozen=True)
class Showing:
    """What it takes to answer: the catalog, and for some statements Spark, which starts when it is asked for."""

    catalog: Catalog
    spark: SparkOnDemand
    planned: Callable[[World, s.CreateView], tuple[World, Definition]]
    """How a view would be maintained."""
    query: Callable[[str], DataFrame]

    def show(self, statement: s.Statement) -> DataFrame:
        listing = self.listing(statement, self.catalog.world())
        return as_frame(self.spark.session(), listing.ddl, listing.rows)

    def listing(self, statement: s.Statement, world: World) -> Listing:
        match statement:
            case s.ShowTables(schema=schema):
                return listings.tables(world, listings.chosen(world, schema))
            case s.ShowViews(schema=schema):
                wanted = listings.chosen(world, schema)
                return listings.views(view for view in status(self.catalog) if wanted(view.name))
            case s.ShowPlainViews(schema=schema):
                return models.plain_views(world, listings.chosen(world, schema))
            case s.ShowModels(schema=schema):
                return models.read_models(world, listings.chosen(world, schema))
            case s.ShowSchemas():
                return listings.schemas(world)
            case s.DescribeView() if models.describes(world, statement.name):
                return models.description(world, statement.name)
            case s.ShowGroups():
                return listings.groups(world, self.catalog.published_epochs())
            case s.ShowCheckpoints():
                return listings.checkpoints(Checkpoints(self.catalog).all())
            case s.ShowWatermarks():
                return listings.watermarks(world)
            case s.ShowAlerts():
                return listings.alerts(world, current_alerts(self.catalog))
            case s.ShowSettings():
                return listings.settings(in_force(world.settings))
            case s.ShowDependencies():
                return listings.dependencies(world, statement.name)
            case s.ShowHistory():
                key = world.view_key(statement.name) if statement.name is not None else None
                return listings.history(world, self.catalog.history(key, statement.limit))
            case s.ShowCreate():
                return creation.listing(world, statement)
            case s.DescribeView():
                return listings.description(world, statement.name, own(self.spark).settings)
        return self._explained(statement, world)

    def _explained(self, statement: s.Statement, world: World) -> Listing:
        match statement:
            case s.ExplainView():
                return listings.lines("explanation", str(explain_known(self.catalog, world, statement.name)))
            case s.ExplainCreate():
                planned = explain_planned(*self.planned(world, statement.create))
                return listings.lines("explanation", str(planned))
            case s.ExplainQuery():
                return listings.lines("plan", spark_plan(self.query(statement.query), statement.mode))
        raise InternalError(f"no way to run {type(statement).__name__}")
