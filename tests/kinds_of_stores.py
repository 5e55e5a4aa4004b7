"""Stores of all kinds, each a server that runs on loopback for as long as it is tested: the S3 server of the benchmark,
Azurite for Azure's, fake-gcs-server for Google's, and a name node with a data node for HDFS.

PENSTOCK_TEST_STORES names the kinds that the stories of stores are told for; ``make test-stores`` installs the servers,
and tells them for those that are not S3. The HTTP ones stand behind a server of ours, which notes each request.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import shutil
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import unescape

import pyspark
from werkzeug.serving import WSGIRequestHandler, make_server

from penstock.bench.store_server import BUCKET, Store, running_store

KINDS = os.environ.get("PENSTOCK_TEST_STORES", "s3").split()
SERVERS = Path(__file__).parent.parent / ".stores"
"""Where ``make test-stores`` puts the servers."""

_AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The key that Azurite has for its account, as everybody knows."""

_Answer = tuple[int, list[tuple[str, str]], bytes]
"""Status, headers and body."""


@dataclass(kw_only=True)
class Kind:
    """A store of some kind. ``front`` is the server that notes its requests, and may be deaf; HDFS has none."""

    place: str
    options: Mapping[str, str] = field(default_factory=dict)
    endpoint: str = ""
    """The option that names the server."""
    secrets: tuple[str, ...] = ()
    front: Store | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The same for who finds it there, as delta-rs of the oracle does."""
        http = {f"{name}_ALLOW_HTTP": "true" for name in ("AWS", "AZURE", "GOOGLE") if self.front is not None}
        return {**self.options, **http}


@contextmanager
def running(kind: str) -> Iterator[Kind]:
    with _RUNNING[kind]() as found:
        yield found


@contextmanager
def _directory() -> Iterator[Kind]:
    with TemporaryDirectory() as folder:
        yield Kind(place=folder)


@contextmanager
def _s3() -> Iterator[Kind]:
    with running_store() as store:
        secrets = store.options["AWS_ACCESS_KEY_ID"], store.options["AWS_SECRET_ACCESS_KEY"]
        yield Kind(place=BUCKET, options=store.options, endpoint="AWS_ENDPOINT_URL", secrets=secrets, front=store)


# -- Azure's --------------------------------------------------------------------------------------------------------


@contextmanager
def _azure() -> Iterator[Kind]:
    program = SERVERS / "node_modules" / ".bin" / "azurite-blob"
    command = [program, "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck", "--blobPort", "0"]
    with _started(command, r"successfully listens on (http://\S+)\s") as said, fronted(_passed_on(said[1])) as front:
        account = "devstoreaccount1"
        _make_container(said[1], account)
        front.requests.clear()
        options = {
            "AZURE_STORAGE_ACCOUNT_NAME": account,
            "AZURE_STORAGE_ACCOUNT_KEY": _AZURE_KEY,
            "AZURE_STORAGE_ENDPOINT": f"{front.url}/{account}",
        }
        place = f"abfss://bucket@{account}.dfs.core.windows.net"
        yield Kind(
            place=place, options=options, endpoint="AZURE_STORAGE_ENDPOINT", secrets=(_AZURE_KEY,), front=front
        )  # fmt: skip


def _make_container(url: str, account: str) -> None:
    """Azurite makes none by itself, and wants it signed."""
    about = f"x-ms-date:{formatdate(usegmt=True)}\nx-ms-version:2021-08-06"
    text = "PUT" + "\n" * 12 + f"{about}\n/{account}/{account}/bucket\nrestype:container"
    signature = hmac.new(base64.b64decode(_AZURE_KEY), text.encode(), hashlib.sha256).digest()
    headers = dict(line.split(":", 1) for line in about.split("\n"))
    headers["Authorization"] = f"SharedKey {account}:{base64.b64encode(signature).decode()}"
    status, _, _ = _asked(url, "PUT", f"/{account}/bucket?restype=container", headers, b"")
    assert status == 201, "the container was not made"


# -- Google's -------------------------------------------------------------------------------------------------------


@contextmanager
def _google() -> Iterator[Kind]:
    port = _free_port()
    command = [SERVERS / "fake-gcs-server", "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1",
               "-port", port, "-public-host", "storage.googleapis.com"]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with _started(command, r"server started at") as _, fronted(_in_json(url)) as front:
        _asked(url, "POST", "/storage/v1/b?project=test", {"Content-Type": "application/json"}, b'{"name": "bucket"}')
        front.requests.clear()
        key = "the-private-key"
        account = {"gcs_base_url": front.url, "disable_oauth": True, "client_email": "", "private_key": key,
                   "private_key_id": ""}  # fmt: skip
        options = {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(account), "GOOGLE_BASE_URL": front.url}
        yield Kind(
            place="gs://bucket", options=options, endpoint="GOOGLE_BASE_URL", secrets=(key,), front=front
        )  # fmt: skip


def _in_json(url: str) -> Callable[[Store, Mapping[str, Any]], _Answer]:
    """What comes in Google's XML language, with what the server knows in the JSON one alone said in that: conditions,
    copies, and the tags of what was put. A deaf front says nothing, and the server ignores the condition by itself.
    """
    passed_on = _passed_on(url, {"HOST": "storage.googleapis.com"})

    def answer(store: Store, request: Mapping[str, Any]) -> _Answer:
        source = request["headers"].get("X-GOOG-COPY-SOURCE")
        if request["method"] != "PUT":
            return passed_on(store, request)
        bucket, _, name = unquote(request["path"].partition("?")[0]).lstrip("/").partition("/")
        if source:
            source_bucket, _, source_name = unquote(source).lstrip("/").partition("/")
            path = (f"/storage/v1/b/{source_bucket}/o/{quote(source_name, safe='')}"
                    f"/copyTo/b/{bucket}/o/{quote(name, safe='')}")  # fmt: skip
            return _asked(url, "POST", path, {"Content-Type": "application/json"}, b"{}")
        condition = request["headers"].get("X-GOOG-IF-GENERATION-MATCH")
        heard = f"&ifGenerationMatch={condition}" if condition and not store.deaf else ""
        path = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(name, safe='')}{heard}"
        status, headers, data = _asked(url, "POST", path, {}, request["body"])
        if status == 200:
            made = json.loads(data)
            headers += [("ETag", f'"{made["etag"]}"'), ("x-goog-generation", made["generation"])]
        return status, headers, data

    return answer


# -- HDFS -----------------------------------------------------------------------------------------------------------


@contextmanager
def _hdfs() -> Iterator[Kind]:
    home = Path(pyspark.__file__).parent
    version = next((home / "jars").glob("hadoop-client-api-*.jar")).stem.removeprefix("hadoop-client-api-")
    with TemporaryDirectory() as folder:
        command = [
            home / "bin" / "spark-submit", "--driver-memory", "512m",
            "--conf", "spark.driver.userClassPathFirst=true",  # or half of Hadoop is found among Spark's jars
            "--packages", f"org.apache.hadoop:hadoop-client-minicluster:{version}",
            "--class", "org.apache.hadoop.mapreduce.MiniHadoopClusterManager", "spark-internal",
            "-nomr", "-format", "-writeDetails", "/dev/stdout", "-D", f"hdfs.minidfs.basedir={folder}/hdfs",
        ]  # fmt: skip
        with _started(command, r'"namenode_port":(\d+)\D', folder) as said:
            yield Kind(place=f"hdfs://127.0.0.1:{said[1]}")


# -- what they have in common ---------------------------------------------------------------------------------------


@contextmanager
def _started(command: list[Any], pattern: str, folder: str | None = None) -> Iterator[re.Match[str]]:
    """A server as a process of its own, once it has said that it is there."""
    if shutil.which(command[0]) is None:
        raise RuntimeError(f"there is no {command[0]}: run make test-stores, which installs it")
    with TemporaryDirectory() as empty:
        process = subprocess.Popen(
            [str(part) for part in command], cwd=folder or empty, bufsize=0, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert process.stdout is not None
        try:
            text, said = "", None
            while said is None:
                some = process.stdout.read(8192)
                if not some:
                    raise RuntimeError(f"{command[0]} did not start:\n{text[-3000:]}")
                text += some.decode(errors="replace")
                said = re.search(pattern, text)
            # Who writes into a full pipe stands still.
            threading.Thread(target=deque, args=(process.stdout, 1), daemon=True).start()
            yield said
        finally:
            process.terminate()
            process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class _Quiet(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        """Nothing."""


@contextmanager
def fronted(answer: Callable[[Store, Mapping[str, Any]], _Answer]) -> Iterator[Store]:
    """A server that notes each request before it is answered."""
    store = Store()

    def served(environ: dict[str, Any], start: Any) -> Any:
        store.requests.append((environ["REQUEST_METHOD"], unquote(environ["PATH_INFO"])))
        store.delay()
        headers = {name[5:].replace("_", "-"): text for name, text in environ.items() if name.startswith("HTTP_")}
        headers |= {"CONTENT-TYPE": environ["CONTENT_TYPE"]} if environ.get("CONTENT_TYPE") else {}
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        request = {
            "method": environ["REQUEST_METHOD"],
            "path": environ["REQUEST_URI"],
            "headers": headers,
            "body": body,
        }
        status, found, data = answer(store, request)
        start(f"{status} -", found)
        return [data]

    server = make_server("127.0.0.1", 0, served, threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    store.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _passed_on(url: str, more: Mapping[str, str] | None = None) -> Callable[[Store, Mapping[str, Any]], _Answer]:
    def answer(store: Store, request: Mapping[str, Any]) -> _Answer:
        headers = {**request["headers"], **(more or {})}
        if store.deaf:
            headers.pop("IF-NONE-MATCH", None)
        return _asked(url, request["method"], request["path"], headers, request["body"])

    return answer


def _asked(url: str, method: str, path: str, headers: Mapping[str, str], body: bytes) -> _Answer:
    connection = HTTPConnection(urlsplit(url).netloc)
    try:
        sent = {**headers, "Content-Length": str(len(body))} if body or method in ("PUT", "POST") else dict(headers)
        connection.request(method, path, body or None, sent)
        found = connection.getresponse()
        data = _listed_from(path, found.read()) if method == "GET" else found.read()
        dropped = ("transfer-encoding", "connection", "keep-alive", "date", "server")
        dropped += ("content-length",) if method == "GET" else ()
        length = [("Content-Length", str(len(data)))] if method == "GET" else []
        kept = [(name, text) for name, text in found.getheaders() if name.lower() not in dropped]
        return found.status, kept + length, data
    finally:
        connection.close()


def _listed_from(path: str, listing: bytes) -> bytes:
    """What is listed from a name on: the servers begin at the first, whatever is asked, and delta-rs relies on it."""
    asked = dict(parse_qsl(urlsplit(path).query))
    start, after = asked.get("startFrom", ""), asked.get("start-after", "")
    if not start and not after:
        return listing

    def kept(entry: re.Match[bytes]) -> bytes:
        name = unescape(entry[2].decode())
        return entry[0] if name >= start and name > after else b""

    return re.sub(rb"<(Blob|Contents)>.*?<(?:Name|Key)>(.*?)</.*?</\1>", kept, listing, flags=re.DOTALL)


_RUNNING: Mapping[str, Callable[[], AbstractContextManager[Kind]]] = {
    "directory": _directory, "s3": _s3, "azure": _azure, "google": _google, "hdfs": _hdfs,
}  # fmt: skip
