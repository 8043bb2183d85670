"""The interpreter of saved Core ML packages."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("coremltools")

from exporters.mil_constants import rounded
from exporters.mil_ops import OPERATIONS, Unsupported
from exporters.mil_weights import Blobs, BrokenBlob
from exporters.verify_coreml import MilInterpreter, read_program
from profiler.errors import InvalidRecord
from profiler.records.bundle import Component, Function
from profiler.records.plan import Port
from profiler.runner.engines.coreml_package import open_package
from profiler.runner.engines.engine import EngineFailure
from tests.exporters.mil_programs import Builder, load, save

SHAPE = (1, 64)


def values() -> torch.Tensor:
    return torch.randn(SHAPE, generator=torch.Generator().manual_seed(0))


def weight() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.Generator(np.random.PCG64(0)).standard_normal((64, 64)).astype(np.float32)


def component_of(folder: Path) -> Component:
    ports = {"inputs": (Port(name="x", dtype="float32", shape=SHAPE),)}
    output = Port(name="y", dtype="float32", shape=SHAPE)
    function = Function(path=folder.name, outputs=(output,), **ports)
    return Component(functions={"forward": function}, files=(), parameters=0, precision="fp32")


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A linear layer with its weights in the package's weight file."""
    return save(
        tmp_path_factory.mktemp("layer") / "layer.mlpackage",
        {"x": SHAPE},
        lambda x: Builder.linear(x=x, weight=weight(), name="y"),
    )


