"""Answers as tables for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..visible import one_line
from .output import Column, Screen, instant, minute, short

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
    from ..queries.evaluate import Compared, Evaluation
    from ..queries.key_list import KeyList
    from ..queries.models import Model
    from ..queries.namespaces import Namespace
    from ..queries.sql import Rows
    from ..queries.status import Status
    from ..queries.trail import Receipt
    from ..queries.verify import Report
    from ..queries.why import Why
    from .git_history import Imported
    from .request import Created, PutBack

DIGEST_DIGITS = 16
ROWS_SHOWN = 20
_TIMES_ASKED = {"since", "until", "as_of", "known_at"}
_SHOWN_ELSEWHERE = {"recorded_at", "actor", "via", "nonce", "parents", "command_id"}
NO_MODEL = "no embedding model is in force, so recall goes by words; `tallystick models list` shows what there is"


def created(screen: Screen, made: Created) -> None:
    """A new store, where its keys went, what they are worth, and how to go on."""
    screen.facts(
        {
            "store": str(made.store),
            "keys": str(made.keys),
            "project file": str(made.project),
            "root key": f"{made.root_key} (public: for whoever audits this store)",
        }
    )
    screen.say()
    screen.say(
        "Losing the keys loses the memories: nobody can make new ones. Back them up: `tallystick keys backup FILE`."
    )
    screen.say('Go on with `tallystick store "TEXT"`, then `tallystick recall "QUESTION"`.')


_CAME = {
    "stored": "",
    "reinforced": ": this text was there, and counts once more; `tallystick revise` changes its fields",
    "revised": ": `tallystick history` shows every version",
    "forgotten": ": nobody recalls it any more; `tallystick restore` brings it back",
    "restored": ": it is recalled again",
    "linked": ": `tallystick get` shows its links",
    "unlinked": ": the link is gone",
    "protected": ": nothing changes it; `tallystick protect --off` lifts that",
    "unprotected": ": it can be changed again",
    "pinned": ": it is part of every context of its namespace; `tallystick pin --off` takes it out",
    "unpinned": ": it is no longer part of every context",
}
"""What a person is told of an outcome, beside the memory's id."""


def outcome(screen: Screen, outcome: Outcome) -> None:
    """What came of a command that changes a memory, and the memory's id."""
    said = _CAME.get(outcome.status, "")
    if outcome.superseded_id:
        said = f": takes the place of {short(outcome.superseded_id)}"
    again = " (this command id was carried out before)" if outcome.repeated else ""
    screen.say(f"{outcome.status} {outcome.id}{said}{again}")
    if outcome.reason:
        screen.say(f"  {outcome.reason}")


def outcomes(screen: Screen, outcomes: Sequence[Outcome]) -> None:
    """What each row came to: all of a few; of many those with something to be said, and how many came to what."""
    numbered = list(enumerate(outcomes, 1))
    if len(outcomes) > ROWS_SHOWN:
        numbered = [row for row in numbered if row[1].reason]
    columns = (Column("row", right=True), Column("outcome"), Column("id"), Column("why", wide=True))
    rows = [(str(n), _came(each), short(each.id) or "-", each.reason or "") for n, each in numbered[:ROWS_SHOWN]]
    if rows:
        screen.table(columns, rows)
        screen.say()
    if len(numbered) > ROWS_SHOWN:
        screen.say(f"and {len(numbered) - ROWS_SHOWN} more with something to be said: --json names them all")
    counts = Counter(_came(each) for each in outcomes)
    screen.say(", ".join(f"{number:,} {status}" for status, number in counts.items()) or "there was nothing to store")


def _came(outcome: Outcome) -> str:
    return "there already" if outcome.repeated else outcome.status


def receipt(screen: Screen, receipt: str) -> None:
    """The receipt of what was put on record."""
    screen.say(f"on record, receipt {receipt}")


