"""What can be typed is what the records know: `--help` stays quick by not importing them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, get_args, get_type_hints

import pytest

from profiler.cli import options
from profiler.records.event import Outcome
from profiler.records.job import Measurement
from profiler.records.policy import Metric
from profiler.records.recipe import BUILT_IN_RUNTIMES, Backend, EncoderScheme, LoadPolicy, Precision
from profiler.records.record import Task
from profiler.report.listing import ORDERS, TIERS


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        (options.TaskName, get_args(Task)),
        (options.ProtocolName, get_args(get_type_hints(Measurement)["kind"])),
        (options.LoadPolicyName, get_args(LoadPolicy)),
        (options.BackendName, get_args(Backend)),
        (options.PrecisionName, get_args(Precision)),
        (options.SchemeName, get_args(EncoderScheme)),
        (options.MetricName, [metric.replace("_", "-") for metric in get_args(Metric)]),
        (options.OutcomeName, get_args(Outcome)),
        (options.TierChoice, TIERS),
        (options.OrderName, ORDERS),
    ],
)
def test_a_closed_set_is_the_same_on_the_command_line(typed: type[StrEnum], known: Any) -> None:
    assert {choice.value for choice in typed} == set(known)


def test_the_runtimes_that_can_be_typed_are_the_products_own() -> None:
    assert options.RUNTIMES == BUILT_IN_RUNTIMES
