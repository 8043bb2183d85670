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


class WeightOnlyLinear(LinearConfig):  # type: ignore[misc, unused-ignore]
    """Also takes a linear layer whose weight alone is quantized: XNNPACK has float32 × int8 kernels, though the stock
    configuration asks for quantized activations."""

    def _get_act_deps(self, node: Node, ep: ExportedProgram, precision: Any) -> tuple[bool, list[Node]]:
        return (True, []) if _weight_only(node, precision) else super()._get_act_deps(node, ep, precision)

    def _get_output_deps(self, node: Node, ep: ExportedProgram, precision: Any) -> tuple[bool, list[Node]]:
        return (True, []) if _weight_only(node, precision) else super()._get_output_deps(node, ep, precision)


def xnnpack() -> list[Any]:
    """Return what partitions for the CPU."""
    configs = [WeightOnlyLinear if each is LinearConfig else each for each in ALL_PARTITIONER_CONFIGS]
    return [XnnpackPartitioner(configs=configs)]


def _weight_only(node: Node, precision: Any) -> bool:
    return precision == ConfigPrecisionType.STATIC_QUANT and not is_dequant(node.all_input_nodes[0])
