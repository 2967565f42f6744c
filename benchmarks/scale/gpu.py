"""A GPU against the processor of the same machine, in the same run.

    python -m benchmarks.scale.gpu [--rows 400000] [--columns 2000] [--directions 8192]

First one holder of all columns (`PooledKernelClassifier`): the fit by stages, both directions of a
pass against the bandwidth of a copy on the device, the preconditioner, products in the ring. Then
federated fits of a smaller table, open and with ``values``. Needs torch with a GPU (extra ``gpu``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.harness import Benchmark, alternating, arguments, median, seconds
from vertikal import FDSKLClassifier
from vertikal.baselines.pooled import PooledKernelClassifier
from vertikal.kernels.random_features import FourierMap
from vertikal.ring.integers import Ring
from vertikal.side_by_side import cores
from vertikal.solvers.feature_operator import ALL

TEST = 20_000
INFORMATIVE = 40
SAMPLE = 8192
SMALL = {"rows": 100_000, "columns": 60, "directions": 4096}


def problem(rows: int, columns: int) -> tuple[Any, Any]:
    """Normal columns in single precision; the label bends over some of them."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((rows, columns), np.float32)
    some = X[:, :INFORMATIVE]
    signal = some @ generator.normal(size=INFORMATIVE) / np.sqrt(INFORMATIVE)
    signal += np.cos(some[:, :20]).sum(axis=1) - np.cos(some[:, :20]).sum(axis=1).mean()
    noise = generator.standard_normal(rows)
    return X, signal + noise > 0


def on_gpu(work: Callable[[], Any], repeats: int = 20) -> float:
    """Return the median of the seconds that the device itself counts."""
    import torch

    work()
    took = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        took.append(begin.elapsed_time(end) / 1e3)
    return median(took)


def fits(run: Benchmark, options: Any) -> None:
    """Measure the whole fit of one holder on both, and whether they predict the same."""
    X, y = problem(options.rows + TEST, options.columns)
    train, test = slice(0, options.rows), slice(options.rows, None)
    shared = {
        "n_components": options.directions,
        "bandwidth": float(np.sqrt(options.columns)),
        "random_state": 0,
    }
    gpu, cpu = (PooledKernelClassifier(device=name, **shared) for name in ("cuda", "cpu"))
    small = slice(0, 20_000)
    gpu.fit(X[small], y[small])
    cpu.fit(X[:3000], y[:3000])
    took: dict[str, list[float]] = {"cuda": [], "cpu": []}
    for _ in range(options.repeats):
        gpu.fit(X[train], y[train])
        took["cuda"].append(sum(gpu.seconds_.values()))
    run.figure("GPU: seconds by stage", {k: round(v, 4) for k, v in gpu.seconds_.items()})
    run.figure("GPU: seconds of fits, all repeats", [round(t, 3) for t in took["cuda"]])
    run.figure(
        "GPU: seconds of the whole call, checks of the cells too",
        seconds(lambda: gpu.fit(X[train], y[train])),
    )
    run.figure("GPU: iterations", gpu.n_iter_)
    cpu.fit(X[train], y[train])
    took["cpu"].append(sum(cpu.seconds_.values()))
    run.figure(
        f"processor, {cores()} cores: seconds by stage",
        {k: round(v, 3) for k, v in cpu.seconds_.items()},
    )
    run.figure("processor: iterations", cpu.n_iter_)
    aucs = [float(roc_auc_score(y[test], one.decision_function(X[test]))) for one in (gpu, cpu)]
    run.figure("AUC on other rows, GPU and processor", [round(one, 5) for one in aucs])
    run.target("GPU: seconds of a fit from host memory", median(took["cuda"]), 1.0, at_most=True)
    run.target("AUC apart", abs(aucs[0] - aucs[1]), 0.0005, at_most=True)
    run.target(
        "processor / GPU, seconds of a fit",
        took["cpu"][0] / median(took["cuda"]),
        50,
        at_most=False,
    )