def copied(folder: Path, to: Path) -> Path:
    for path in folder.rglob("*"):
        if path.is_file():
            (to / path.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
            (to / path.relative_to(folder)).write_bytes(path.read_bytes())
    return to


def test_a_program_of_fp32_is_computed_in_fp32(layer: Path) -> None:
    torch.testing.assert_close(load(layer).run({"x": values()})["y"], values() @ torch.from_numpy(weight()).T)


def test_a_program_of_fp16_rounds_weights_and_every_result(tmp_path: Path) -> None:
    folder = save(
        tmp_path / "a.mlpackage",
        {"x": SHAPE},
        lambda x: Builder.sin(x=Builder.linear(x=x, weight=weight()), name="y"),
        halves=True,
    )
    found = load(folder).run({"x": values()})["y"]
    product = rounded(rounded(values()) @ rounded(torch.from_numpy(weight())).T)
    torch.testing.assert_close(found, rounded(torch.sin(product)), rtol=0, atol=0)
    assert not torch.equal(found, torch.sin(values() @ torch.from_numpy(weight()).T))


def test_what_float16_cannot_hold_becomes_infinite(tmp_path: Path) -> None:
    folder = save(
        tmp_path / "a.mlpackage", {"x": SHAPE}, lambda x: Builder.mul(x=x, y=np.float32(1000), name="y"), halves=True
    )
    assert torch.isinf(load(folder).run({"x": torch.full(SHAPE, 100.0)})["y"]).all()


def test_an_unknown_operation_is_named_and_nothing_is_run(tmp_path: Path) -> None:
    folder = save(tmp_path / "a.mlpackage", {"x": SHAPE}, lambda x: Builder.atan(x=x, name="y"))
    with pytest.raises(EngineFailure, match=r"^small: operation atan \(y\) is not known") as failure:
        MilInterpreter().load("small", component_of(folder), tmp_path)
    assert (failure.value.reason, failure.value.component) == ("load_failed", "small")


def test_a_variant_that_is_not_implemented_is_named(tmp_path: Path) -> None:
    folder = save(
        tmp_path / "a.mlpackage", {"x": SHAPE}, lambda x: Builder.gelu(x=x, mode="SIGMOID_APPROXIMATION", name="y")
    )
    call = MilInterpreter().load("small", component_of(folder), tmp_path)["forward"]
    with pytest.raises(EngineFailure, match=r"gelu \(y\): mode SIGMOID_APPROXIMATION"):
        call({"x": values().numpy()})


def test_weights_that_are_cut_short_are_refused(layer: Path, tmp_path: Path) -> None:
    folder = copied(layer, tmp_path / "cut.mlpackage")
    path = folder / "Data" / "com.apple.CoreML" / "weights" / "weight.bin"
    for size in (path.stat().st_size - 1, 100, 10):
        path.write_bytes(path.read_bytes()[:size])
        with pytest.raises(EngineFailure, match=r"small: weight\.bin .*is cut short"):
            MilInterpreter().load("small", component_of(folder), tmp_path)


def test_weights_of_another_model_are_refused(layer: Path, tmp_path: Path) -> None:
    folder = copied(layer, tmp_path / "other.mlpackage")
    path = folder / "Data" / "com.apple.CoreML" / "weights" / "weight.bin"
    data = bytearray(path.read_bytes())
    data[72:80] = (4).to_bytes(8, "little")
    path.write_bytes(data)
    with pytest.raises(EngineFailure, match="does not hold 16384 bytes of FLOAT32"):
        MilInterpreter().load("small", component_of(folder), tmp_path)


def test_a_model_that_is_none_is_refused(layer: Path, tmp_path: Path) -> None:
    folder = copied(layer, tmp_path / "none.mlpackage")
    open_package(folder).model.write_bytes(b"\xff" * 100)
    with pytest.raises(Unsupported, match=r"model\.mlmodel"):
        read_program(open_package(folder))


def test_a_hostile_package_is_refused_before_it_is_read(layer: Path, tmp_path: Path) -> None:
    folder = copied(layer, tmp_path / "hostile.mlpackage")
    manifest = json.loads((folder / "Manifest.json").read_text())
    for entry in manifest["itemInfoEntries"].values():
        entry["path"] = f"../../{layer.name}/Data/{entry['path']}"
    (folder / "Manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InvalidRecord, match="unsafe path"):
        MilInterpreter().load("small", component_of(folder), tmp_path)


@pytest.mark.parametrize("fed", [np.zeros((1, 63), np.float32), np.zeros(SHAPE, np.float64)])
def test_inputs_that_do_not_fit_are_refused(layer: Path, fed: object) -> None:
    call = MilInterpreter().load("small", component_of(layer), layer.parent)["forward"]
    with pytest.raises(EngineFailure, match="x is float"):
        call({"x": fed})


def test_a_weight_file_is_mapped_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / "weight.bin"
    size, start = 2**33, 2**33 - 4  # eight gigabytes, of which almost none are on the disk
    record = (0xDEADBEEF).to_bytes(4, "little") + (2).to_bytes(4, "little")
    record += (4).to_bytes(8, "little") + start.to_bytes(8, "little") + bytes(40)
    with path.open("wb") as stream:
        stream.write(bytes([1, 0, 0, 0, 2, 0, 0, 0]) + bytes(56) + record)
        stream.truncate(size)
    assert Blobs(path).read(64, "FLOAT32", (1,)).tolist() == [0.0]


def test_values_are_let_go_after_their_last_use(layer: Path) -> None:
    forgotten = {name for step in load(layer).steps for name in step.forget}
    assert "x" in forgotten
    assert "y" not in forgotten


def test_four_bit_values_come_as_they_were_written(tmp_path: Path) -> None:
    header = bytes([1, 0, 0, 0, 2, 0, 0, 0]) + bytes(56)
    record = (0xDEADBEEF).to_bytes(4, "little") + (11).to_bytes(4, "little")
    record += (3).to_bytes(8, "little") + (128).to_bytes(8, "little") + bytes(40)
    (tmp_path / "weight.bin").write_bytes(header + record + bytes([0x21, 0x43, 0x05]))
    blobs = Blobs(tmp_path / "weight.bin")
    assert blobs.read(64, "UINT4", (5,)).tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(BrokenBlob, match="INT64, which is not known"):
        blobs.read(64, "INT64", (1,))


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("rsqrt", {"x": torch.tensor([0.0]), "epsilon": torch.tensor(0.25)}, [2.0]),
        ("inverse", {"x": torch.tensor([0.0])}, [1e4]),
        ("floor", {"x": torch.tensor([1.9, -1.1])}, [1.0, -2.0]),
        ("split", {"x": torch.arange(3.0), "axis": torch.tensor(0), "split_sizes": torch.tensor([1, 2])}, [0.0]),
        ("slice_by_size", {"x": torch.arange(3.0), "begin": torch.tensor([1]), "size": torch.tensor([-1])}, [1.0, 2.0]),
        ("reshape", {"x": torch.arange(2.0), "shape": torch.tensor([0])}, [0.0, 1.0]),
        ("pad", {"x": torch.ones(1), "pad": torch.tensor([1, 0])}, [0.0, 1.0]),
        ("gather_nd", {"x": torch.arange(4.0).reshape(2, 2), "indices": torch.tensor([[1, 0], [0, 1]])}, [2.0, 1.0]),
        ("gather", {"x": torch.arange(4.0), "indices": torch.tensor([3, 0])}, [3.0, 0.0]),
        ("select", {"cond": torch.tensor([True]), "a": torch.ones(1), "b": torch.zeros(1)}, [1.0]),
        ("reduce_mean", {"x": torch.tensor([1.0, 3.0]), "axes": torch.tensor([0]), "keep_dims": True}, [2.0]),
    ],
)
def test_operations_have_mils_meaning_and_defaults(
    name: str, given: dict[str, torch.Tensor], expected: list[float]
) -> None:
    found = OPERATIONS[name](**given)
    assert (found[0] if isinstance(found, tuple) else found).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("name", ["gather", "gather_nd"])
def test_an_index_below_zero_is_refused(name: str) -> None:
    with pytest.raises(Unsupported, match="below zero"):
        OPERATIONS[name](x=torch.arange(4.0), indices=torch.tensor([[-1]]))


def test_scales_repeat_over_their_blocks() -> None:
    data, scale = torch.ones(2, 4, dtype=torch.int8), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    found = OPERATIONS["constexpr_blockwise_shift_scale"](data=data, scale=scale)
    assert found.tolist() == [[1.0, 1.0, 2.0, 2.0], [3.0, 3.0, 4.0, 4.0]]
    with pytest.raises(Unsupported, match="4 values in 3 blocks"):
        OPERATIONS["constexpr_blockwise_shift_scale"](data=data, scale=torch.ones(2, 3))
