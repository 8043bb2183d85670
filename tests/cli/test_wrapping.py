"""`profile export --file`, and `profile --bundle` on what comes of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

from profiler.cli import main
from profiler.store import Store
from tests.cli.conftest import LEAST
from tests.exporters.foreign.graphs import SIDE, image_net, save_mlpackage, save_pte, scaled

Capture = pytest.CaptureFixture[str]


def wrapped(tmp_path: Path, file: Path, *options: str) -> Path:
    folder = tmp_path / "bundle"
    assert main(["export", "--file", str(file), "--out", str(folder), *options]) == 0
    return folder


def measured(folder: Path, store: Store, capsys: Capture) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["--bundle", str(folder), "--store", str(store.root), "--json", *LEAST]) == 0
    summary: dict[str, Any] = json.loads(capsys.readouterr().out)
    return summary


def refusal(capsys: Capture, *arguments: str) -> str:
    assert main(["export", *arguments]) == 2
    return " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_an_onnx_image_is_measured_end_to_end(tmp_path: Path, store: Store, capsys: Capture) -> None:
    options = ["--output-range", "0..1", "--name", "house", "--licence", "in-house", "--seed", "3"]
    folder = wrapped(tmp_path, image_net(tmp_path / "net.onnx"), *options)
    printed = capsys.readouterr().out
    assert "compared with nothing: a foreign graph, taken as it is" in printed
    assert f"measure it: profile --bundle {folder}" in printed
    summary = measured(folder, store, capsys)
    assert (summary["outcome"], summary["model"], summary["seed"]) == ("completed", "house", 3)
    assert (summary["width"], summary["licence"]["name"]) == (SIDE, "in-house")
    assert [artifact["role"] for artifact in summary["artifacts"]] == ["output"]
    assert "made_up_inputs" in [doubt["kind"] for doubt in summary["doubts"]]


def test_given_inputs_raise_no_doubt(tmp_path: Path, store: Store, capsys: Capture) -> None:
    np.savez(tmp_path / "inputs.npz", sample=np.zeros((1, 3, SIDE, SIDE), np.float32))
    folder = wrapped(tmp_path, image_net(tmp_path / "net.onnx"), "--inputs", str(tmp_path / "inputs.npz"))
    assert "made_up_inputs" not in [doubt["kind"] for doubt in measured(folder, store, capsys)["doubts"]]


def test_an_onnx_tensor_is_measured_and_reported_without_an_image(
    tmp_path: Path, store: Store, capsys: Capture
) -> None:
    folder = wrapped(tmp_path, scaled(tmp_path / "net.onnx", 2.0, ("batch", 4)), "--shape", "x=2,4")
    assert main(["--bundle", str(folder), "--store", str(store.root), *LEAST]) == 0
    assert "no image: the graph's output is a tensor" in " ".join(capsys.readouterr().out.split())
    (run_id,) = store.run_ids()
    run = store.load(run_id)
    assert (run.outcome, run.images, run.settings.width) == ("completed", (), None)
    assert len({sample.image_sha256 for sample in run.iterations}) == 1
    assert main(["runs", "--store", str(store.root)]) == 0
    assert main(["show", "last", "--store", str(store.root)]) == 0
    endings = ("html", "csv", "samples.csv", "md", "json", "parquet", "samples.parquet")
    outs = [argument for ending in endings for argument in ("-o", str(tmp_path / f"a.{ending}"))]
    assert main(["report", "last", "--store", str(store.root), *outs]) == 0
    assert "No image: the graph&#39;s output is a tensor." in (tmp_path / "a.html").read_text()


def test_an_executorch_program_is_measured_end_to_end(tmp_path: Path, store: Store, capsys: Capture) -> None:
    pytest.importorskip("executorch")
    torch = pytest.importorskip("torch")
    path = save_pte(tmp_path / "net.pte", torch.nn.Linear(4, 2), torch.zeros(1, 4))
    summary = measured(wrapped(tmp_path, path), store, capsys)
    assert (summary["outcome"], summary["width"]) == ("completed", None)
    assert summary["engine"].startswith("executorch ")


def test_a_core_ml_package_is_wrapped_and_refused_here(tmp_path: Path, store: Store, capsys: Capture) -> None:
    coremltools = pytest.importorskip("coremltools")
    import torch

    inputs = [coremltools.TensorType(name="x", shape=(1, 4), dtype=np.float32)]
    outputs = [coremltools.TensorType(name="y", dtype=np.float32)]
    path = save_mlpackage(
        tmp_path / "net.mlpackage", torch.nn.Linear(4, 2), inputs, [torch.zeros(1, 4)], outputs=outputs
    )
    folder = wrapped(tmp_path, path)
    printed = capsys.readouterr().out
    assert "Core ML runs on Apple devices only; mil-interpreter" in printed
    assert "measure it" not in printed
    if sys.platform != "darwin":
        assert main(["--bundle", str(folder), "--store", str(store.root)]) == 2
        assert "Core ML runs on Apple devices only" in capsys.readouterr().err


def test_words_and_seeds_have_no_meaning_for_a_wrapped_graph(tmp_path: Path, capsys: Capture) -> None:
    folder = wrapped(tmp_path, image_net(tmp_path / "net.onnx"))
    for option, words in ((["--prompt", "a cat"], "takes no words"), (["--seed", "5"], "takes no noise of its own")):
        assert main(["--bundle", str(folder), "--dry-run", *option]) == 2
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Name what is exported: --model NAME, or --file GRAPH."),
        (["--model", "nano", "--file", "net.onnx"], "Name one of --model and --file, not both."),
        (["--model", "nano", "--inputs", "a.npz"], "--inputs has a meaning with --file only"),
        (["--model", "nano", "--output-range", "0..1"], "--output-range has a meaning with --file only"),
        (["--file", "net.onnx", "--precision", "fp16"], "--precision has a meaning with --model only"),
        (["--file", "net.onnx", "--weights", "random:0"], "--weights has a meaning with --model only"),
        (["--file", "net.onnx", "--backend", "vulkan"], "--backend has a meaning with --model only"),
        (["--file", "net.onnx", "--out", "b", "--shape", "x"], "'x' is no shape"),
        (["--file", "net.onnx", "--out", "b", "--shape", "x=1,-2"], "is no shape"),
        (["--file", "net.onnx", "--out", "b", "--shape", "x=1", "--shape", "x=2"], "x is given two shapes"),
        (["--file", "net.onnx"], "Name it: --out DIR"),
        (["--file", "none.onnx", "--out", "b"], "none.onnx"),
        (["--file", "~nobody-of-this-name/a.onnx", "--out", "b"], "cannot be a graph"),
        (["--file", "x" * 300 + ".onnx", "--out", "b"], "cannot be a graph: File name too long"),
        (["--file", "net.onnx", "--out", "x" * 300], "cannot be a bundle: File name too long"),
        (["--file", "net.pt", "--out", "b"], "They are .onnx, .pte, .mlpackage."),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(capsys: Capture, arguments: list[str], words: str) -> None:
    assert words in refusal(capsys, *arguments)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file").touch()
    told = refusal(capsys, "--file", str(scaled(tmp_path / "net.onnx", 1.0)), "--out", str(tmp_path / "file" / "b"))
    assert "cannot be written: " in told


def test_a_range_with_a_sign_is_a_value_and_no_option(tmp_path: Path, capsys: Capture) -> None:
    folder = wrapped(tmp_path, image_net(tmp_path / "net.onnx"), "--output-range", "-1..1")
    assert "is taken for an image of -1 to 1" in (folder / "bundle.json").read_text()
