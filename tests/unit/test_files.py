"""What all places of files have in common: a directory, and an object store. Who puts a name first is the only one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from kinds_of_stores import KINDS, Kind, running
from penstock.storage import locations, object_store, ranges
from penstock.storage.file_cache import FILES
from penstock.storage.files import Files, files_of
from penstock.storage.log_listing import newest_version


@pytest.fixture(scope="module", params=["directory", *KINDS])
def server(request: pytest.FixtureRequest) -> Iterator[Kind]:
    with running(request.param) as found:
        yield found


on_s3 = pytest.mark.parametrize("server", ["s3"], indirect=True)
can_be_deaf = pytest.mark.parametrize("server", [kind for kind in KINDS if kind in ("s3", "google")], indirect=True)
"""Azure's condition is part of what is signed, and cannot be taken away on the way."""
over_http = pytest.mark.parametrize("server", [kind for kind in KINDS if kind != "hdfs"], indirect=True)


@pytest.fixture
def store(server: Kind) -> Iterator[Kind]:
    options = locations.checked_options(server.options)
    locations.use(server.place, options)
    FILES.clear()
    yield server
    if server.front is not None:
        server.front.deaf = False
    locations.forget(server.place, options)


@pytest.fixture
def files(store: Kind, tmp_path: Path) -> Files:
    found = files_of(f"{store.place}/{tmp_path.name} %41 é")
    found.begin("")
    return found


def put(files: Files, name: str, data: bytes) -> None:
    folder, _, base = name.rpartition("/")
    with files.hold(folder) as held:
        held.put_if_absent(base, data)


def test_what_is_written_is_there(files: Files) -> None:
    assert files.listing() == []
    assert files.write("x.bin", lambda out: out.write(b"hello")) == 5
    files.write("run/y.bin", lambda out: out.write(b""))
    files.write("a=%20 é[1]/x y.bin", lambda out: out.write(b"!"))
    assert files.read("a=%20 é[1]/x y.bin") == b"!"
    assert (files.read("x.bin"), files.read_all(["run/y.bin", "x.bin"])) == (b"hello", [b"", b"hello"])
    assert files.info("x.bin").size == 5
    assert {info.name: info.size for info in files.listing("run")} == {"run/y.bin": 0}
    assert {"x.bin", "run/y.bin"} <= {info.name for info in files.listing()}
    assert files.names("run") == ["y.bin"]
    assert "run" in [info.name for info in files.folders()]
    assert (files.exists("x.bin"), files.exists("run"), files.exists("x")) == (True, False, False)
    for ask in (files.read, files.info, files.open):
        with pytest.raises(FileNotFoundError):
            ask("nothing")
    files.move("x.bin", "other/z.bin")
    files.delete(["run/y.bin", "nothing"])
    assert "other/z.bin" in {info.name for info in files.listing()}
    assert not files.exists("x.bin")
    files.delete_folder()
    assert files.listing() == []


def test_a_listing_goes_on_after_a_name(files: Files) -> None:
    files.make_folder("log")
    for number in range(5):
        put(files, f"log/{number}.json", b"x" * number)
    assert [info.name for info in sorted(files.listing("log", after="log/2"), key=lambda info: info.name)] == [
        "log/2.json", "log/3.json", "log/4.json",
    ]  # fmt: skip


def test_of_two_who_put_one_name_the_first_wins(files: Files) -> None:
    files.make_folder("log")
    put(files, "log/1.json", b"first")
    with pytest.raises(FileExistsError):
        put(files, "log/1.json", b"second")
    assert files.read("log/1.json") == b"first"
    assert [info.name for info in files.listing()] == ["log/1.json"], "nothing else is left"


def test_of_eight_who_put_one_name_at_once_one_wins(files: Files) -> None:
    files.make_folder("log")

    def attempt(who: int, name: str) -> int:
        try:
            put(files, name, str(who).encode())
        except FileExistsError:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            name = f"log/{number}.json"
            assert sum(pool.map(attempt, range(8), [name] * 8)) == 1


def test_large_files_are_read_in_parts(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "TAIL", 2_000)
    rows = pa.table({"a": list(range(20_000)), "b": [f"text {i}" for i in range(20_000)]})
    size = files.write("x.parquet", lambda out: pq.write_table(rows, out, row_group_size=1_000))
    assert size == files.info("x.parquet").size > 100_000
    with files.open("x.parquet") as source, pq.ParquetFile(source, pre_buffer=not files.local) as file:
        assert file.read_row_group(7, columns=["a"]).column("a").to_pylist() == list(range(7_000, 8_000))
        assert file.read() == rows


