from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from safetensors.numpy import load_file

from exporters.foreign.wrapping import Wishes, wrap
from profiler.bundle_files import check_files, check_names, load_manifest, load_plan
from profiler.errors import InvalidRecord, MissingSource, ModelError
from profiler.plan_rules import check_plan
from profiler.records.bundle import Bundle
from profiler.runner.engines.onnxruntime_engine import OnnxRuntimeEngine
from profiler.runner.interpreter import Image, Interpreter
from tests.exporters.foreign.graphs import (
    FLOAT,
    IMAGE,
    SIDE,
    externalised,
    image_net,
    save_onnx,
    scaled,
    with_location,
)
from tests.exporters.foreign.wrapped import media_of, refused


def output_of(folder: Path) -> Any:
    """Run a bundle on its own inputs, as a runner does."""
    bundle = load_manifest(folder)
    check_names(folder, bundle)
    check_files(folder, bundle)
    plan = load_plan(folder, bundle, "generate")
    check_plan(plan, bundle.components)
    interpreter = Interpreter(plan, bundle.components, folder, OnnxRuntimeEngine(threads=1))
    interpreter.prepare()
    output = interpreter.iterate(inputs_of(folder)).output
    return output.float_image if isinstance(output, Image) else output


def inputs_of(folder: Path) -> dict[str, Any]:
    return dict(load_file(folder / "inputs" / "generate.safetensors"))


def notes_of(bundle: Bundle) -> str:
    return " ".join(bundle.components["model"].notes)


def test_a_graph_that_needs_nothing_is_copied_byte_for_byte(tmp_path: Path) -> None:
    path = scaled(tmp_path / "net.onnx", 2.0)
    bundle = wrap(path, Wishes(), tmp_path / "bundle")
    (file,) = bundle.components["model"].files
    assert (tmp_path / "bundle" / file).read_bytes() == path.read_bytes()
    assert media_of(tmp_path / "bundle") == "tensor"
    assert np.array_equal(output_of(tmp_path / "bundle"), 2 * inputs_of(tmp_path / "bundle")["x"])


def test_the_manifest_says_what_is_known_and_no_more(tmp_path: Path) -> None:
    bundle = wrap(image_net(tmp_path / "my net.onnx"), Wishes(seed=5), tmp_path / "bundle")
    assert (bundle.model, bundle.licence.name, bundle.licence.commercial_use) == ("my_net", "unknown", "unknown")
    assert (bundle.verification.components, bundle.verification.images) == ({}, {})
    assert bundle.verification.reference == "nothing: a foreign graph, taken as it is"
    assert bundle.verification.engine == f"onnxruntime {OnnxRuntimeEngine.version}"
    assert bundle.components["model"].parameters == 9
    assert bundle.tasks["generate"].defaults.made_up == ("sample",)
    assert bundle.tasks["generate"].defaults.seed == 5
    assert (bundle.recipe.height, bundle.recipe.width, bundle.recipe.opset) == (SIDE, SIDE, 20)
    assert bundle.prompt_encoding is None


def test_name_and_licence_are_taken_where_they_are_given(tmp_path: Path) -> None:
    bundle = wrap(image_net(tmp_path / "a.onnx"), Wishes(name="house", licence="in-house"), tmp_path / "bundle")
    assert (bundle.model, bundle.licence.name, bundle.licence.commercial_use) == ("house", "in-house", "unknown")


@pytest.mark.parametrize(
    ("values", "factor", "offset"), [((0.0, 1.0), 255.0, 0.0), ((-1.0, 1.0), 127.5, 127.5), ((0.0, 255.0), 1.0, 0.0)]
)
def test_an_image_is_brought_from_its_range_to_pixels(
    tmp_path: Path, values: tuple[float, float], factor: float, offset: float
) -> None:
    wrap(scaled(tmp_path / "net.onnx", 1.0, IMAGE), Wishes(values=values), tmp_path / "bundle")
    found, noise = output_of(tmp_path / "bundle"), inputs_of(tmp_path / "bundle")["x"]
    assert media_of(tmp_path / "bundle") == "image"
    np.testing.assert_allclose(found, np.clip(noise * factor + offset, 0, 255), rtol=1e-5, atol=1e-4)
    assert found.min() == 0


def test_an_image_without_a_range_is_taken_for_pixels_and_a_dark_one_is_told(tmp_path: Path) -> None:
    bundle = wrap(image_net(tmp_path / "net.onnx"), Wishes(), tmp_path / "bundle")
    assert f"image [1, 3, {SIDE}, {SIDE}] is taken for an image of 0 to 255; say --output-range" in notes_of(bundle)
    assert "an almost black image: see --output-range" in notes_of(bundle)


