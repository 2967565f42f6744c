"""What a party keeps of a job until it is done, so that a run begins where the last one ended.

One folder per job: the party's secret of this job, the common order of rows, finished blocks, the
shard before it is published. Files are whole or not there; a block whose digest does not fit counts
as not there. Nothing of it leaves the party.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vertikal.node.files import private_folder, write_whole

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.generic]

SECRET = "secret"
_DIGEST = 32


class Checkpoints:
    """The folder of one job."""

    def __init__(self, folder: Path) -> None:
        self.folder = private_folder(folder)

    def secret(self, draw: Callable[[], bytes]) -> bytes:
        """The party's 32 bytes for this job: drawn once, the same in every run of it."""
        known = self.read(SECRET)
        if known is None:
            known = draw()
            self.write(SECRET, known)
        return known

    def write(self, name: str, content: bytes, *, durable: bool = True) -> None:
        digest = hashlib.sha256(content).digest()
        write_whole(self.folder / name, digest + content, durable=durable)

    def read(self, name: str) -> bytes | None:
        """What was written under this name; None if it was not, or is damaged."""
        try:
            raw = (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None
        digest, content = raw[:_DIGEST], raw[_DIGEST:]
        return content if hashlib.sha256(content).digest() == digest else None

    # What programs ask of it (`party.Keeper`).

    def finished(self, name: str) -> int:
        """How many blocks of this name are at hand, from the first on."""
        number = 0
        while self.read(f"{name}-{number:06}") is not None:
            number += 1
        return number

    def keep(self, name: str, number: int, block: Any) -> None:
        """Keep a finished block; a crash of the machine, not of the process, may lose it."""
        self.write(f"{name}-{number:06}", block.tobytes(), durable=False)

    def restore(self, name: str, number: int, into: Any) -> None:
        """Fill an array with a block that was kept."""
        import numpy as np

        content = self.read(f"{name}-{number:06}") or b""
        into[...] = np.frombuffer(content, into.dtype).reshape(into.shape)

    def clear(self) -> None:
        """Forget the job."""
        shutil.rmtree(self.folder, ignore_errors=True)
