"""What the embedded Spark has to know of object stores: Hadoop's way to each kind, and the options that open it.

They are those that delta-rs and file access have, in Hadoop's words. A session that a user passes on has its own. HDFS
is what Hadoop knows by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pyspark

from penstock.errors import SparkError
from penstock.storage.locations import in_use, said

_S3: Mapping[str, str] = {
    "access_key_id": "access.key",
    "secret_access_key": "secret.key",
    "session_token": "session.token",
    "region": "endpoint.region",
    "endpoint_url": "endpoint",
}
"""Hadoop's words for the options of S3, after ``fs.s3a.``."""


def far_packages() -> list[str]:
    """Where Spark finds the way to the stores in use: of the same version as the Hadoop that it was built with."""
    return [f"org.apache.hadoop:{package}:{_hadoop()}" for prefix, (package, _) in _WAYS.items() if in_use(prefix)]


def far_settings() -> dict[str, str]:
    """Settings of Spark for the stores in which somebody who is open has something, besides the packages."""
    found = {name: value for prefix, (_, way) in _WAYS.items() if in_use(prefix) for name, value in way().items()}
    return {f"spark.hadoop.fs.{name}": value for name, value in found.items()}


def _hadoop() -> str:
    jars = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    version = next((jar.stem.removeprefix("hadoop-client-api-") for jar in jars), None)
    if version is None:
        raise SparkError(
            "the installed pyspark does not say which Hadoop it has, so that the embedded Spark cannot reach an object "
            "store. Pass a session on that can: penstock.connect(path, spark=your_session)."
        )
    return version


def _s3() -> dict[str, str]:
    settings = {"s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}
    settings |= {f"s3a.{hadoop}": value for option, hadoop in _S3.items() if (value := said(f"aws_{option}"))}
    endpoint = settings.get("s3a.endpoint")
    if endpoint:
        settings["s3a.path.style.access"] = "true"
        settings["s3a.connection.ssl.enabled"] = str(not endpoint.startswith("http:")).lower()
    return settings


def _azure() -> dict[str, str]:
    """The key of the account, a shared access signature, or an application; the first that there is, as elsewhere."""
    key = said("azure_storage_account_key", "azure_storage_access_key", "azure_storage_master_key")
    if key:
        return {"azure.account.key": key}
    client = said("azure_storage_client_id", "azure_client_id")
    secret = said("azure_storage_client_secret", "azure_client_secret")
    tenant = said("azure_storage_tenant_id", "azure_tenant_id")
    if client and secret and tenant:
        authority = said("azure_storage_authority_host", "azure_authority_host") or "https://login.microsoftonline.com"
        return {
            "azure.account.auth.type": "OAuth",
            "azure.account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
            "azure.account.oauth2.client.endpoint": f"{authority.rstrip('/')}/{tenant}/oauth2/token",
            "azure.account.oauth2.client.id": client,
            "azure.account.oauth2.client.secret": secret,
        }
    signature = said("azure_storage_sas_token", "azure_storage_sas_key")
    if signature:
        return {"azure.account.auth.type": "SAS", "azure.sas.fixed.token": signature.lstrip("?")}
    return {}


def _google() -> dict[str, str]:
    settings = {
        "gs.impl": "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem",
        "AbstractFileSystem.gs.impl": "org.apache.hadoop.fs.gs.Gs",
    }
    file = said("google_service_account", "google_service_account_path", "google_application_credentials")
    if not file:
        return {**settings, "gs.auth.type": "APPLICATION_DEFAULT"}
    keyfile = {"gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE", "gs.auth.service.account.json.keyfile": file}
    return {**settings, **keyfile}


_WAYS: Mapping[str, tuple[str, Callable[[], dict[str, str]]]] = {
    "aws_": ("hadoop-aws", _s3),
    "azure_": ("hadoop-azure", _azure),
    "google_": ("hadoop-gcp", _google),
}
"""By how the options of a kind of store begin: Hadoop's package for it, and its settings, after ``fs.``."""