def recalled(screen: Screen, recall: Recall) -> None:
    """The hits, best first; then the receipt, and what was missing."""
    if recall.hits:
        told = any(hit.relevance is not None for hit in recall)
        older = any(hit.record.status == "superseded" for hit in recall)
        rows = [
            (str(rank), *([_share(hit.relevance)] if told else []), short(hit.id),
             *([hit.record.status] if older else []), _when(hit.record), hit.text)
            for rank, hit in enumerate(recall, 1)
        ]  # fmt: skip
        relevant = (Column("relevant", right=True, spare=1),) if told else ()
        status = (Column("status"),) if older else ()
        columns = (Column("#", right=True), *relevant, Column("id"), *status, Column("when (UTC)", spare=1))
        screen.table((*columns, Column("text", wide=True)), rows)
        if recall.nothing_relevant:
            screen.say()
            screen.say("Nothing here seems to be about that.")
    else:
        screen.say(
            "Nothing was found. Ask with fewer filters, or elsewhere: `tallystick namespaces` lists what there is."
        )
    screen.say()
    screen.facts({"receipt": recall.receipt or "none", "degraded": "; ".join(recall.degraded)})


def _share(relevance: float | None) -> str:
    return "" if relevance is None else f"{100 * relevance:.0f} %"


def context(screen: Screen, found: Context) -> None:
    """The hits of a recall for a prompt, and nothing else."""
    screen.say(found.text.removesuffix("\n"))


def listed(screen: Screen, listing: Listing) -> None:
    """One page of a search; how many there are, and the cursor of the next page."""
    rows = [(short(found.id), found.status, _when(found), found.stored.kind, found.text) for found in listing]
    columns = (Column("id"), Column("status"), Column("when (UTC)"), Column("kind"), Column("text", wide=True))
    screen.table(columns, rows)
    screen.say()
    screen.facts({"total": str(listing.total), "next page": listing.cursor or "", "receipt": listing.receipt or ""})


def record(screen: Screen, found: Record) -> None:
    """One memory: its fields, then its text."""
    stored = found.stored
    screen.facts(
        {
            "id": found.id,
            "status": f"{found.status}{_reason(found)}",
            "namespace": found.namespace,
            "kind": stored.kind,
            "source": stored.source,
            "claimed by": stored.actor,
            "imported": _imported(found),
            "author": stored.author or "",
            "subject": stored.subject or "",
            "key": stored.key or "",
            "tags": ", ".join(stored.tags),
            "thread": _thread(found),
            "importance": f"{stored.importance:g}",
            "confidence": "" if stored.confidence is None else f"{stored.confidence:g}",
            "recorded": instant(stored.recorded_at) or "",
            "revised": instant(found.revised_at) or "",
            "occurred": instant(stored.occurred_at) or "",
            "valid from": instant(stored.valid_from) or "",
            "expires": instant(stored.expires_at) or "",
            "evidence": ", ".join(stored.evidence),
            "label": stored.label or "",
            "trust": stored.trust or "",
            "metadata": ", ".join(f"{name}={value}" for name, value in stored.metadata.items()),
            "derived from": " ".join(leaf.hex() for leaf in stored.derived_from),
            "links": ", ".join(f"{link.kind} {short(link.to)}" for link in found.links),
            "pinned": "yes: part of every context" if found.pinned else "",
            "protected": "yes: nothing changes it" if found.protected else "",
            "reinforced": str(found.reinforced or ""),
            "revision": f"{found.revision}{_written(found)}",
        }
    )
    screen.say()
    screen.say(found.text)


def history(screen: Screen, events: Sequence[LoggedEvent]) -> None:
    """Every event of a memory, oldest first."""
    columns = (
        Column("position", right=True, spare=2),
        Column("when (UTC)"),
        Column("event"),
        Column("claimed by", spare=1),
        Column("signed by", spare=3),
        Column("what", wide=True),
    )
    screen.table(columns, [_event_row(logged) for logged in events])


def blamed(screen: Screen, found: Sequence[Blame]) -> None:
    """Who wrote each field of a memory."""
    columns = (
        Column("field"),
        Column("revision", right=True),
        Column("when (UTC)"),
        Column("event"),
        Column("claimed by"),
        Column("signed by"),
        Column("value", wide=True),
    )
    rows = [
        (b.field, str(b.revision), minute(b.at), b.kind, b.actor, b.signed_by.hex(), _value(b.field, b.value))
        for b in found
    ]
    screen.table(columns, rows)


