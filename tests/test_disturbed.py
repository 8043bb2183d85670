"""A real run on a machine that somebody else uses says so."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.cli import main
from profiler.runner.gauges import usable_cores
from tests.small_bundle import build_small_bundle


@pytest.fixture
def hogs() -> Iterator[None]:
    """Keep every core busy for as long as the test lasts."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in usable_cores()]
    yield
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.usefixtures("hogs")
def test_another_process_that_hogs_the_processor_is_a_doubt_with_what_it_took(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = build_small_bundle(tmp_path / "bundle", slow=1)
    how = ["--cold-starts", "1", "--warmups", "0", "--repeats", "20", "--observer-pairs", "0", "--threads", "1"]
    assert main(["--model", str(bundle), "--store", str(tmp_path / "store"), "--json", *how]) == 0
    doubts = {doubt["kind"]: doubt for doubt in json.loads(capsys.readouterr().out)["doubts"]}
    assert "background_load" in doubts
    assert "while the images were made" in doubts["background_load"]["detail"]
