"""Converts arrays from callers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def to_lanes(value: Any, shape: tuple[int, ...], what: str) -> npt.NDArray[np.uint64]:
    """Broadcasts whole numbers to a shape; negative ones become two's complement of 64 bits."""
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


def to_rows(rows: Any, lanes: int) -> npt.NDArray[np.uint8]:
    """Returns the bytes of all lanes, lane after lane, from an array or from a sequence of bytes."""
    if not isinstance(rows, np.ndarray):
        rows = _joined(rows)
    if rows.dtype.kind not in "iufb":
        raise TypeError(f"rows must be an array of numbers, or a sequence of bytes, not of {rows.dtype}")
    if rows.ndim == 0 or len(rows) != lanes:
        raise ValueError(f"rows must be one for each of {lanes} lanes, not of shape {rows.shape}")
    return np.ascontiguousarray(rows).reshape(-1).view(np.uint8)


def _joined(rows: Any) -> npt.NDArray[np.uint8]:
    """Joins bytes objects of one length as rows of an array."""
    wrong = TypeError(f"rows must be an array, or a sequence of bytes, not {type(rows).__name__}")
    if isinstance(rows, (str, bytes, bytearray, memoryview)):
        raise wrong
    try:
        rows = iter(rows)
    except TypeError:
        raise wrong from None
    rows = list(rows)
    if not all(isinstance(row, (bytes, bytearray, memoryview)) for row in rows):
        raise TypeError("rows must be an array, or a sequence of nothing but bytes")
    lengths = {memoryview(row).nbytes for row in rows}
    if len(lengths) > 1:
        raise ValueError(f"rows must have one length, not {min(lengths)} to {max(lengths)} bytes")
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1 if any(lengths) else 0)


def _exact(value: Any, what: str) -> npt.NDArray[Any]:
    """Converts Python numbers one by one: NumPy makes floats of lists with small and very large ones."""
    array = np.asarray(value, dtype=object)
    if not all(isinstance(item, (int, np.integer)) for item in array.flat):
        return np.asarray(value)
    if not all(-(2**63) <= item < 2**64 for item in array.flat):
        raise OverflowError(f"{what} must fit in 64 bits, with or without a sign")
    numbers = [int(item) % 2**64 for item in array.flat]
    return np.array(numbers, dtype=np.uint64).reshape(array.shape)
