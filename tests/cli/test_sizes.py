"""What a bundle's tasks take, and the tier that size alone allows."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from profiler import catalog
from profiler.bundle_files import load_manifest
from profiler.cli.sizes import by_size, sizes, verdict
from profiler.records.bundle import Bundle, Difference, Quantization
from profiler.records.spec import AlternativeRecipe, DefaultRecipe

GIB = 1 << 30
POLICY = by_size(catalog.policy("moi-bench"))
USUAL = DefaultRecipe(precision="fp16", text_encoder="nf4", note="", alternative=AlternativeRecipe(text_encoder="int8"))


def coded(bundle: Bundle) -> Bundle:
    """Say of the text encoder that it has 2 GiB of weights in four and a half bits."""
    done = Quantization(
        scheme="nf4", block=64, absmax_dtype="float32", bits_per_weight=4.5, coverage=1.0, kept=(), fallen_back=(),
        tied={}, tied_saved_bytes=0, ideal_bytes=1, file_bytes=1, from_fp32=Difference(max_absolute=0, relative=0),
    )  # fmt: skip
    encoder = replace(bundle.components["text_encoder"], parameters=2 * GIB, quantization=done)
    return replace(bundle, components={**bundle.components, "text_encoder": encoder})


@pytest.mark.parametrize(
    ("size_bytes", "told"),
    [
        (GIB // 2, "D4 by size, 512 MiB below its limit"),
        (2 * GIB, "D3 by size, 0 B below its limit"),
        (2 * GIB + 1, "D2 by size"),
        (1000 * GIB, "D1 by size, which has no limit"),
    ],
)
def test_a_size_has_a_tier_and_a_margin(size_bytes: int, told: str) -> None:
    assert verdict(POLICY, size_bytes).startswith(told)


def test_each_task_is_told_with_its_own_size(small_bundle: Path) -> None:
    lines = list(sizes(small_bundle, load_manifest(small_bundle), None))
    assert [line.split(":")[0] for line in lines] == sorted(load_manifest(small_bundle).tasks)
    assert all("D4 by size" in line for line in lines)


def test_a_default_recipe_stands_beside_its_alternative(small_bundle: Path) -> None:
    lines = list(sizes(small_bundle, coded(load_manifest(small_bundle)), USUAL))
    # 2 Gi weights × (8.05 − 4.5) bits more than the few bytes that the small bundle really has.
    assert "  with --text-encoder int8 about 909 MiB, D4 by size" in lines[1]


def test_without_an_alternative_there_is_nothing_beside_it(small_bundle: Path) -> None:
    alone = replace(USUAL, alternative=None)
    assert len(list(sizes(small_bundle, load_manifest(small_bundle), alone))) == len(load_manifest(small_bundle).tasks)
