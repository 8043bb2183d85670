"""How a model is turned into a bundle: runtime, precision, shapes, load policy, guidance."""

from __future__ import annotations

from typing import Any, Literal, get_args

from profiler.records.record import Name, Record

# Those that the product brings; a plug-in brings more, each under a name of its own (profiler/plugins.py).
BuiltInRuntime = Literal["onnx", "executorch", "coreml"]
BUILT_IN_RUNTIMES: tuple[str, ...] = get_args(BuiltInRuntime)
Runtime = Name
Precision = Literal["fp32", "fp16"]
EncoderScheme = Literal["fp32", "fp16", "int8", "nf4"]
ComputeUnit = Literal["cpu", "cpu_gpu", "all"]
LoadPolicy = Literal["resident", "sequential"]
Backend = Literal["xnnpack", "coreml", "vulkan"]


# Codes and scales: NF4 has a float32 for 64 weights, int8 one a row, of which few are below 512 wide.
BITS_PER_WEIGHT: dict[EncoderScheme, float] = {"fp32": 32, "fp16": 16, "int8": 8.05, "nf4": 4.5}


class Recipe(Record):
    """Everything but the weights that decides what a bundle computes and how it is laid out.

    `text_encoder` is its own knob, as its weights are the largest part of what ships; layers whose name matches a
    pattern in `kept` stay as precise as the rest. `backend` is what ExecuTorch programs hand their work to. `height`
    and `width` are 0 where no image comes out.
    `relative_tolerance` bounds ‖out − ref‖₂ / ‖ref‖₂ of the float image against the source's fp32 loop,
    `uint8_max_levels` and `uint8_changed_share` what is left of it after rounding.
    """

    runtime: Runtime = "onnx"
    backend: Backend = "xnnpack"
    precision: Precision = "fp32"
    text_encoder: EncoderScheme = "fp32"
    kept: tuple[str, ...] = ()
    compute_unit: ComputeUnit = "cpu"
    load_policy: LoadPolicy = "resident"
    guidance_batching: Literal["separate"] = "separate"
    opset: int = 20
    height: int
    width: int
    relative_tolerance: float = 1e-3
    uint8_max_levels: int = 1
    uint8_changed_share: float = 0.01


# Half precision moved images by up to 2.7e-3, one level, on 6.8 % of values: small random pipelines with amplified
# layers, both tasks, on ONNX Runtime's CPU kernels; trained nano by 6e-5 and 0.9 % (docs/method.md). Core ML programs,
# where every operation rounds, by up to 3.8e-3, one level, on 13 %; nano by 3.7e-4 and 9.7 %. ExecuTorch programs,
# which round likewise but for norms and the weights of convolutions, by up to 2.8e-3, one level, on 16 %; nano by
# 2.5e-4 and 8.2 %. Phones' kernels accumulate in half precision where this CPU does not, so more than that is allowed.
_HALF_TOLERANCE: dict[str, Any] = {"relative_tolerance": 1e-2, "uint8_max_levels": 4, "uint8_changed_share": 0.25}


def recipe_of(
    height: int,
    width: int,
    *,
    runtime: Runtime = "onnx",
    backend: Backend = "xnnpack",
    precision: Precision | None = None,
    text_encoder: EncoderScheme | None = None,
    kept: tuple[str, ...] = (),
    load_policy: LoadPolicy = "resident",
) -> Recipe:
    """Return a recipe with the tolerance that its precisions need; the text encoder is as precise as the rest unless
    it has a scheme of its own.

    Core ML computes in half precision and holds its encoder in eight bits unless told otherwise. With four it is for
    CPU and GPU, as the Neural Engine does not load them.
    """
    apple = runtime == "coreml"
    computed: Precision = precision or ("fp16" if apple else "fp32")
    scheme = text_encoder or ("int8" if apple and computed == "fp16" else computed)
    unit: ComputeUnit = ("cpu_gpu" if scheme == "nf4" else "all") if apple else "cpu"
    return Recipe(
        runtime=runtime,
        backend=backend,
        precision=computed,
        text_encoder=scheme,
        kept=kept,
        compute_unit=unit,
        load_policy=load_policy,
        height=height,
        width=width,
        **(_HALF_TOLERANCE if "fp16" in (computed, scheme) else {}),
    )
