"""The drawings of displays, as SVG: occupancy by block size, and waits between streams."""

from collections.abc import Sequence

from bascule._display.document import ACCENT, Figure, escape

_FONT = "font-family='system-ui,sans-serif' font-size='11' fill='currentColor'"


def occupancy(points: Sequence[tuple[int, float]], best: int) -> Figure:
    """Draw a bar per block size: resident warps divided by the most that an SM can hold."""
    left, bottom, height, step = 46, 84, 64, 14
    width = max(left + step * len(points) + 12, 440)  # at least the width of the title
    bars = "".join(
        f"<rect x='{left + step * i + 2}' y='{bottom - height * value:.1f}' width='{step - 4}' "
        f"height='{height * value:.1f}' fill-opacity='{1 if block == best else 0.45}'>"
        f"<title>{block} threads per block: {_percent(value)}</title></rect>"
        for i, (block, value) in enumerate(points)
    )
    grid = "".join(
        f"<path d='M{left} {bottom - height * level:.1f}h{step * len(points)}' stroke='currentColor' "
        f"stroke-opacity='.25'/><text x='{left - 6}' y='{bottom - height * level + 4:.1f}' text-anchor='end'>"
        f"{_percent(level)}</text>"
        for level in (0, 0.5, 1)
    )
    most = points[-1][0]
    marked = {block for block in (32, 128, 256, 512, 768, 1024) if block <= most} | {most}  # labels that do not touch
    marks = "".join(
        f"<text x='{left + step * (i + 0.5)}' y='{bottom + 15}' text-anchor='middle'>{block}</text>"
        for i, (block, _) in enumerate(points)
        if block in marked
    )
    title = f"<text x='{left}' y='12'>occupancy of an SM by threads per block; {best} fill the device best</text>"
    powers = ", ".join(f"{block}: {_percent(value)}" for block, value in points if block & (block - 1) == 0)
    text = f"occupancy of an SM by threads per block: {powers}; {best} fill the device best"
    return Figure(_svg(width, bottom + 22, text, f"{grid}<g fill='{ACCENT}'>{bars}</g>{marks}{title}"), text)


def lanes(launch: str, kernel: str, waits: Sequence[tuple[str, str]], others: Sequence[str]) -> Figure:
    """Draw a row per stream. `waits` has the streams that the launch waits for, each with the argument that names it;
    `others` has the streams without a wait."""
    rows = [launch, *(stream for stream, _ in waits), *others]
    begin, first, pitch = 220, 24, 44  # left end, first row and distance of the rows, in pixels
    kernel_begin, kernel_end = begin + 130, begin + 290
    later, end = begin + 330, begin + 450
    boxes = {0: [(kernel_begin, kernel_end, kernel, ACCENT)]}
    arrows = []
    for row, (_, argument) in enumerate(waits, 1):
        y = first + pitch * row
        boxes[row] = [
            (begin + 10, begin + 100, argument, "currentColor"),
            (later, end - 10, "later work", "currentColor"),
        ]
        arrows.append(_arrow(begin + 100, y, kernel_begin + 9 * row, first + 12))
        arrows.append(_arrow(kernel_end - 9 * row, first + 12, later, y))
    parts = []
    for row, name in enumerate(rows):
        y = first + pitch * row
        parts.append(f"<text x='0' y='{y + 4}'><title>{escape(name)}</title>{escape(_short(name, 34))}</text>")
        at = begin
        for box_begin, box_end, label, colour in boxes.get(row, []):
            parts += [_line(at, box_begin, y), _box(box_begin, y, box_end - box_begin, label, colour)]
            at = box_end
        parts.append(_line(at, end, y, dashed=name in others))
    order = "; ".join(
        f"{launch} waits for {stream} ({argument}), whose later work waits for the kernel" for stream, argument in waits
    )
    text = order or f"the launch on {launch} waits for no other stream"
    return Figure(_svg(end, first + pitch * (len(rows) - 1) + 20, text, "".join(parts + arrows)), text)


def _line(begin: float, end: float, y: float, dashed: bool = False) -> str:
    dash = " stroke-dasharray='3 4'" if dashed else ""
    return f"<path d='M{begin} {y}H{end}' stroke='currentColor' stroke-opacity='.4'{dash}/>"


def _box(x: float, y: float, width: float, label: str, colour: str) -> str:
    return (
        f"<rect x='{x}' y='{y - 12}' width='{width}' height='24' rx='4' fill='{colour}' fill-opacity='.18' "
        f"stroke='{colour}'/><text x='{x + width / 2}' y='{y + 4}' text-anchor='middle'>"
        f"{escape(_short(label, int(width / 7)))}</text>"
    )


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """Draw an arrow from the side of one box to the edge of another."""
    length = ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5
    dx, dy = (to_x - x) / length, (to_y - y) / length
    base_x, base_y = to_x - 8 * dx, to_y - 8 * dy
    corners = (to_x, to_y), (base_x - 4 * dy, base_y + 4 * dx), (base_x + 4 * dy, base_y - 4 * dx)
    head = " ".join(f"{corner_x:.1f},{corner_y:.1f}" for corner_x, corner_y in corners)
    return (
        f"<path d='M{x} {y}L{base_x:.1f} {base_y:.1f}' stroke='{ACCENT}' stroke-width='1.6'/>"
        f"<polygon points='{head}' fill='{ACCENT}'/>"
    )


def _svg(width: float, height: float, label: str, content: str) -> str:
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} {height}' "
        f"role='img' aria-label='{escape(label)}' style='color:inherit;max-width:100%' {_FONT}>{content}</svg>"
    )


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
