"""Which engine and device a machine runs on."""

from __future__ import annotations

import os

import kvrm

#: The environment variable that replaces ``device=None``.
VARIABLE = "KVRM_DEVICE"

#: Engines that have devices to choose from, the fastest first.
GPU_ENGINES = ("cuda", "wgpu")

#: Names of drivers that emulate a GPU on the CPU. The ``cpu`` engine is much faster.
SOFTWARE_DRIVERS = ("llvmpipe", "swiftshader", "basic render driver")


def default_device() -> str:
    """Returns the device for ``device=None``: ``KVRM_DEVICE`` if it is set, else the best GPU, else the CPU.

    >>> default_device().partition(":")[0] in ("cpu", "cuda", "wgpu", "eval")
    True
    """
    return _candidates()[0]


def open_machine(device: str | None, *, lanes: int, memory_size: int, model: str) -> kvrm.Machine:
    """Builds a machine on this device; for ``None``, on the first device that can hold it."""
    if device is not None:
        return _open(device, lanes, memory_size, model)
    *gpus, last = _candidates()
    for gpu in gpus:
        try:
            return _open(gpu, lanes, memory_size, model)
        except (kvrm.KvrmError, MemoryError):
            continue  # It lacks what this machine needs, such as shared memory or room: try the next.
    return _open(last, lanes, memory_size, model)


def _candidates() -> list[str]:
    """Returns the devices to try, the best first."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted:
        return [wanted]
    present = kvrm.devices()
    gpus = [
        f"{engine}:{device.index}"
        for engine in GPU_ENGINES
        for device in present
        if device.engine == engine and device.usable and not _is_software(device.name)
    ]
    return [*gpus, "cpu"]


def _is_software(name: str) -> bool:
    return any(driver in name.lower() for driver in SOFTWARE_DRIVERS)


def _open(device: str, lanes: int, memory_size: int, model: str) -> kvrm.Machine:
    engine, index = parse(device)
    return kvrm.Machine(engine, lanes=lanes, memory=memory_size, model=model, device=index)


def parse(device: str) -> tuple[str, int | None]:
    """Splits ``"cuda:1"`` into engine and number.

    >>> parse("cuda:1"), parse("cpu")
    (('cuda', 1), ('cpu', None))
    """
    if not isinstance(device, str):
        raise TypeError(f'device must be text such as "cpu" or "cuda:1", or None; it is {device!r}')
    engine, colon, number = device.partition(":")
    if not colon:
        return engine, None
    if not (number.isascii() and number.isdecimal()):
        raise ValueError(f'device {device!r} is not "engine" or "engine:number", such as "cuda:1"')
    return engine, int(number)
