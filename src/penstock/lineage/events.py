"""What OpenLineage events say of a refresh. A view is a job, each refresh of it a run, each Delta table a dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    JobFacet,
    OutputDatasetFacet,
    RunFacet,
    column_lineage_dataset,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    schema_dataset,
    sql_job,
    storage_dataset,
)

from penstock.catalog import ViewRecord, World
from penstock.engine.events import Began, Ended
from penstock.engine.report import ViewReport
from penstock.observe.column_lineage import lineage_of
from penstock.plan.lineage import Change, Lineage
from penstock.vocabulary import Status

_PRODUCER = "urn:penstock-spark"
_NAMESPACE = "OPENLINEAGE_NAMESPACE"
_STATES = {
    Status.SUCCEEDED: RunState.COMPLETE,
    Status.FAILED: RunState.FAIL,
    Status.SKIPPED: RunState.ABORT,
}


def event_of(event: Began | Ended, warehouse: str) -> RunEvent:
    began = event.began if isinstance(event, Ended) else event
    view, versions = began.world.views[began.view], event.versions if isinstance(event, Ended) else {}
    report = event.report if isinstance(event, Ended) else None
    return RunEvent(
        eventTime=event.at.isoformat(),
        eventType=_state(event),
        run=Run(began.id, _about(event)),
        job=Job(os.environ.get(_NAMESPACE, "penstock"), f"{os.path.basename(warehouse)}.{view.name}", _job(view)),
        inputs=[InputDataset(*named, facets=_read(versions.get(key))) for key, named in _inputs(began.world, view)],
        outputs=[_output(began.world, view, versions, report)],
        producer=_PRODUCER,
    )


def _state(event: Began | Ended) -> RunState:
    if isinstance(event, Began):
        return RunState.START
    return RunState.FAIL if event.report is None else _STATES[event.report.status]


def _about(event: Began | Ended) -> dict[str, RunFacet]:
    """What was done and why; of one that failed, what may be said of the error."""
    if isinstance(event, Began):
        return {}
    report = event.report
    error = "given up before anything was published" if report is None else report.told
    facets: dict[str, RunFacet] = {}
    if error is not None:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(error, "SQL", producer=_PRODUCER)
    if report is not None:
        told = {
            "action": str(report.action), "strategy": report.strategy and str(report.strategy), "epoch": event.epoch,
            "reason": str(report.reason), "run": event.run, "rowsInserted": report.rows_inserted,
            "rowsDeleted": report.rows_deleted, "seconds": round(report.seconds, 3),
        }  # fmt: skip
        known = {name: value for name, value in told.items() if value is not None}
        facets["penstock_refresh"] = RunFacet(producer=_PRODUCER).with_additional_properties(**known)  # type: ignore[assignment]
    return facets


def _job(view: ViewRecord) -> dict[str, JobFacet]:
    return {
        "sql": sql_job.SQLJobFacet(view.query, "spark", producer=_PRODUCER),
        "jobType": job_type_job.JobTypeJobFacet("BATCH", "PENSTOCK", "MATERIALIZED_VIEW", producer=_PRODUCER),
    }


def _inputs(world: World, view: ViewRecord) -> list[tuple[str, tuple[str, str]]]:
    return [(key, _named(_path(world, key))) for key in view.reads]


def _path(world: World, key: str) -> str:
    return world.tables[key].path if key in world.tables else world.nodes[key].path


def _named(path: str) -> tuple[str, str]:
    """Namespace and name of the dataset at a place, as OpenLineage has it for files.

    >>> _named("/data/orders"), _named("s3a://lake/orders")
    (('file', '/data/orders'), ('s3a://lake', 'orders'))
    """
    parts = urlsplit(path) if "://" in path else None
    return ("file", path) if parts is None else (f"{parts.scheme}://{parts.netloc}", parts.path.lstrip("/"))


def _read(version: int | None) -> dict[str, DatasetFacet]:
    stored = storage_dataset.StorageDatasetFacet("delta", "parquet", producer=_PRODUCER)
    if version is None:
        return {"storage": stored}
    return {
        "storage": stored,
        "version": dataset_version_dataset.DatasetVersionDatasetFacet(str(version), producer=_PRODUCER),
    }


def _output(world: World, view: ViewRecord, versions: Mapping[str, int], report: ViewReport | None) -> OutputDataset:
    done = report is not None and report.status == Status.SUCCEEDED
    facets = _read(versions.get(view.key) if done else None)
    columns = [
        schema_dataset.SchemaDatasetFacetFields(name, kind, comment, place)
        for place, (name, kind, comment) in enumerate(view.columns, 1)
    ]
    facets["schema"] = schema_dataset.SchemaDatasetFacet(columns, producer=_PRODUCER)
    found = lineage_of(world, view)
    if found is not None:
        facets["columnLineage"] = _columns(world, view, found)
    written: dict[str, OutputDatasetFacet] = {}
    if done and report is not None:
        written["outputStatistics"] = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=report.rows_inserted, size=report.bytes_written, producer=_PRODUCER
        )
    return OutputDataset(*_named(world.nodes[view.key].path), facets=facets, outputFacets=written)


def _columns(world: World, view: ViewRecord, found: Lineage) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    def field(origin: tuple[str, str], how: list[tuple[str, str]]) -> column_lineage_dataset.InputField:
        relation, column = origin
        steps = [column_lineage_dataset.Transformation(kind, subtype) for kind, subtype in how]
        return column_lineage_dataset.InputField(*_named(_path(world, relation)), column, steps)

    names = [name for name, _, _ in view.columns]  # which may be others than the query's
    fields = {
        name: column_lineage_dataset.Fields(
            [field(origin, [("DIRECT", Change(change).name)]) for origin, change in origins.items()]
        )
        for name, (_, origins) in zip(names, found.columns, strict=True)
    }
    rows = [field(origin, [("INDIRECT", by) for by in sorted(told)]) for origin, told in found.rows.items()]
    return column_lineage_dataset.ColumnLineageDatasetFacet(fields, rows, producer=_PRODUCER)
