"""Downloading with a limit on time and on bytes; everything stays in memory until it is checked."""

from __future__ import annotations

import io
import sys
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import IO
from urllib.request import Request

from covaria.errors import short

Progress = Callable[[int, int], None]
CHUNK = 65_536
# A server that keeps sending a byte now and then never times out: this many time-outs are enough.
PATIENCE = 4


# What a zip that is damaged, encrypted or packed in some rare way raises.
UNREADABLE = (
    zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, EOFError,
)  # fmt: skip


class DownloadError(Exception):
    """A download that failed; the message says why, as part of a sentence."""


class NeverLess(urllib.request.HTTPRedirectHandler):
    """Follow redirects, but not from https to http; anything else urllib refuses itself."""

    def http_error_302(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage
    ) -> object:
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except (ValueError, DownloadError):  # an address that is none, or less
            fp.close()
            raise

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise DownloadError(f"it redirects to {newurl}, which is not encrypted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download(
    url: str, *, limit: int, timeout: float = 30.0, progress: Progress | None = None
) -> bytes:
    """Return what an address holds, or raise DownloadError: whole, in time, and not too large."""
    if not url.startswith(("https://", "http://")):
        raise DownloadError("its address is neither http nor https")
    progress = progress or _on_terminal(url)
    deadline = time.monotonic() + PATIENCE * timeout
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "covaria"})
        with urllib.request.build_opener(NeverLess).open(request, timeout=timeout) as answer:
            return _body(answer, limit, deadline, progress)
    except urllib.error.HTTPError as error:
        error.close()
        reason = short(str(error.reason), 100)
        raise DownloadError(f"the server answered {error.code} {reason}") from error
    except TimeoutError as error:
        raise DownloadError(f"the server was silent for {timeout:g} s") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise DownloadError(f"the server was silent for {timeout:g} s") from error
        raise DownloadError(f"there is no connection: {error.reason}") from error
    except (OSError, HTTPException, ValueError) as error:
        reason = short(str(error) or type(error).__name__, 100)
        raise DownloadError(f"the connection broke: {reason}") from error


def _body(answer: HTTPResponse, limit: int, deadline: float, progress: Progress) -> bytes:
    told = answer.headers.get("Content-Length", "")
    total = int(told) if told.isdigit() else 0
    if total > limit:
        raise DownloadError(f"it has {total:,} bytes, more than the {limit:,} allowed")
    parts = bytearray()
    while chunk := answer.read1(CHUNK):
        parts += chunk
        if len(parts) > limit:
            raise DownloadError(f"it has more than the {limit:,} bytes allowed")
        if time.monotonic() > deadline:
            raise DownloadError("the server was too slow")
        progress(len(parts), total)
    if total and len(parts) < total:
        raise DownloadError(f"only {len(parts):,} of {total:,} bytes came")
    return bytes(parts)


def _on_terminal(url: str) -> Progress:
    """Return a progress line on a terminal, and silence elsewhere."""
    if not sys.stderr.isatty():
        return lambda done, total: None

    def show(done: int, total: int) -> None:
        share = f"{100 * done / total:3.0f}%" if total else f"{done:,} bytes"
        end = "\n" if done == total else ""
        print(f"\rDownloading {url} {share}", end=end, file=sys.stderr, flush=True)

    return show


def member_of(archive: bytes, name: str, limit: int) -> bytes:
    """Return one file of a zip, whatever folder it lies in, or raise DownloadError."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            found = [i for i in opened.infolist() if i.filename.rsplit("/", 1)[-1] == name]
            if not found:
                raise DownloadError(f"its zip holds no {name}")
            if found[0].file_size > limit:
                raise DownloadError(f"{name} in its zip is larger than the {limit:,} bytes allowed")
            with opened.open(found[0]) as file:
                return file.read(limit)
    except UNREADABLE as error:
        raise DownloadError(f"it is not a zip that can be read ({error})") from error