def test_a_range_is_refused_where_no_image_comes_out(tmp_path: Path) -> None:
    told = refused(scaled(tmp_path / "net.onnx", 1.0), tmp_path, values=(0.0, 1.0))
    assert "the output y is [1, 4], no image" in told


def test_an_opset_too_old_for_pixels_leaves_a_tensor(tmp_path: Path) -> None:
    bundle = wrap(image_net(tmp_path / "net.onnx", opset=7), Wishes(), tmp_path / "bundle")
    assert media_of(tmp_path / "bundle") == "tensor"
    assert "it counts as a tensor" in notes_of(bundle)
    assert (bundle.recipe.height, bundle.recipe.width) == (0, 0)


def test_halves_are_cast_at_the_boundary(tmp_path: Path) -> None:
    dtype = np.float16
    bundle = wrap(image_net(tmp_path / "net.onnx", dtype=dtype), Wishes(values=(0, 1)), tmp_path / "bundle")
    (port,) = bundle.components["model"].functions["run"].inputs
    assert (port.name, port.dtype) == ("sample_float32", "float32")
    assert "casts to float32 or int32 were added at sample, image" in notes_of(bundle)
    sample = inputs_of(tmp_path / "bundle")["sample"].astype(dtype)
    mixed = np.einsum("oi,nihw->nohw", np.linspace(-1, 1, 9, dtype=dtype).reshape(3, 3), sample)
    np.testing.assert_allclose(output_of(tmp_path / "bundle"), 255 / (1 + np.exp(-mixed)), rtol=5e-3)
    assert (bundle.recipe.precision, bundle.components["model"].precision) == ("fp16", "fp16")
    assert "weights: 9 float16" in notes_of(bundle)


def test_doubles_are_cast_at_the_boundary(tmp_path: Path) -> None:
    kind = TensorProto.DOUBLE
    nodes = [helper.make_node("Neg", ["x"], ["x_float32"])]  # a name that a port would have
    path = save_onnx(tmp_path / "net.onnx", nodes, [("x", kind, (2,))], [("x_float32", kind, (2,))])
    bundle = wrap(path, Wishes(), tmp_path / "bundle")
    assert [port.name for port in bundle.components["model"].functions["run"].inputs] == ["x_float32_"]
    assert np.array_equal(output_of(tmp_path / "bundle"), -inputs_of(tmp_path / "bundle")["x"])


@pytest.mark.parametrize(
    ("kind", "given"), [(TensorProto.INT64, np.int64), (TensorProto.BOOL, np.bool_), (TensorProto.UINT8, np.uint8)]
)
def test_whole_numbers_and_truths_are_cast_on_both_sides(tmp_path: Path, kind: int, given: Any) -> None:
    nodes = [helper.make_node("Identity", ["ids"], ["same"])]
    path = save_onnx(tmp_path / "net.onnx", nodes, [("ids", kind, (1, 2))], [("same", kind, (1, 2))])
    np.savez(tmp_path / "inputs.npz", ids=np.array([[0, 1]], given))
    bundle = wrap(path, Wishes(inputs=tmp_path / "inputs.npz"), tmp_path / "bundle")
    function = bundle.components["model"].functions["run"]
    assert [port.dtype for port in (*function.inputs, *function.outputs)] == ["int32", "int32"]
    assert output_of(tmp_path / "bundle").tolist() == [[0, 1]]
    assert bundle.tasks["generate"].defaults.made_up == ()


def test_a_picture_of_bytes_is_an_image(tmp_path: Path) -> None:
    kind = TensorProto.UINT8
    nodes = [helper.make_node("Identity", ["picture"], ["same"])]
    path = save_onnx(tmp_path / "net.onnx", nodes, [("picture", kind, IMAGE)], [("same", kind, IMAGE)])
    picture = np.arange(3 * SIDE * SIDE, dtype=np.uint8).reshape(IMAGE)
    np.savez(tmp_path / "inputs.npz", picture=picture)
    wrap(path, Wishes(inputs=tmp_path / "inputs.npz"), tmp_path / "bundle")
    assert media_of(tmp_path / "bundle") == "image"
    assert np.array_equal(output_of(tmp_path / "bundle"), picture)


def test_a_cast_input_that_a_nested_graph_reads_is_still_found(tmp_path: Path) -> None:
    branch = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["y"])],
        "then",
        [],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [2])],
    )
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["z"])],
        "else",
        [],
        [helper.make_tensor_value_info("z", TensorProto.DOUBLE, [2])],
    )
    nodes = [helper.make_node("If", ["flag"], ["result"], then_branch=branch, else_branch=other)]
    path = save_onnx(
        tmp_path / "net.onnx",
        nodes,
        [("flag", TensorProto.BOOL, ()), ("x", TensorProto.DOUBLE, (2,))],
        [("result", TensorProto.DOUBLE, (2,))],
    )
    np.savez(tmp_path / "inputs.npz", flag=np.array(True), x=np.array([1.0, 2.0]))
    wrap(path, Wishes(inputs=tmp_path / "inputs.npz"), tmp_path / "bundle")
    assert output_of(tmp_path / "bundle").tolist() == [-1, -2]


