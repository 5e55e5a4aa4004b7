"""What the embedded Spark is told of the stores that are in use: the options of file access, in Hadoop's words."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark import SparkConf

import penstock
from penstock.engine.embedded import _of_launch
from penstock.engine.far_spark import far_packages, far_settings
from penstock.storage import hdfs_files
from penstock.storage.files import files_of
from penstock.storage.locations import checked_options, forget, location, use

_AZURE = "abfss://lake@acme.dfs.core.windows.net/w"


@contextmanager
def in_use(place: str, options: Mapping[str, str]) -> Iterator[None]:
    checked = checked_options(options)
    use(place, checked)
    yield
    forget(place, checked)


def told(place: str, options: Mapping[str, str]) -> dict[str, str]:
    with in_use(place, options):
        assert len(far_packages()) == 1
        return {name.removeprefix("spark.hadoop.fs."): value for name, value in far_settings().items()}


def test_nothing_is_fetched_where_no_store_is_in_use() -> None:
    assert far_packages() == []
    assert far_settings() == {}
    with in_use("hdfs://host:8020/w", {}):
        assert far_packages() == [], "Spark knows HDFS by itself"


def test_s3() -> None:
    options = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": "http://host:1"}
    found = told("s3://bucket/w", options)
    assert (found["s3a.access.key"], found["s3a.secret.key"]) == ("a", "b")
    assert (found["s3a.endpoint"], found["s3a.connection.ssl.enabled"]) == ("http://host:1", "false")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"AZURE_STORAGE_ACCOUNT_KEY": "k", "AZURE_STORAGE_SAS_TOKEN": "s"}, {"azure.account.key": "k"}),
        (
            {"AZURE_STORAGE_SAS_TOKEN": "?sv=1&sig=s"},
            {"azure.account.auth.type": "SAS", "azure.sas.fixed.token": "sv=1&sig=s"},
        ),
        (
            {"AZURE_CLIENT_ID": "me", "AZURE_CLIENT_SECRET": "s", "AZURE_TENANT_ID": "us"},
            {
                "azure.account.auth.type": "OAuth",
                "azure.account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
                "azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/us/oauth2/token",
                "azure.account.oauth2.client.id": "me",
                "azure.account.oauth2.client.secret": "s",
            },
        ),
    ],
)
def test_azure(options: dict[str, str], expected: dict[str, str]) -> None:
    assert told(_AZURE, options) == expected


def test_google(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    with_file = told("gs://bucket/w", {"GOOGLE_SERVICE_ACCOUNT": "/keys/me.json"})
    assert with_file["gs.auth.type"] == "SERVICE_ACCOUNT_JSON_KEYFILE"
    assert with_file["gs.auth.service.account.json.keyfile"] == "/keys/me.json"
    assert told("gs://bucket/w", {})["gs.auth.type"] == "APPLICATION_DEFAULT"


def test_what_spark_is_told_of_one_store_is_not_told_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    assert "hush" not in json.dumps(told(_AZURE, {"AZURE_STORAGE_ACCOUNT_KEY": "k"}))


def test_the_account_of_azure_may_be_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    assert location("abfss://lake@acme.dfs.core.windows.net/w/", "..") == _AZURE
    assert location("az://lake/w", "..") == "az://lake/w"
    with in_use(_AZURE, {"AZURE_STORAGE_ACCOUNT_NAME": "acme"}):
        assert location("az://lake/w", "a table") == _AZURE
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "acme")
    assert location("az://lake/w", "..") == location("abfs://lake/w", "..") == _AZURE


def test_hdfs_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    hdfs_files._client.cache_clear()
    with pytest.raises(penstock.WarehouseError, match=r"'hdfs://host:8020' cannot be opened: .*penstock-spark\[hdfs\]"):
        files_of("hdfs://host:8020/w")


def test_the_catalog_of_a_far_warehouse_must_be_named() -> None:
    for place in ("gs://bucket/w", _AZURE, "hdfs://host:8020/w"):
        with pytest.raises(penstock.WarehouseError, match=r"lies in .*where no catalog can be kept. Name a database"):
            penstock.connect(place)


@pytest.mark.parametrize("server", ["s3.example.com", "localhost:9000", "https://", ""])
def test_a_server_that_is_no_url_is_told_before_anything_is_made(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What opens stores panics on it."""
    catalog = tmp_path / "catalog.sqlite"
    with pytest.raises(penstock.WarehouseError, match=r"AWS_ENDPOINT_URL names no server. Write all of its URL"):
        penstock.connect("s3://b/w", catalog=f"sqlite:///{catalog}", storage_options={"AWS_ENDPOINT_URL": server})
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    with pytest.raises(penstock.WarehouseError, match="AWS_ENDPOINT_URL names no server"):
        penstock.connect("s3://b/w", catalog=f"sqlite:///{catalog}")
    with pytest.raises(penstock.WarehouseError, match="AWS_ENDPOINT_URL names no server"):
        files_of("s3://b/source")
    assert not catalog.exists()


def test_no_secret_is_on_the_command_line_of_java() -> None:
    """All users of a machine may read that; the context gets the rest when it is made."""
    with in_use("s3://b/w", {"AWS_SECRET_ACCESS_KEY": "s3cret", "AWS_ACCESS_KEY_ID": "key"}):
        conf = SparkConf(loadDefaults=False).setAll([*far_settings().items(), ("spark.jars.packages", "delta")])
    assert ("spark.hadoop.fs.s3a.secret.key", "s3cret") in conf.getAll()
    assert _of_launch(conf).getAll() == [("spark.jars.packages", "delta")]
