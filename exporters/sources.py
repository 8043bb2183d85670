"""Where a model's files are: beside the registry, in a folder, or on the Hugging Face hub."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from huggingface_hub import constants, snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OfflineModeIsEnabled

from exporters import architectures, stand_in
from profiler.bundle_files import sha256_of
from profiler.errors import InputError, MissingSource, first_line
from profiler.records.bundle import Source
from profiler.records.spec import ModelSpec

REGISTRY = Path(__file__).parent / "models"
# The names that diffusers and transformers load without a variant; a repository's fp16 or EMA twins stay away.
_WEIGHTS = re.compile(r"(diffusion_pytorch_model|model)(-\d{5}-of-\d{5})?\.safetensors")
_WEIGHT_PATTERNS = ("diffusion_pytorch_model.safetensors", "diffusion_pytorch_model-?????-of-?????.safetensors",
                    "model.safetensors", "model-?????-of-?????.safetensors")  # fmt: skip
_PICKLES = (".bin", ".ckpt", ".pt", ".pth", ".pkl")
_SETTINGS = ("model_index.json", "*/*.json", "*/*.txt")
_NOT_REACHED = (HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled, OSError)

Fetch = Callable[..., str]


class Subfolders(NamedTuple):
    """The subfolders of a pipeline that a family reads: those with weights, and those without."""

    networks: tuple[str, ...]
    settings: tuple[str, ...]


class Located(NamedTuple):
    """A pipeline folder on this machine, and what the manifest says about it."""

    folder: Path
    source: Source


def locate(spec: ModelSpec, subfolders: Subfolders, *, fetch: Fetch = snapshot_download) -> Located:
    """Find a model's folder, downloading what is missing, and hash its weights.

    Raises MissingSource where files are not here and cannot be fetched, or where weights exist only as pickles.
    """
    folder, repo, revision = _find(spec, subfolders, fetch)
    if not folder.is_dir():
        raise MissingSource(f"{spec.name}: {folder} is not there")
    return Located(folder, Source(repo=repo, revision=revision, weights_sha256=weights_sha256(folder, subfolders)))


def source_without_weights(spec: ModelSpec, weights: str) -> Source:
    """Return what a manifest says of a model whose weights are `random:SEED`: its settings are the registry's."""
    return Source(repo=_repo_of(spec), revision=spec.revision, weights_sha256=weights)


def own_settings(spec: ModelSpec) -> Path | None:
    """Return the folder of a model that is on this machine whatever was downloaded; None for one on the hub."""
    if spec.embedded:
        return REGISTRY / spec.repo
    return Path(spec.repo) if Path(spec.repo).is_absolute() else None


def locate_without_weights(spec: ModelSpec, templates: Sequence[str], weights: str, folder: Path) -> Located:
    """Find a model's settings, or write what the registry knows of them into a folder.

    Raises InputError for a model on the hub that the registry does not describe.
    """
    source, own = source_without_weights(spec, weights), own_settings(spec)
    if own is not None:
        return Located(own, source)
    architectures.write_configs(spec, folder)
    stand_in.write_tokenizers(spec, templates, folder)
    return Located(folder, source)


def weights_sha256(folder: Path, subfolders: Subfolders) -> str:
    """Hash the weight files' names and contents, in the order of their paths. Raises MissingSource without any."""
    return _sha256_of_all(folder, [path for name in subfolders.networks for path in _weights_in(folder / name)])


def settings_sha256(folder: Path) -> str:
    """Hash a pipeline's index, configurations, scheduler and tokenizers, in the order of their paths."""
    return _sha256_of_all(folder, [path for pattern in _SETTINGS for path in folder.glob(pattern)])


def _sha256_of_all(folder: Path, paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{sha256_of(path)}\n".encode())
    return digest.hexdigest()


def fetch_index(repo: str, *, fetch: Fetch = snapshot_download) -> Path:
    """Download what tells a hub repository's pipeline class. Raises MissingSource or InputError."""
    return fetch_snapshot(repo, None, Subfolders(networks=(), settings=()), fetch=fetch)


def fetch_snapshot(
    repo: str, revision: str | None, subfolders: Subfolders, *, fetch: Fetch = snapshot_download
) -> Path:
    """Download a hub repository's needed files, or find them in the cache. Raises MissingSource or InputError."""
    try:
        return Path(fetch(repo, revision=revision, allow_patterns=_patterns(subfolders)))
    except HFValidationError as error:
        raise InputError(f"{repo!r} is neither a folder here nor a hub id: {error}") from error
    except _NOT_REACHED as error:
        raise _not_here(repo, revision, error) from error


def _find(spec: ModelSpec, subfolders: Subfolders, fetch: Fetch) -> tuple[Path, str, str | None]:
    own = own_settings(spec)
    if own is not None:
        return own, _repo_of(spec), spec.revision
    folder = fetch_snapshot(spec.repo, spec.revision, subfolders, fetch=fetch)
    return folder, spec.repo, folder.name  # a snapshot's folder is named by its commit


def _repo_of(spec: ModelSpec) -> str:
    """Say where a model is from, without a path of this machine."""
    if spec.embedded:
        return f"embedded:{spec.repo}"
    return f"local:{Path(spec.repo).name}" if Path(spec.repo).is_absolute() else spec.repo


def _patterns(subfolders: Subfolders) -> list[str]:
    texts = [
        f"{name}/*.{suffix}" for name in (*subfolders.networks, *subfolders.settings) for suffix in ("json", "txt")
    ]
    weights = [f"{name}/{pattern}" for name in subfolders.networks for pattern in _WEIGHT_PATTERNS]
    return ["model_index.json", *texts, *weights]


def _not_here(repo: str, revision: str | None, error: Exception) -> MissingSource:
    wanted = f"{repo} at revision {revision or 'main'}"
    command = f"hf download {repo}" + (f" --revision {revision}" if revision else "")
    return MissingSource(
        f"{wanted} is not in the cache {constants.HF_HUB_CACHE} and cannot be fetched: {first_line(error)}",
        hint=f"On a machine with a network run: {command}  and set HF_HOME (now {constants.HF_HOME}) to its cache.",
    )


def _weights_in(folder: Path) -> list[Path]:
    files = [path for path in folder.glob("*") if path.is_file()]
    weights = [path for path in files if _WEIGHTS.fullmatch(path.name)]
    if not weights:
        pickles = sorted(path.name for path in files if path.suffix in _PICKLES)
        found = f"only pickled weights ({', '.join(pickles)}), which are never opened" if pickles else "no weights"
        raise MissingSource(
            f"{folder} holds {found}; safetensors are needed",
            hint="If there are only pickles: load the pipeline on a machine you trust and call its save_pretrained.",
        )
    return weights
