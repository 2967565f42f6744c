"""Parameters of the linear baselines, and the methods by name."""

from __future__ import annotations

from typing import Literal

from vertikal.algorithms.algorithm import JobSettings
from vertikal.algorithms.kernel_machine.settings import FdsklSettings, Schedule, Stochastic
from vertikal.errors import InputError
from vertikal.losses.pointwise import loss_named
from vertikal.parameters import Count, Positive

Method = Literal["afsgd-vp", "afsvrg-vp", "asysqn", "fd-svrg", "fdml"]


class LinearSettings(JobSettings, frozen=True, kw_only=True):
    """Parameters of all linear baselines; ``method`` says which one it is.

    ``afsgd-vp`` and ``afsvrg-vp`` (Gu et al. 2020): every party steps on its own columns without
    waiting, by plain or variance-reduced gradients. ``asysqn`` (Zhang et al. 2021): the same with a
    quasi-Newton direction of its own block. ``fd-svrg`` (Zhang et al. 2018): all step together on
    the same rows. ``fdml`` (Hu et al. 2019): without waiting, the step over √t. ``alpha`` is λ of
    (1/n) Σ L + λ/2 ‖w‖². Each epoch has ``epoch_steps`` steps of all parties together.
    """

    method: Method = "afsgd-vp"
    loss: str = "logistic"
    alpha: Positive = 1e-4
    step_size: Positive = 0.1
    epochs: Count = 10
    epoch_steps: Count = 1000
    batch_size: Count = 32
    max_staleness: Count = 256
    memory: Count = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        loss_named(self.loss, regression=self.regression)
        if set(self.label_parties) != set(self.parties):
            raise InputError.of(
                "label_parties",
                "all parties: a party without labels could not step on its columns",
                list(self.label_parties),
            )
        if self.outputs != 1:
            raise InputError.of("outputs", "1 (two classes, or numbers)", self.outputs)

    @property
    def schedule(self) -> Schedule:
        """The loop that the method runs in."""
        return "barrier" if self.method == "fd-svrg" else "async"

    @property
    def snapshots(self) -> bool:
        """True if each epoch begins with the gradient of all rows."""
        return self.method in ("afsvrg-vp", "fd-svrg")

    def steps(self) -> FdsklSettings:
        """Return the settings of the loops for one epoch: one block of columns at each party.

        Where all step together, an epoch is of whole rounds.
        """
        parties = len(self.parties)
        rounds = -(-self.epoch_steps // parties)
        return FdsklSettings(
            parties=self.parties,
            label_parties=self.label_parties,
            n_components=len(self.parties),
            loss=self.loss,
            alpha=self.alpha,
            regression=self.regression,
            seed=self.seed,
            solver=Stochastic(
                schedule=self.schedule,
                step_size=self.step_size,
                n_steps=rounds * parties if self.schedule == "barrier" else self.epoch_steps,
                batch_size=self.batch_size,
                block_size=1,
                max_staleness=self.max_staleness,
            ),
        )
