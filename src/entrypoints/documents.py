"""Answers as JSON documents for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .output import instant

if TYPE_CHECKING:
    from pathlib import Path

    from ..answers import Context, Listing, Recall
    from ..commands.arrive import Arrivals
    from ..commands.back_up_keys import KeyBackup, RestoredKeys
    from ..commands.outcome import Outcome
    from ..commands.rebuild import Rebuilt
    from ..commands.recover import Recovery
    from ..commands.rename import Renamed
    from ..events.kinds import Event
    from ..events.mapper import LoggedEvent
    from ..events.snapshot import Snapshot
    from ..projections.audit import AuditRow
    from ..projections.models.choice import Switch
    from ..projections.models.manifest import Checked
    from ..projections.models.packs import Packed
    from ..projections.record import Record
    from ..queries.blame import Blame
    from ..queries.doctor import Diagnosis
    from ..queries.evaluate import Evaluation
    from ..queries.key_list import KeyList
    from ..queries.models import Model
    from ..queries.namespaces import Namespace
    from ..queries.sql import Rows
    from ..queries.status import Status
    from ..queries.trail import Receipt
    from ..queries.verify import Report
    from ..queries.why import Because, Why
    from .git_history import Imported
    from .request import Created, PutBack

_SAID_ELSEWHERE = {"recorded_at", "actor", "via"}


def created(made: Created) -> dict[str, Any]:
    """A new store."""
    return {name: str(value) for name, value in made._asdict().items()}


def outcome(outcome: Outcome) -> dict[str, Any]:
    """What came of a command that changes a memory."""
    return {
        "outcome": outcome.status,
        "id": outcome.id,
        "position": outcome.position,
        "superseded": outcome.superseded_id,
        "repeated": outcome.repeated,
        "reason": outcome.reason,
    }


def outcomes(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """What each row came to, in order. Rows count from 1."""
    return {"rows": [{"row": n, **outcome(each)} for n, each in enumerate(outcomes, 1)]}


def receipt(receipt: str) -> dict[str, Any]:
    """The receipt of what was put on record."""
    return {"receipt": receipt}


def record(found: Record) -> dict[str, Any]:
    """A memory, whole."""
    stored = found.stored
    return {
        "id": found.id,
        "text": found.text,
        "status": found.status,
        "namespace": found.namespace,
        "kind": stored.kind,
        "source": stored.source,
        "actor": stored.actor,
        "author": stored.author,
        "subject": stored.subject,
        "key": stored.key,
        "tags": list(stored.tags),
        "thread": stored.thread,
        "place": stored.place,
        "importance": stored.importance,
        "confidence": stored.confidence,
        "recorded_at": instant(stored.recorded_at),
        "revised_at": instant(found.revised_at),
        "occurred_at": instant(stored.occurred_at),
        "valid_from": instant(stored.valid_from),
        "expires_at": instant(stored.expires_at),
        "evidence": list(stored.evidence),
        "label": stored.label,
        "trust": stored.trust,
        "metadata": stored.metadata,
        "derived_from": list(stored.derived_from),
        "links": [{"kind": link.kind, "to": link.to} for link in found.links],
        "pinned": found.pinned,
        "protected": found.protected,
        "reinforced": found.reinforced,
        "superseded_by": found.superseded_by,
        "forgotten_for": found.forgotten_for,
        "imported": None if found.imported is None else found.imported._asdict(),
        "revision": found.revision,
        "provenance": dict(found.provenance),
        "position": found.position,
    }


def recalled(recall: Recall) -> dict[str, Any]:
    """The hits of a recall, best first, and its receipt."""
    hits = [
        {
            "rank": rank,
            "relevance": hit.relevance,
            "score": hit.score,
            "scores": dict(hit.scores),
            "memory": record(hit.record),
        }
        for rank, hit in enumerate(recall, 1)
    ]
    return {
        "hits": hits,
        "nothing_relevant": recall.nothing_relevant,
        "receipt": recall.receipt,
        "degraded": list(recall.degraded),
    }


def context(found: Context) -> dict[str, Any]:
    """The hits of a recall for a prompt."""
    return {"text": found.text, "tokens": found.tokens, "left_out": found.left_out, "receipt": found.receipt}


def listed(listing: Listing) -> dict[str, Any]:
    """One page of a search, and how to go on."""
    return {
        "memories": [record(found) for found in listing],
        "total": listing.total,
        "cursor": listing.cursor,
        "receipt": listing.receipt,
    }


def event(logged: LoggedEvent) -> dict[str, Any]:
    """One event: where it stands, who signed it, and its body as it was signed."""
    header = logged.header
    return {
        "log": logged.log,
        "position": header.position,
        "id": header.id,
        "kind": header.kind,
        "schema": header.schema,
        "stream": header.stream,
        "revision": header.revision,
        "at": instant(logged.event.recorded_at),
        "actor": logged.event.actor,
        "via": logged.event.via,
        "signed_by": header.key,
        "root": header.root,
        "leaf": logged.leaf,
        "body": _body(logged.event),
    }


def _body(event: Event) -> dict[str, Any]:
    """What was signed; of an import, what its file tells as the events they are told to be."""
    from ..events.kinds import Imported  # noqa: PLC0415  pydantic; --help needs none of it
    from ..events.portable import told  # noqa: PLC0415

    body = event.model_dump(exclude_defaults=True, exclude=_SAID_ELSEWHERE)
    if isinstance(event, Imported):
        claims = [(each, told(each).model_dump(exclude_defaults=True)) for each in event.events]
        body["events"] = [
            {"id": each.id, "kind": each.kind, "schema": each.version, "body": claim} for each, claim in claims
        ]
    return body


def history(events: Sequence[LoggedEvent]) -> dict[str, Any]:
    """Every event of one memory."""
    return {"id": events[0].header.stream, "events": [event(logged) for logged in events]}


def blamed(found: Sequence[Blame]) -> dict[str, Any]:
    """Who wrote each field of a memory."""
    return {"fields": [{**each._asdict(), "at": instant(each.at)} for each in found]}


def explained(why: Why) -> dict[str, Any]:
    """A recall as it is on record, with the events behind each hit."""
    recalled = why.recalled
    return {
        "receipt": why.receipt,
        "query": recalled.query,
        "namespaces": list(recalled.namespaces),
        "limit": recalled.limit,
        "at": instant(recalled.recorded_at),
        "actor": recalled.actor,
        "via": recalled.via,
        "signed_by": why.logged.header.key,
        "log_size": recalled.log_size,
        "log_root": recalled.log_root,
        "pipeline": recalled.pipeline,
        "degraded": list(recalled.degraded),
        "verb": recalled.verb,
        "filters": recalled.filters,
        "context_sha256": None if why.context is None else why.context.sha256,
        "hits": [_because(hit) for hit in why.hits],
    }


def _because(hit: Because) -> dict[str, Any]:
    return {
        "rank": hit.rank,
        "scores": hit.scores,
        "memory": record(hit.record),
        "events": [event(logged) for logged in hit.events],
    }


def namespaces(found: Sequence[Namespace]) -> dict[str, Any]:
    """Every namespace, with times in ISO 8601."""
    return {
        "namespaces": [
            {**each._asdict(), "written_at": instant(each.written_at), "read_at": instant(each.read_at)}
            for each in found
        ]
    }


def renamed(found: Renamed) -> dict[str, Any]:
    """What came of a rename."""
    return found._asdict()


def log(rows: Sequence[AuditRow]) -> dict[str, Any]:
    """The newest events of both logs."""
    return {"events": [audit_row(row) for row in rows]}


def audit_row(row: AuditRow) -> dict[str, Any]:
    """One event without its text."""
    return {**row._asdict(), "at": instant(row.at)}


def selected(found: Rows) -> dict[str, Any]:
    """The answer to a statement in SQL."""
    return {"columns": list(found.columns), "rows": [list(row) for row in found.rows]}


def receipts(found: Sequence[Receipt]) -> dict[str, Any]:
    """What was read."""
    return {"receipts": [{**each._asdict(), "at": instant(each.at)} for each in found]}


def evaluated(found: Evaluation) -> dict[str, Any]:
    """What became of recalls that were asked again."""
    counts = {change.replace(" ", "_"): count for change, count in found.counts.items()}
    used = None
    if found.used_before is not None and found.used_now is not None:
        before, now = found.used_before._asdict(), found.used_now._asdict()
        used = {"recalls": len(found.labelled), "before": before, "now": now}
    recalls = [
        {
            **each._asdict(),
            "change": each.change.replace(" ", "_"),
            "gained": list(each.gained),
            "lost": list(each.lost),
            "overlap": each.overlap,
        }
        for each in found.recalls
    ]
    return {
        "model": found.model,
        "without": list(found.without),
        **counts,
        "overlap": found.overlap,
        "used": used,
        "recalls": [{**each, **_before_and_now(each)} for each in recalls],
    }


def _before_and_now(each: dict[str, Any]) -> dict[str, Any]:
    """What is told of both answers, each named for what it is."""
    return {name: dict(zip(("before", "now"), each[name], strict=True)) for name in ("pipelines", "degraded")}


def status(found: Status) -> dict[str, Any]:
    """The state of a store."""
    return {"clean": found.clean, **found._asdict()}


def keys(found: KeyList) -> dict[str, Any]:
    """The keys of a store, none of them secret."""
    return {**found._asdict(), "keys": [key._asdict() for key in found.keys]}


def keys_backed_up(made: KeyBackup) -> dict[str, Any]:
    """A backup of keys that was written."""
    return {"declined": False, **made._asdict()}


def backup_declined(position: int) -> dict[str, Any]:
    """A backup of keys that was declined."""
    return {"declined": True, "position": position, "file": None, "id": None, "digest": None}


def keys_restored(restored: RestoredKeys) -> dict[str, Any]:
    """Keys that were brought back."""
    return {"keys": restored.place, "written": restored.entries, "backup": restored.backup, "sign": restored.sign}


def verified(report: Report) -> dict[str, Any]:
    """What was checked, all of it right."""
    return {**report._asdict(), "logs": [log._asdict() for log in report.logs]}


def diagnosed(found: Diagnosis) -> dict[str, Any]:
    """What was looked at, and what was found."""
    return {
        "healthy": found.healthy,
        "store": found.store,
        "keys": found.keys,
        "findings": [finding._asdict() for finding in found.findings],
        "checks": list(found.checks),
        "not_made": list(found.not_made),
        "versions": found.versions,
    }


def rebuilt(found: Rebuilt) -> dict[str, Any]:
    """Each view's digest before and after a rebuild."""
    views = [
        {"view": name, "before": found.before.get(name), "after": after, "equal": found.before.get(name) == after}
        for name, after in found.after.items()
    ]
    return {"equal": found.before == found.after, "views": views}


