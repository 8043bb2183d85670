"""A session on a virtual phone, from the adb server to the stored run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from profiler.catalog import device_profile
from profiler.clock import RealClock
from profiler.devices.android.adb import Server
from profiler.devices.android.device import AndroidDevice, Patience
from profiler.devices.opening import choose, known_phones, opened
from profiler.records.device import GENERIC_PHONE
from profiler.records.run import Run
from profiler.session import Order, Progress, measure
from profiler.store import Store
from tests.phones.adb_server import Adb
from tests.phones.android.phone import VirtualAndroid

PATIENCE = Patience(start_s=20.0, end_s=5.0)


class Desk:
    """Where phones are measured: an adb server, and a store."""

    def __init__(self, adb: Adb, root: Path) -> None:
        self.server = Server(environment=adb.environment)
        self.store = Store(root / "store")
        self._leases = root / "leases"

    @contextmanager
    def device(self, phone: VirtualAndroid, leases: Path | None = None) -> Iterator[AndroidDevice]:
        """Open a virtual phone as the product does, connecting to it first; `leases` as others see them."""
        self.server.connect(phone.address)
        known = choose(known_phones(self.server), device_profile(GENERIC_PHONE), phone.address)
        device = opened(known, self.server, RealClock(), leases or self._leases, patience=PATIENCE)
        try:
            yield device
        finally:
            device.close()

    def measure(
        self, phone: VirtualAndroid, order: Order, report: Callable[[Progress], None] = lambda state: None
    ) -> Run:
        """Measure on a virtual phone."""
        with self.device(phone) as device:
            return measure(order, device, self.store, RealClock(), report)
