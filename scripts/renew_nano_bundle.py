"""Export the nano bundle that ships with the project again, and replace it in one step."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from profiler.bundle_files import manifest_sha256
from profiler.exporting import ANY, export

BUNDLE = Path(__file__).parent.parent / "exporters" / "bundles" / "nano"


def main() -> int:
    """Export beside the old bundle, then swap them."""
    fresh = BUNDLE.with_name("nano.fresh")
    shutil.rmtree(fresh, ignore_errors=True)
    export("nano", fresh, ANY, lambda stage, done, total: print(f"export, {stage}", file=sys.stderr))
    shutil.rmtree(BUNDLE, ignore_errors=True)
    fresh.rename(BUNDLE)
    print(f"{BUNDLE}: {manifest_sha256(BUNDLE)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
