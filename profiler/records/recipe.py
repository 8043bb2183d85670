"""How a model is turned into a bundle: runtime, precision, shapes, load policy, guidance."""

from __future__ import annotations

from typing import Literal

from profiler.records.record import Record

Runtime = Literal["onnx"]
Precision = Literal["fp32"]
LoadPolicy = Literal["resident", "sequential"]


class Recipe(Record):
    """Everything but the weights that decides what a bundle computes and how it is laid out.

    `relative_tolerance` bounds ‖out − ref‖₂ / ‖ref‖₂ of the float image against the source's fp32 loop,
    `uint8_max_levels` and `uint8_changed_share` bound what is left of it after rounding.
    """

    runtime: Runtime = "onnx"
    precision: Precision = "fp32"
    compute_unit: Literal["cpu"] = "cpu"
    load_policy: LoadPolicy = "resident"
    guidance_batching: Literal["separate"] = "separate"
    opset: int = 20
    height: int
    width: int
    relative_tolerance: float = 1e-3
    uint8_max_levels: int = 1
    uint8_changed_share: float = 0.01
