"""The model store: each version of each model's shard in a folder of its own, written whole.

    models/credit/3/manifest.json      who, what, when; the digest of every other file
    models/credit/3/shard.json         the shard, arrays left out
    models/credit/3/arrays.npz         its arrays, and invented rows with its answers
    models/credit/3/preparation.json   how the party's columns are prepared, if they are
    models/credit/3/profile.json       what these columns were like in training, to notice drift
    models/credit/3/training.json      what left the party in training, and where time went
    models/credit/3/evaluation.json    how good it is, at the label party, if it was evaluated
    models/credit/3/search.json        the tries of its search, at the label party, if it had one

A version is written beside and moved into place by one rename, so a crash leaves it whole or not
there at all; versions are never written to again. Folders and files are the owner's only. Nothing
is unpickled, and nothing is used whose digest does not fit.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import numpy as np

from vertikal.algorithms.algorithm import Algorithm, ModelShard
from vertikal.data.drift.profile import Profile
from vertikal.data.preparation import Preparation
from vertikal.errors import InputError
from vertikal.files import disk_error, private_folder, sync_folder
from vertikal.node.models import known_answers
from vertikal.node.models.evaluation import Evaluation
from vertikal.node.models.search_table import SearchTable
from vertikal.node.models.training_record import TrainingRecord
from vertikal.records import check_format, convert, from_json
from vertikal.version import __version__

FORMAT = 1
MANIFEST, SHARD, ARRAYS, PREPARATION, PROFILE, RECORD, EVALUATION, SEARCH = (
    "manifest.json",
    "shard.json",
    "arrays.npz",
    "preparation.json",
    "profile.json",
    "training.json",
    "evaluation.json",
    "search.json",
)
_OF_THE_RUN = (PROFILE, RECORD, EVALUATION, SEARCH)
"""Files about the run that trained the shard, and about its rows; no part of the model itself."""
_FILES = (SHARD, ARRAYS, PREPARATION, PROFILE, RECORD, EVALUATION, SEARCH)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KNOWN = ("golden rows", "golden answers")
_STALE = 3600.0

S = TypeVar("S", bound=ModelShard)


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Contents of a version's manifest."""

    format: int
    name: str
    version: int
    party: str
    kind: str
    created: str
    library: str
    facts: dict[str, Any]
    files: dict[str, str]

    @property
    def algorithm(self) -> str:
        """The algorithm that trained it, or the kind of its shard if no job says it."""
        return str(self.facts.get("algorithm", self.kind))

    @property
    def digest(self) -> str:
        """Digest of the shard as a whole: the same for the same shard, whenever it was stored.

        Training record, profile and evaluation are left out: no two runs take the same time, and
        the same shard may be measured on other rows.
        """
        files = sorted(item for item in self.files.items() if item[0] not in _OF_THE_RUN)
        listed = json.dumps([self.kind, files]).encode()
        return hashlib.sha256(listed).hexdigest()


class Details(NamedTuple):
    """All that is stored about a version beside its shard; maybe its manifest alone."""

    manifest: Manifest
    record: TrainingRecord | None = None
    evaluation: Evaluation | None = None
    search: SearchTable | None = None


@dataclass(frozen=True)
class Stored(Generic[S]):
    """A shard as it came out of the store."""

    manifest: Manifest
    shard: S
    preparation: Preparation | None = field(repr=False)
    record: TrainingRecord | None = field(repr=False)
    profile: Profile | None = field(repr=False, default=None)


