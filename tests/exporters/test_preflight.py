"""Exports that a machine cannot finish."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from exporters.parts import Graph, Part
from exporters.preflight import Room, check_room, disk_bytes, memory_bytes, room_for
from profiler.errors import InputError
from profiler.records.recipe import Recipe, recipe_of

GIB = 1 << 30
PLENTY = Room(1000 * GIB, 1000 * GIB)


def part(name: str, parameters: int, *, encodes_text: bool = False) -> Part:
    module = nn.Linear(parameters, 1, bias=False, device="meta")
    graph = Graph(module=module, inputs={"x": torch.zeros(1)}, outputs=("y",))
    return Part(name=name, graphs={"run": graph}, encodes_text=encodes_text)


GEMMA = part("text_encoder", 2_614_341_888, encodes_text=True)
NETWORK = part("denoiser", 593_501_216)


def recipe(**said: object) -> Recipe:
    return recipe_of(1024, 1024, **said)  # type: ignore[arg-type]


def test_a_text_encoder_that_does_not_fit_is_named_with_numbers_and_with_what_would() -> None:
    with pytest.raises(
        InputError, match=r"text_encoder \(2,614 M parameters as fp32\).* GiB of memory .*8 GiB are"
    ) as caught:
        check_room([NETWORK, GEMMA], recipe(), Room(8 * GIB, 1000 * GIB))
    assert "--text-encoder int8 or nf4" in str(caught.value)


@pytest.mark.parametrize("runtime", ["onnx", "coreml"])
def test_gemma_in_four_bits_fits_a_laptop(runtime: str) -> None:
    asked = recipe(runtime=runtime, precision="fp16", text_encoder="nf4")
    check_room([NETWORK, GEMMA], asked, Room(24 * GIB, 20 * GIB))


def test_a_network_that_does_not_fit_is_told_without_advice_for_text_encoders() -> None:
    with pytest.raises(InputError, match=r"denoiser \(594 M") as caught:
        check_room([NETWORK], recipe(), Room(GIB, 1000 * GIB))
    assert "text-encoder" not in str(caught.value)


def test_a_disk_that_is_too_small_is_told_with_numbers() -> None:
    with pytest.raises(InputError, match=r"take about 1\d\.\d+ GiB; 3 GiB are free on the disk"):
        check_room([NETWORK, GEMMA], recipe(text_encoder="fp16"), Room(1000 * GIB, 3 * GIB))


@given(st.integers(1, 10**10), st.integers(1, 10**10))
def test_more_parameters_never_take_less(first: int, second: int) -> None:
    small, large = sorted((first, second))
    assert memory_bytes(part("a", small), recipe()) <= memory_bytes(part("a", large), recipe())
    assert disk_bytes([part("a", small)], recipe()) <= disk_bytes([part("a", large)], recipe())


def test_coded_weights_take_little_more_than_themselves() -> None:
    module = nn.Sequential(*(nn.Linear(2048, 2048, bias=False, device="meta") for _ in range(300)))
    graph = Graph(module=module, inputs={"x": torch.zeros(1)}, outputs=("y",))
    layers = Part(name="text_encoder", graphs={"run": graph}, encodes_text=True)
    whole, coded = (memory_bytes(layers, recipe(precision="fp32", text_encoder=form)) for form in ("fp32", "nf4"))
    assert coded < 2 * GIB < 8 * GIB < whole


def test_this_machine_has_some_room(tmp_path: Path) -> None:
    room = room_for(tmp_path / "bundle", tmp_path / "none")
    assert 0 < room.memory_bytes < 1 << 45
    assert room.disk_bytes > 0


def test_what_an_interrupted_export_left_needs_no_room_again(tmp_path: Path) -> None:
    waiting = tmp_path / "parts"
    (waiting / "denoiser").mkdir(parents=True)
    (waiting / "denoiser" / "net.onnx").write_bytes(b"")
    without = room_for(tmp_path / "bundle", waiting).disk_bytes
    os.truncate(waiting / "denoiser" / "net.onnx", 1000 * GIB)  # sparse: it takes no block of the disk
    assert room_for(tmp_path / "bundle", waiting).disk_bytes - without > 900 * GIB
