from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from profiler import catalog
from profiler.bundle_files import check_files, load_manifest
from profiler.errors import UnknownName
from tests.records_for_tests import make_model_spec


def test_every_model_is_called_as_its_file_is() -> None:
    models = catalog.models()
    assert "nano" in models
    assert all(spec.name == name for name, spec in models.items())


def test_every_model_says_who_may_use_it_and_can_do_something() -> None:
    for spec in catalog.models().values():
        assert spec.licence.name
        assert spec.tasks
        assert all(task.steps >= 1 and task.prompt for task in spec.tasks.values())


def test_every_model_from_a_hub_says_where_its_licence_stands() -> None:
    hub = [spec for spec in catalog.models().values() if not spec.embedded]
    assert all((spec.licence.source or "").startswith("https://") for spec in hub)


def test_every_device_is_called_as_its_file_is() -> None:
    profiles = catalog.device_profiles()
    assert "local" in profiles
    assert all(profile.name == name for name, profile in profiles.items())


@pytest.mark.parametrize(
    ("look_up", "typed", "meant"),
    [
        (catalog.model, "nanno", "nano"),
        (catalog.device_profile, "locl", "local"),
        (catalog.policy, "moibench", "moi-bench"),
        (catalog.reference, "moi-bensh", "moi-bench"),
    ],
)
def test_an_unknown_name_says_what_was_meant(look_up: object, typed: str, meant: str) -> None:
    assert callable(look_up)
    with pytest.raises(UnknownName, match=f"Did you mean {meant}") as caught:
        look_up(typed)
    assert repr(typed) in str(caught.value)


@pytest.mark.parametrize("name", ["../device_profiles/local", "", "nano.toml", "/etc/passwd"])
def test_a_name_is_no_path(name: str) -> None:
    with pytest.raises(UnknownName):
        catalog.device_profile(name)


def test_the_policy_and_its_published_results_are_there() -> None:
    assert catalog.policy("moi-bench").tiers[0].tier == "D4"
    assert catalog.reference("moi-bench").rows


def test_a_model_without_a_shipped_bundle_has_none() -> None:
    assert catalog.shipped_bundle(make_model_spec(name="not-a-model")) is None


def test_the_shipped_bundle_is_whole() -> None:
    folder = catalog.shipped_bundle(catalog.model("nano"))
    if folder is None:
        pytest.skip("nano's bundle is not in this checkout")
    bundle = load_manifest(folder)
    check_files(folder, bundle)
    assert set(bundle.tasks) == {"generate", "edit"}
    listed = {entry.path for entry in bundle.files} | {"bundle.json"}
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == listed


def test_a_cached_bundle_is_named_by_all_that_went_into_it() -> None:
    spec = make_model_spec()
    place = catalog.cached_bundle("nano", spec, {"torch": "2.13.0"})
    assert place == catalog.cached_bundle("nano", spec, {"torch": "2.13.0"})
    assert place.parent == catalog.bundle_cache()
    others = [
        catalog.cached_bundle("nano", replace(spec, height=128), {"torch": "2.13.0"}),
        catalog.cached_bundle("nano", spec, {"torch": "2.13.1"}),
    ]
    assert len({place, *others}) == 3


def test_receipts_of_hashed_files_are_kept_outside_of_the_bundles() -> None:
    assert isinstance(catalog.receipts(), Path)
    assert catalog.bundle_cache() not in catalog.receipts().parents
