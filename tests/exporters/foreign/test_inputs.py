from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from exporters.foreign.graph import Tensor
from exporters.foreign.inputs import make_inputs
from profiler.errors import InputError
from profiler.records.plan import Port


def tensor(name: str, dtype: str, boundary: Any, *shape: int) -> Tensor:
    return Tensor(name=name, dtype=dtype, port=Port(name=f"{name}_port", dtype=boundary, shape=shape))


SAMPLE, IDS = tensor("sample", "float16", "float32", 1, 4), tensor("ids", "int64", "int32", 1, 2)
BOTH = (SAMPLE, IDS)


def npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        make_inputs(BOTH, path, 0)
    return " ".join(str(caught.value).split())


def test_floats_are_drawn_from_the_seed_and_whole_numbers_are_zero() -> None:
    made = make_inputs(BOTH, None, 7)
    assert made.made_up == ("sample", "ids")
    assert made.tensors["sample"].dtype == np.float32
    assert np.array_equal(made.tensors["ids"], np.zeros((1, 2), np.int32))
    again, other = make_inputs(BOTH, None, 7), make_inputs(BOTH, None, 8)
    assert np.array_equal(made.tensors["sample"], again.tensors["sample"])
    assert not np.array_equal(made.tensors["sample"], other.tensors["sample"])


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_tensors_are_given_in_the_graphs_own_types(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"inputs.{ending}"
    arrays = {"sample": np.array([[1, 2, 3, 4]], np.float16), "ids": np.array([[5, 6]], np.int64)}
    npz(path, **arrays) if ending == "npz" else save_file(arrays, path)
    made = make_inputs(BOTH, path, 0)
    assert made.made_up == ()
    assert made.tensors["sample"].tolist() == [[1, 2, 3, 4]]
    assert made.tensors["ids"].tolist() == [[5, 6]]
    assert {name: array.dtype.name for name, array in made.tensors.items()} == {"sample": "float32", "ids": "int32"}


def test_giving_one_tensor_leaves_the_noise_of_the_others_as_it_is(tmp_path: Path) -> None:
    two = (SAMPLE, tensor("other", "float32", "float32", 3))
    path = npz(tmp_path / "a.npz", sample=np.zeros((1, 4), np.float32))
    made = make_inputs(two, path, 3)
    assert made.made_up == ("other",)
    assert np.array_equal(made.tensors["other"], make_inputs(two, None, 3).tensors["other"])


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"sampel": np.zeros(1)}, "the graph has no input 'sampel'"),
        ({"sample": np.zeros((1, 5), np.float32)}, "'sample' is float32[1, 5]"),
        ({"sample": np.zeros((1, 4), np.int64)}, "'sample' is int64[1, 4]"),
        ({"sample": np.array([[1, np.nan, 0, 0]], np.float32)}, "'sample' has values that are not finite"),
        ({"sample": np.array([[1, np.inf, 0, 0]], np.float16)}, "'sample' has values that are not finite"),
        ({"ids": np.array([[1, 2**31]], np.int64)}, "'ids' has values that int32 does not hold"),
    ],
)
def test_a_tensor_that_is_not_the_graphs_is_refused(tmp_path: Path, arrays: dict[str, Any], words: str) -> None:
    told = refused(npz(tmp_path / "inputs.npz", **arrays))
    assert words in told
    if "finite" not in words and "hold" not in words:
        assert "The graph takes sample float16[1, 4]; ids int64[1, 2]." in told


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("unpickled",))


def test_pickled_arrays_are_never_opened(tmp_path: Path) -> None:
    path = tmp_path / "inputs.npz"
    np.savez(path, sample=np.array([[Bomb()]], dtype=object))
    assert "allow_pickle=False" in refused(path)


@pytest.mark.parametrize("data", [b"", b"no archive", b"PK\x03\x04cut"])
@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_a_file_that_is_no_archive_cannot_be_read(tmp_path: Path, ending: str, data: bytes) -> None:
    path = tmp_path / f"inputs.{ending}"
    path.write_bytes(data)
    assert "cannot be read" in refused(path)


def test_a_single_array_has_no_names(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(1))
    (tmp_path / "a.npy").rename(tmp_path / "a.npz")
    assert "not an archive of named ones" in refused(tmp_path / "a.npz")


def test_other_endings_and_missing_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.pt").touch()
    assert "neither .safetensors nor .npz" in refused(tmp_path / "a.pt")
    assert "no inputs at" in refused(tmp_path / "none.npz")
