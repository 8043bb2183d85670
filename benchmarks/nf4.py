"""NF4 coding against bitsandbytes on the same weights in one run: time, and memory beyond the weights.

    python -m benchmarks.nf4 [--rows 4096 --width 4096 --rounds 5]

Both code the same float32 matrix in turn; a ratio is taken of the best rounds, once on one thread and once on as many
as torch chooses. Memory is a fresh process's lifetime peak beyond what it held right before coding.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.verdicts import exit_code, judge, load_now, load_since, print_verdicts
from exporters.quantize import nf4
from profiler.quantities import format_bytes


def ours(weights: torch.Tensor) -> Any:
    """Code with the product."""
    return nf4.encode(weights)


def theirs(weights: torch.Tensor) -> Any:
    """Code with bitsandbytes."""
    from bitsandbytes.functional import quantize_4bit

    return quantize_4bit(weights, blocksize=nf4.BLOCK, quant_type="nf4")


def matrix(rows: int, width: int) -> torch.Tensor:
    """Return seeded normal weights."""
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(0))


def best_ns(weights: torch.Tensor, threads: int, rounds: int) -> dict[str, float]:
    """Return each coder's best time per weight, taken in turn."""
    torch.set_num_threads(threads)
    coders: dict[str, Callable[[torch.Tensor], Any]] = {"ours": ours, "bitsandbytes": theirs}
    times: dict[str, list[int]] = {name: [] for name in coders}
    for _ in range(rounds + 1):
        for name, code in coders.items():
            begin = time.perf_counter_ns()
            code(weights)
            times[name].append(time.perf_counter_ns() - begin)
    return {name: min(found[1:]) / weights.numel() for name, found in times.items()}


def peak_bytes(code: Callable[[torch.Tensor], Any], rows: int, width: int) -> int:
    """Return what coding takes beyond its input, result included, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak_here, (code, rows, width))


def _peak_here(code: Callable[[torch.Tensor], Any], rows: int, width: int) -> int:
    torch.set_num_threads(1)
    code(matrix(64, 64))  # imports and their memory
    weights = matrix(rows, width)
    Path("/proc/self/clear_refs").write_text("5")  # the peak is from now on
    before = _status_bytes("VmRSS")
    coded = code(weights)
    del coded
    return _status_bytes("VmHWM") - before


def _status_bytes(key: str) -> int:
    found = re.search(rf"{key}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    console, before = Console(), load_now()
    weights = matrix(asked.rows, asked.width)
    default_threads = torch.get_num_threads()
    table = Table("threads", "ours, ns a weight", "bitsandbytes", "ratio", box=None)
    verdicts = []
    for threads in dict.fromkeys((1, default_threads)):
        found = best_ns(weights, threads, asked.rounds)
        ratio = found["ours"] / found["bitsandbytes"]
        table.add_row(str(threads), f"{found['ours']:.1f}", f"{found['bitsandbytes']:.1f}", f"{ratio:.2f}")
        verdicts.append(judge(f"time on {threads} threads, ours over bitsandbytes'", "", ratio, 1.0))
    console.print(table)
    peaks = {name: peak_bytes(code, asked.rows, asked.width) for name, code in (("ours", ours), ("theirs", theirs))}
    console.print(
        f"memory beyond {format_bytes(weights.nbytes)} of weights: ours {format_bytes(peaks['ours'])}, "
        f"bitsandbytes {format_bytes(peaks['theirs'])}"
    )
    share = 1 + peaks["ours"] / weights.nbytes
    verdicts.append(judge("memory with the weights, over the weights'", "", share, 2.0))
    print_verdicts(verdicts, load_since(before), console)
    return exit_code(verdicts)


if __name__ == "__main__":
    sys.exit(main())