def explained(screen: Screen, why: Why) -> None:
    """A recall as it is on record; each hit with its scores; the events behind each hit."""
    recalled = why.recalled
    screen.facts(
        {
            "question": recalled.query,
            "asked": f"{instant(recalled.recorded_at)}, claimed by {recalled.actor}",
            "receipt": f"{why.receipt}, position {why.logged.header.position} of the access log",
            "signed by": f"key {why.logged.header.key.hex()}",
            "answered from": f"{recalled.log_size} entries, root {recalled.log_root.hex()}",
            "namespaces": " ".join(recalled.namespaces),
            "filters": ", ".join(f"{name}={_asked(name, value)}" for name, value in recalled.filters.items()),
            "ranking": recalled.pipeline,
            "context": f"SHA-256 {why.context.sha256.hex()}" if why.context else "",
            "degraded": "; ".join(recalled.degraded),
        }
    )
    screen.say()
    if not why.hits:
        screen.say("It found nothing.")
        return
    stages = tuple(Column(stage, right=True, spare=min(n, 1)) for n, stage in enumerate(recalled.stages))
    rows = [
        (str(hit.rank), *(_score(hit.scores[s]) for s in recalled.stages), short(hit.record.id), hit.record.text)
        for hit in why.hits
    ]
    screen.table((Column("#", right=True), *stages, Column("id"), Column("text", wide=True)), rows)
    for hit in why.hits:
        screen.say()
        screen.say(f"The events behind {short(hit.record.id)}, each verified:", style="bold")
        history(screen, hit.events)


def _asked(name: str, value: Any) -> str:
    """What a filter was given, as a person reads it."""
    if name in _TIMES_ASKED and isinstance(value, int):
        return instant(value) or ""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def namespaces(screen: Screen, found: Sequence[Namespace]) -> None:
    """Every namespace, how much is in it, and when it was last used."""
    if not found:
        screen.say("There is no memory yet. `tallystick store` makes the first.")
        return
    columns = (
        Column("namespace", wide=True),
        Column("current", right=True),
        Column("memories", right=True),
        Column("written (UTC)"),
        Column("read (UTC)"),
        Column("called before"),
    )
    rows = [
        (n.name, str(n.current), str(n.memories), minute(n.written_at), _minute(n.read_at), " ".join(n.aliases))
        for n in found
    ]
    screen.table(columns, rows)


def renamed(screen: Screen, found: Renamed) -> None:
    """What came of a rename."""
    moved = f"{found.moved} current {'memory' if found.moved == 1 else 'memories'} moved"
    screen.say(f"{found.old} is called {found.new} now: {moved}")
    for older in found.superseded:
        screen.say(f"  superseded {older}: the newer one stays")


def log(screen: Screen, rows: Sequence[AuditRow]) -> None:
    """The newest events of both logs, newest first."""
    columns = (
        Column("when (UTC)"),
        Column("log", spare=4),
        Column("position", right=True, spare=3),
        Column("event"),
        Column("stream", spare=2),
        Column("claimed by", spare=1),
        Column("namespace", wide=True),
    )
    screen.table(columns, [_audit_cells(row) for row in rows])


def audit_row(screen: Screen, row: AuditRow) -> None:
    """One event, on a line of its own."""
    screen.say("  ".join(cell for cell in _audit_cells(row) if cell))


def selected(screen: Screen, found: Rows) -> None:
    """The answer to a statement in SQL."""
    columns = [Column(name, wide=n == len(found.columns) - 1) for n, name in enumerate(found.columns)]
    screen.table(columns, [[_cell(value) for value in row] for row in found.rows])


def receipts(screen: Screen, found: Sequence[Receipt]) -> None:
    """What was read, newest first."""
    columns = (
        Column("receipt"), Column("when (UTC)"), Column("verb"), Column("claimed by"), Column("memories", right=True),
        Column("question", wide=True),
    )  # fmt: skip
    rows = [(r.receipt, minute(r.at), r.verb, r.actor, str(len(r.memories)), r.query or r.of or "") for r in found]
    screen.table(columns, rows)


