"""Arrays as callers write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def to_lanes(value: Any, shape: tuple[int, ...], what: str) -> npt.NDArray[np.uint64]:
    """Broadcasts whole numbers to a shape; negative ones become what 64 bits make of them."""
    array = np.asarray(value)
    if array.dtype == object and _too_large(array):
        raise OverflowError(f"{what} must fit in 64 bits, with or without a sign")
    if array.dtype.kind not in "iub":
        raise TypeError(f"{what} must be whole numbers, not {array.dtype}")
    try:
        array = np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"{what} of shape {array.shape} cannot be broadcast to {shape}") from None
    return np.ascontiguousarray(array).astype(np.uint64, copy=False)


def _too_large(array: npt.NDArray[Any]) -> bool:
    """True if it is an array of objects because some numbers have more than 64 bits."""
    return all(isinstance(item, int) for item in array.flat)
