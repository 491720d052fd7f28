"""Downloads against a real server on this machine: what is kept, what is refused, what is said offline."""

from __future__ import annotations

import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from prudent.errors import FileFormatError, InputError
from prudent.experiments import data_sets
from prudent.experiments.data_sets import load_data_sets, read_table
from prudent.experiments.downloads import Source, cache_directory
from prudent.experiments.published_files import BIKE_SHARING, HOUSING, PublishedFile
from stand_in import bike_lines, housing_lines


class Server:
    """Serves bytes by path; may announce more bytes than come."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.announced: dict[str, int] = {}
        self.requests: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                body = outer.content.get(self.path)
                if body is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(outer.announced.get(self.path, len(body))))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.stop()


def zipped(name: str, content: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("Readme.txt", "other files come along")
        archive.writestr(name, content)
    return stream.getvalue()


def tarred(name: str, content: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content.encode("utf-8"))
        archive.addfile(member, io.BytesIO(content.encode("utf-8")))
    return stream.getvalue()


@pytest.fixture
def published(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, PublishedFile]:
    """The stand-in played by the server as if it were the published data; an empty cache."""
    monkeypatch.setenv("PRUDENT_CACHE", str(tmp_path / "cache"))
    texts = {"bike": "\r\n".join(bike_lines()), "housing": "\n".join(housing_lines())}
    server.content = {
        "/bike.zip": zipped("day.csv", texts["bike"]),
        "/housing.tgz": tarred("CaliforniaHousing/cal_housing.data", texts["housing"]),
    }
    files = {
        "BIKE_SHARING": replace(
            BIKE_SHARING, source=Source(f"{server.address}/bike.zip", "zip", "day.csv"), n_rows=240
        ),
        "HOUSING": replace(
            HOUSING,
            source=Source(f"{server.address}/housing.tgz", "tar", "CaliforniaHousing/cal_housing.data"),
            n_rows=500,
        ),
    }
    for key, name in (("BIKE_SHARING", "bike"), ("HOUSING", "housing")):
        path = tmp_path / f"{name}.csv"
        path.write_text(texts[name], encoding="utf-8")
        files[key] = replace(files[key], checksum=read_table(path, files[key], other_data=True).checksum)
        monkeypatch.setattr(data_sets, key, files[key])
    return files


def test_files_are_fetched_once_and_kept(server: Server, published: dict[str, PublishedFile], tmp_path: Path) -> None:
    first = load_data_sets()
    assert first.bike.published
    assert first.housing.published
    again = load_data_sets()
    assert sorted(server.requests) == ["/bike.zip", "/housing.tgz"]
    np.testing.assert_array_equal(first.bike.columns["cnt"], again.bike.columns["cnt"])
    kept = sorted(path.name for path in (tmp_path / "cache" / "data").iterdir())
    assert kept == ["bike_sharing_day.csv", "cal_housing.data"]


def test_other_values_are_refused_and_not_kept(server: Server, published: dict[str, PublishedFile]) -> None:
    lines = bike_lines()
    last = lines[-1].split(",")
    last[11] = "0.5"  # humidity, one number among thousands
    server.content["/bike.zip"] = zipped("day.csv", "\n".join([*lines[:-1], ",".join(last)]))
    with pytest.raises(FileFormatError, match="refused and not kept"):
        load_data_sets()
    assert not any(cache_directory("data").iterdir())


def test_a_truncated_body_is_noticed(server: Server, published: dict[str, PublishedFile]) -> None:
    whole = server.content["/bike.zip"]
    server.content["/bike.zip"], server.announced["/bike.zip"] = whole[:1000], len(whole)
    with pytest.raises(FileFormatError, match=f"broke off: 1,000 of {len(whole):,} bytes"):
        load_data_sets()
    assert not any(cache_directory("data").iterdir())
    del server.announced["/bike.zip"]  # the server itself believes that this is all
    with pytest.raises(FileFormatError, match=r"is not a zip archive with .day\.csv. in it"):
        load_data_sets()
    server.content["/bike.zip"] = zipped("hour.csv", "nothing")
    with pytest.raises(FileFormatError, match=r"is not a zip archive with .day\.csv. in it"):
        load_data_sets()


def test_a_broken_tar_is_noticed(server: Server, published: dict[str, PublishedFile]) -> None:
    server.content["/housing.tgz"] = server.content["/housing.tgz"][:5000]
    with pytest.raises(FileFormatError, match="is not a tar archive"):
        load_data_sets()


def test_offline_it_says_what_to_do(
    server: Server, published: dict[str, PublishedFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = replace(published["BIKE_SHARING"], source=Source("http://127.0.0.1:9/bike.zip", "zip", "day.csv"))
    monkeypatch.setattr(data_sets, "BIKE_SHARING", closed)
    with pytest.raises(InputError, match=r"could not be downloaded.*Offline\?.*bike_sharing_day.csv.*--data-dir"):
        load_data_sets()
    gone = replace(published["BIKE_SHARING"], source=Source(f"{server.address}/gone.zip", "zip", "day.csv"))
    monkeypatch.setattr(data_sets, "BIKE_SHARING", gone)
    with pytest.raises(InputError, match="404"):
        load_data_sets()


def test_a_damaged_cache_is_fetched_again(server: Server, published: dict[str, PublishedFile]) -> None:
    load_data_sets()
    path = cache_directory("data") / "bike_sharing_day.csv"
    path.write_text("\n".join(bike_lines()[:100]), encoding="utf-8")
    assert load_data_sets().bike.n_rows == 240
    assert server.requests.count("/bike.zip") == 2
    assert server.requests.count("/housing.tgz") == 1
