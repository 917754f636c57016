"""Converts arrays from callers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def to_lanes(value: Any, shape: tuple[int, ...], what: str) -> npt.NDArray[np.uint64]:
    """Broadcasts whole numbers to a shape; negative ones become two's complement of 64 bits."""
    array = _whole(value, what)
    try:
        array = np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"{what} of shape {array.shape} cannot be broadcast to {shape}") from None
    return np.ascontiguousarray(array).astype(np.uint64, copy=False)


def to_vectors(value: Any, shape: tuple[int, int, int]) -> npt.NDArray[np.uint8]:
    """Returns the bytes of vector registers: of elements of any type, 16 bytes of them along the last axis, as they are,
    or of whole numbers from 0 to 255, one for each byte."""
    array = np.asarray(value)
    if array.dtype.kind == "O":
        array = _exact(value, "vectors")
    if array.dtype.kind not in "iufb":
        raise TypeError(f"vectors must be an array of numbers, not of {array.dtype}")
    if array.itemsize <= 8 and array.ndim > 0 and array.shape[-1] * array.itemsize == shape[-1]:
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        array = np.ascontiguousarray(little).view(np.uint8)
    elif array.dtype.kind == "f" or array.size and not 0 <= array.min() <= array.max() < 256:
        raise ValueError(
            "vectors must have 16 bytes along the last axis, such as 2 of float64 or 4 of float32, or be numbers from "
            f"0 to 255, not {array.dtype} of shape {array.shape}"
        )
    try:
        array = np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"vectors of shape {array.shape} cannot be broadcast to {shape}") from None
    return np.ascontiguousarray(array).astype(np.uint8, copy=False)


class LaneArray(np.ndarray[Any, np.dtype[Any]]):
    """The registers of lanes when the array was read; assigning to items sets them in the machine, too.

    To NumPy, the array is read-only, so operations that would change it but not the machine, such as ``fill`` or
    ``sort``, raise an error. Copies and results of computations are ordinary arrays.
    """

    _machine: Any = None
    _name: str = ""
    #: The whole array, with nothing between it and its items.
    _whole: npt.NDArray[Any] | None = None

    def __array_finalize__(self, source: Any) -> None:
        if isinstance(source, LaneArray):
            self._machine, self._name, self._whole = source._machine, source._name, source._whole

    def _offset(self) -> int | None:
        """Returns where this part begins in the whole array, in bytes; ``None`` if it is a copy."""
        if self._whole is None:
            return None
        offset = _address(self) - _address(self._whole)
        return offset if 0 <= offset < self._whole.nbytes else None

    def _part_of(self, whole: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Returns the same part of another array of the same shape as the whole one."""
        return np.ndarray(self.shape, self.dtype, whole, self._offset() or 0, self.strides)

    def _plain(self) -> npt.NDArray[Any]:
        if self._whole is None or self._offset() is None:
            return np.asarray(self)
        return self._part_of(self._whole)

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._whole is None or self._offset() is None:
            self._plain()[key] = value
            return
        if self._name == "flags":
            raise ValueError("flags are there to be read: assign to nzcv, which has them in bits 31 to 28")
        if self.dtype == self._whole.dtype:
            value = _whole(value, self._name).astype(np.uint64, copy=False)
            if (value >> np.uint64(8 * self.itemsize - 1) > 1).any():
                raise OverflowError(f"{self._name} must fit in {8 * self.itemsize} bits")
        # As they are now: other items may have changed since.
        now = getattr(self._machine, self._name)._whole
        self._part_of(now)[key] = value
        setattr(self._machine, self._name, now)
        self._plain()[key] = value

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        outs = kwargs.pop("out", ())
        inputs = tuple(np.asarray(item) if isinstance(item, LaneArray) else item for item in inputs)
        if not outs:
            return getattr(ufunc, method)(*inputs, **kwargs)
        results = tuple(np.array(out) if isinstance(out, LaneArray) else out for out in outs)
        getattr(ufunc, method)(*inputs, out=results, **kwargs)
        for out, result in zip(outs, results):
            if isinstance(out, LaneArray):
                out[...] = result
        return outs[0] if len(outs) == 1 else outs

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        # DLPack has no arrays that cannot be written.
        return self._plain().__dlpack__(*args, **kwargs)

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return np.array(self).__reduce_ex__(protocol)


def written_through(machine: Any, name: str, array: npt.NDArray[Any]) -> LaneArray:
    """Returns an array of the machine's property of that name; its items can be assigned."""
    lanes = array.view(LaneArray)
    lanes._machine, lanes._name, lanes._whole = machine, name, array
    lanes.flags.writeable = False
    return lanes


def _address(array: npt.NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _whole(value: Any, what: str) -> npt.NDArray[Any]:
    """Converts a value to an array of whole numbers."""
    array = np.asarray(value)
    if array.dtype.kind not in "iub" and not isinstance(value, np.ndarray):
        array = _exact(value, what)
    if array.dtype.kind not in "iub":
        advice = "; view(np.float64) takes floating-point numbers" if what == "vectors" else ""
        raise TypeError(f"{what} must be whole numbers, not {array.dtype}{advice}")
    return array


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
