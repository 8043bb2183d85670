from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_loading_the_engine_writes_nothing_into_the_users_home(tmp_path: Path) -> None:
    """ONNX Runtime keeps a device id and a queue of usage events there unless it is told not to."""
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    code = "from profiler.runner.engines.onnxruntime_engine import OnnxRuntimeEngine as E; print(E(threads=1).version)"
    subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / ".cache")},
        check=True,
        capture_output=True,
    )
    assert list(tmp_path.rglob("*onnxruntime*")) == []
