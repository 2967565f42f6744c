"""Parameters of FDSKL and AVFKAM: the table of names, types, bounds and defaults, and their rules.

Estimators and job files build these records alike. The settings are public: their digest is
compared in the first message between any two parties.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from vertikal.algorithms.algorithm import WITHOUT_DEALER, JobSettings
from vertikal.data.encoding import ENCODINGS, EncodingKind
from vertikal.data.scaling import Scale
from vertikal.errors import InputError
from vertikal.kernels.spectral import kernel_named
from vertikal.losses.pairwise import pair_loss_named
from vertikal.losses.pointwise import loss_named
from vertikal.parameters import Count, Parameters, Positive
from vertikal.secure.hidden.openings import GRADIENT_BITS_PER_ROW
from vertikal.secure.two_party.vector_writing import GRADIENT_SPREAD, MOST_BITS
from vertikal.secure.two_party.word_lengths import kept_columns

FEWEST_VALUE_BITS = 4
MOST_VALUE_BITS = 28
FEWEST_GRADIENT_BITS = 8
FEWEST_PREDICTION_BITS = 8
HIDDEN_PHASE_BITS = (8, 16)
SEALED_WORD_BITS = 64
WORD_BITS = 32
"""Bits of the words in which two parties share features without a dealer."""
MOST_ROWS_OF_SHORT_WORDS = 2_500_000
"""Rows whose residuals can be summed in words of 32 bits, whatever they are."""
NOISY_TOLERANCE = 7e-3
"""Tolerance of the solver where values or gradients are opened to few bits, or words are short."""
PRECISE_VALUE_BITS = 12
PRECISE_GRADIENT_BITS = 20
EXACT_PASSES = 50
"""Values of a row and output that the exact solver may open by default; it takes 20 to 40."""
FEWEST_IN_BATCH = 16
"""Rows of a batch where features are hidden: the gradient of one row would be its features."""
SPARE_GRADIENTS = 8
"""Gradients beyond what the solver takes, for answers that a crash may lose."""
SPARE_SHARE = 5
"""One part in so many of `GRADIENT_BITS_PER_ROW` is left for the same by the exact solver."""

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
MOST_BYTES = 2**63 - 1

MOST_HARMONIC = 16
"""Largest multiple of a phase: its rounding grows as often."""

Schedule = Literal["turns", "barrier", "async"]
Harmonic = Annotated[int, msgspec.Meta(ge=1, le=MOST_HARMONIC)]
Typical = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^((?=\S*[1-9])\d{1,6}(\.\d{1,6})? )?(mean|median)$",
        description="'mean', 'median', or a multiple such as '0.5 mean'",
    ),
]
"""A typical distance between rows, or a multiple of it."""


class Stochastic(Parameters, frozen=True, kw_only=True, tag_field="name", tag="dsg"):
    """Options of ``solver="dsg"``, the papers' doubly (for pairs triply) stochastic gradient.

    ``step_size`` is γ. ``n_steps`` counts the steps of all label parties together; None is as many
    as use each direction once. A step takes ``batch_size`` rows (AVFKAM: pairs of rows) and
    ``block_size`` directions; 1 and 1 are the papers' rule. ``precondition`` divides a block's
    update by its covariance.

    With several label parties ``schedule`` lets them step in turn ("turns"), all at once and then
    wait for the last ("barrier"), or without waiting for one another ("async"); "auto" is "turns"
    for FDSKL and "async" for AVFKAM. With "async" ``max_staleness`` is τ, how many updates of the
    others may lie between a party's reading of f and its next one, and ``allow_missing`` lets the
    others finish without a label party that vanishes.
    """

    step_size: Positive | Literal["auto"] = "auto"
    n_steps: Count | None = None
    batch_size: Count = 64
    block_size: Count = 64
    precondition: bool = False
    schedule: Literal["auto", "turns", "barrier", "async"] = "auto"
    max_staleness: Count = 256
    allow_missing: bool = False


class Fourier(Parameters, frozen=True, kw_only=True, tag_field="name", tag="fourier"):
    """Options of ``feature_map="fourier"``, random Fourier features.

    ``bits`` are those of a phase. ``directions="shared"`` is the papers' way, with which a label
    party can undo the others' columns; it is here to reproduce them. ``functions="pair"`` takes
    cosine and sine of every phase, twice the features for the same messages; "cosine" is the
    papers' way. ``harmonics`` are the whole numbers h at which features of hθ are taken: those of a
    bandwidth h times narrower. Several make the mean of their kernels.
    """

    bits: Literal[8, 16, 32] = 8
    directions: Literal["private", "shared"] = "private"
    functions: Literal["cosine", "pair"] = "cosine"
    harmonics: tuple[Harmonic, ...] = (1,)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.harmonics or len(set(self.harmonics)) < len(self.harmonics):
            raise InputError.of("harmonics", "one or more different numbers", self.harmonics)

    @property
    def per_phase(self) -> int:
        """Features that each phase gives."""
        return len(self.harmonics) * (2 if self.functions == "pair" else 1)


class Landmarks(Parameters, frozen=True, kw_only=True, tag_field="name", tag="landmarks"):
    """Options of ``feature_map="landmarks"``, Nyström's method on training rows as landmarks.

    ``bits`` are those of a distance.
    """

    bits: Literal[16, 32] = 16


class Values(Parameters, frozen=True, kw_only=True, tag_field="name", tag="values"):
    """Options of ``disclosure="values"``: nobody sees a feature, the label party sees f.

    ``helper`` and ``dealer`` are two parties without labels, by default the first and the last of
    them; an estimator's dealer may be nobody's party, and then takes part without columns. Between
    exactly two parties, one with labels, None is no dealer at all: the label party's encryption
    takes its place. ``bits`` are those of the words in which a dealer has features shared: 64 take
    twice the memory and time, for values and gradients of many bits, or more than 2.5 million rows.
    ``max_passes`` bounds how often f of any training row is opened; None is a quarter of the
    directions, and by the exact solver 50 times per output at most. ``value_bits`` is how
    precisely, in bits of full scale: the rest is the helper's noise, which cancels over the rows.
    ``gradient_bits`` is how precisely gradients are opened: with 12 the solver takes as many passes
    as with exact ones, with 10 it takes more. ``prediction_bits`` is how precisely a prediction is
    opened.
    """

    helper: str | None = None
    dealer: str | None = None
    bits: Literal[32, 64] = 32
    max_passes: Count | None = None
    value_bits: Annotated[int, msgspec.Meta(ge=FEWEST_VALUE_BITS, le=MOST_VALUE_BITS)] = 6
    gradient_bits: Annotated[int, msgspec.Meta(ge=FEWEST_GRADIENT_BITS, le=MOST_VALUE_BITS)] = 12
    prediction_bits: Annotated[int, msgspec.Meta(ge=FEWEST_PREDICTION_BITS, le=MOST_VALUE_BITS)] = (
        12
    )


class Sealed(Parameters, frozen=True, kw_only=True, tag_field="name", tag="sealed"):
    """Options of ``disclosure="sealed"``, which opens nothing but predictions; as in `Values`.

    Full scale of a prediction is what f can come to at most, some 4/√λ.
    """

    helper: str | None = None
    dealer: str | None = None
    prediction_bits: Annotated[int, msgspec.Meta(ge=FEWEST_PREDICTION_BITS, le=MOST_VALUE_BITS)] = (
        20
    )

    bits: ClassVar[int] = SEALED_WORD_BITS


class FdsklSettings(JobSettings, frozen=True, kw_only=True, tag_field="program", tag="fdskl"):
    """FDSKL's parameters; `FDSKLClassifier` describes each.

    ``alpha`` is λ of (1/n) Σ L + λ/2 ‖f‖²; "auto" is 0.1/n. With ``label_parts`` each label party
    may label some of the rows only.
    """

    kernel: str = "gaussian"
    bandwidth: Positive | Typical = "mean"
    n_components: Count = 2048
    alpha: Positive | Literal["auto"] = "auto"
    loss: str = "logistic"
    solver: Literal["exact"] | Stochastic = "exact"
    feature_map: Fourier | Landmarks = Fourier()
    disclosure: Literal["open"] | Values | Sealed = "open"
    scale: Scale | EncodingKind | None = None
    cache_size: Count | None = None
    tol: Positive = 1e-3
    max_iter: Count = 200
    label_parts: bool = False

    own_schedule: ClassVar[Schedule] = "turns"
    """The schedule that "auto" means."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cache_size", parse_bytes(self.cache_size))
        super().__post_init__()
        kernel_named(self.kernel)
        self._check_loss()
        if isinstance(self.feature_map, Landmarks) and self.kernel != "gaussian":
            raise InputError.of("kernel", "'gaussian' for landmarks", self.kernel)
        if kernel_named(self.kernel).odd:
            self._check_linear()
        if self.n_components < len(self.label_parties):
            raise InputError.of(
                "n_components",
                f"at least the number of label parties, {len(self.label_parties)}",
                self.n_components,
            )
        if (
            isinstance(self.solver, Stochastic)
            and self.solver.step_size != "auto"
            and self.alpha != "auto"
            and self.solver.step_size * self.alpha >= 1
        ):
            raise InputError.of(
                "step_size", f"below 1 / alpha = {1 / self.alpha:g}", self.solver.step_size
            )
        if self.label_parts and len(self.label_parties) < 2:
            raise InputError.of(
                "label_parts", "False with one label party, which labels all rows", True
            )
        if self.hides:
            self._check_hidden()
        if self.asynchronous:
            self._check_asynchronous()

    def _check_loss(self) -> None:
        loss_named(self.loss, regression=self.regression)

    def _check_linear(self) -> None:
        """Refuse what would bend a straight line: columns off zero, cosines beside the sines."""
        if self.scale != "standard":
            raise InputError.of("scale", f"'standard' with kernel={self.kernel!r}", self.scale)
        if self.feature_map != Fourier(bits=self.feature_map.bits):
            raise InputError.of(
                "feature_map",
                f"'fourier' with its defaults, but for bits, with kernel={self.kernel!r}",
                self.feature_map,
            )

    @property
    def typical_distance(self) -> str | None:
        """The distance that σ comes from, "mean" or "median"; None if σ is given."""
        return self.bandwidth.rpartition(" ")[2] if isinstance(self.bandwidth, str) else None

    @property
    def bandwidth_factor(self) -> float:
        """The factor of "0.5 mean", or 1."""
        return float(str(self.bandwidth).rpartition(" ")[0] or 1)

    @property
    def stochastic(self) -> Stochastic:
        """Options of the stochastic solver, where that is the solver."""
        assert isinstance(self.solver, Stochastic)
        return self.solver

    @property
    def hidden(self) -> Values | Sealed:
        """Options of the level, where features are hidden."""
        assert isinstance(self.disclosure, Values | Sealed)
        return self.disclosure

    @property
    def values(self) -> Values:
        """Options of ``disclosure="values"``, where that is the level."""
        assert isinstance(self.disclosure, Values)
        return self.disclosure

    @property
    def encoding(self) -> EncodingKind | None:
        """The encoding that ``scale`` names, if it names one and no linear scaling."""
        return next((kind for kind in ENCODINGS if kind == self.scale), None)

    @property
    def shares_directions(self) -> bool:
        """True if all parties draw directions from a public seed, as in the papers."""
        return isinstance(self.feature_map, Fourier) and self.feature_map.directions == "shared"

    @property
    def level(self) -> Literal["open", "values", "values without a dealer", "sealed"]:
        """The level of disclosure, by name."""
        if self.dealerless:
            return WITHOUT_DEALER
        if isinstance(self.disclosure, Values | Sealed):
            return "values" if isinstance(self.disclosure, Values) else "sealed"
        return "open"

    @property
    def dealerless(self) -> bool:
        """True if two parties hide features from each other without a dealer."""
        return (
            isinstance(self.disclosure, Values)
            and self.disclosure.dealer is None
            and (len(self.parties), len(self.label_parties)) == (2, 1)
        )

    @property
    def hides(self) -> bool:
        """True if nobody sees a feature."""
        return self.level != "open"

    @property
    def seals(self) -> bool:
        """True if nothing is opened but predictions."""
        return self.level == "sealed"

    @property
    def schedule(self) -> Schedule:
        """The schedule of the stochastic solver."""
        given = self.stochastic.schedule
        return self.own_schedule if given == "auto" else given

    @property
    def asynchronous(self) -> bool:
        """True if label parties update without waiting for one another."""
        stochastic = isinstance(self.solver, Stochastic)
        return stochastic and len(self.label_parties) > 1 and self.schedule == "async"

    def _check_asynchronous(self) -> None:
        if self.hides:
            raise InputError.of(
                "schedule",
                f"'turns' or 'barrier' with disclosure={self.level!r} (its parties work in step)",
                self.schedule,
            )
        if self.label_parts and self.stochastic.allow_missing:
            raise InputError.of(
                "allow_missing", "False with label_parts, where each has labels of its own", True
            )
        others = len(self.label_parties) - 1
        if self.stochastic.max_staleness < others:
            raise InputError.of(
                "max_staleness",
                f"at least {others}, one update of each other label party",
                self.stochastic.max_staleness,
            )

    def _check_hidden(self) -> None:
        level = f"with disclosure={self.level!r}"
        if isinstance(self.feature_map, Landmarks):
            raise InputError.of("feature_map", f"'fourier' {level}", "landmarks")
        if self.typical_distance == "median":
            raise InputError.of(
                "bandwidth",
                f"a number or 'mean' {level}: 'median' shows the label party distances of rows, "
                "from which columns follow",
                self.bandwidth,
            )
        if self.feature_map.bits not in HIDDEN_PHASE_BITS:
            raise InputError.of("bits of feature_map", f"8 or 16 {level}", self.feature_map.bits)
        if self.feature_map.harmonics != (1,):
            raise InputError.of(
                "harmonics",
                f"(1,) {level}: each other one would need a correlation of its own, as much as "
                "new directions",
                self.feature_map.harmonics,
            )
        if self.seals:
            self._check_sealed(level)
        elif self.dealerless:
            self._check_dealerless(level)
        elif isinstance(self.solver, Stochastic):
            self._check_hidden_batches(self.solver, level)
        self.helper()

    def _check_dealerless(self, level: str) -> None:
        if isinstance(self.solver, Stochastic):
            raise InputError.of(
                "solver",
                f"'exact' {level}: which rows a batch has would be encrypted, and the helper could "
                "not count what it opens",
                "dsg",
            )
        options = self.values
        most = {
            "value_bits": MOST_BITS,
            "gradient_bits": MOST_BITS - GRADIENT_SPREAD,
            "prediction_bits": MOST_BITS,
        }
        for name, bits in most.items():
            if getattr(options, name) > bits:
                raise InputError.of(name, f"at most {bits} {level}", getattr(options, name))

    def _check_hidden_batches(self, solver: Stochastic, level: str) -> None:
        # Twice what the helper asks for: a batch may draw rows twice.
        per_use = 2 * self._rows_per_gradient()
        needed = max(FEWEST_IN_BATCH, per_use * self._uses(solver) * self.outputs)
        if solver.batch_size < needed:
            raise InputError.of(
                "batch_size",
                f"at least {needed} {level}, {per_use} for each step and output on the "
                "same directions: gradients of few rows show their features",
                solver.batch_size,
            )
        if solver.precondition:
            raise InputError.of(
                "precondition", f"False {level}: a block's covariance is not opened", True
            )

    def _check_sealed(self, level: str) -> None:
        if self.loss != "square":
            raise InputError.of("loss", f"'square' {level}", self.loss)
        if self.solver != "exact":
            raise InputError.of("solver", f"'exact' {level}", "dsg")
        if len(self.label_parties) > 1:
            raise InputError.of(
                "label_parties",
                f"one {level}: coefficients are shared by it and the helper",
                list(self.label_parties),
            )

    def helper(self) -> str:
        """The party that answers products: as named, or the first feature party."""
        if not self.dealerless:
            return self.assistants()[0]
        (other,) = (name for name in self.parties if name not in self.label_parties)
        if self.hidden.helper not in (None, other):
            raise InputError.of("helper", f"{other!r}, the other party", self.hidden.helper)
        return other

    @property
    def opened_gradient_bits(self) -> int:
        """Bits of full scale that a number of a gradient is opened to.

        Without a dealer gradients are opened by coefficients, and more precisely than they come to
        over directions.
        """
        return self.values.gradient_bits + (GRADIENT_SPREAD if self.dealerless else 0)

    def assistants(self) -> tuple[str, str]:
        """Helper and dealer: those named, or the first and the last feature party."""
        helper, dealer = self.hidden.helper, self.hidden.dealer
        free = [name for name in self.parties if name not in self.label_parties]
        for role, name in (("helper", helper), ("dealer", dealer)):
            if name is not None and name not in free:
                raise InputError.of(role, f"a party without labels, one of {free}", name)
        left = [name for name in free if name not in (helper, dealer)]
        if helper is not None and helper == dealer:
            raise InputError.of("dealer", f"another party than the helper {helper!r}", "it")
        missing = [helper, dealer].count(None)
        if len(left) < missing:
            raise InputError(
                f"disclosure={self.level!r} needs two parties without labels, a helper and a "
                f"dealer, got {free}; name a dealer that has no columns, such as "
                f"{type(self.hidden).__name__}(dealer='notary'), or use disclosure='open'"
            )
        return helper or left.pop(0), dealer or left.pop()

    def passes(self, label_party: str) -> int:
        """Most openings to ``label_party`` of the prediction of any training row.

        As many as it owns directions would tell it the phases, hence a quarter by default, and for
        the exact solver no more than it needs; that each phase may give two features does not
        change it.
        """
        given = self.disclosure.max_passes if isinstance(self.disclosure, Values) else None
        quarter = max(1, self.widths()[label_party] // 4)
        needed = quarter if isinstance(self.solver, Stochastic) else EXACT_PASSES * self.outputs
        return given or min(quarter, needed)

    def _uses(self, solver: Stochastic) -> int:
        """Steps of the stochastic solver that are about the same directions."""
        blocks = sum(-(-width // solver.block_size) for width in self.widths().values())
        blocks *= self.per_phase
        return 1 if solver.n_steps is None else -(-solver.n_steps // blocks)

    def iterations(self, rows: int) -> int:
        """Most iterations of the exact solver: ``max_iter``, and as many as the helper opens.

        The helper opens the passes that were agreed, and gradients of two bits for each row, of
        which a fifth is left for answers that a crash may lose. One gradient comes before the first
        iteration.
        """
        if not isinstance(self.disclosure, Values):
            return self.max_iter
        bits = rows * GRADIENT_BITS_PER_ROW * (SPARE_SHARE - 1) // SPARE_SHARE
        gradients = bits // (self.opened_gradient_bits * self.outputs * self.per_phase)
        return max(1, min(self._agreed_iterations(), gradients - 1))

    def gradients(self, rows: int | None) -> int:
        """Count the gradients about any one direction that a label party may ask the helper for.

        Without ``rows`` that is of however many. A direction that gives cosine and sine has two in
        each pass.
        """
        if isinstance(self.solver, Stochastic):
            taken = self._uses(self.solver)
        else:
            taken = 1 + (self._agreed_iterations() if rows is None else self.iterations(rows))
        return (taken + SPARE_GRADIENTS) * self.outputs * self.per_phase

    def _agreed_iterations(self) -> int:
        """Iterations of the exact solver within ``max_iter`` and the passes that were agreed."""
        fewest = min(self.passes(name) for name in self.label_parties)
        return max(1, min(self.max_iter, fewest // self.outputs))

    def _rows_per_gradient(self) -> int:
        """Rows over which the bits of one gradient are few enough for each of them."""
        return -(-self.opened_gradient_bits * self.per_phase // GRADIENT_BITS_PER_ROW)

    def stopping(self) -> float:
        """The exact solver's tolerance: ``tol``, or the precision of hidden features if coarser.

        With noisy values or gradients the last digits only cost passes, each of which opens more.
        """
        if isinstance(self.disclosure, Values) and (
            self.disclosure.bits == 32
            or self.disclosure.value_bits < PRECISE_VALUE_BITS
            or self.disclosure.gradient_bits < PRECISE_GRADIENT_BITS
        ):
            return max(self.tol, NOISY_TOLERANCE)
        return self.tol

    def widths(self) -> dict[str, int]:
        """Directions by label party: D cut as evenly as possible."""
        share, rest = divmod(self.n_components, len(self.label_parties))
        return {name: share + (i < rest) for i, name in enumerate(self.label_parties)}

    @property
    def pairs(self) -> bool:
        """True if features are cosine and sine of every phase."""
        return isinstance(self.feature_map, Fourier) and self.feature_map.functions == "pair"

    @property
    def per_phase(self) -> int:
        """Features that each direction (or landmark) gives."""
        return self.feature_map.per_phase if isinstance(self.feature_map, Fourier) else 1

    def features(self) -> dict[str, int]:
        """Features by label party: those of its directions."""
        return {name: width * self.per_phase for name, width in self.widths().items()}

    def cached_rows(self, rows: int) -> int:
        """Rows whose phases (hidden: masked halves) a label party keeps within ``cache_size``."""
        if self.cache_size is None:
            return rows
        # Landmark features are kept as single-precision kernel values, phases as they came.
        bits: int = 32 if isinstance(self.feature_map, Landmarks) else self.feature_map.bits
        if self.hides:
            bits = self.kept_bits()
        return min(rows, self.cache_size // (max(self.widths().values()) * (bits // 8)))

    def kept_bits(self) -> int:
        """Bits that a role keeps per row and direction where features are hidden.

        Without a dealer it is the label party's part, of whole polynomials.
        """
        if self.dealerless:
            width = max(self.widths().values())
            kept = kept_columns(width, pairs=self.pairs) * WORD_BITS // 8
            return 8 * -(-kept // width)
        return self.per_phase * (2 if self.seals else 1) * self.hidden.bits

    def check_rows(self, rows: int) -> None:
        """Refuse too few rows to hide, and where features are hidden, too many for the cache."""
        if isinstance(self.disclosure, Values):
            stochastic = isinstance(self.solver, Stochastic)
            # Two gradients are one iteration, within the share of bits that is not left spare.
            each = -(-2 * self._rows_per_gradient() * SPARE_SHARE // (SPARE_SHARE - 1))
            fewest = self.stochastic.batch_size if stochastic else each * self.outputs
            if rows < fewest:
                raise InputError.of(
                    "rows",
                    f"at least {fewest} with disclosure={self.level!r} (as many as batch_size, or "
                    f"{each} for each output): a gradient of few rows shows their features",
                    rows,
                )
            short = self.disclosure.bits == 32 and not (stochastic or self.dealerless)
            if short and rows > MOST_ROWS_OF_SHORT_WORDS:
                raise InputError.of(
                    "bits",
                    f"64 with disclosure={self.level!r} and more than "
                    f"{MOST_ROWS_OF_SHORT_WORDS} rows, whose sums do not fit into 32",
                    self.disclosure.bits,
                )
        if self.hides and self.cached_rows(rows) < rows:
            needed = rows * max(self.widths().values()) * self.kept_bits() // 8
            raise InputError.of(
                "cache_size",
                f"None or at least {needed} bytes with disclosure={self.level!r}, where "
                "nothing is asked for again",
                self.cache_size,
            )


class AvfkamSettings(FdsklSettings, frozen=True, kw_only=True, tag="avfkam"):
    """AVFKAM's parameters: those of FDSKL for pairs of rows, and the rows held out of training.

    ``alpha="auto"`` is half the loss's largest curvature over the rows of the smaller class.
    """

    loss: str = "squared_hinge"
    validation: Annotated[float, msgspec.Meta(ge=0, le=0.5)] = 0.1
    threshold: Annotated[float, msgspec.Meta(gt=0, lt=1)] | Literal["balanced", "f1"] = 0.5

    own_schedule: ClassVar[Schedule] = "async"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.solver, Stochastic) and self.hides:
            raise InputError.of(
                "solver",
                f"'exact' with disclosure={self.level!r}: batches of pairs, which helper and "
                "dealer are told, show the labels",
                "dsg",
            )
        if self.outputs != 1 or self.regression:
            raise InputError.of("outputs", "1 (two classes) for a pairwise loss", self.outputs)

    def check_rows(self, rows: int) -> None:
        super().check_rows(rows)
        # Who is asked for batches sees which rows come from the smaller class.
        if isinstance(self.solver, Stochastic) and self.cached_rows(rows) < rows:
            raise InputError.of(
                "cache_size",
                f"enough for all {rows} rows with solver='dsg': batches of pairs, asked for again, "
                "show the labels",
                self.cache_size,
            )

    def _check_loss(self) -> None:
        pair_loss_named(self.loss)


def parse_bytes(text: Any, name: str = "cache_size") -> int | None:
    """A number of bytes, from a whole number or a text such as ``"500MB"`` or ``"2 GB"``."""
    if text is None:
        return None
    size: float = 0
    if isinstance(text, int) and not isinstance(text, bool):
        size = text
    elif isinstance(text, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)b?\s*", text.lower())
        size = float(match[1]) * _UNITS[match[2]] if match else 0
    if not 1 <= size <= MOST_BYTES:
        allowed = "a positive number of bytes below 2^63, a text like '2GB', or None"
        raise InputError.of(name, allowed, text)
    return int(size)
