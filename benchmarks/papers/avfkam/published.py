"""AVFKAM's Tables 3 and 4 as published: test AUC by method and data set."""

from __future__ import annotations

ORDER = ("shuttle", "rcv1", "SUSY", "ijcnn1", "a9a", "real-sim", "sector", "news20")
"""The columns of Table 3."""
TABLE3 = {
    "TSAM": (0.9981, 0.9742, 0.8104, 0.9642, 0.8999, 0.9661, 0.9706, 0.8567),
    "Sparse Kernel AUC": (0.9127, 0.9714, 0.7746, 0.6627, 0.8765, 0.8214, 0.8168, 0.8711),
    "RankSVM, Fourier": (0.9025, 0.9611, None, None, 0.9011, 0.9213, 0.9581, 0.8623),
    "RankSVM, Nyström": (0.9216, 0.9583, None, None, 0.8972, 0.9418, 0.9627, 0.8543),
    "FDSKL": (0.4974, 0.4813, 0.5799, 0.5169, 0.4996, 0.5757, 0.4990, 0.4748),
    "AVFKAM": (0.9978, 0.9739, 0.8066, 0.9636, 0.9000, 0.9631, 0.9702, 0.8563),
}
TABLE4 = {
    "VAFL": {"real-sim": 0.9735, "rcv1": 0.9843, "sector": 0.9836, "news20": 0.9500},
    "AFSGD-VP": {"real-sim": 0.9487, "rcv1": 0.9601, "sector": 0.9612, "news20": 0.8304},
    "AsySQN": {"real-sim": 0.9489, "rcv1": 0.9699, "sector": 0.9569, "news20": 0.8283},
}
WHOLE = {"rcv1-small": "rcv1"}
"""Parts with a name of their own, and the set whose published numbers stand beside them."""


def published(method: str, data: str) -> float | None:
    """The paper's number, if it has one."""
    if method in TABLE3:
        return TABLE3[method][ORDER.index(whole(data))]
    return TABLE4.get(method, {}).get(whole(data))


def whole(data: str) -> str:
    """The set that the paper has numbers for."""
    return WHOLE.get(data, data)
