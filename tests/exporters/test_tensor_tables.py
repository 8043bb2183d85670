"""The tables of every registered architecture's tensors, and the counts that go with them."""

from __future__ import annotations

import math
import shutil
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest
from torch import nn

from exporters.architectures import ARCHITECTURES, architectures, build_on_meta, config_of, origins
from profiler import catalog
from profiler.records.spec import NetworkPart
from scripts.tensor_tables import Row, main, place, rendered, rows_of

PARTS = {f"{spec.name}/{name}": part for spec in catalog.models().values() for name, part in spec.parts.items()}
_UNITS = {"K": 10**3, "M": 10**6, "B": 10**9}

# Counted from the models' own configurations before this registry was: architecture, what of it, count.
COUNTED = [
    ("clip-l", "", "123.06M"),
    ("openclip-h", "", "340.39M"),
    ("sd-1-unet", "", "859.52M"),
    ("sd-2-unet", "", "865.91M"),
    ("bk-sdm-base-unet", "", "579.38M"),
    ("bk-sdm-small-unet", "", "482.35M"),
    ("bk-sdm-tiny-unet", "", "323.38M"),
    ("sd-vae", "", "83.65M"),
    ("sd-vae", "decoder.", "49.49M"),
    ("qwen3-vl-2b", "", "2127.5M"),
    ("qwen3-vl-2b", "model.language_model.", "1720.6M"),
    ("qwen3-vl-2b", "model.language_model.embed_tokens.", "311.2M"),
    ("qwen3-vl-2b", "model.visual.", "407.0M"),
    ("taesdxl", "", "2.45M"),
    ("taesdxl", "decoder.", "1.22M"),
    ("gemma-2-2b", "", "2614.3M"),
    ("gemma-2-2b", "embed_tokens.", "589.8M"),
    ("sana-sprint-0.6b", "", "593.5M"),
    ("dc-ae-f32c32", "", "312.3M"),
    ("dc-ae-f32c32", "encoder.", "153.0M"),
    ("dc-ae-f32c32", "decoder.", "159.2M"),
]


@cache
def rows(name: str) -> tuple[Row, ...]:
    return tuple(rows_of(build_on_meta(config_of(name)), "float32"))


def count(name: str, prefix: str = "") -> int:
    """Count the elements of what a checkpoint holds, a tied tensor once."""
    return sum(math.prod(row.shape) for row in rows(name) if row.name.startswith(prefix) and not row.tied_to)


def prints_as(number: int, printed: str) -> bool:
    """Tell whether a number, rounded to the digits of a print like 83.65M, is that print."""
    unit = _UNITS.get(printed[-1], 1)
    digits = Decimal(printed.rstrip("KMB"))
    return abs(Decimal(number) / unit - digits) <= Decimal(1).scaleb(int(digits.as_tuple().exponent)) / 2


@pytest.mark.parametrize("name", architectures())
def test_a_table_lists_what_the_network_holds(name: str) -> None:
    assert place(name).read_text(encoding="utf-8") == rendered(name), "run: python -m scripts.tensor_tables"


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_a_part_has_as_many_parameters_as_its_entry_says(part: NetworkPart) -> None:
    network = build_on_meta(config_of(part.architecture))
    assert part.parameters == sum(tensor.numel() for tensor in network.parameters()) == count(part.architecture)


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_a_published_count_is_reproduced_to_its_last_digit(part: NetworkPart) -> None:
    if part.published is not None:
        assert part.published.source
        assert prints_as(part.parameters, part.published.count)


@pytest.mark.parametrize(("name", "prefix", "counted"), COUNTED)
def test_an_earlier_count_is_reproduced_to_its_last_digit(name: str, prefix: str, counted: str) -> None:
    assert prints_as(count(name, prefix), counted)


@pytest.mark.parametrize(
    ("number", "printed", "same"),
    [
        (389_968_388, "0.39B", True),
        (427_100_000, "0.39B", False),
        (482_346_884, "0.49B", False),
        (83_653_863, "83.65M", True),
        (83_656_000, "83.65M", False),
        (123_060_480, "123060480", True),
        (123_060_481, "123060480", False),
    ],
)
def test_a_print_stands_for_what_rounds_to_it(number: int, printed: str, same: bool) -> None:
    assert prints_as(number, printed) is same


@pytest.mark.parametrize("name", architectures())
def test_a_tie_is_to_an_earlier_tensor_of_the_same_shape(name: str) -> None:
    shapes: dict[str, tuple[int, ...]] = {}
    for row in rows(name):
        assert not row.tied_to or shapes[row.tied_to] == row.shape
        shapes[row.name] = row.shape


def test_the_output_layer_of_qwen_is_its_embedding() -> None:
    ties = [(row.name, row.tied_to) for row in rows("qwen3-vl-2b") if row.tied_to]
    assert ties == [("lm_head.weight", "model.language_model.embed_tokens.weight")]


def test_a_shared_tensor_is_listed_with_its_owner_and_an_integer_keeps_its_type() -> None:
    network = nn.Module()
    network.first, network.second = nn.Linear(3, 2, bias=False), nn.Linear(3, 2, bias=False)
    network.second.weight = network.first.weight
    network.register_buffer("seen", nn.Parameter().new_zeros((), dtype=int))  # type: ignore[call-overload]
    assert list(rows_of(network, "bfloat16")) == [
        Row("seen", "int64", ()),
        Row("first.weight", "bfloat16", (2, 3)),
        Row("second.weight", "bfloat16", (2, 3), "first.weight"),
    ]


def test_a_table_out_of_date_is_found_and_renewed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(ARCHITECTURES / "taesdxl", tmp_path / "taesdxl")
    assert main(["--check", "taesdxl"], tmp_path) == 0
    table = place("taesdxl", tmp_path)
    table.write_text(table.read_text().replace("64x3x3x3", "64x3x3x4"))
    assert main(["--check", "taesdxl"], tmp_path) == 1
    assert str(table) in capsys.readouterr().out
    assert main(["taesdxl"], tmp_path) == 0
    assert table.read_text() == place("taesdxl").read_text()


def test_weights_are_stored_as_their_origin_says() -> None:
    stored = {name: origin.stored for name, origin in origins().architectures.items()}
    for name in architectures():
        _, *lines = place(name).read_text(encoding="utf-8").splitlines()
        assert {line.split("\t")[1] for line in lines} == {stored[name]}
