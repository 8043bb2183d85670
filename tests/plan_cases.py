"""Changes to the example plan, each with what every runner must say to it: `protocol/examples/plan_rules.jsonl`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from profiler.errors import InvalidRecord
from profiler.plan_rules import check_plan
from profiler.records.plan import Call, Constant, Free, Load, Loop, Output, Plan, PlanStep, Unload
from profiler.records.record import Record
from tests.records_for_tests import NETWORK, call, make_bundle, make_constants, make_plan

_ENCODE, _LOOP, _DECODE, _OUTPUT = make_plan().body
_FIELDS = ("steps", "constants", "prepare", "body")


class PlanCase(Record):
    """What differs from `plan.json`, the names of its file's constants, and the refusal; null where it is accepted."""

    change: dict[str, Any]
    file_constants: tuple[str, ...]
    refusal: str | None


def plan_cases() -> tuple[PlanCase, ...]:
    """Return a case for each rule, with the words that the Python runner has for it."""
    return tuple(_case(plan, names) for plan, names in _plans())


def _case(plan: Plan, file_constants: tuple[str, ...]) -> PlanCase:
    told, as_given = msgspec.to_builtins(plan), msgspec.to_builtins(make_plan())
    change = {name: told[name] for name in _FIELDS if told[name] != as_given[name]}
    return PlanCase(change=change, file_constants=file_constants, refusal=_refusal(plan, file_constants))


def _refusal(plan: Plan, file_constants: tuple[str, ...]) -> str | None:
    try:
        check_plan(plan, make_bundle().components, file_constants)
    except InvalidRecord as error:
        return str(error)
    return None


def _plans() -> Iterator[tuple[Plan, tuple[str, ...]]]:
    yield make_plan(), ()
    yield make_plan(constants={"step_sizes": make_constants(2)["step_sizes"]}), ("timesteps",)
    for fields in _fields():
        yield make_plan(**fields), ()
    for body in _bodies():
        yield make_plan(body=body), ()


def _fields() -> Iterator[dict[str, Any]]:
    yield {"steps": 0}
    for constant in (
        Constant(dtype="float32", shape=(-2, -1), values=(0.0, 0.0)),
        Constant(dtype="int32", shape=(1,), values=(1e300,)),
        Constant(dtype="int32", shape=(1,), values=(2.0**31,)),
        Constant(dtype="float32", shape=(2, 2), values=(1.0, 2.0, 3.0)),
    ):
        yield {"constants": {**make_constants(2), "extra": constant}}
    yield {"constants": {**make_constants(2), "extra": Constant(dtype="int32", shape=(1,), values=(-(2.0**31),))}}
    yield {"constants": {"step_sizes": make_constants(2)["step_sizes"]}}
    yield {"prepare": tuple(Load(component=name) for name in NETWORK if name != "decoder")}
    yield {"prepare": (), "body": (Unload(component="decoder"),)}
    loads = tuple(Load(component=name) for name in NETWORK)
    unloads = tuple(Unload(component=name) for name in NETWORK)
    yield {"prepare": (), "body": (*loads, _ENCODE, _LOOP, _DECODE, *unloads, _OUTPUT)}


def _bodies() -> Iterator[tuple[PlanStep, ...]]:
    for first in (Load(component="upscaler"), call("upscaler", {}, {}, stage="upscale")):
        yield (first, _ENCODE, _LOOP, _DECODE, _OUTPUT)
    yield (_ENCODE, Unload(component="decoder"), _LOOP, _DECODE, _OUTPUT)
    yield (_ENCODE, _LOOP, _DECODE, Unload(component="text_encoder"), _OUTPUT)
    binds: tuple[dict[str, str], ...] = (
        {},
        {"words": "tokens"},
        {"tokens": "words"},
        {"tokens": "tokens", "mask": "tokens"},
    )
    for encode in (
        _call(function="embed"),
        *(_call(bind=bind) for bind in binds),
        _call(emit={"embedding": "embedding", "pooled": "pooled"}),
    ):
        yield (encode, _LOOP, _DECODE, _OUTPUT)
    yield (_call(emit={}), _ENCODE, _LOOP, _DECODE, _OUTPUT)
    yield (_ENCODE, Free(values=("embedding",)), _LOOP, _DECODE, _OUTPUT)
    for freed in (("nothing_of_this_name",), ("embedding", "embedding")):
        yield (_ENCODE, _LOOP, _DECODE, Free(values=freed), _OUTPUT)
    for loop in _loops():
        yield (_ENCODE, loop, _DECODE, _OUTPUT)
    yield from _ends()


def _loops() -> Iterator[Loop]:
    denoise, step, free = _loop().body
    yield _loop(over={})
    yield _loop(over=0)
    yield _loop(over={"timestep": "times"})
    yield _loop(carry={"latents": "times"})
    yield _loop(body=(denoise,))
    yield _loop(body=(denoise, step, free, Free(values=("embedding",))))
    yield _loop(index="number", body=(denoise, step, free, Free(values=("timestep", "number"))))


def _ends() -> Iterator[tuple[PlanStep, ...]]:
    yield (_ENCODE, Output(value="embedding", stage="finish", media="tensor"))
    yield (_ENCODE, Output(value="embedding", stage="finish"))
    yield (_ENCODE, Output(value="noise", stage="finish", media="tensor"))
    for value in ("noise", "latents", "picture", "timesteps"):
        yield (_ENCODE, _LOOP, _DECODE, Output(value=value, stage="finish"))
    yield ()
    yield (_ENCODE, _LOOP, _DECODE)
    yield (_ENCODE, _LOOP, _DECODE, _OUTPUT, _OUTPUT)
    yield (_ENCODE, _LOOP, _DECODE, _OUTPUT, _ENCODE)


def _loop(**fields: Any) -> Loop:
    assert isinstance(_LOOP, Loop)
    return replace(_LOOP, **fields)


def _call(**fields: Any) -> Call:
    assert isinstance(_ENCODE, Call)
    return replace(_ENCODE, **fields)
