"""Write the table of each registered architecture's tensors: `python -m scripts.tensor_tables [--check]`.

A table lists what the built network's state holds, under the names the installed diffusers and transformers give it:
name, type in which the weights are published, shape, and for a tied tensor the one it shares.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from torch import nn

from exporters.architectures import ARCHITECTURES, architectures, build_on_meta, config_of, origins

COMMAND = "python -m scripts.tensor_tables"
COLUMNS = ("name", "dtype", "shape", "tied_to")


class Row(NamedTuple):
    """One tensor of a network's state."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    tied_to: str = ""


def main(arguments: list[str] | None = None, folder: Path = ARCHITECTURES) -> int:
    """Write the tables, or with --check compare and return 1 where one is out of date."""
    asked = _parser().parse_args(arguments)
    stale = [name for name in asked.names or architectures() if not _is_current(name, folder)]
    for name in stale:
        print(f"{'out of date' if asked.check else 'wrote'} {place(name, folder)}")
        if not asked.check:
            place(name, folder).write_text(rendered(name), encoding="utf-8")
    return 1 if asked.check and stale else 0


def place(name: str, folder: Path = ARCHITECTURES) -> Path:
    """Return where an architecture's table is."""
    return folder / name / "tensors.tsv"


def rendered(name: str) -> str:
    """Write an architecture's table as text, building the network without its weights."""
    rows = rows_of(build_on_meta(config_of(name)), origins().architectures[name].stored)
    return "".join("\t".join(line).rstrip() + "\n" for line in (COLUMNS, *map(_cells, rows)))


def rows_of(network: nn.Module, stored: str) -> Iterator[Row]:
    """List a network's state; floating-point tensors are said to be stored as `stored`."""
    first: dict[int, str] = {}
    for name, tensor in network.state_dict(keep_vars=True).items():
        owner = first.setdefault(id(tensor), name)
        dtype = stored if tensor.is_floating_point() else str(tensor.dtype).removeprefix("torch.")
        yield Row(name, dtype, tuple(tensor.shape), "" if owner == name else owner)


def _cells(row: Row) -> tuple[str, ...]:
    return row.name, row.dtype, "x".join(map(str, row.shape)), row.tied_to


def _is_current(name: str, folder: Path) -> bool:
    path = place(name, folder)
    return path.is_file() and path.read_text(encoding="utf-8") == rendered(name)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("names", nargs="*", help="architectures; all unless named")
    parser.add_argument("--check", action="store_true", help="compare only")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
