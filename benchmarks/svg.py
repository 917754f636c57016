"""Charts as SVG: bars, and lines over the number of lanes, both on a logarithmic scale.

Colours follow the reader's light or dark mode, as those of the other charts in docs/ do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 860, 500
LEFT, RIGHT, TOP, BOTTOM = 80, 690, 20, 440
#: On white and on black; the first is for what others reached.
COLOURS = [
    ("#6e7781", "#9aa4af"),
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#ff8c42"),
    ("#007f5f", "#2dd4a7"),
    ("#a3367f", "#f291cf"),
    ("#8a6d00", "#f0e442"),
]


@dataclass
class Series:
    """A name, and values by place; where one is missing there is nothing to draw."""

    name: str
    values: dict


@dataclass
class Scale:
    """Powers of ten, and the pixels they lie at."""

    low: int
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, values, start, end, *, whole=True):
        powers = [math.log10(value) for value in values]
        low, high = math.floor(min(powers)), max(powers)
        high = max(low + 1, math.ceil(high) if whole else high)
        return cls(low, high, start, end)

    def at(self, value) -> float:
        return self.start + (math.log10(value) - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self):
        return range(self.low, math.floor(self.high) + 1)


def bars(title: str, label: str, series: list[Series]) -> str:
    """A group of bars for each place, a bar for each series."""
    places = list(dict.fromkeys(place for one in series for place in one.values))
    y = Scale.over([v for one in series for v in one.values.values()], BOTTOM, TOP)
    step = (RIGHT - LEFT) / len(places)
    width = step * 0.8 / len(series)
    parts = [_rows(y), _labels(label, "")]
    for number, place in enumerate(places):
        begin = LEFT + step * (number + 0.1)
        parts.append(_text(begin + step * 0.4, BOTTOM + 20, place))
        for which, one in enumerate(series):
            if place in one.values:
                top = y.at(one.values[place])
                tip = f"{one.name}, {place}: {one.values[place]:,.0f}"
                parts.append(
                    f'<rect class="c{which % len(COLOURS)}" x="{begin + which * width:.1f}" y="{top:.1f}" '
                    f'width="{width - 1:.1f}" height="{BOTTOM - top:.1f}"><title>{escape(tip)}</title></rect>'
                )
    return _picture(title, [*parts, _legend(series)])


def lines(title: str, x_label: str, y_label: str, series: list[Series]) -> str:
    """A line for each series; places are numbers."""
    x = Scale.over([p for one in series for p in one.values], LEFT, RIGHT, whole=False)
    y = Scale.over([v for one in series for v in one.values.values()], BOTTOM, TOP)
    parts = [_rows(y), _labels(y_label, x_label)]
    for power in x.ticks():
        at = x.at(10**power)
        parts.append(f'<line class="grid" x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{BOTTOM}"/>')
        parts.append(_text(at, BOTTOM + 20, f"{10**power:,}"))
    for which, one in enumerate(series):
        points = [(x.at(place), y.at(value)) for place, value in sorted(one.values.items())]
        corners = " ".join(f"{left:.1f},{top:.1f}" for left, top in points)
        dots = "".join(f'<circle cx="{left:.1f}" cy="{top:.1f}" r="3"/>' for left, top in points)
        parts.append(f'<g class="c{which % len(COLOURS)}"><polyline points="{corners}"/>{dots}</g>')
    return _picture(title, [*parts, _legend(series)])


def _picture(title: str, parts: list[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">\n{_style()}<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>\n'
    )
    return head + "\n".join(parts) + "\n</svg>\n"


def _style() -> str:
    def colours(mode: int) -> str:
        rules = (f".c{n} {{ stroke: {c[mode]}; fill: {c[mode]} }}" for n, c in enumerate(COLOURS))
        return " ".join(rules)

    return (
        "<style>\ntext { font: 13px system-ui, sans-serif; fill: #1f2328; stroke: none }\n"
        ".paper { fill: #ffffff } .grid { stroke: #d0d7de }\n"
        f"polyline {{ stroke-width: 2; fill: none !important }}\n{colours(0)}\n"
        "@media (prefers-color-scheme: dark) {\n"
        "text { fill: #e6edf3 } .paper { fill: #0d1117 } .grid { stroke: #30363d }\n"
        f"{colours(1)}\n}}\n</style>\n"
    )


def _rows(y: Scale) -> str:
    """A line at each power of ten, with its number."""
    parts = []
    for power in y.ticks():
        at = y.at(10**power)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{at:.1f}" x2="{RIGHT}" y2="{at:.1f}"/>')
        parts.append(_text(LEFT - 8, at + 4, with_prefix(power), "end"))
    return "\n".join(parts)


def with_prefix(power: int) -> str:
    """A power of ten as people write it: 100 M."""
    prefix = ["", " k", " M", " G", " T", " P"][power // 3]
    return f"{10 ** (power % 3)}{prefix}"


def _labels(y_label: str, x_label: str) -> str:
    middle = (TOP + BOTTOM) / 2
    turned = f'<text x="22" y="{middle}" text-anchor="middle" transform="rotate(-90 22 {middle})">'
    return f"{turned}{escape(y_label)}</text>\n" + _text((LEFT + RIGHT) / 2, BOTTOM + 45, x_label)


def _legend(series: list[Series]) -> str:
    parts = []
    for which, one in enumerate(series):
        y = TOP + 12 + 22 * which
        box = f'<rect class="c{which % len(COLOURS)}" x="{RIGHT + 14}" y="{y - 10}" width="12" height="12"/>'
        parts += [box, _text(RIGHT + 32, y, one.name, "start")]
    return "\n".join(parts)


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