def imported(result: tuple[Imported, int]) -> dict[str, Any]:
    """What an import brought, and how many vectors were made after it."""
    found, vectors = result
    refused = [{"commit": commit, "reason": reason} for commit, reason in found.refused]
    return {"new": found.new, "known": found.known, "refused": refused, "vectors": vectors}


def embedded(made: tuple[int, str]) -> dict[str, Any]:
    """How many vectors were made, and by which model."""
    vectors, model = made
    return {"vectors": vectors, "model": model}


def models(found: Sequence[Model]) -> dict[str, Any]:
    """Every model, and what a store has of it."""
    return {"models": [{**model._asdict(), "needs": list(model.needs)} for model in found]}


def switched(result: tuple[Switch, str]) -> dict[str, Any]:
    """A model that was put in force, or is on the way there; and the setting that goes before it."""
    switch, setting = result
    return {**switch._asdict(), "overruled_by": None if setting == "auto" else setting}


def dropped(result: tuple[str, int]) -> dict[str, Any]:
    """How many vectors of a model were thrown away."""
    model, vectors = result
    return {"model": model, "vectors": vectors}


def packed(pack: Packed) -> dict[str, Any]:
    """A model that was packed, or put into the cache."""
    return {**pack._asdict(), "path": str(pack.path)}