def evaluated(screen: Screen, found: Evaluation) -> None:
    """What became of recalls that were asked again: those that changed, and all of them together."""
    changed = [each for each in found.recalls if each.change != "same"]
    if changed:
        columns = (
            Column("receipt"), Column("change"), Column("overlap", right=True), Column("gained", right=True, spare=1),
            Column("lost", right=True, spare=1), Column("used at", right=True, spare=2), Column("question", wide=True),
        )  # fmt: skip
        screen.table(columns, [_evaluated_row(each) for each in changed])
        screen.say()
    if not found.recalls:
        screen.say("No recall is on record yet. `tallystick recall` makes the first.")
        return
    counts = ", ".join(f"{count:,} {change}" for change, count in found.counts.items() if count)
    before, now = found.used_before, found.used_now
    screen.facts(
        {
            "model": found.model,
            "without": " ".join(found.without),
            "recalls": f"{len(found.recalls):,}: {counts}",
            "overlap": "" if found.overlap is None else f"{100 * found.overlap:.1f} % of the longer answer, on average",
            "used": f"said of {len(found.labelled):,}" if before and now else "said of none: `tallystick used` says it",
            "hit": f"{100 * before.hit:.1f} % before, {100 * now.hit:.1f} % now" if before and now else "",
            "MRR": f"{100 * before.mrr:.1f} before, {100 * now.mrr:.1f} now" if before and now else "",
        }
    )
    for reason, count in Counter(each.reason for each in found.recalls if each.reason).items():
        screen.say(f"{count:,} could not be asked: {reason}")


def _evaluated_row(each: Compared) -> tuple[str, ...]:
    if each.change == "not asked":
        return each.receipt, each.change, "", "", "", "", each.query
    before, now = (str(rank or "-") for rank in each.first_used)
    used = f"{before} > {now}" if each.used else ""
    overlap = f"{100 * each.overlap:.0f} %"
    return each.receipt, each.change, overlap, str(len(each.gained)), str(len(each.lost)), used, each.query


def status(screen: Screen, found: Status) -> None:
    """What is there and where, and whether it is clean."""
    screen.say("clean" if found.clean else "not clean", style="bold green" if found.clean else "bold yellow")
    for remark in found.remarks:
        screen.say(f"  {remark}")
    if not found.clean:
        screen.say("  `tallystick doctor` looks further, and says what mends each")
    for note in found.notes:
        screen.say(f"  note: {note}")
    screen.facts(
        {
            "memories": ", ".join(f"{n:,} {name}" for name, n in found.memories.items()) or "none yet",
            "namespaces": ", ".join(f"{name} ({n:,})" for name, n in found.namespaces.items()) or "none yet",
            "on record": ", ".join(f"{n:,} in the {name} log" for name, n in found.logs.items()),
            "by meaning": _by_meaning(found),
            "store": f"{found.store} ({sum(found.bytes.values()) / 1e6:.1f} MB)",
            "keys": found.keys,
            "mark": "" if found.mark.startswith(found.keys) else found.mark,
            "root key": found.root,
            "checked": CHECKED.get(found.checked, found.checked),
        }
    )


CHECKED = {
    "new": "what was appended since the last time; `tallystick verify` checks everything",
    "structure": "every entry, since the files had changed; `tallystick verify` checks the signatures too",
}
"""What was checked when the store was opened."""


def _by_meaning(found: Status) -> str:
    """Whether memories are found by meaning, and what it takes."""
    if found.model == "none":
        return f"no: {NO_MODEL}"
    if found.missing_vectors:
        return f"yes, but for {found.missing_vectors:,}: the next recall or `tallystick embed` makes their vectors"
    return f"yes, with the model {found.model}"


def keys(screen: Screen, found: KeyList) -> None:
    """The keys of a store, where they are, and the public root key."""
    screen.facts({"store": found.store, "keys": found.place, **{f"{k.name} key": k.public for k in found.keys}})
    screen.say()
    columns = (
        Column("key"),
        Column("state"),
        Column("id", spare=1),
        Column("use", spare=2),
        Column("where", wide=True),
    )
    screen.table(columns, [(key.name, key.state, key.id or "-", key.use, key.where) for key in found.keys])


def keys_backed_up(screen: Screen, made: KeyBackup) -> None:
    """A backup of keys, and what it is worth."""
    screen.facts({"backup": made.file, "id": made.id, "sha-256": made.digest})
    screen.say()
    screen.say(
        "With this file, its passphrase and a copy of the store everything in it can be read. Keep the two apart."
    )


def backup_declined(screen: Screen, position: int) -> None:
    """A backup of keys that was declined."""
    screen.say(f"declined, at position {position} of the memory log: if the keys are lost, so are the memories")