def test_texts_are_refused(tmp_path: Path) -> None:
    nodes = [helper.make_node("Identity", ["words"], ["same"])]
    kind = TensorProto.STRING
    path = save_onnx(tmp_path / "net.onnx", nodes, [("words", kind, (1,))], [("same", kind, (1,))])
    assert "words is a tensor of string, which no runner gives or takes" in refused(path, tmp_path)


def test_dynamic_inputs_are_listed_with_what_fixes_them(tmp_path: Path) -> None:
    path = scaled(tmp_path / "net.onnx", 1.0, ("batch", 3, "h", "w"))
    told = refused(path, tmp_path)
    assert "inputs without a fixed shape: x[batch, 3, h, w]" in told
    assert "--shape 'x=BATCH,3,H,W'" in told


def test_a_shape_fixes_every_dimension_of_that_symbol(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["a", "b"], ["y"])]
    path = save_onnx(
        tmp_path / "net.onnx",
        nodes,
        [("a", FLOAT, ("batch", 3, "h", "h")), ("b", FLOAT, ("batch", 1, 1, 1))],
        [("y", FLOAT, ("batch", 3, "h", "h"))],
    )
    bundle = wrap(path, Wishes(shapes={"a": (1, 3, 5, 5)}), tmp_path / "bundle")
    function = bundle.components["model"].functions["run"]
    assert [port.shape for port in function.inputs] == [(1, 3, 5, 5), (1, 1, 1, 1)]
    assert output_of(tmp_path / "bundle").shape == (1, 3, 5, 5)


@pytest.mark.parametrize("shape", [(1, 3, 5), (1, 4, 5, 5), (1, 3, 5, 6), (0, 3, 5, 5)])
def test_a_shape_that_does_not_fit_is_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = scaled(tmp_path / "net.onnx", 1.0, ("batch", 3, "side", "side"))
    assert "does not fit net.onnx" in refused(path, tmp_path, shapes={"x": shape})


def test_a_shape_for_no_input_is_refused(tmp_path: Path) -> None:
    told = refused(scaled(tmp_path / "net.onnx", 1.0), tmp_path, shapes={"z": (1,)})
    assert "net.onnx has no input 'z'" in told
    assert "x[1, 4]" in told


def test_an_output_whose_shape_only_a_run_tells_is_described_by_one(tmp_path: Path) -> None:
    nodes = [helper.make_node("NonZero", ["x"], ["where"]), helper.make_node("Shape", ["where"], ["y"])]
    inputs, outputs = [("x", FLOAT, (4,))], [("where", TensorProto.INT64, (1, "n")), ("y", TensorProto.INT64, None)]
    path = save_onnx(tmp_path / "net.onnx", nodes, inputs, outputs)
    bundle = wrap(path, Wishes(output="y"), tmp_path / "bundle")
    assert [port.shape for port in bundle.components["model"].functions["run"].outputs] == [(1, 4), (2,)]
    assert output_of(tmp_path / "bundle").tolist() == [1, 4]


def test_an_unknown_output_names_those_there_are(tmp_path: Path) -> None:
    assert "unknown output 'z'" in refused(scaled(tmp_path / "net.onnx", 1.0), tmp_path, output="z")


def test_inputs_that_the_product_knows_by_name_are_still_the_graphs_own(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["noise", "source_image"], ["output"])]
    inputs = [("noise", FLOAT, (2,)), ("source_image", FLOAT, (2,))]
    path = save_onnx(tmp_path / "net.onnx", nodes, inputs, [("output", FLOAT, (2,))])
    wrap(path, Wishes(), tmp_path / "bundle")
    assert sorted(inputs_of(tmp_path / "bundle")) == ["noise_", "source_image_"]
    assert np.allclose(output_of(tmp_path / "bundle"), sum(inputs_of(tmp_path / "bundle").values()))


def test_a_graph_that_makes_nan_is_the_models_fault(tmp_path: Path) -> None:
    nodes = [helper.make_node("Sqrt", ["x"], ["y"])]
    path = save_onnx(tmp_path / "net.onnx", nodes, [("x", FLOAT, (9,))], [("y", FLOAT, (9,))])
    assert "has values that are not finite" in refused(path, tmp_path, ModelError)


