"""One boosted tree under additive encryption beside a kernel machine of two parties, on a9a.

    python -m benchmarks.privacy.one_tree

Two parties each. SecureBoost's tree (depth 3, 32 bins, Paillier by `phe`, a key of 2048 bits) is
trained on ``boost`` rows, and its cost, which is linear in the rows but for the histograms that are
decrypted, told by the row. The kernel machine hides its features without a dealer (D = 1,024,
logistic loss), on ``rows`` rows. Processor seconds of both parties together, and all bytes sent.
The speed of encryption alone: numbers a second under Paillier, and under the lattice encryption;
what is done with its key, by the polynomial, beside SEAL by TenSEAL (`pip install tenseal`).
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import datasets
from benchmarks.harness import Benchmark, arguments
from vertikal import FDSKLClassifier
from vertikal.estimators.baselines import SecureBoostClassifier
from vertikal.secure.additive_encryption import AdditiveKey
from vertikal.secure.two_party.lattice.parameters import FEATURES, PRODUCTS, LatticeParameters
from vertikal.secure.two_party.lattice.polynomials import PolynomialRing
from vertikal.secure.two_party.lattice.secret_key import SecretKey

KEY_BITS = 2048
MAKE = "make a key and its public key"
ENCRYPT = "encrypt a polynomial"
DECRYPT = "decrypt a polynomial"
NUMBERS = 64
"""Numbers, or polynomials of 1,024 numbers, that are encrypted to see how fast it is."""


def main() -> None:
    options = arguments(__doc__ or "", boost=200, rows=4000)
    run = Benchmark("privacy-one-tree", vars(options) | {"out": "", "key bits": KEY_BITS})
    split = datasets.a9a()
    boosted = SecureBoostClassifier(2, n_trees=1, key_bits=KEY_BITS, random_state=0, timeout=600)
    hidden = FDSKLClassifier(2, n_components=1024, disclosure="values", random_state=0)
    # Compiled loops are loaded before anything is measured.
    FDSKLClassifier(2, n_components=64, disclosure="values").fit(split.X[:300], split.y[:300])
    for name, model, rows in (
        ("one tree under Paillier", boosted, options.boost),
        ("kernel machine without a dealer", hidden, options.rows),
    ):
        began = time.process_time()
        model.fit(split.X[:rows], split.y[:rows])
        spent = time.process_time() - began
        run.figure(f"{name}: processor seconds", spent)
        run.figure(f"{name}: milliseconds a row", 1000 * spent / rows)
        run.figure(f"{name}: bytes a row", sent_by(model) / rows)
    key, numbers = AdditiveKey(KEY_BITS), list(range(NUMBERS))
    paillier = per_second(lambda: key.cipher.encrypt(numbers), NUMBERS)
    run.figure("Paillier: numbers encrypted a second", paillier)
    for parameters in (FEATURES, PRODUCTS):
        degree = parameters.degree
        for what, work in lattice_operations(parameters).items():
            work()
            rate = per_second(work, NUMBERS)
            run.figure(f"lattice, N = {degree}: microseconds to {what}", 1e6 / rate)
            if parameters is FEATURES and what == ENCRYPT:
                run.figure("lattice: numbers encrypted a second", rate * degree / 2)
    if importlib.util.find_spec("tenseal") is None:
        print("SEAL was not measured: pip install tenseal")
    else:
        for what, work in seal_operations(PRODUCTS).items():
            work()
            spent = 1e6 / per_second(lambda work=work: [work() for _ in range(NUMBERS)], NUMBERS)
            run.figure(f"SEAL, N = {PRODUCTS.degree}: microseconds to {what}", spent)
    run.write(options.out)


def sent_by(model: Any) -> int:
    return sum(entry.bytes for entry in model.ledger_.entries())


def per_second(work: Any, numbers: int) -> float:
    began = time.process_time()
    work()
    return numbers / (time.process_time() - began)


def lattice_operations(parameters: LatticeParameters) -> dict[str, Callable[[], Any]]:
    """Return what is done with the secret key, each for as many polynomials as `NUMBERS`.

    A polynomial holds half as many numbers as it has coefficients.
    """
    ring = PolynomialRing(parameters)
    secret = SecretKey(ring)
    draw = np.random.default_rng(0)
    shape = (NUMBERS, parameters.degree)
    messages = ring.lift(np.rint(draw.normal(scale=700, size=shape)))
    uniform = ring.values(ring.lift(draw.integers(0, 1 << 20, shape)))
    return {
        MAKE: lambda: [SecretKey(ring).public_key(uniform[:, :1]) for _ in range(NUMBERS)],
        ENCRYPT: lambda: secret.encrypt(uniform, messages),
        DECRYPT: lambda: ring.add(messages, secret.times(uniform)),
    }


def seal_operations(parameters: LatticeParameters) -> dict[str, Callable[[], Any]]:
    """Return the same by CKKS of SEAL, each for one polynomial, of three primes as well.

    Its keys are those of a whole context. It writes numbers as polynomials and reads them again.
    """
    import tenseal

    bits = [36, 36, 37]
    context = tenseal.context(tenseal.SCHEME_TYPE.CKKS, parameters.degree, coeff_mod_bit_sizes=bits)
    context.global_scale = 2**20
    numbers = np.random.default_rng(0).uniform(size=parameters.degree // 2)
    encrypted = tenseal.ckks_vector(context, numbers)
    return {
        MAKE: lambda: tenseal.context(
            tenseal.SCHEME_TYPE.CKKS, parameters.degree, coeff_mod_bit_sizes=bits
        ),
        ENCRYPT: lambda: tenseal.ckks_vector(context, numbers),
        DECRYPT: encrypted.decrypt,
    }


if __name__ == "__main__":
    main()
