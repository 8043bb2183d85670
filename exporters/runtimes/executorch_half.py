"""A network in float16 with float32 at its boundary, for ExecuTorch."""

from __future__ import annotations

from torch import Tensor, nn
from torch.func import functional_call

# Numbers of one axis at most, such as a timestep, are widened by the networks that take them; as halves they would be
# off by up to half a step of 1000 before any angle is computed of them.
_TENSOR_RANK = 2


class HalfInside(nn.Module):
    """A module in float16 with float32 at its boundary; the original keeps its weights.

    Halves are made weight by weight and take the originals' places during a call only: beside the original there are
    two bytes a weight, never a second copy in float32.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._original = (module,)  # in a tuple, so that its weights are not this module's
        self._places: dict[str, str] = {}
        halves: dict[int, Tensor] = {}
        for number, (name, weight) in enumerate(_weights(module)):
            half = halves.setdefault(id(weight), _half(weight))
            self._places[name] = f"half_{number}"
            self.register_buffer(self._places[name], half)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Cast, run, cast back."""
        weights = {name: getattr(self, place) for name, place in self._places.items()}
        found = functional_call(self._original[0], weights, tuple(_half_input(each) for each in inputs))
        return tuple(each.float() for each in (found if isinstance(found, tuple) else (found,)))


def _weights(module: nn.Module) -> list[tuple[str, Tensor]]:
    """Return parameters and buffers, shared ones under their first name, by which all their places are filled."""
    return [*module.named_parameters(), *module.named_buffers()]


def _half(values: Tensor) -> Tensor:
    return values.detach().half() if values.is_floating_point() else values


def _half_input(values: Tensor) -> Tensor:
    return values.half() if values.is_floating_point() and values.dim() >= _TENSOR_RANK else values
