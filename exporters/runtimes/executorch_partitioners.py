"""Which parts of a traced network go to which of ExecuTorch's backends."""

from __future__ import annotations

from typing import Any

from executorch.backends.xnnpack.partition.config import ALL_PARTITIONER_CONFIGS
from executorch.backends.xnnpack.partition.config.gemm_configs import LinearConfig
from executorch.backends.xnnpack.partition.config.xnnpack_config import ConfigPrecisionType
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.utils.quant_utils import is_dequant
from torch.export import ExportedProgram
from torch.fx import Node

from profiler.records.recipe import Backend, Precision


class WeightOnlyLinear(LinearConfig):  # type: ignore[misc, unused-ignore]
    """Also takes a linear layer whose weight alone is quantized: XNNPACK has float32 × int8 kernels, though the stock
    configuration asks for quantized activations."""

    def _get_act_deps(self, node: Node, ep: ExportedProgram, precision: Any) -> tuple[bool, list[Node]]:
        return (True, []) if _weight_only(node, precision) else super()._get_act_deps(node, ep, precision)

    def _get_output_deps(self, node: Node, ep: ExportedProgram, precision: Any) -> tuple[bool, list[Node]]:
        return (True, []) if _weight_only(node, precision) else super()._get_output_deps(node, ep, precision)


def partitioner(backend: Backend, precision: Precision) -> Any:
    """Return what chooses a backend's share of a network, which it computes at a precision."""
    return {"xnnpack": _xnnpack, "coreml": _coreml, "vulkan": _vulkan}[backend](precision)


def _xnnpack(precision: Precision) -> Any:
    """Partition for the CPU, which computes in the types that the network was traced in."""
    configs = [WeightOnlyLinear if each is LinearConfig else each for each in ALL_PARTITIONER_CONFIGS]
    return XnnpackPartitioner(configs=configs)


def _coreml(precision: Precision) -> Any:
    import coremltools
    from executorch.backends.apple.coreml.compiler import CoreMLBackend
    from executorch.backends.apple.coreml.partition import CoreMLPartitioner

    types = {"fp16": coremltools.precision.FLOAT16, "fp32": coremltools.precision.FLOAT32}
    return CoreMLPartitioner(
        compile_specs=CoreMLBackend.generate_compile_specs(
            compute_precision=types[precision], minimum_deployment_target=coremltools.target.iOS18
        )
    )


def _vulkan(precision: Precision) -> Any:
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner

    return VulkanPartitioner({"force_fp16": precision == "fp16"})


def _weight_only(node: Node, precision: Any) -> bool:
    return precision == ConfigPrecisionType.STATIC_QUANT and not is_dequant(node.all_input_nodes[0])
