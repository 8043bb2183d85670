"""Which operations of a Core ML program in half precision stay in float32, because they exceed what that holds.

A network's own code says so where it is run in half precision (`.float()`), which a trace in float32 does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

# A timestep becomes an angle by a few operations: its shape, a factor per frequency, a scale. A root mean square is a
# power, a mean, an epsilon, a reciprocal root.
_STEPS_TO_A_SINE = 6
_STEPS_TO_A_ROOT = 3
_PRODUCTS = ("matmul",)
_LAYERS = ("linear", "conv", "conv_transpose", *_PRODUCTS)
_LOOKUP = "gather"
_BOUNDS = "softmax"


def computes_in_half(operation: Any) -> bool:
    """Tell whether an operation of a converted program may compute in float16."""
    return not (
        _ends_in(operation, ("sin", "cos"), _STEPS_TO_A_SINE)
        or _ends_in(operation, ("rsqrt",), _STEPS_TO_A_ROOT)
        or _is_unbounded(operation)
        or _follows_unbounded(operation)
    )


def layer_computes_in_half(operation: Any) -> bool:
    """Tell the same of a graph whose values between its layers are beyond float16; tables are looked up in it too."""
    return operation.op_type in (*_LAYERS, _LOOKUP) and computes_in_half(operation)


def _ends_in(operation: Any, kinds: tuple[str, ...], steps: int) -> bool:
    """Tell whether all that follows from an operation is of a kind: float16 angles near 1000 are off by up to 0.25, and
    its squares end at 255."""
    if operation.op_type in kinds:
        return True
    following = _users(operation)
    return bool(following) and steps > 0 and all(_ends_in(each, kinds, steps - 1) for each in following)


def _is_unbounded(operation: Any) -> bool:
    """Tell whether an operation multiplies two activations and neither feeds a softmax nor comes from one: linear
    attention sums over all tokens, and divides afterwards."""
    if operation.op_type not in _PRODUCTS or len(_makers(operation)) < 2:
        return False
    near = [*_between_layers(_users(operation), _users), *_between_layers(_makers(operation), _makers)]
    return not any(each.op_type == _BOUNDS for each in near)


def _follows_unbounded(operation: Any) -> bool:
    """Tell whether an operation stands between such a product and the next layer."""
    if operation.op_type in _LAYERS:
        return False
    return any(_is_unbounded(each) for each in _between_layers(_makers(operation), _makers))


def _between_layers(start: Iterable[Any], neighbours: Callable[[Any], list[Any]]) -> list[Any]:
    """Return what is reached from operations without passing through a layer, with the layers that end the way."""
    found: dict[int, Any] = {}
    waiting = list(start)
    while waiting:
        operation = waiting.pop()
        if id(operation) not in found:
            found[id(operation)] = operation
            waiting += [] if operation.op_type in _LAYERS else neighbours(operation)
    return list(found.values())


def _users(operation: Any) -> list[Any]:
    return [each for output in operation.outputs for each in output.child_ops]


def _makers(operation: Any) -> list[Any]:
    """Return the operations that make an operation's inputs and are no constants."""
    values = [value for given in operation.inputs.values() for value in _each(given)]
    makers = [value.op for value in values if getattr(value, "op", None) is not None and value.val is None]
    return [maker for maker in makers if not maker.op_type.startswith("const")]


def _each(given: Any) -> Iterable[Any]:
    return given if isinstance(given, (list, tuple)) else (given,)
