"""What the product knows without asking anyone: models, device profiles, policies, and bundles at hand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

import msgspec

from profiler import codec
from profiler.bundle_files import MANIFEST
from profiler.errors import UnknownName
from profiler.records.device import GENERIC_PHONE, DeviceProfile
from profiler.records.policy import Policy, ReferenceTable
from profiler.records.spec import ModelSpec

T = TypeVar("T")

# Product names carry the sales region (`e3quew`), but not with every maker.
_CODENAME_PROPERTIES = ("ro.product.device", "ro.product.name")


def models() -> dict[str, ModelSpec]:
    """Return the registry by name."""
    return _named(_data("exporters", "models"), ModelSpec)


def model(name: str) -> ModelSpec:
    """Return a registry entry. Raises UnknownName."""
    return _pick("model", name, models(), hint="All: profile models. A folder or bundle is named by its path.")


def device_profiles() -> dict[str, DeviceProfile]:
    """Return the device profiles by name."""
    return _named(_data("device_profiles"), DeviceProfile)


def device_profile(name: str) -> DeviceProfile:
    """Return a device profile. Raises UnknownName."""
    return _pick("device", name, device_profiles(), hint="All: profile devices --profiles.")


def profile_of(properties: Mapping[str, str]) -> DeviceProfile:
    """Return the profile of an Android phone by its `getprop` facts; the generic one where no model matches."""
    phones = [each for each in device_profiles().values() if each.platform == "android"]
    by_model = {model: phone for phone in phones for model in phone.models}
    by_codename = {codename: phone for phone in phones for codename in phone.codenames}
    found = [by_model.get(properties.get("ro.product.model", ""))]
    found += [by_codename.get(properties.get(key, "")) for key in _CODENAME_PROPERTIES]
    return next((phone for phone in found if phone), device_profile(GENERIC_PHONE))


def policy(name: str) -> Policy:
    """Return a tier policy. Raises UnknownName."""
    return _pick("policy", name, _named(_data("device_profiles", "policies"), Policy))


def reference(name: str) -> ReferenceTable:
    """Return published results. Raises UnknownName."""
    folder = _data("device_profiles", "reference")
    tables = {path.stem: path for path in folder.glob("*.toml")}
    return codec.read_toml(_pick("reference table", name, tables), ReferenceTable)


def shipped_bundle(spec: ModelSpec) -> Path | None:
    """Return the bundle that comes with the product, where the model has one."""
    folder = _data("exporters", "bundles") / spec.name
    return folder if (folder / MANIFEST).is_file() else None


def bundle_cache() -> Path:
    """Return where exported bundles are kept."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("ondevice-profiler")) / "bundles"


def receipts() -> Path:
    """Return the file that remembers which bundle files were hashed."""
    return bundle_cache().with_name("receipts.json")


def cached_bundle(name: str, *content: object) -> Path:
    """Return where the bundle made from exactly this content is, or would be, in the cache."""
    digest = hashlib.sha256(msgspec.json.encode(content)).hexdigest()
    return bundle_cache() / f"{name}-{digest[:16]}"


def _data(package: str, *parts: str) -> Path:
    # The packages are plain folders both in a checkout and in an installed wheel; neither is ever zipped.
    return Path(str(files(package))).joinpath(*parts)


def _named(folder: Path, kind: type[T]) -> dict[str, T]:
    return dict(_entries(folder, kind))


def _entries(folder: Path, kind: type[T]) -> Iterator[tuple[str, T]]:
    for path in sorted(folder.glob("*.toml"), key=lambda path: path.stem):
        yield path.stem, codec.read_toml(path, kind)


def _pick(kind: str, name: str, known: dict[str, T], *, hint: str | None = None) -> T:
    if name not in known:
        raise UnknownName(kind, name, known, hint=hint)
    return known[name]