def keys_restored(screen: Screen, restored: RestoredKeys) -> None:
    """Keys that were brought back, and what can be done with them."""
    screen.facts({"keys": restored.place, "written": ", ".join(restored.entries), "backup": restored.backup})
    screen.say()
    if restored.sign:
        screen.say("All keys are there: the store can be read, verified and written.")
    else:
        screen.say("The store can be read and verified. Nothing can be stored: the keys that sign are in no backup.")


def verified(screen: Screen, report: Report) -> None:
    """What was checked, all of it right."""
    columns = (
        Column("log"),
        Column("entries", right=True),
        Column("signatures", right=True, spare=1),
        Column("payloads opened", right=True, spare=2),
        Column("checkpoints", right=True, spare=3),
        Column("root", wide=True),
    )
    rows = [
        (log.log, str(log.size), str(log.signatures), str(log.payloads), str(log.checkpoints), log.root)
        for log in report.logs
    ]
    screen.table(columns, rows)
    if report.views:
        screen.say()
        views = [(name, digest[:DIGEST_DIGITS], "yes") for name, digest in report.views.items()]
        screen.table((Column("view"), Column("digest", spare=1), Column("equal to a rebuild")), views)
    screen.say()
    unchecked = "; signatures and payloads were not checked" if report.depth == "structure" else ""
    screen.say(f"verified: everything checked is right{unchecked}", style="bold green")


def diagnosed(screen: Screen, found: Diagnosis) -> None:
    """A line for each finding: what is wrong, and what mends it; and how much was looked at."""
    levels = Counter(finding.level for finding in found.findings)
    wrong, warnings = levels["wrong"], levels["warning"]
    said = f"healthy, with {_number(warnings, 'warning')}" if warnings else "healthy: nothing is wrong"
    if wrong:
        said = f"{wrong} wrong, {_number(warnings, 'warning')}"
    said += f"; {_number(len(found.checks), 'check')} made"
    if found.not_made:
        said += f", {len(found.not_made)} not, for what is wrong"
    screen.say(said, style="bold yellow" if found.findings else "bold green")
    for each in found.findings:
        screen.say(f"{each.level:<7}  {one_line(f'{each.check}: {each.what} {each.remedy}')}")
    screen.facts(
        {
            "store": found.store,
            "keys": found.keys,
            "not made": ", ".join(found.not_made),
            "versions": ", ".join(f"{name} {number}" for name, number in found.versions.items()),
        }
    )


def _number(count: int, of: str) -> str:
    return f"{count} {of}{'' if count == 1 else 's'}"


def audited(screen: Screen, report: Report) -> None:
    """What was checked with the root key alone, and what was not."""
    verified(screen, report)
    screen.say("Without the store's own keys no text was opened, and nothing shows whether the end was cut off.")


def rebuilt(screen: Screen, found: Rebuilt) -> None:
    """Each view's digest before and after a rebuild, and whether they are equal."""
    rows = []
    for name, after in found.after.items():
        before = found.before.get(name)
        equal = "-" if before is None else "yes" if before == after else "NO"
        rows.append((name, (before or "unreadable")[:DIGEST_DIGITS], after[:DIGEST_DIGITS], equal))
    columns = (Column("view"), Column("digest before", spare=2), Column("digest after", spare=1), Column("equal"))
    screen.table(columns, rows)
    screen.say()
    if found.before == found.after:
        screen.say("equal: the views are what the log adds up to", style="bold green")
    elif found.before:
        screen.say("NOT equal: the views were not what the log adds up to; the new ones are", style="bold red")
    else:
        screen.say("the old views could not be read; the new ones are what the log adds up to", style="bold yellow")


def imported(screen: Screen, result: tuple[Imported, int]) -> None:
    """What an import brought, and which commits were refused."""
    found, vectors = result
    screen.facts(
        {
            "new": str(found.new),
            "there already": str(found.known),
            "refused": str(len(found.refused)),
            "vectors made": str(vectors),
        }
    )
    for commit, reason in found.refused[:ROWS_SHOWN]:
        screen.say(f"  {short(commit)}  {reason}")
    if len(found.refused) > ROWS_SHOWN:
        screen.say(f"  and {len(found.refused) - ROWS_SHOWN} more: --json names them all")


