from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from profiler.errors import InvalidRecord
from profiler.plan_rules import check_plan
from profiler.records.plan import Call, Constant, Free, Load, Loop, Output, Plan, PlanStep, Unload
from tests.records_for_tests import NETWORK, call, make_bundle, make_plan

ENCODE, LOOP, DECODE, OUTPUT = make_plan().body
COMPONENTS = make_bundle().components


def check(plan: Plan, file_constants: Iterable[str] = ()) -> None:
    check_plan(plan, COMPONENTS, file_constants)


def refusal(*body: PlanStep, **fields: Any) -> str:
    if body:
        fields["body"] = body
    with pytest.raises(InvalidRecord) as caught:
        check(make_plan(**fields))
    return str(caught.value)


def the_loop(**fields: Any) -> Loop:
    assert isinstance(LOOP, Loop)
    return replace(LOOP, **fields)


def the_call(step: PlanStep = ENCODE, **fields: Any) -> Call:
    assert isinstance(step, Call)
    return replace(step, **fields)


def test_a_plan_that_obeys_every_rule_passes() -> None:
    check(make_plan())


def test_a_refusal_names_the_task_and_what_is_wrong() -> None:
    message = refusal(ENCODE, LOOP, DECODE, Output(value="picture", stage="finish"))
    assert "'generate'" in message
    assert "output: nothing is called 'picture' there" in message


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"steps": 0}, "it takes 0 steps"),
        ({"constants": {"c": Constant(dtype="float32", shape=(-2, -1), values=(0.0, 0.0))}}, "has the shape"),
        ({"constants": {"c": Constant(dtype="int32", shape=(1,), values=(1e300,))}}, "int32 does not"),
    ],
)
def test_numbers_that_no_runner_could_use_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRecord, match=words):
        check(make_plan(**fields))


def test_a_constant_has_as_many_values_as_its_shape_says() -> None:
    wrong = Constant(dtype="float32", shape=(2, 2), values=(1.0, 2.0, 3.0))
    assert "constant 'extra' has 3 values for shape [2, 2]" in refusal(
        constants={**make_plan().constants, "extra": wrong}
    )


@given(shape=st.lists(st.integers(0, 4), max_size=3), count=st.integers(0, 64))
def test_only_the_product_of_the_shape_is_the_right_number_of_values(shape: list[int], count: int) -> None:
    product = 1
    for size in shape:
        product *= size
    constant = Constant(dtype="float32", shape=tuple(shape), values=(0.5,) * count)
    plan = make_plan(constants={**make_plan().constants, "extra": constant})
    if count == product:
        check(plan)
    else:
        with pytest.raises(InvalidRecord, match="extra"):
            check(plan)


@pytest.mark.parametrize("step", [Load(component="upscaler"), call("upscaler", {}, {}, stage="upscale")])
def test_a_component_must_be_in_the_bundle(step: PlanStep) -> None:
    assert "the bundle has no component 'upscaler'" in refusal(step, ENCODE, LOOP, DECODE, OUTPUT)


def test_a_component_must_be_loaded_before_it_is_called() -> None:
    loads = tuple(Load(component=name) for name in NETWORK if name != "decoder")
    assert "component 'decoder' is used before it is loaded" in refusal(prepare=loads)


def test_a_component_that_was_unloaded_cannot_be_called() -> None:
    body = (ENCODE, Unload(component="decoder"), LOOP, DECODE, OUTPUT)
    assert "component 'decoder' is used before it is loaded" in refusal(*body)


def test_what_was_never_loaded_cannot_be_unloaded() -> None:
    assert "used before it is loaded" in refusal(Unload(component="decoder"), prepare=())


def test_what_the_first_image_unloads_is_missing_for_the_second() -> None:
    body = (ENCODE, LOOP, DECODE, Unload(component="text_encoder"), OUTPUT)
    assert "component 'text_encoder' is used before it is loaded" in refusal(*body)


def test_a_body_that_loads_and_unloads_all_it_uses_can_run_again_and_again() -> None:
    loads = [Load(component=name) for name in NETWORK]
    unloads = [Unload(component=name) for name in NETWORK]
    check(make_plan(prepare=(), body=(*loads, ENCODE, LOOP, DECODE, *unloads, OUTPUT)))


def test_a_function_must_be_one_of_the_component() -> None:
    assert "call text_encoder.embed: no such function" in refusal(the_call(function="embed"), LOOP, DECODE, OUTPUT)


@pytest.mark.parametrize("bind", [{}, {"words": "tokens"}, {"tokens": "tokens", "mask": "tokens"}])
def test_a_call_binds_exactly_the_ports_of_its_function(bind: dict[str, str]) -> None:
    assert "the function takes ['tokens']" in refusal(the_call(bind=bind), LOOP, DECODE, OUTPUT)