class ModelStore:
    """The models of one party, in one folder.

    ``note_damaged`` is told of versions that cannot be read, where these are passed over.
    """

    def __init__(
        self, folder: Path, note_damaged: Callable[[str], None] = lambda reason: None
    ) -> None:
        self._folder = private_folder(folder)
        self._note_damaged = note_damaged

    def save(
        self,
        name: str,
        shard: S,
        algorithm: Algorithm[Any, S],
        *,
        preparation: Preparation | None = None,
        profile: Profile | None = None,
        record: TrainingRecord | None = None,
        evaluation: Evaluation | None = None,
        search: SearchTable | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> Manifest:
        """Store a shard of this algorithm as the next version of ``name``.

        ``facts`` is what `vertikal model show` tells about it: numbers and words, nothing secret.
        """
        folder = self._folder / _checked(name)
        files = _files_of(shard, algorithm)
        for title, kept in (
            (PREPARATION, preparation),
            (PROFILE, profile),
            (RECORD, record),
            (EVALUATION, evaluation),
            (SEARCH, search),
        ):
            if kept is not None:
                files[title] = msgspec.json.encode(kept)
        fresh = folder / f".new-{secrets.token_hex(8)}"
        try:
            _begin(folder, fresh)
            for title, content in files.items():
                _write(fresh / title, content)
            manifest = self._publish(folder, fresh, name, shard, files, facts or {})
        except OSError as error:
            raise disk_error(folder, error) from None
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        return manifest

    def _publish(
        self,
        folder: Path,
        fresh: Path,
        name: str,
        shard: Any,
        files: Mapping[str, bytes],
        facts: Mapping[str, Any],
    ) -> Manifest:
        """Move a written version to the first free number."""
        while True:
            manifest = Manifest(
                FORMAT,
                name,
                max(self._numbers(name), default=0) + 1,
                str(shard.party),
                type(shard).__name__,
                datetime.now(UTC).isoformat(timespec="seconds"),
                __version__,
                dict(facts),
                {title: hashlib.sha256(content).hexdigest() for title, content in files.items()},
            )
            (fresh / MANIFEST).unlink(missing_ok=True)
            _write(fresh / MANIFEST, _json(msgspec.to_builtins(manifest)))
            sync_folder(fresh)
            place = folder / str(manifest.version)
            try:
                fresh.rename(place)
            except OSError:
                # Somebody else has taken this number in the meantime.
                if not place.exists():
                    raise
                continue
            sync_folder(folder)
            return manifest

    def load(
        self, name: str, algorithm: Algorithm[Any, S], version: int | None = None
    ) -> Stored[S]:
        """Load this version, the newest by default, if its digests and known answers fit."""
        kind = algorithm.shard_type
        manifest = self.show(name, version)
        what = f"model {name!r}, version {manifest.version}"
        if manifest.kind != kind.__name__:
            raise InputError(f"{what} must be a {kind.__name__}, got a {manifest.kind}")
        files = self._read(manifest, what)
        try:
            with np.load(io.BytesIO(files[ARRAYS]), allow_pickle=False) as packed:
                arrays = {title: packed[title] for title in packed.files}
            known = [arrays[title] for title in _KNOWN]
            shard = convert(
                json.loads(files[SHARD]),
                kind,
                dec_hook=lambda _, place: arrays[place["array"]],
                str_keys=True,  # as JSON has them, also where they were numbers
            )
            preparation = (
                from_json(files[PREPARATION], Preparation) if PREPARATION in files else None
            )
            profile = from_json(files[PROFILE], Profile) if PROFILE in files else None
            record = from_json(files[RECORD], TrainingRecord) if RECORD in files else None
        except (msgspec.ValidationError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{what} is not a {kind.__name__} of this library: {error}") from None
        off = known_answers.difference(algorithm, shard, *known)
        if not off <= known_answers.TOLERANCE:
            raise InputError(
                f"{what}: its known answers are other ones than when it was stored (off by "
                f"{off:.1e}); use the installation that stored it, vertikal {manifest.library}"
            )
        return Stored(manifest, shard, preparation, record, profile)

    def details(self, name: str, version: int | None = None) -> Details:
        """Check the files of a version; return its manifest, record, evaluation and search.

        No algorithm is needed for that, and the shard is not made of them.
        """
        manifest = self.show(name, version)
        what = f"model {name!r}, version {manifest.version}"
        files = self._read(manifest, what)
        try:
            record = from_json(files[RECORD], TrainingRecord) if RECORD in files else None
            found = from_json(files[EVALUATION], Evaluation) if EVALUATION in files else None
            search = from_json(files[SEARCH], SearchTable) if SEARCH in files else None
        except msgspec.DecodeError as error:
            raise InputError(f"{what} is not one of this library: {error}") from None
        return Details(manifest, record, found, search)

    def profile(self, name: str, version: int | None = None) -> tuple[Manifest, Profile | None]:
        """Read what the columns were like in training; None of a model stored without it."""
        manifest = self.show(name, version)
        what = f"model {name!r}, version {manifest.version}"
        files = self._read(manifest, what)
        try:
            found = from_json(files[PROFILE], Profile) if PROFILE in files else None
        except msgspec.DecodeError as error:
            raise InputError(f"{what} is not one of this library: {error}") from None
        return manifest, found

    def versions(self, damaged: list[str] | None = None) -> list[Manifest]:
        """List every version of every model, by name and number.

        Versions that cannot be read are named in ``damaged``; without it, the first is an error.
        """
        numbered = [(name, number) for name in self._names() for number in self._numbers(name)]
        found = []
        for name, number in numbered:
            try:
                found.append(self.show(name, number))
            except InputError as error:
                if number not in self._numbers(name):
                    continue  # deleted meanwhile
                if damaged is None:
                    raise
                damaged.append(str(error))
        return found

    def of_job(self, digest: str) -> list[Manifest]:
        """List the shards of the job with this digest, oldest first.

        There is more than one while a run replaces the shard of an earlier run. A shard that cannot
        be read, of whatever job, is left out, so that it stops no other.
        """
        damaged: list[str] = []
        found = self.versions(damaged)
        for reason in damaged:
            self._note_damaged(reason)
        return [one for one in found if one.facts.get("job") == digest]

    def newest_of_job(self, digest: str) -> Manifest | None:
        """Find the last stored shard of the job with this digest, if there is one."""
        return next(reversed(self.of_job(digest)), None)

    def find(self, name: str, version: int | None = None) -> int:
        """Find the number of this version, the newest by default; InputError if it is not there."""
        numbers = self._numbers(name)
        if not numbers or (version is not None and version not in numbers):
            known = [one for one in self._names() if self._numbers(one)]
            has = f"versions {numbers}" if numbers else f"models {known}"
            asked = name if version is None else f"{name}, version {version}"
            raise InputError(f"model {asked!r} is not in this store; it has {has}")
        return version or numbers[-1]

    def show(self, name: str, version: int | None = None) -> Manifest:
        """Read the manifest of one version, the newest by default."""
        path = self._folder / name / str(self.find(name, version)) / MANIFEST
        what = f"model {name!r}, version {path.parent.name}"
        try:
            raw = path.read_bytes()
            check_format(raw, FORMAT, what)
            return from_json(raw, Manifest)
        except (OSError, msgspec.DecodeError) as error:
            raise InputError(f"{what}: {MANIFEST} cannot be read: {error}") from None

    def holds(self, manifest: Manifest) -> bool:
        """Tell if this version is still there, and not another one of its number.

        The number of a deleted version may be given again.
        """
        try:
            there = self.show(manifest.name, manifest.version)
        except InputError:
            return False
        return _json(msgspec.to_builtins(there)) == _json(msgspec.to_builtins(manifest))

    def check(self, name: str, version: int | None = None) -> Manifest:
        """Check the digest of every file of a version; returns its manifest."""
        manifest = self.show(name, version)
        self._read(manifest, f"model {name!r}, version {manifest.version}")
        return manifest

    def delete(self, name: str, version: int | None = None) -> list[int]:
        """Forget one version, or all of a model; returns the numbers that are gone."""
        self.find(name, version)
        gone = self._numbers(name) if version is None else [version]
        for number in gone:
            place = self._folder / name / f".gone-{secrets.token_hex(8)}"
            try:
                (self._folder / name / str(number)).rename(place)
            except FileNotFoundError:
                continue  # somebody else has deleted it
            shutil.rmtree(place)
        with suppress(OSError):
            # Only an empty folder: a run may be storing a version meanwhile.
            (self._folder / name).rmdir()
        return gone

    def _names(self) -> list[str]:
        return sorted(path.name for path in self._folder.iterdir() if _NAME.fullmatch(path.name))

    def _numbers(self, name: str) -> list[int]:
        folder = self._folder / _checked(name)
        try:
            return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _read(self, manifest: Manifest, what: str) -> dict[str, bytes]:
        folder = self._folder / manifest.name / str(manifest.version)
        files = {}
        for title, digest in manifest.files.items():
            if title not in _FILES:
                raise InputError(f"{what} lists a file that is no part of a model: {title!r}")
            try:
                files[title] = (folder / title).read_bytes()
            except OSError as error:
                raise InputError(f"{what}: {title} cannot be read: {error.strerror}") from None
            if hashlib.sha256(files[title]).hexdigest() != digest:
                raise InputError(
                    f"{what}: {title} is not what was stored (its digest differs); restore it from "
                    "a copy, or train again"
                )
        if not {SHARD, ARRAYS} <= set(files):
            raise InputError(f"{what} lacks {SHARD} or {ARRAYS} in its {MANIFEST}")
        return files


def _files_of(shard: S, algorithm: Algorithm[Any, S]) -> dict[str, bytes]:
    """Write the shard as files, with invented rows and its own answers to them."""
    shard = algorithm.to_store(shard)
    arrays: dict[str, Any] = {}

    def outside(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            raise NotImplementedError(f"{type(value).__name__} in a shard")
        arrays[f"array {len(arrays)}"] = value
        return {"array": f"array {len(arrays) - 1}"}

    content = _json(msgspec.to_builtins(shard, enc_hook=outside))
    rows = known_answers.invented_rows(len(shard.columns))
    arrays |= dict(zip(_KNOWN, (rows, algorithm.known_answers(shard, rows)), strict=True))
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    return {SHARD: content, ARRAYS: packed.getvalue()}


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InputError.of(
            "name of a model", "1 to 64 letters, digits, dots, dashes or underscores", name
        )
    return name


def _json(content: Any) -> bytes:
    # NaN is written as NaN: what a solver did not measure stays unmeasured.
    return json.dumps(content, indent=1, ensure_ascii=False).encode()


def _write(path: Path, content: bytes) -> None:
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(number, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _begin(folder: Path, fresh: Path) -> None:
    """Make the folder of a version, and that of its model, also while another is deleted there."""
    while not fresh.exists():
        _sweep(private_folder(folder))
        with suppress(FileNotFoundError):
            fresh.mkdir(mode=0o700)


def _sweep(folder: Path) -> None:
    """Remove what a crash left half written or half deleted, once nobody can be at it any more."""
    for path in folder.glob(".*-*"):
        with suppress(FileNotFoundError):  # whoever was at it has finished
            if time.time() - path.stat().st_mtime > _STALE:
                shutil.rmtree(path, ignore_errors=True)