def passes(run: Benchmark, options: Any) -> None:
    """Measure single steps, against what the device's memory allows."""
    import torch

    device = torch.device("cuda")
    shape = options.rows, options.directions
    elements = torch.randint(-128, 128, shape, dtype=torch.int8, device=device)
    copied = 2 * elements.numel() / on_gpu(elements.clone)
    run.figure("copy on the device, GB per second, read and written", copied / 1e9)
    for functions in ("cosine", "pair"):
        of_phases(run, elements, functions, copied)
    del elements
    host = np.ones((1 << 16, 1 << 15), np.uint8)
    arriving(run, host, device)
    for bits in (32, 64):
        torch.cuda.empty_cache()
        of_ring_elements(run, bits, (options.rows // 40, options.directions), copied)


def of_phases(run: Benchmark, elements: Any, functions: Any, copied: float) -> None:
    """Measure passes over phases, and the preconditioner of a sample of them."""
    import torch

    from vertikal.compute.device.device_operator import DeviceOperator

    rows, width = elements.shape
    feature_map = FourierMap(
        Ring(8), np.zeros((1, width)), np.zeros(width), width, functions=functions
    )
    operator = DeviceOperator(feature_map, elements, elements.device)
    a = np.random.default_rng(0).normal(size=(operator.width, 1))
    r = torch.randn((rows, 1), dtype=torch.float64, device=elements.device)
    for name, took in (
        ("forward", on_gpu(lambda: operator.forward_there(a, None, ALL))),
        ("adjoint", on_gpu(lambda: operator.adjoint_there(r, None, ALL))),
    ):
        run.figure(f"{name} pass, {functions}: ms", 1e3 * took)
        if functions == "cosine":
            share = elements.numel() / took / copied
            run.target(f"{name} pass / copy, bytes per second", share, 0.6, at_most=False)
    if functions == "cosine":
        sample, weights = np.arange(SAMPLE), np.full(SAMPLE, 1 / SAMPLE)
        times = [seconds(lambda: operator.inverse(sample, weights, 0.25, 1e-6)) for _ in range(3)]
        run.figure(f"Gram matrix of {SAMPLE} rows, Cholesky, inverse: ms", 1e3 * median(times))


def arriving(run: Benchmark, host: Any, device: Any) -> None:
    """Measure the way from host memory to the device."""
    from vertikal.compute.device.transfer import to_device

    took = [seconds(lambda: to_device(host, device)) for _ in range(4)]
    run.figure("host to device, GB per second", host.nbytes / 1e9 / median(took[1:]))


def of_ring_elements(run: Benchmark, bits: int, tenth: tuple[int, int], copied: float) -> None:
    """Measure products in a ring; ``tenth`` is the shape of a tenth of the matrix."""
    import torch

    from vertikal.compute.device.device_ring_matrix import DeviceRingMatrix

    device = torch.device("cuda")
    rows, width = tenth
    matrix = DeviceRingMatrix((10 * rows, width), f"uint{bits}", device)
    block = np.random.default_rng(0).integers(0, 2**32, tenth, f"uint{bits}")
    for start in range(0, 10 * rows, rows):
        with matrix.writing(slice(start, start + rows)) as room:
            room[...] = block
    for kind in ("forward", "adjoint"):
        for count in (1, 8):
            shape = (matrix.sizes(kind)[0], count)
            given = torch.randint(0, 2**31, shape, dtype=torch.int64, device=device)
            given = given.to(getattr(torch, f"int{bits}"))
            took = on_gpu(
                lambda kind=kind, given=given: matrix.product_there(kind, given),  # type: ignore[misc]
                5,
            )
            run.figure(
                f"ring of {bits} bits, {kind} with {count}: ms, share of a copy's bandwidth",
                [round(1e3 * took, 3), round(matrix.nbytes / took / copied, 3)],
            )


def federated(run: Benchmark) -> None:
    """Measure fits of three parties in one process, which share the GPU."""
    X, y = problem(SMALL["rows"], SMALL["columns"])
    shared = {
        "n_components": SMALL["directions"],
        "bandwidth": float(np.sqrt(SMALL["columns"])),
        "random_state": 0,
    }
    levels: dict[str, dict[str, Any]] = {"open": {}, "values": {"disclosure": "values"}}
    models = {
        f"{level}, {device}": FDSKLClassifier(3, device=device, **shared, **settings)
        for level, settings in levels.items()
        for device in ("cuda", "cpu")
    }
    for model in models.values():
        model.fit(X[:2000], y[:2000])
    times = alternating(
        {
            name: lambda model=model: model.fit(X, y)  # type: ignore[misc]
            for name, model in models.items()
        },
        2,
    )
    for name, model in models.items():
        run.figure(f"three parties, {name}: seconds", [round(t, 2) for t in times[name]])
        stages = {
            stage: round(max(p.seconds for p in parties.values()), 2)
            for stage, parties in model.report_.stages.items()
        }
        run.figure(f"three parties, {name}: seconds by stage, iterations", [stages, model.n_iter_])
    run.target(
        "values / open on the GPU, three parties",
        min(times["values, cuda"]) / min(times["open, cuda"]),
        3,
        at_most=True,
    )


def main() -> None:
    options = arguments(__doc__ or "", rows=400_000, columns=2_000, directions=8_192, repeats=3)
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("torch finds no GPU on this machine")
    run = Benchmark(
        "scale-gpu",
        {
            "rows": options.rows,
            "columns": options.columns,
            "directions": options.directions,
            "federated": SMALL,
            "GPU": torch.cuda.get_device_name(),
            "torch": torch.__version__,
        },
    )
    began = time.perf_counter()
    for part in (lambda: passes(run, options), lambda: federated(run), lambda: fits(run, options)):
        part()
        run.save(options.out)
        print(f"{time.perf_counter() - began:.0f} s so far", flush=True)
    run.write(options.out)


if __name__ == "__main__":
    main()