def test_a_plan_may_end_in_any_tensor_that_a_call_made_where_it_says_so() -> None:
    assert isinstance(OUTPUT, Output)
    check(make_plan(body=(ENCODE, Output(value="embedding", stage="finish", media="tensor"))))
    assert "is not the float32 image" in refusal(ENCODE, replace(OUTPUT, value="embedding"))


def test_what_comes_out_was_made_by_a_call() -> None:
    refused = refusal(ENCODE, Output(value="noise", stage="finish", media="tensor"))
    assert "output: 'noise' is not what a call made" in refused


def test_a_call_reads_only_values_that_are_there() -> None:
    assert "nothing is called 'words' there" in refusal(the_call(bind={"tokens": "words"}), LOOP, DECODE, OUTPUT)


def test_a_call_emits_only_what_its_function_gives() -> None:
    emit = {"embedding": "embedding", "pooled": "pooled"}
    assert "emits ['pooled'], which the function does not give" in refusal(the_call(emit=emit), LOOP, DECODE, OUTPUT)


def test_a_call_may_leave_outputs_unused() -> None:
    check(make_plan(body=(the_call(emit={}), ENCODE, LOOP, DECODE, OUTPUT)))


def test_a_freed_value_is_gone() -> None:
    assert "nothing is called 'embedding' there" in refusal(ENCODE, Free(values=("embedding",)), LOOP, DECODE, OUTPUT)


@pytest.mark.parametrize("values", [("nothing_of_this_name",), ("embedding", "embedding")])
def test_only_what_is_there_can_be_freed_and_only_once(values: tuple[str, ...]) -> None:
    assert "free: nothing is called" in refusal(ENCODE, LOOP, DECODE, Free(values=values), OUTPUT)


@pytest.mark.parametrize("over", [{}, 0])
def test_a_loop_over_nothing_is_refused(over: dict[str, str] | int) -> None:
    assert "a loop over nothing" in refusal(ENCODE, the_loop(over=over), DECODE, OUTPUT)


@pytest.mark.parametrize("fields", [{"over": {"timestep": "times"}}, {"carry": {"latents": "times"}}])
def test_a_loop_reads_only_values_that_are_there(fields: dict[str, Any]) -> None:
    assert "loop: nothing is called 'times' there" in refusal(ENCODE, the_loop(**fields), DECODE, OUTPUT)


def test_a_carried_value_must_be_emitted_anew_each_round() -> None:
    body = the_loop().body[:1]
    assert "the loop carries 'latents', but its body never emits it" in refusal(
        ENCODE, the_loop(body=body), DECODE, OUTPUT
    )


def test_a_value_freed_in_one_round_is_missing_in_the_next() -> None:
    body = (*the_loop().body, Free(values=("embedding",)))
    assert "nothing is called 'embedding' there" in refusal(ENCODE, the_loop(body=body), DECODE, OUTPUT)


def test_a_loop_of_a_single_round_may_free_what_it_reads() -> None:
    denoise, step, free = the_loop().body
    body = (denoise, step, free, Free(values=("embedding",)))
    single = the_loop(over=1, body=body)
    names = ("timestep", "step_size")
    constants = {name: Constant(dtype="float32", shape=(1,), values=(1.0,)) for name in names}
    check(make_plan(constants=constants, body=(ENCODE, single, DECODE, OUTPUT)))


def test_elements_and_index_are_there_anew_in_each_round() -> None:
    body = (*the_loop().body, Free(values=("timestep", "number")))
    check(make_plan(body=(ENCODE, the_loop(index="number", body=body), DECODE, OUTPUT)))


def test_constants_of_the_bundles_file_count_as_values() -> None:
    constants = {name: value for name, value in make_plan().constants.items() if name != "timesteps"}
    plan = make_plan(constants=constants, constants_file="constants.safetensors")
    with pytest.raises(InvalidRecord, match="timesteps"):
        check(plan)
    check(plan, ["timesteps"])


@pytest.mark.parametrize(
    "body", [(), (ENCODE, LOOP, DECODE), (ENCODE, LOOP, DECODE, OUTPUT, OUTPUT), (ENCODE, LOOP, DECODE, OUTPUT, ENCODE)]
)
def test_a_body_ends_in_its_only_output(body: tuple[PlanStep, ...]) -> None:
    with pytest.raises(InvalidRecord, match="must end in its only output"):
        check(make_plan(body=body))


@pytest.mark.parametrize("value", ["noise", "latents", "embedding", "timesteps"])
def test_an_output_that_is_no_image_is_refused(value: str) -> None:
    message = refusal(ENCODE, LOOP, DECODE, Output(value=value, stage="finish"))
    assert f"{value!r} is not the float32 image [1, 3, height, width] of a call" in message
