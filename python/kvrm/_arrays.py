"""Arrays as callers write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def to_lanes(value: Any, shape: tuple[int, ...], what: str) -> npt.NDArray[np.uint64]:
    """Broadcasts whole numbers to a shape; negative ones become what 64 bits make of them."""
    array = np.asarray(value)
    if array.dtype.kind not in "iub" and not isinstance(value, np.ndarray):
        array = _exact(value, what)
    if array.dtype.kind not in "iub":
        raise TypeError(f"{what} must be whole numbers, not {array.dtype}")
    try:
        array = np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"{what} of shape {array.shape} cannot be broadcast to {shape}") from None
    return np.ascontiguousarray(array).astype(np.uint64, copy=False)


def _exact(value: Any, what: str) -> npt.NDArray[Any]:
    """Python's numbers one by one: NumPy makes floats of lists with small and very large ones."""
    array = np.asarray(value, dtype=object)
    if not all(isinstance(item, (int, np.integer)) for item in array.flat):
        return np.asarray(value)
    if not all(-(2**63) <= item < 2**64 for item in array.flat):
        raise OverflowError(f"{what} must fit in 64 bits, with or without a sign")
    numbers = [int(item) % 2**64 for item in array.flat]
    return np.array(numbers, dtype=np.uint64).reshape(array.shape)
