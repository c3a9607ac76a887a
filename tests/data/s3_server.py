"""A store that speaks S3 on loopback, as much of it as Arrow's client uses: objects live in memory, requests are noted.

It checks no signatures. `fail` names keys whose upload is answered with an error, as a full or forbidden store would.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


@dataclass
class ObjectStore:
    """The objects of a server by bucket and key, and what was asked of it."""

    port: int = 0
    objects: dict[str, bytes] = field(default_factory=dict)
    buckets: set[str] = field(default_factory=lambda: {"shop"})
    asked: list[tuple[str, str]] = field(default_factory=list)
    fail: set[str] = field(default_factory=set)
    parts: dict[str, dict[int, bytes]] = field(default_factory=dict)

    @property
    def files(self) -> dict[str, bytes]:
        """The objects but for the empty ones by which Arrow marks folders."""
        return {key: content for key, content in self.objects.items() if not key.endswith("/")}

    @property
    def settings(self) -> dict[str, str]:
        """What a client's environment must have."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "ann",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: ObjectStore

    def log_message(self, *_: object) -> None:
        return

    def _where(self) -> tuple[str, str, dict[str, list[str]]]:
        url = urlsplit(self.path)
        bucket, _, key = unquote(url.path).lstrip("/").partition("/")
        self.store.asked.append((self.command, f"{bucket}/{key}"))
        return bucket, key, parse_qs(url.query, keep_blank_values=True)

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        given = {"Content-Length": str(len(body)), **(headers or {})}
        for name, value in given.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _missing(self, code: str) -> None:
        self._answer(404, f"{HEAD}<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

    def _body(self) -> bytes:
        """What was sent; also in the pieces, with checksums after them, that newer clients send."""
        if self.headers.get("Transfer-Encoding", "") == "chunked":
            raw = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "aws-chunked" not in self.headers.get("Content-Encoding", ""):
            return raw
        whole, at = b"", 0
        while size := int(raw[at : raw.index(b"\r\n", at)].split(b";")[0], 16):
            at = raw.index(b"\r\n", at) + 2
            whole += raw[at : at + size]
            at += size + 2
        return whole

    def do_HEAD(self) -> None:
        bucket, key, _ = self._where()
        if bucket not in self.store.buckets or (key and f"{bucket}/{key}" not in self.store.objects):
            self._missing("NoSuchKey" if key else "NoSuchBucket")
            return
        body = self.store.objects.get(f"{bucket}/{key}", b"")
        self._answer(200, b"", {"Content-Length": str(len(body)), "ETag": '"x"', "Last-Modified": _THEN})

    def do_GET(self) -> None:
        bucket, key, query = self._where()
        if not key:
            self._list(bucket, query)
            return
        body = self.store.objects.get(f"{bucket}/{key}")
        if body is None:
            self._missing("NoSuchKey")
            return
        part = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if part is None:
            self._answer(200, body, {"ETag": '"x"', "Last-Modified": _THEN})
            return
        first, last = int(part[1]), min(int(part[2] or len(body) - 1), len(body) - 1)
        said = {"Content-Range": f"bytes {first}-{last}/{len(body)}", "ETag": '"x"', "Last-Modified": _THEN}
        self._answer(206, body[first : last + 1], said)

    def _list(self, bucket: str, query: dict[str, list[str]]) -> None:
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        files, folders = [], set()
        for name in sorted(self.store.objects):
            key = name.removeprefix(f"{bucket}/")
            if not name.startswith(f"{bucket}/{prefix}"):
                continue
            below = key.removeprefix(prefix)
            if delimiter and delimiter in below:
                folders.add(prefix + below.split(delimiter)[0] + delimiter)
            else:
                files.append((key, len(self.store.objects[name])))
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size><LastModified>2026-01-05T00:00:00.000Z"
            f'</LastModified><ETag>"x"</ETag></Contents>'
            for key, size in files
        )
        rows += "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in sorted(folders))
        count = f"<KeyCount>{len(files) + len(folders)}</KeyCount><IsTruncated>false</IsTruncated>"
        whole = f"{HEAD}<ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix>{count}{rows}"
        self._answer(200, f"{whole}</ListBucketResult>".encode())

    def do_PUT(self) -> None:
        bucket, key, query = self._where()
        body = self._body()
        if f"{bucket}/{key}" in self.store.fail:
            self._answer(403, f"{HEAD}<Error><Code>AccessDenied</Code><Message>denied</Message></Error>".encode())
        elif bucket not in self.store.buckets:
            self._missing("NoSuchBucket")
        elif "partNumber" in query:
            self.store.parts[query["uploadId"][0]][int(query["partNumber"][0])] = body
            self._answer(200, b"", {"ETag": f'"{len(body)}"'})
        else:
            self.store.objects[f"{bucket}/{key}"] = body
            self._answer(200, b"", {"ETag": '"x"'})

    def do_POST(self) -> None:
        bucket, key, query = self._where()
        self._body()
        if "uploads" in query:
            number = str(len(self.store.parts) + 1)
            self.store.parts[number] = {}
            inside = f"<Bucket>{bucket}</Bucket><Key>{escape(key)}</Key><UploadId>{number}</UploadId>"
            name = "InitiateMultipartUploadResult"
            self._answer(200, f"{HEAD}<{name}>{inside}</{name}>".encode())
            return
        parts = self.store.parts.pop(query["uploadId"][0])
        self.store.objects[f"{bucket}/{key}"] = b"".join(parts[number] for number in sorted(parts))
        name = "CompleteMultipartUploadResult"
        self._answer(200, f'{HEAD}<{name}><Key>{escape(key)}</Key><ETag>"x"</ETag></{name}>'.encode())

    def do_DELETE(self) -> None:
        bucket, key, query = self._where()
        if "uploadId" in query:
            self.store.parts.pop(query["uploadId"][0], None)
        else:
            self.store.objects.pop(f"{bucket}/{key}", None)
        self._answer(204)


_THEN = "Mon, 05 Jan 2026 00:00:00 GMT"


@contextmanager
def serving() -> Iterator[ObjectStore]:
    """A store on a free port of loopback, while the block runs."""
    store = ObjectStore()
    handler = type("Handler", (_Handler,), {"store": store})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    store.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
