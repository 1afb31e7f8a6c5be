"""The one place that uses the network: a model, from a commit of the hub, into the cache."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from ...errors import ModelMissing, Refused, Unavailable
from .known import FILES, MODULES, known_as
from .manifest import Manifest, made_of
from .packs import Packed, put_in_place, staging
from .places import OR_BRING, command_for
from .torch_folder import WEIGHTS, counts

HUB = "https://huggingface.co"
HUB_VARIABLE = "HF_ENDPOINT"
"""The variable by which all programs for the hub are told of a mirror."""
SECONDS = 30
"""How long the hub may be silent."""

_REFERENCE = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)@([0-9a-f]{40})")
_BLOCK = 1 << 20
_HERE = ("localhost", "127.0.0.1", "::1")

Tell = Callable[[int, int], None]
"""Is told bytes that are here, and of how many."""


class Listed(NamedTuple):
    """A file as the hub lists it at a commit: SHA-256 of a large one, the git object's id (SHA-1) of a small one."""

    path: str
    size: int
    sha256: str
    git: str


def fetch(model: str, tell: Tell = lambda _done, _of: None) -> Packed:
    """Bring a model that is known, or OWNER/NAME@COMMIT of the hub, into the cache.

    Each file is verified before any is put in place: against its pin, where the model is known, and against the hash
    that the hub lists at that commit. What does not verify leaves nothing behind. Raises Refused for what names no
    commit, ModelMissing where there is no such model or a hash is wrong, Unavailable where the hub can't be reached.
    """
    known = known_as(model)
    if known is not None and not known.hub:
        raise ModelMissing(f"These weights of {model} are not on the hub. Run {command_for(known)}; {OR_BRING}")
    repository, commit = _reference(known.hub if known else model)
    hub = _hub()
    listed = _wanted(_listing(f"{hub}/api/models/{repository}/tree/{commit}?recursive=true", model), model)
    done, of = 0, sum(each.size for each in listed)
    with staging() as folder:
        for each in listed:
            with _opened(f"{hub}/{repository}/resolve/{commit}/{quote(each.path)}", model) as answer:
                for block in _verified(answer, each, folder / each.path):
                    done += block
                    tell(done, of)
        return put_in_place(folder, Manifest(model, made_of(model, folder).files))


def _reference(model: str) -> tuple[str, str]:
    match = _REFERENCE.fullmatch(model)
    if match is None:
        raise Refused(
            f"{model!r} is no model that can be fetched. Give a name from `tallystick models list`, what `tallystick "
            f"models pack` wrote, or OWNER/NAME@COMMIT with the 40 digits of a commit: a branch moves."
        )
    return match[1], match[2]


def _hub() -> str:
    hub = os.environ.get(HUB_VARIABLE, "").rstrip("/") or HUB
    if urlsplit(hub).scheme != "https" and urlsplit(hub).hostname not in _HERE:
        raise Refused(f"{HUB_VARIABLE} is {hub!r}. Give an address that begins with https://.")
    return hub


def _wanted(listed: list[Listed], model: str) -> list[Listed]:
    """The files of those listed that a model is read from: an ONNX model's two, else those of sentence-transformers."""
    named = {each.path: each for each in listed}
    if named.keys() >= {*FILES} and MODULES not in named:
        return [named[file] for file in FILES]
    if MODULES not in named or WEIGHTS not in named:
        raise ModelMissing(
            f"{model} is no model that can be run: it has neither {' and '.join(FILES)}, nor {MODULES} and {WEIGHTS}. "
            f"Name another one."
        )
    return [each for each in listed if counts(each.path)]


def _listing(address: str | None, model: str) -> list[Listed]:
    """All files of a commit, page by page."""
    found: list[Listed] = []
    while address is not None:
        with _opened(address, model) as answer:
            try:
                found += [_listed(entry) for entry in json.loads(answer.read()) if entry["type"] == "file"]
            except (ValueError, KeyError, TypeError) as error:
                raise Unavailable(f"The hub's list of {model} can't be read ({error!r}). Try again.") from error
            following = re.search(r'<([^>]+)>;\s*rel="next"', answer.headers.get("Link", ""))
            address = following[1] if following else None
    return found


def _listed(entry: dict[str, Any]) -> Listed:
    return Listed(str(entry["path"]), int(entry["size"]), str((entry.get("lfs") or {}).get("oid", "")), entry["oid"])


@contextmanager
def _opened(address: str, model: str) -> Iterator[Any]:
    """The hub's answer to a question. Nobody is told who asks, beyond what any connection tells."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(address, headers={"User-Agent": "tallystick"}), timeout=SECONDS
        ) as answer:
            yield answer
    except urllib.error.HTTPError as error:
        if error.code in (401, 403, 404):
            raise ModelMissing(f"The hub has no {model} that is open to all ({error.code}). Check its name.") from error
        raise _unreachable(address, model, f"it answered {error.code}") from error
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise _unreachable(address, model, str(getattr(error, "reason", error)) or type(error).__name__) from error


def _unreachable(address: str, model: str, why: str) -> Unavailable:
    return Unavailable(
        f"{urlsplit(address).netloc} can't be reached ({why}); nothing was kept. Try again where there is a network; "
        f"or run `tallystick models pack {model} FILE.zip` there, and run `tallystick models "
        f"fetch FILE.zip` here."
    )


def _verified(answer: Any, listed: Listed, target: Path) -> Iterator[int]:
    """Write a file block by block, telling their sizes; at the end its hash is what was listed. Raises ModelMissing."""
    sha256, git = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % listed.size, usedforsecurity=False)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        while block := answer.read(_BLOCK):
            for digest in (sha256, git):
                digest.update(block)
            file.write(block)
            yield len(block)
    good = sha256.hexdigest() == listed.sha256 if listed.sha256 else git.hexdigest() == listed.git
    if not good:
        raise ModelMissing(f"{listed.path} is not what the hub lists, and nothing was kept. Try again.")
