"""The loader against a server on this machine that does what servers do."""

import hashlib
import io
import os
import socket
import tempfile
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import Request

import pytest

from covaria import datasets
from covaria.datasets import download, places
from covaria.datasets.cleaning import only_columns
from covaria.datasets.entries import ENTRIES, Entry
from covaria.errors import InputError

TABLE = b"a,b,y\n" + b"".join(b"%d,%d,%d\n" % (i, i * i, i % 7) for i in range(40))
WIDE = b'who,a,b,y\n"Ann, B",1,2,3\n'
# Comes in two pieces with a pause longer than the client's patience between them.
PAUSE = 0.6


def zipped(name: str, content: bytes) -> bytes:
    """Return a zip with one file in a folder."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("readme.txt", "about")
        archive.writestr(f"folder/{name}", content)
    return held.getvalue()


def damaged(archive: bytes) -> bytes:
    """Return the zip with a few packed bytes of its last file overwritten."""
    at = archive.rindex(b"folder/table.csv", 0, archive.rindex(b"PK\x01\x02")) + 30
    return archive[:at] + b"\xff" * 20 + archive[at + 20 :]


class Answers(BaseHTTPRequestHandler):
    """Answer by the path asked for."""

    quit = threading.Event()

    def do_GET(self) -> None:
        bodies = {
            "/table.csv": TABLE,
            "/other.csv": TABLE.replace(b"1", b"2"),
            "/table.zip": zipped("table.csv", TABLE),
            "/empty.zip": zipped("another.csv", TABLE),
            "/false.zip": b"PK\x03\x04 this is no zip",
            "/damaged.zip": damaged(zipped("table.csv", TABLE)),
            "/wide.csv": WIDE,
            "/long.csv": b"a,b,y\n" + b"1" * 200_000 + b",2,3\n",
        }
        if self.path in bodies:
            self.answer(bodies[self.path])
        elif self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/table.csv")
            self.end_headers()
        elif self.path == "/to-a-file":
            self.send_response(302)
            self.send_header("Location", "file:///etc/hostname")
            self.end_headers()
        elif self.path == "/nowhere":
            self.send_response(302)
            self.send_header("Location", "http://[half-an-address/")
            self.end_headers()
        elif self.path == "/truncated":
            self.answer(TABLE[:100], told=len(TABLE))
        elif self.path == "/slow":
            self.answer(TABLE[:100], told=len(TABLE), wait=PAUSE)
        elif self.path == "/drip":
            self.drip()
        elif self.path == "/endless":
            self.endless()
        else:
            self.send_error(404)

    def answer(self, body: bytes, told: int | None = None, wait: float = 0.0) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) if told is None else told))
        self.end_headers()
        self.wfile.write(body)
        if wait:
            self.quit.wait(wait)

    def drip(self) -> None:
        """Send a byte now and then: never silent for long, never done."""
        self.send_response(200)
        self.end_headers()
        for _ in range(200):
            try:
                self.wfile.write(b"a")
            except OSError:
                return
            if self.quit.wait(0.05):
                return

    def endless(self) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(500):
            try:
                self.wfile.write(b"x" * 10_000)
            except OSError:
                return

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server():
    """Return the address of a server on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as running:
        running.daemon_threads = True
        thread = threading.Thread(target=running.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        Answers.quit.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return an empty cache; there is no folder of the user's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("COVARIA_CACHE", str(folder))
    monkeypatch.delenv("COVARIA_DATA", raising=False)
    monkeypatch.delenv("http_proxy", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return folder


def an_entry(url: str, **changes: object) -> Entry:
    """Return an entry for the table that the server has."""
    base = Entry(
        name="tiny", file="tiny.csv", sha256=hashlib.sha256(TABLE).hexdigest(), url=url,
        origin="this test", licence="none", target="y", n_rows=40, n_columns=2, paper_rows=40,
    )  # fmt: skip
    return replace(base, **changes)


def load_from(monkeypatch, url: str, timeout: float = 60.0, **changes: object):
    monkeypatch.setitem(ENTRIES, "tiny", an_entry(url, **changes))
    return datasets.load("tiny", timeout=timeout)


def left_in(folder) -> list[str]:
    return sorted(path.name for path in folder.rglob("*")) if folder.exists() else []


def test_a_download_gives_the_table_and_is_kept(server, cache, monkeypatch):
    X, y = load_from(monkeypatch, f"{server}/table.csv")
    assert X.shape == (40, 2)
    assert y.name == "y"
    assert left_in(cache) == ["tiny.csv"]
    again, _ = load_from(monkeypatch, f"{server}/gone.csv")  # nothing is asked for twice
    assert again.equals(X)


def test_a_redirect_is_followed(server, cache, monkeypatch):
    X, _ = load_from(monkeypatch, f"{server}/moved")
    assert X.shape == (40, 2)


def test_a_redirect_from_https_to_http_is_refused():
    asked = Request("https://example.org/table.csv")
    with pytest.raises(download.DownloadError, match="not encrypted"):
        download.NeverLess().redirect_request(asked, None, 302, "", {}, "http://example.org/t")


def test_the_right_file_is_taken_out_of_a_zip(server, cache, monkeypatch):
    X, _ = load_from(monkeypatch, f"{server}/table.zip", member="table.csv")
    assert X.shape == (40, 2)
    assert (cache / "tiny.csv").read_bytes() == TABLE


@pytest.mark.parametrize(
    ("path", "changes", "reason"),
    [
        ("other.csv", {}, "another sha256"),
        ("truncated", {}, "only 100 of"),
        ("nothing-here", {}, "404"),
        ("slow", {"timeout": 0.3}, "silent for 0.3 s"),
        ("drip", {"timeout": 0.3}, "too slow"),
        ("endless", {"limit": 50_000}, "more than the 50,000 bytes"),
        ("table.csv", {"limit": 50}, "more than the 50 allowed"),
        ("to-a-file", {}, "not allowed"),
        ("empty.zip", {"member": "table.csv"}, "holds no table.csv"),
        ("false.zip", {"member": "table.csv"}, "not a zip"),
        ("damaged.zip", {"member": "table.csv"}, "not a zip that can be read"),
        ("long.csv", {"columns": ("a", "b", "y")}, "field larger than"),
        ("nowhere", {}, "the connection broke"),
        ("table.csv", {"columns": ("a", "price")}, "no column 'price'"),
    ],
)
def test_a_bad_download_is_one_sentence_and_leaves_nothing(
    server, cache, monkeypatch, path, changes, reason
):
    with pytest.raises(InputError, match=reason) as caught:
        load_from(monkeypatch, f"{server}/{path}", **changes)
    said = str(caught.value)
    assert f"{server}/{path}" in said  # what to download from where
    assert str(cache / "tiny.csv") in said  # and where to put it
    assert "\n" not in said
    assert left_in(cache) == []


def test_a_zip_that_unpacks_to_too_much_is_refused():
    bomb = zipped("table.csv", b"0" * 2_000_000)
    assert len(bomb) < 10_000
    with pytest.raises(download.DownloadError, match="larger than"):
        download.member_of(bomb, "table.csv", 1_000_000)


def test_no_network_says_what_to_download_and_where_to_put_it(cache, monkeypatch):
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/wine.zip"
        with pytest.raises(InputError, match="no connection") as caught:
            load_from(monkeypatch, url, member="red.csv")
    assert f"download {url} (take red.csv out of the zip)" in str(caught.value)
    assert left_in(cache) == []


def test_progress_tells_bytes_and_total(server):
    seen = []
    download.download(f"{server}/table.csv", limit=10_000, progress=lambda *at: seen.append(at))
    assert seen[-1] == (len(TABLE), len(TABLE))


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def fails(self, target):
        raise KeyboardInterrupt

    monkeypatch.setattr("pathlib.Path.replace", fails)
    with pytest.raises(KeyboardInterrupt):
        places.keep(TABLE, tmp_path / "cache" / "tiny.csv")
    assert left_in(tmp_path / "cache") == []


def test_a_cache_that_cannot_be_written_costs_only_the_next_download(
    server, tmp_path, monkeypatch, cache
):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("COVARIA_CACHE", str(tmp_path / "file" / "cache"))
    X, _ = load_from(monkeypatch, f"{server}/table.csv")
    assert X.shape == (40, 2)


def test_a_spoilt_file_in_the_cache_is_downloaded_anew(server, cache, monkeypatch):
    cache.mkdir()
    (cache / "tiny.csv").write_bytes(TABLE[:50])
    X, _ = load_from(monkeypatch, f"{server}/table.csv")
    assert X.shape == (40, 2)
    assert (cache / "tiny.csv").read_bytes() == TABLE


def test_the_users_own_folder_comes_first(tmp_path, cache, monkeypatch):
    own = tmp_path / "own"
    own.mkdir()
    (own / "tiny.csv").write_bytes(TABLE)
    monkeypatch.setenv("COVARIA_DATA", str(own))
    X, _ = load_from(monkeypatch, "http://127.0.0.1:9/never-asked")
    assert X.shape == (40, 2)
    (own / "tiny.csv").write_bytes(TABLE.replace(b"1", b"2"))
    with pytest.raises(InputError, match="sha256 differs"):
        datasets.load("tiny")
    assert len(datasets.load("tiny", check=False)[0]) == 40


NARROW = {"sha256": hashlib.sha256(b"a,b,y\n1,2,3\n").hexdigest(), "columns": ("a", "b", "y")}


def test_a_wide_file_of_the_users_own_is_narrowed_before_it_is_checked(
    tmp_path, cache, monkeypatch
):
    assert only_columns(WIDE, ("a", "b", "y")) == b"a,b,y\n1,2,3\n"
    (tmp_path / "tiny.csv").write_bytes(WIDE)
    monkeypatch.setenv("COVARIA_DATA", str(tmp_path))
    X, _ = load_from(monkeypatch, "http://127.0.0.1:9/", **NARROW)
    assert list(X.columns) == ["a", "b"]
    (tmp_path / "tiny.csv").write_bytes(WIDE.replace(b"1", b"4"))  # a newer snapshot
    assert datasets.load("tiny", check=False)[0]["a"].tolist() == [4]
    assert not listed("tiny")["present"]  # `load` would refuse it


def test_only_the_columns_used_of_a_wide_download_are_kept(server, cache, monkeypatch):
    load_from(monkeypatch, f"{server}/wide.csv", **NARROW)
    assert (cache / "tiny.csv").read_bytes() == b"a,b,y\n1,2,3\n"


def test_what_is_saved_by_hand_where_the_message_says_is_taken(cache, monkeypatch):
    """The sentence about a failed download names a place: a file put there must do."""
    cache.mkdir()
    monkeypatch.setitem(ENTRIES, "tiny", an_entry("http://127.0.0.1:9/", **NARROW))
    (cache / "tiny.csv").write_bytes(b"something else")
    with pytest.raises(InputError, match=r"is not what .*tiny.csv holds"):
        datasets.load("tiny", download=False)
    (cache / "tiny.csv").write_bytes(WIDE)
    assert datasets.load("tiny", download=False)[0].shape == (1, 2)
    assert (cache / "tiny.csv").read_bytes() == b"a,b,y\n1,2,3\n"  # nobody's name is kept
    assert listed("tiny")["present"]
    assert left_in(cache) == ["tiny.csv"]


def listed(name):
    return next(row for row in datasets.listing() if row["name"] == name)


def test_what_is_kept_can_be_read_by_whoever_may(server, cache, monkeypatch):
    old = os.umask(0o022)
    try:
        load_from(monkeypatch, f"{server}/table.csv")
    finally:
        os.umask(old)
    assert (cache / "tiny.csv").stat().st_mode & 0o777 == 0o644


def test_without_a_home_the_cache_is_among_temporary_files(monkeypatch):
    def nobody():
        raise RuntimeError("Could not determine home directory.")

    for name in ("COVARIA_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pathlib.Path.home", nobody)
    assert places.cache_folder() == Path(tempfile.gettempdir()) / "covaria"


def test_a_table_without_a_row_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "tiny.csv").write_bytes(b"a,b,y\n")
    monkeypatch.setenv("COVARIA_DATA", str(tmp_path))
    monkeypatch.setitem(ENTRIES, "tiny", an_entry("http://127.0.0.1:9/"))
    with pytest.raises(InputError, match="no complete row"):
        datasets.load("tiny", check=False)


def test_without_download_only_this_machine_is_looked_at(cache, monkeypatch):
    with pytest.raises(InputError, match="is not on this machine"):
        datasets.load("boston", download=False)


def test_a_folder_that_is_not_there_is_said(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("COVARIA_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="is not a folder"):
        datasets.load("boston", download=False)


def test_an_unknown_name_is_met_with_the_nearest():
    with pytest.raises(InputError, match="Did you mean 'boston'"):
        datasets.load("bostn")
    with pytest.raises(InputError, match=r"There are .*'gas_turbine_2013'"):
        datasets.load([1])


@pytest.mark.parametrize("timeout", [-1, 0, None, float("nan")])
def test_a_time_that_is_none_is_one_sentence(timeout):
    with pytest.raises(InputError, match=r"timeout=.* must be a number of seconds"):
        datasets.load("boston", timeout=timeout)
