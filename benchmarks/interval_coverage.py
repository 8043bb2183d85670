"""Measure how often `stats.summarise`'s 95 % interval holds the true median: `python -m benchmarks.interval_coverage`.

Draws log-normal latencies with a spread of 20 %, whose true median is known. Half a minute on one core.
"""

from __future__ import annotations

import numpy as np

from profiler.stats import reachable_coverage, summarise

TRIALS = 1000
SPREAD = 0.2
SIZES = (3, 4, 5, 6, 8, 10, 15, 20, 30, 50)


def main() -> None:
    """Print measured and reachable coverage for each number of samples."""
    rng = np.random.default_rng(0)
    print(f"{'n':>3}  covered  reachable")
    for n in SIZES:
        print(f"{n:>3}  {coverage(n, rng):7.1%}  {reachable_coverage(n):9.1%}")


def coverage(n: int, rng: np.random.Generator) -> float:
    """Return the share of trials whose interval holds the true median, 1."""
    intervals = [summarise(samples).ci95 for samples in rng.lognormal(0.0, SPREAD, (TRIALS, n)).tolist()]
    return sum(interval is not None and interval[0] <= 1.0 <= interval[1] for interval in intervals) / TRIALS


if __name__ == "__main__":
    main()