@can_be_deaf
def test_a_store_that_overwrites_is_refused(store: Kind) -> None:
    """Two commits under one name would both succeed, and one would be lost."""
    assert store.front is not None
    store.front.deaf = True
    object_store._conditional.clear()
    files = files_of(f"{store.place}/deaf")
    with pytest.raises(penstock.NotSupportedError, match=r"does not refuse to overwrite .*If-None-Match.*Use a store"):
        put(files, "log/1.json", b"first")
    assert files.listing() == []
    store.front.deaf = False
    put(files, "log/1.json", b"first")
    object_store._conditional.clear()


@over_http
def test_what_a_store_says_has_no_secrets(store: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "_RETRIES", 0)
    nobody = locations.checked_options({**store.options, store.endpoint: "http://127.0.0.1:9", "allow_http": "yes"})
    files = object_store.StoreFiles(f"{store.place}/x", tuple(nobody.items()))
    with pytest.raises(OSError, match=f"reading '{store.place}/x/a'") as told:
        files.read("a")
    assert not any(secret in str(told.value) for secret in store.secrets)
    assert len(str(told.value).splitlines()) == 1
    assert "there is no answer from http://127.0.0.1:9. Check" in str(told.value)


@on_s3
def test_what_a_store_refuses_is_told(store: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3 repeats the key that it was asked with."""
    files = files_of(f"{store.place}/refused")
    monkeypatch.setattr(store.front, "refusing", "403 Forbidden")
    for do in (lambda: files.read("a"), files.listing, lambda: put(files, "a", b"x"), lambda: files.delete(["a"])):
        with pytest.raises(penstock.StoreError, match=r"403 Forbidden \(InvalidAccessKeyId\). Check .*AWS_") as told:
            do()
        assert "the-" not in str(told.value)
    monkeypatch.undo()
    with pytest.raises(penstock.StoreError, match=r"'s3://none/x' failed: it answers 404 Not Found \(NoSuchBucket\)"):
        files_of("s3://none").write("x", lambda out: out.write(b"hello"))


@on_s3
def test_a_file_beside_is_read_by_its_url(store: Kind) -> None:
    """As the log of a shallow clone names it."""
    files_of(f"{store.place}/one").write("a b/x.bin", lambda out: out.write(b"hello"))
    other, place = files_of(f"{store.place}/other"), f"{store.place}/one/a b/x.bin"
    assert other.read(place) == other.open(place).read() == b"hello"
    assert other.identity(place) == files_of(f"{store.place}/one").identity("a b/x.bin")
    assert other.exists(place)
    assert not other.exists("a b/x.bin")


@on_s3
def test_a_place_or_an_option_that_cannot_be_is_told(store: Kind, tmp_path: Path) -> None:
    catalog = f"sqlite:///{tmp_path}/catalog.sqlite"
    with pytest.raises(penstock.WarehouseError, match=r"storage_options has no option 'password'"):
        penstock.connect(f"{store.place}/w", catalog=catalog, storage_options={"password": "hush"})
    with pytest.raises(penstock.WarehouseError, match=r"another database .* has another AWS_REGION") as told:
        penstock.connect(f"{store.place}/w", catalog=catalog, storage_options={"AWS_REGION": "elsewhere"})
    assert "elsewhere" not in str(told.value)
    with pytest.raises(penstock.WarehouseError, match=r"lies in an object store.*'postgresql:"):
        penstock.connect(f"{store.place}/w", storage_options=store.options)
    for place in ("s3://", "s3:/bucket/w", "s3://bucket/../w", "s3://bucket//w", "s3://bucket/w?x=1#y", "hdfs:///w"):
        with pytest.raises(penstock.NotSupportedError, match="a warehouse cannot lie at"):
            penstock.connect(place, catalog=catalog)
    with penstock.connect(f"{store.place}/w/", catalog=catalog, storage_options=store.options) as db:
        assert db.path == f"{store.place}/w"


@over_http
def test_the_environment_opens_a_store(server: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    object_store._opened.cache_clear()
    files = files_of(f"{server.place}/environment")
    files.write("x", lambda out: out.write(b"hello"))
    assert files.read("x") == b"hello"
    object_store._opened.cache_clear()


def test_a_file_that_is_gone_when_it_is_looked_at_hides_no_others(tmp_path: Path) -> None:
    """As the draft of a commit is that another process makes. A link to nowhere is one that stays."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{0:020d}.json").write_text("{}")
    (log / ".00000000000000000001.draft").symlink_to(tmp_path / "nowhere")
    (log / f"{1:020d}.json").write_text("{}")
    assert newest_version(str(tmp_path)) == 1
    assert {info.name for info in files_of(str(log)).listing()} == {f"{0:020d}.json", f"{1:020d}.json"}
