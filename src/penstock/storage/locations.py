"""Where a warehouse or a table lies: a directory, or a URL of an object store; and the options that open a store.

A path is taken as it stands; in a ``file:`` URL, %20 is a space, as in those that Delta and Python's ``Path.as_uri``
give. A URL of a store is taken as it stands, too. Options hold secrets: they are never shown, and never written down.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import unquote

from penstock.errors import NotSupportedError, WarehouseError

Options = Mapping[str, str]
"""What opens a store, in the words of delta-rs and of the usual environment variables: AWS_ACCESS_KEY_ID, .."""

STORES: Mapping[str, str] = {
    "s3": "aws_", "s3a": "aws_",
    "gs": "google_",
    "az": "azure_", "abfs": "azure_", "abfss": "azure_",
    "hdfs": "",
}  # fmt: skip
"""The schemes of stores, and how the names of their options begin; HDFS has none but Hadoop's own."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_FILE = re.compile(r"file:(?://(?:localhost)?(?=/))?(?P<path>/(?!/).*)", re.IGNORECASE | re.DOTALL)
_STORE = re.compile(r"(?P<scheme>[a-z0-9]+)://(?P<store>[^/?#\s]+)(?P<path>(?:/[^/?#]+)*)/*", re.IGNORECASE)
_ENDPOINTS = ("endpoint_url", "endpoint", "storage_endpoint", "base_url")
"""What stores call the option that names a server of one's own, after their prefix."""
_SERVER = re.compile(r"https?://[^/\s]", re.IGNORECASE)
_CLIENT = ("allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "timeout", "user_agent")
"""Options of the connection, which all stores have in common."""


def is_store(path: str) -> bool:
    """Whether a path is the URL of a store; all others are directories of this machine.

    >>> is_store("s3://bucket/orders"), is_store("/data/s3:/orders")
    (True, False)
    """
    return "://" in path and path.partition("://")[0] in STORES


def spark_commits_safely(path: str) -> bool:
    """Whether a commit of Spark's overwrites no other. In HDFS it is a rename, as ours is.

    >>> spark_commits_safely("/data/orders"), spark_commits_safely("s3://bucket/orders")
    (True, False)
    """
    return not is_store(path) or path.startswith("hdfs://")


def location(given: str | os.PathLike[str], what: str, options: Options | None = None) -> str:
    """A place as it is known from then on; ``what`` is said of one that cannot be used.

    One of Azure's is known by its account too, as Spark wants it: ``az://`` is short for ``abfss://`` with an account.

    >>> location("file:///data/my%20orders", "table 'orders'"), location("file:/data/orders/", "..")
    ('/data/my orders', '/data/orders')
    >>> location("/data/100%20percent", "table 'orders'"), location("S3A://bucket/data/orders/", "..")
    ('/data/100%20percent', 's3a://bucket/data/orders')
    >>> location("az://lake/orders", "..", {"azure_storage_account_name": "acme"})
    'abfss://lake@acme.dfs.core.windows.net/orders'
    """
    text = os.fspath(given)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return os.path.abspath(os.path.expanduser(text))
    if scheme[1].lower() in STORES:
        return _in_store(text, what, options or {})
    url = _FILE.fullmatch(text)
    if url is None:
        raise NotSupportedError(
            f"{what} cannot lie at {text!r}: places of {scheme[1]}: are not supported. "
            "Use s3://, gs://, abfss:// or hdfs://, or a directory of this machine, or one that is mounted here."
        )
    return os.path.abspath(unquote(url["path"]))


def _in_store(text: str, what: str, options: Options) -> str:
    url = _STORE.fullmatch(text)
    if url is None or {".", ".."} & set(url["path"].split("/")):
        raise NotSupportedError(
            f"{what} cannot lie at {text!r}: that names no place in a store. "
            "Write it as s3://bucket/folder, or hdfs://namenode:8020/folder."
        )
    scheme, store = url["scheme"].lower(), url["store"]
    if STORES[scheme] == "azure_" and "@" not in store:
        account = _said({**_given_options("azure_"), **options}, "azure_storage_account_name")
        if account:
            scheme, store = "abfss", f"{store}@{account}.dfs.core.windows.net"
    return f"{scheme}://{store}{url['path']}"


def store_of(path: str) -> str:
    """The store of a URL.

    >>> store_of("s3://bucket/warehouse/tables/t")
    's3://bucket'
    """
    scheme, _, rest = path.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def disk_of(path: str) -> str:
    """What reads of a path have in common in how fast they are: the store, or nothing, for what is on this machine.

    >>> disk_of("s3://bucket/warehouse/tables/t"), disk_of("/data/orders")
    ('s3://bucket', '')
    """
    return store_of(path) if is_store(path) else ""


_given: list[tuple[str, Options]] = []
"""The warehouses that are open in this process, with their options, each under names in lower case."""


def checked_options(options: Mapping[str, str] | None) -> Options:
    """Options as they are kept, under names in lower case."""
    known = {name.lower(): str(value) for name, value in (options or {}).items()}
    prefixes = tuple(sorted({*STORES.values()} - {""}))
    for name in known:
        if not name.startswith(prefixes) and name not in _CLIENT:
            raise WarehouseError(
                f"storage_options has no option {name!r}. Use names such as AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, "
                "GOOGLE_SERVICE_ACCOUNT or AZURE_STORAGE_ACCOUNT_KEY."
            )
    return known


def use(warehouse: str, options: Options) -> None:
    """Open stores with these options from now on, until ``forget``. A process has one set of them."""
    for name, value in options.items():
        if any(other.get(name, value) != value for _, other in _given):
            raise WarehouseError(
                f"storage_options: another database that is open in this process has another {name.upper()}. "
                "Close it first, or use another process."
            )
    if is_store(warehouse):
        prefix = STORES[warehouse.partition("://")[0]]
        _endpoint({**_given_options(prefix), **options}, prefix)
    _given.append((warehouse, options))


def forget(warehouse: str, options: Options) -> None:
    _given.remove((warehouse, options))


def in_use(prefix: str) -> bool:
    """Whether somebody who is open has something in stores of a kind, which is told by how its options begin."""
    return any(
        (is_store(warehouse) and STORES[warehouse.partition("://")[0]] == prefix)
        or any(name.startswith(prefix) for name in options)
        for warehouse, options in _given
    )


def options_of(path: str) -> dict[str, str]:
    """What opens the store of a path, for delta-rs and for file access; empty for a directory.

    What is not given is taken from the environment by who opens the store, but for one thing: whoever names an
    endpoint with http: means it.
    """
    prefix = STORES[path.partition("://")[0]] if is_store(path) else ""
    if not prefix:
        return {}
    found = _given_options(prefix)
    endpoint = _endpoint(found, prefix)
    allowed = _said(found, f"{prefix}allow_http")
    found.pop(f"{prefix}allow_http", None)
    if allowed is not None or endpoint.startswith("http:"):
        found.setdefault("allow_http", allowed or "true")
    return found


def _endpoint(options: Options, prefix: str) -> str:
    """The server that is named; who opens the store takes any text for one, and panics when it asks it."""
    for name in (f"{prefix}{ending}" for ending in _ENDPOINTS if prefix):
        value = options.get(name, os.environ.get(name.upper()))
        if value is not None and not _SERVER.match(value):
            raise WarehouseError(
                f"{name.upper()} names no server. Write all of its URL, such as https://s3.example.com, or leave the "
                "option out for the store's usual server."
            )
    return _said(options, *(f"{prefix}{name}" for name in _ENDPOINTS)) or ""


def said(*names: str) -> str | None:
    """An option as it holds now, given or in the environment, by one of its names in lower case."""
    return _said(_given_options(names[0].partition("_")[0]), *names)


def _given_options(prefix: str) -> dict[str, str]:
    return {k: v for _, given in _given for k, v in given.items() if k.startswith(prefix) or k in _CLIENT}


def _said(options: Options, *names: str) -> str | None:
    return next((v for name in names if (v := options.get(name) or os.environ.get(name.upper()))), None)