def models_verified(checked: Sequence[Checked]) -> dict[str, Any]:
    """Each file of the models, and whether it is what it must be."""
    return {"files": [{**each._asdict(), "file": str(each.file), "good": each.good} for each in checked]}


def arrived(result: tuple[Arrivals, int]) -> dict[str, Any]:
    """What an export brought, and how many vectors were made after it."""
    found, vectors = result
    refusals = None if found.refusals is None else str(found.refusals)
    return {**found._asdict(), "refusals": refusals, "vectors": vectors}


def exported(result: tuple[Path, int]) -> dict[str, Any]:
    """What was written where."""
    path, memories = result
    return {"path": str(path), "memories": memories}


def failed(error: Exception) -> dict[str, Any]:
    """What went wrong. `log` and `position` are those of the first bad entry, where there is one."""
    place = {name: getattr(error, name, None) for name in ("log", "position")}
    return {"error": {"kind": type(error).__name__, "message": str(error), **place}}


def snapshots(found: Sequence[Snapshot]) -> dict[str, Any]:
    """Snapshots, newest first."""
    return {
        "snapshots": [
            {
                "snapshot": str(each.path),
                "store": each.store,
                "at": each.at.isoformat().replace("+00:00", "Z"),
                "logs": {name: state._asdict() for name, state in each.logs.items()},
                "bytes": each.bytes,
                "sha256": each.sha256,
            }
            for each in found
        ]
    }


def put_back(done: PutBack) -> dict[str, Any]:
    """Where a snapshot was put, and where what was there is kept."""
    return {"store": str(done.store), "kept": None if done.kept is None else str(done.kept)}


def recovered(done: Recovery) -> dict[str, Any]:
    """A store that goes on: what came over of each log, and what did not."""
    logs = [
        {**log._asdict(), "lost": [{"first": first, "last": last} for first, last in log.lost]} for log in done.logs
    ]
    return {"store": done.store, "kept": done.kept, "logs": logs, "withheld": list(done.withheld)}


def taken_over(store: Path) -> dict[str, Any]:
    """The store whose lease is free."""
    return {"store": str(store)}