def embedded(screen: Screen, made: tuple[int, str]) -> None:
    """How many vectors were made."""
    vectors, model = made
    if model == "none":
        screen.say(f"no vectors were made: {NO_MODEL}")
    else:
        screen.say(f"{vectors:,} vectors made with the model {model}: none is missing")


def models(screen: Screen, found: Sequence[Model]) -> None:
    """Every model, where it is, and what the store has of it."""
    rows = [
        (
            model.name or "(of a model that is not here)",
            model.job,
            model.source or "not here",
            f"{model.bytes / 1e6:,.1f}" if model.bytes else "",
            model.space,
            f"{model.vectors:,}" if model.vectors else "",
            model.use,
            ", ".join(model.needs),
            model.folder,
        )
        for model in found
    ]
    screen.table(
        (
            Column("model"),
            Column("job", spare=2),
            Column("found"),
            Column("MB", right=True, spare=3),
            Column("space", spare=1),
            Column("vectors", right=True),
            Column("here"),
            Column("needs"),
            Column("folder", wide=True),
        ),
        rows,
    )


def switched(screen: Screen, result: tuple[Switch, str]) -> None:
    """A model that was put in force, and what goes before it."""
    switch, setting = result
    screen.say(f"{switch.vectors:,} vectors made; {switch.model} is the model of this store", style="bold green")
    if setting != "auto":
        screen.say(
            f"but the setting `model` is {setting}, and goes before it: see TALLYSTICK_MODEL and .tallystick.toml"
        )


def dropped(screen: Screen, result: tuple[str, int]) -> None:
    """How many vectors of a model were thrown away."""
    model, vectors = result
    screen.say(f"{vectors:,} vectors of {model} thrown away")


def packed(screen: Screen, pack: Packed) -> None:
    """A model that was packed."""
    screen.facts(_pack(pack))
    screen.say(f"there: tallystick models fetch {pack.path.name}")


def fetched(screen: Screen, pack: Packed) -> None:
    """A model that was put into the cache."""
    screen.facts(_pack(pack))
    screen.say(f"next: tallystick models use {pack.model}")


def _pack(pack: Packed) -> dict[str, str]:
    return {"model": pack.model, "at": str(pack.path), "files": str(pack.files), "manifest SHA-256": pack.sha256}


def models_verified(screen: Screen, checked: Sequence[Checked]) -> None:
    """Each file of the models, and whether it is what it must be."""
    rows = [(each.model, _verdict(each), (each.sha256 or "")[:DIGEST_DIGITS], str(each.file)) for each in checked]
    screen.table((Column("model"), Column("is"), Column("SHA-256", spare=1), Column("file", wide=True)), rows)
    screen.say()
    if all(each.good for each in checked):
        screen.say(f"{len(checked)} files, none of them wrong", style="bold green")
    else:
        screen.say("NOT all as they must be: fetch or install those models again", style="bold red")


def _verdict(checked: Checked) -> str:
    if checked.sha256 is None:
        return "GONE"
    if checked.pinned is None:
        return "not pinned"
    return "good" if checked.good else "CHANGED"


def arrived(screen: Screen, result: tuple[Arrivals, int]) -> None:
    """What an export brought, and where its refused rows are."""
    found, vectors = result
    screen.facts(
        {
            "new": str(found.new),
            "updated": str(found.updated),
            "known": str(found.known),
            "refused": f"{found.refused}, with reasons in {found.refusals}" if found.refused else "0",
            "vectors made": str(vectors),
        }
    )


def exported(screen: Screen, result: tuple[Path, int]) -> None:
    """How many memories were written, and where."""
    path, memories = result
    screen.say(f"wrote {memories:,} memories to {path}: in clear, so keep it as you keep the store")


def _event_row(logged: LoggedEvent) -> tuple[str, ...]:
    header, event = logged.header, logged.event
    return (
        str(header.position),
        minute(event.recorded_at),
        header.kind,
        event.actor,
        header.key.hex(),
        _what(event),
    )


def _what(event: Event) -> str:
    """What a person wants to know of an event beyond its kind: its text, its reason, or what it says of what."""
    body = event.model_dump(exclude_defaults=True, exclude=_SHOWN_ELSEWHERE)
    if "through" in body:
        return f"came in from an export, where it began as {short(body['memory'])}"
    if "namespace" in body:  # it was stored: what else it says is what `get` is for
        return str(body["text"])
    said = [_said(name, value) for name, value in body.items()]
    return "; ".join(said)


