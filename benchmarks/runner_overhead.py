"""Measure what runner and plan add to a hand-written ONNX Runtime loop: `python -m benchmarks.runner_overhead`.

Hand loop, hand loop again (the A/A control) and runner take turns in random order, in one process and in the very same
sessions. Where the two hand loops cannot be told apart to 1 %, nothing finer is claimed: "unresolved".
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from scipy import stats as scipy_stats

from benchmarks.hand_loop import hand_loop
from benchmarks.overhead_report import Overhead, Report, render, verdicts_on_large, verdicts_on_small
from benchmarks.product_side import ProductSide, product_side
from benchmarks.verdicts import exit_code, load_now, load_since, print_verdicts
from profiler import codec
from profiler.errors import InternalError, ProfilerError
from profiler.runner.interpreter import plan_constants
from profiler.stats import RESAMPLES, SEED, Interval, paired_ratio

NANO = Path(__file__).parent.parent / "exporters" / "bundles" / "nano"
_IMAGES, _IMAGES_LARGE, _WARMUPS = 600, 150, 3
_REST_S = 0.02  # lets the thread pools of the last turn stop spinning and the samplers take their first reading

Times = npt.NDArray[np.float64]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure nano, or the bundle named, and a large random model; return 0 where every target is met."""
    options = _parser().parse_args(arguments)
    try:
        report = measure_all(options)
    except ProfilerError as error:
        print(f"runner_overhead: {error}", file=sys.stderr)
        return error.exit_code
    if options.json:
        print(codec.encode(report).decode())
    else:
        Console().print(render(report.overheads))
        print_verdicts(report.verdicts, report.load_average, Console())
    return exit_code(report.verdicts)


def measure_all(options: argparse.Namespace) -> Report:
    """Measure the small bundle, then the large one unless it is left out. Raises ProfilerError."""
    before = load_now()
    overheads = [measure(options.bundle, options.images or _IMAGES, options)]
    verdicts = verdicts_on_small(overheads[0])
    if not options.without_large:
        from benchmarks.large_pipeline import large_bundle

        overheads.append(measure(large_bundle(options.work), options.images or _IMAGES_LARGE, options))
        verdicts += verdicts_on_large(overheads[1])
    return Report(load_average=load_since(before), overheads=tuple(overheads), verdicts=tuple(verdicts))


def measure(folder: Path, images: int, options: argparse.Namespace) -> Overhead:
    """Run the three sides over one bundle. Raises InternalError where their images differ."""
    with (
        tempfile.TemporaryDirectory() as storage,
        product_side(folder, options.task, Path(storage), options.threads) as product,
    ):
        tensors = {**plan_constants(product.plan, folder), **product.inputs}
        hand = hand_loop(product.plan, tensors, product.engine.sessions)
        if not np.array_equal(hand.run(), product.run()):
            raise InternalError(f"{folder}: hand loop and runner make different images")
        times_ms = _take_turns(product, hand.run, images)
    differences = times_ms["runner"] - times_ms["hand"]
    return Overhead(
        subject=product.model,
        task=product.plan.task,
        parameters=product.parameters,
        images=images,
        calls=hand.calls,
        hand_ms=float(np.median(times_ms["hand"])),
        image_ms=float(np.median(differences)),
        image_ms_ci95=_median_interval(differences),
        image_ms_mean=float(differences.mean()),
        ratio=paired_ratio(times_ms["runner"].tolist(), times_ms["hand"].tolist()),
        control=paired_ratio(times_ms["control"].tolist(), times_ms["hand"].tolist()),
    )


def _take_turns(product: ProductSide, hand: Callable[[], Any], images: int) -> dict[str, Times]:
    """Time each side once a round, in an order drawn anew; the first rounds are not counted."""
    sides: dict[str, Callable[[], Any]] = {"hand": hand, "control": hand, "runner": product.run}
    times_ns: dict[str, list[int]] = {name: [] for name in sides}
    order, random = list(sides), Random(SEED)
    for number in range(_WARMUPS + images):
        random.shuffle(order)
        for name in order:
            if name == "runner":
                product.begin_tracing()
            time.sleep(_REST_S)
            start_ns = time.perf_counter_ns()
            sides[name]()
            times_ns[name].append(time.perf_counter_ns() - start_ns)
            if name == "runner":
                product.end_tracing()
        _tell(f"\r{product.model}: round {number + 1} of {_WARMUPS + images}")
    _tell("\n")
    return {name: np.array(values[_WARMUPS:]) / 1e6 for name, values in times_ns.items()}


def _tell(text: str) -> None:
    """Show progress between rounds; a bar that redraws itself would run inside the timed windows."""
    if sys.stderr.isatty():
        print(text, end="", file=sys.stderr, flush=True)


def _median_interval(differences: Times) -> Interval | None:
    """Bootstrap the median of differences, which unlike the samples of `profiler.stats` may be negative."""
    if differences.size < 3:
        return None
    random = np.random.default_rng(SEED)
    found = scipy_stats.bootstrap(
        (differences,), np.median, n_resamples=RESAMPLES, method="percentile", rng=random
    ).confidence_interval
    return float(found.low), float(found.high)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.runner_overhead", description=__doc__)
    parser.add_argument("--bundle", type=Path, default=NANO, help="the small bundle; default: nano, as it ships")
    parser.add_argument("--task", choices=("generate", "edit"), help="default: edit where the bundle can")
    parser.add_argument("--images", type=int, help=f"timed images a side; default {_IMAGES}, large {_IMAGES_LARGE}")
    parser.add_argument("--threads", type=int, help="ONNX Runtime's threads; default: its own choice, as in a job")
    parser.add_argument("--without-large", action="store_true", help="leave out the large random model")
    parser.add_argument("--work", type=Path, default=Path("build/benchmarks"), help="where the large model is kept")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


if __name__ == "__main__":
    sys.exit(main())
