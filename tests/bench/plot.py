"""Draws JSON files of gpu.py, launch.py or peers.py as horizontal bars, in a self-contained SVG.

    python tests/bench/plot.py FILE... -o SVG [--unit ns]

Each file is a panel. A bar longer than eight times the lower quartile of its panel is cut, and its end shows that.
"""

from __future__ import annotations

import argparse
import html
import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LETTER, BARS, FIGURES = 7, 420, 110  # widths
LINE, BAR, TITLE, GAP = 26, 16, 30, 18  # heights
MOST = 8  # times the lower quartile: longer bars are cut
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 }
.bar { fill: #8c959f } .ours { fill: #1f7a4d } .cut { stroke: #ffffff; stroke-width: 3 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .bar { fill: #6e7681 } .ours { fill: #3fb27f } .cut { stroke: #0d1117 }
}
"""


def bars_of(path: Path, unit: str) -> tuple[str, list[dict[str, Any]]]:
    """The title of a panel, and its bars."""
    found = json.loads(path.read_text(encoding="utf-8"))
    bars = [bar for bar in found.get("bars", []) if bar["unit"] == unit]
    if not bars:
        raise SystemExit(f"{path} has no bars in {unit}; gpu.py, launch.py and peers.py write some with --json")
    return found.get("device", found["machine"]), bars


def panel(title: str, bars: list[dict[str, Any]], left: int, top: int) -> Iterator[str]:
    yield f'<text class="title" x="0" y="{top + 18}">{html.escape(title)}</text>'
    values = [bar["median"] for bar in bars]
    quarter = statistics.quantiles(values, n=4)[0] if len(values) > 1 else values[0]
    longest = min(max(values), MOST * quarter)
    for i, bar in enumerate(bars):
        y = top + TITLE + i * LINE
        value = bar["median"]
        width = BARS * min(value, longest) / longest
        kind = "ours" if bar["what"].startswith(("Bascule", "kernel[", "the launch")) else "bar"
        yield f'<text x="{left - 10}" y="{y + 13}" text-anchor="end">{html.escape(bar["what"])}</text>'
        yield f'<rect class="{kind}" x="{left}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2"/>'
        if value > longest:
            x = left + width - 24
            yield f'<path class="cut" d="M{x:.0f} {y + BAR + 2} l8 {-BAR - 4}"/>'
        yield f'<text x="{left + width + 6:.1f}" y="{y + 13}">{value:,.0f} {bar["unit"]}</text>'


def draw(panels: list[tuple[str, list[dict[str, Any]]]]) -> str:
    shapes: list[str] = []
    left = 10 + LETTER * max(len(bar["what"]) for _, bars in panels for bar in bars)
    top = 0
    for title, bars in panels:
        shapes += panel(title, bars, left, top)
        top += TITLE + LINE * len(bars) + GAP
    width = left + BARS + FIGURES
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" width="{width}" height="{top}">'
    return "\n".join([head, f"<style>{STYLE}</style>", *shapes, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description="Bars of what a launch costs the host.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="SVG")
    parser.add_argument("--unit", default="ns", help="of the bars that are drawn")
    options = parser.parse_args()
    options.output.write_text(draw([bars_of(path, options.unit) for path in options.files]), encoding="utf-8")


if __name__ == "__main__":
    main()