def test_a_graph_that_the_runtime_refuses_is_the_models_fault(tmp_path: Path) -> None:
    nodes = [helper.make_node("NoSuchThing", ["x"], ["y"])]
    path = save_onnx(tmp_path / "net.onnx", nodes, [("x", FLOAT, (9,))], [("y", FLOAT, (9,))])
    assert "the graph does not run in onnxruntime" in refused(path, tmp_path, ModelError)


@pytest.mark.parametrize("data", [b"", b"this is no graph", b"\x08"])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "net.onnx").write_bytes(data)
    assert "ONNX" in refused(tmp_path / "net.onnx", tmp_path, InvalidRecord)


def test_external_weights_are_copied_beside_the_graph(tmp_path: Path) -> None:
    (tmp_path / "source" / "data").mkdir(parents=True)
    path = externalised(image_net(tmp_path / "source" / "net.onnx"), "data/weights.bin")
    bundle = wrap(path, Wishes(values=(0, 1)), tmp_path / "bundle")
    assert bundle.components["model"].files == (
        "components/model/model.onnx",
        "components/model/data/weights.bin",
    )
    found = output_of(tmp_path / "bundle")
    wrap(image_net(tmp_path / "whole.onnx"), Wishes(values=(0, 1)), tmp_path / "whole")
    assert np.array_equal(found, output_of(tmp_path / "whole"))


def test_a_graph_gives_way_to_weights_of_its_name(tmp_path: Path) -> None:
    path = externalised(image_net(tmp_path / "net.onnx"), "model.onnx")
    bundle = wrap(path, Wishes(), tmp_path / "bundle")
    assert bundle.components["model"].files == ("components/model/_model.onnx", "components/model/model.onnx")
    output_of(tmp_path / "bundle")


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/passwd", "a/../../weights.bin", "a\\b", "", "."])
def test_weights_that_lie_elsewhere_are_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "in").mkdir()
    path = externalised(image_net(tmp_path / "in" / "net.onnx"))
    (tmp_path / "in" / "weights.bin").rename(tmp_path / "weights.bin")
    assert "leads out of its folder or is a link" in refused(with_location(path, location), tmp_path, InvalidRecord)


@pytest.mark.parametrize("link", ["weights.bin", "data"])
def test_linked_weights_are_refused(tmp_path: Path, link: str) -> None:
    (tmp_path / "data").mkdir()
    location = "data/weights.bin" if link == "data" else link
    path = externalised(image_net(tmp_path / "net.onnx"), location)
    (tmp_path / link).rename(tmp_path / "elsewhere")
    (tmp_path / link).symlink_to(tmp_path / "elsewhere")
    assert "is a link" in refused(path, tmp_path, InvalidRecord)


def test_weights_in_a_pipe_are_refused(tmp_path: Path) -> None:
    path = externalised(image_net(tmp_path / "net.onnx"))
    (tmp_path / "weights.bin").unlink()
    os.mkfifo(tmp_path / "weights.bin")
    assert "no plain file" in refused(path, tmp_path, InvalidRecord)


def test_weights_that_are_missing_or_cut_off_are_told(tmp_path: Path) -> None:
    path = externalised(image_net(tmp_path / "net.onnx"))
    weights = tmp_path / "weights.bin"
    weights.write_bytes(weights.read_bytes()[:-1])
    assert "is too short for the weight 'kernel'" in refused(path, tmp_path, InvalidRecord)
    weights.unlink()
    assert "has weights in 'weights.bin', which is not beside it" in refused(path, tmp_path, MissingSource)


def test_a_linked_graph_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link.onnx").symlink_to(image_net(tmp_path / "net.onnx"))
    assert "is a link" in refused(tmp_path / "link.onnx", tmp_path)


_READ_AND_COPY = """
import os, sys
from pathlib import Path
from exporters.foreign import onnx_file

def peak_kib():  # not ru_maxrss, which begins with that of the process that started this one
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])

path = Path(sys.argv[1])
external = onnx_file.external_files(onnx_file.read_model(path), path)
os.truncate(path.parent / "weights.bin", 2**28)  # enough to see a copy in memory
before = peak_kib()
onnx_file.copy_files(external, path.parent / "copy")
print(peak_kib(), before)
"""


def test_weights_larger_than_a_protobuf_are_never_in_memory(tmp_path: Path) -> None:
    path = externalised(image_net(tmp_path / "net.onnx"))
    with (tmp_path / "weights.bin").open("r+b") as stream:
        stream.truncate(3 * 2**30)  # sparse: it takes no room
    read = subprocess.run([sys.executable, "-c", _READ_AND_COPY, str(path)], capture_output=True, text=True, check=True)
    after_kib, before_kib = map(int, read.stdout.split())
    assert (tmp_path / "copy" / "weights.bin").stat().st_size == 2**28
    assert before_kib < 2**20
    assert after_kib - before_kib < 64 * 2**10
