"""The gate before each spaced repetition: as cool, as idle and as quick as when the job began."""

from __future__ import annotations

from collections.abc import Callable

MARGIN_MILLICELSIUS = 3000
BUSY_SHARE = 0.30
CANARY_RATIO = 1.10


class Readiness:
    """Compares the machine with its start; what cannot be read holds nothing up.

    `temperature_millicelsius` and `other_cpu_percent` (one core is 100) read gauges, `canary_ns` runs the canary.
    Temperature and clock decide, not status enums, which say "nominal" while phones slow down; the busy share is that
    of Liquid AI's pipette, the ratio that of AndroidX Benchmark.
    """

    def __init__(
        self,
        temperature_millicelsius: Callable[[], int | None],
        other_cpu_percent: Callable[[], float | None],
        canary_ns: Callable[[], int],
        *,
        cool_canary_ns: int,
        cores: int,
    ) -> None:
        self._temperature = temperature_millicelsius
        self._others = other_cpu_percent
        self._canary_ns = canary_ns
        self._start_millicelsius = temperature_millicelsius()
        self._cool_canary_ns = cool_canary_ns
        self._cores = cores

    def begin(self) -> None:
        """Count other work from now on."""
        self._others()

    def lack(self) -> str | None:
        """Say what keeps the machine from being ready, or None; other work is that since the last call."""
        return self._too_hot() or self._too_busy() or self._too_slow()

    def _too_hot(self) -> str | None:
        now = self._temperature()
        if now is None or self._start_millicelsius is None or now <= self._start_millicelsius + MARGIN_MILLICELSIUS:
            return None
        return f"still at {now / 1000:.1f} °C, {(now - self._start_millicelsius) / 1000:.1f} °C above the start"

    def _too_busy(self) -> str | None:
        others = self._others()
        if others is None or others <= 100 * BUSY_SHARE * self._cores:
            return None
        return f"other work uses {others / 100:.1f} of {self._cores} cores"

    def _too_slow(self) -> str | None:
        ratio = self._canary_ns() / self._cool_canary_ns if self._cool_canary_ns > 0 else 1.0
        if ratio <= CANARY_RATIO:
            return None
        return f"the processor is {100 * (ratio - 1):.0f} % slower than when the job began"
