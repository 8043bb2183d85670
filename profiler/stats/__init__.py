"""What samples say: pure functions from numbers to records, each with the source of its method."""

from profiler.stats.change import Trend, steady_from, trend
from profiler.stats.curve import curve
from profiler.stats.interval import LEAST_FOR_INTERVAL, Interval, reachable_coverage
from profiler.stats.outliers import outliers
from profiler.stats.ratio import RESAMPLES, SEED, Ratio, ratio_of_medians
from profiler.stats.resolution import resolution
from profiler.stats.samples import Samples
from profiler.stats.summary import LEAST_FOR_P90, Summary, needed_n, paired_ratio, summarise

__all__ = [
    "LEAST_FOR_INTERVAL",
    "LEAST_FOR_P90",
    "RESAMPLES",
    "SEED",
    "Interval",
    "Ratio",
    "Samples",
    "Summary",
    "Trend",
    "curve",
    "needed_n",
    "outliers",
    "paired_ratio",
    "ratio_of_medians",
    "reachable_coverage",
    "resolution",
    "steady_from",
    "summarise",
    "trend",
]
