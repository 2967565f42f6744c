"""The losses of `losses.pointwise` on tensors: value, derivative and curvature, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import softplus


@dataclass(frozen=True)
class DeviceLoss:
    """L(u, y), L' and L'' elementwise on tensors of one shape."""

    value: Callable[[Any, Any], Any]
    derivative: Callable[[Any, Any], Any]
    curvature: Callable[[Any, Any], Any]


def _logistic_curvature(u: Any, y: Any) -> Any:
    p = torch.sigmoid(u)
    return p * (1 - p)


def _hinge_value(u: Any, y: Any) -> Any:
    z = y * u
    return torch.where(z <= 0, 0.5 - z, 0.5 * (1 - z).clamp(min=0).square())


def _hinge_curvature(u: Any, y: Any) -> Any:
    z = y * u
    return ((z > 0) & (z < 1)).to(u.dtype)


DEVICE_LOSSES: Mapping[str, DeviceLoss] = {
    "square": DeviceLoss(
        lambda u, y: (u - y).square(),
        lambda u, y: 2 * (u - y),
        lambda u, y: torch.full_like(u, 2.0),
    ),
    "logistic": DeviceLoss(
        # Beyond the threshold softplus is the identity, to double precision.
        lambda u, y: softplus(-y * u, threshold=40),
        lambda u, y: -y * torch.sigmoid(-y * u),
        _logistic_curvature,
    ),
    "smooth_hinge": DeviceLoss(
        _hinge_value, lambda u, y: -y * (1 - y * u).clamp(0, 1), _hinge_curvature
    ),
}
