"""What the prototype reached, by its documents, on an Apple M4 Pro: instructions per second. It had
the same modes (see docs/modes.md).

"tight" is a loop of additions, "store" the same with a STR in every turn. ``None``: not told, or not possible.
"""

DEVICE = "Apple M4 Pro"

#: By mode: (tight, store).
MODES = {
    "PyTorch, batch of 512": (None, 17_000),
    "V1": (2_400_000, None),  # no memory writes
    "V2": (2_386_615, 1_728_009),
    "MetalCPU": (2_112_430, 1_906_961),
    "Continuous": (2_400_000, 2_100_000),
    "Mega": (2_400_000, 2_100_000),
    "Async": (3_500_000, 3_000_000),
}

#: By number of lanes.
LANES = {1: 5_500_000, 32: 180_457_573, 128: 720_000_000}

#: By number of instructions: seconds of PyTorch, V1 and V2.
SECONDS = {
    10_000: {"PyTorch, batch of 512": 0.579, "V1": 0.023, "V2": 0.025},
    1_000_000: {"PyTorch, batch of 512": 60.0, "V1": 0.4, "V2": 0.9},
    10_000_000: {"PyTorch, batch of 512": 600.0, "V1": 4.5, "V2": 5.8},
}