def _said(name: str, value: object) -> str:
    if name in ("text", "reason"):
        return str(value)
    if isinstance(value, bytes):
        return f"{name} {short(value)}"
    if isinstance(value, bool):
        return "on" if value else "off"
    listed = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"{name.replace('_', ' ')} {listed}"


def _audit_cells(row: AuditRow) -> tuple[str, ...]:
    return (minute(row.at), row.log, str(row.position), row.kind, short(row.stream), row.actor, row.namespace)


def _minute(microseconds: int | None) -> str:
    return "" if microseconds is None else minute(microseconds)


def _value(field: str, value: object) -> str:
    if value is None:
        return "-"
    if field in ("occurred_at", "valid_from", "expires_at") and isinstance(value, int):
        return instant(value) or ""
    if isinstance(value, tuple):
        return ", ".join(each.hex() if isinstance(each, bytes) else str(each) for each in value)
    return str(value)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return value.hex() if isinstance(value, bytes) else str(value)


def _when(found: Record) -> str:
    stored = found.stored
    return minute(stored.recorded_at if stored.occurred_at is None else stored.occurred_at)


def _imported(found: Record) -> str:
    told = found.imported
    return "" if told is None else f"it began as {short(told.memory)}, the file says by {told.actor} ({told.source})"


def _reason(found: Record) -> str:
    if found.superseded_by is not None:
        return f" by {short(found.superseded_by)}"
    return f": {found.forgotten_for}" if found.forgotten_for else ""


def _thread(found: Record) -> str:
    place = found.stored.place
    return (found.stored.thread or "") + ("" if place is None else f", place {place}")


def _written(found: Record) -> str:
    """Which revision wrote each field that is no longer as it was stored."""
    written = ", ".join(f"{name} by revision {revision}" for name, revision in found.provenance.items())
    return f" ({written})" if written else ""


def _score(score: float | None) -> str:
    return "-" if score is None else f"{score:.3f}"


def snapshots(screen: Screen, found: Sequence[Snapshot]) -> None:
    """Snapshots, newest first."""
    columns = (
        Column("taken"),
        Column("memory log", right=True),
        Column("access log", right=True),
        Column("bytes", right=True),
        Column("snapshot", wide=True),
    )
    rows = [
        (f"{s.at:%Y-%m-%d %H:%M}", *(str(state.size) for state in s.logs.values()), f"{s.bytes:,}", str(s.path))
        for s in found
    ]
    if rows:
        screen.table(columns, rows)
    else:
        screen.say("There is no snapshot.")


def rotated(screen: Screen, gone: Sequence[Snapshot]) -> None:
    """The snapshots that were deleted."""
    if gone:
        snapshots(screen, gone)
        screen.say()
    screen.say(f"deleted {len(gone)}")


def put_back(screen: Screen, done: PutBack) -> None:
    """Where a snapshot was put, and where what was there is kept."""
    screen.facts({"store": str(done.store), "kept": str(done.kept or "nothing: the directory was empty")})
    screen.say()
    screen.say("If it is older than what was verified last, run `tallystick recover` to go on from it.")


def recovered(screen: Screen, done: Recovery) -> None:
    """What came over of each log, what did not, and what to do about it."""
    columns = (Column("log"), Column("events", right=True), Column("lost positions", wide=True), Column("new origin"))
    screen.table(columns, [(log.log, str(log.events), _runs(log.lost), short(log.origin)) for log in done.logs])
    screen.say()
    screen.facts({"store": done.store, "old log": done.kept})
    if done.withheld:
        screen.say()
        screen.say(
            f"{len(done.withheld)} came over forgotten, since an event of each may be lost. `tallystick restore ID` "
            f"brings one back:"
        )
        for identifier in done.withheld:
            screen.say(f"  {identifier}")


def taken_over(screen: Screen, store: Path) -> None:
    """The store whose lease is free."""
    screen.say(f"took over {store}: this host may open it now, and the other one may not while it does")


def _runs(lost: Sequence[tuple[int, int]]) -> str:
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in lost) or "none"
