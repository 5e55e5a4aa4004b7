"""What tells that a file is gone."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PySparkException

from penstock.engine.missing import missing_file
from penstock.storage.delta_log import HistoryGone

PART = "/data/t/part-0 0.parquet"


@pytest.mark.parametrize(
    "message",
    [
        "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file:///data/t/part-0%200.parquet. "
        "File does not exist. It is possible the underlying files have been updated.",
        "[PATH_NOT_FOUND] Path does not exist: file:/data/t/part-0 0.parquet. SQLSTATE: 42K03",
        "Job aborted: java.io.FileNotFoundException: File file:/data/t/part-0 0.parquet does not exist",
    ],
)
def test_what_spark_says_of_a_missing_file(message: str) -> None:
    assert missing_file(PySparkException(message)) == PART


def test_what_others_say_of_one() -> None:
    vector = "File file:/data/t/deletion_vector_1.bin does not exist"
    assert missing_file(PySparkException(vector)) == "/data/t/deletion_vector_1.bin"
    assert missing_file(FileNotFoundError(2, "No such file or directory", PART)) == PART
    assert missing_file(FileNotFoundError(f"Failed to open local file '{PART}'")) == PART
    assert missing_file(HistoryGone("version 3 is gone")) == "version 3 is gone"


@pytest.mark.parametrize(
    "problem",
    [
        PySparkException("[DIVIDE_BY_ZERO] Division by zero."),
        AnalysisException("[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `file` cannot be resolved."),
        ValueError("File x does not exist"),
    ],
)
def test_other_problems_are_other_problems(problem: Exception) -> None:
    assert missing_file(problem) is None
