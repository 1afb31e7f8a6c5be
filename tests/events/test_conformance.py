"""Our recorders keep the promises of the library they extend: its own conformance suites run against them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from eventsourcing.tests.persistence import (
    ApplicationRecorderTestCase,
    NonInterleavingNotificationIDsBaseCase,
    TrackingRecorderTestCase,
)

from tallystick.events.installation import Installation
from tallystick.events.recorder import LogRecorder
from tallystick.projections.views import Views


def new_installation(case: TestRecorder | TestTracking | TestNonInterleaving) -> Installation:
    """A store that holds nothing but the first event of each log; gone when the case is done."""
    folder = Path(tempfile.mkdtemp(prefix="conformance-"))
    case.addCleanup(shutil.rmtree, folder)
    installation = Installation.create(folder / "store", folder / "keys")
    case.addCleanup(installation.abandon)
    return installation


class TestRecorder(ApplicationRecorderTestCase[LogRecorder]):
    """The log is an application recorder: insert, conflict, select, count, concurrent writers, subscribe."""

    def create_recorder(self) -> LogRecorder:
        """The recorder of a fresh memory log."""
        return new_installation(self).memory.recorder

    def test_insert_subscribe(self) -> None:
        """The library's SQLite recorder has no subscriptions and leaves this case out; ours has them."""
        self.optional_test_insert_subscribe()


class TestNonInterleaving(NonInterleavingNotificationIDsBaseCase):
    """The positions of one append are consecutive, however many are under way."""

    def create_recorder(self) -> LogRecorder:
        """The recorder of a fresh memory log."""
        return new_installation(self).memory.recorder


class TestTracking(TrackingRecorderTestCase):
    """The views are a tracking recorder: a position moves forward only, and can be waited for."""

    def create_recorder(self) -> Views:
        """The views of a fresh store."""
        views = Views.create(new_installation(self))
        self.addCleanup(views.close)
        return views
