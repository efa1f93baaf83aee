"""The report: a table and, for each run, the link, the estimate, what arrived and the video's height over time."""
import html

from figures import HEAD, summaries

WIDTH, HEIGHT, LEFT, TOP = 860, 180, 56, 14
STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:960px;margin:32px auto;padding:0 16px;color:#1c2430}
table{border-collapse:collapse;font-size:13px}td,th{padding:4px 8px;border-bottom:1px solid #dde3ea;text-align:left}
svg{display:block;margin:8px 0 28px}h2{margin:28px 0 0;font-size:17px}p{margin:0;color:#5a6675}"""


def write_page(figures, path):
    rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in summaries(figures))
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in HEAD)
    plots = "".join(f"<h2>{html.escape(one.case.name)} through {one.server}</h2><p>{html.escape(one.case.about)}</p>{plot(one)}" for one in figures)
    path.write_text(f"<!doctype html><html lang=en><meta charset=utf-8><title>Links</title><style>{STYLE}</style>"
                    f"<h1>Browsers over emulated links</h1><table><tr>{head}</tr>{rows}</table>{plots}</html>")


def plot(one):
    link, most = link_rate(one), 3500
    got = rates(one.samples)
    lines = [line(link, most, one, "#b9c3cf", 2), line(got, most, one, "#2f7de1", 1.5),
             line([(t, v / 1000) for t, v in one.estimates if v], most, one, "#e08a1e", 1.2, "4 3"),
             line([(s["t"], s["height"] * most / 900) for s in one.samples], most, one, "#1d9a5b", 1.5)]
    ticks = "".join(f'<text x="{LEFT - 6}" y="{y(v, most) + 4:.0f}" text-anchor="end">{v}</text>' for v in (0, 1000, 2000, 3000))
    ticks += "".join(f'<text x="{x(s, one):.0f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{s:.0f} s</text>'
                     for s in (one.case.seconds * n / 6 for n in range(7)))
    legend = "".join(f'<text x="{LEFT + 8 + 150 * n}" y="{TOP + 10}" fill="{colour}">{word}</text>' for n, (word, colour) in enumerate(
        [("link", "#8793a1"), ("received kbit/s", "#2f7de1"), ("estimate", "#e08a1e"), ("height (900 = top)", "#1d9a5b")]))
    return (f'<svg width="{LEFT + WIDTH + 8}" height="{TOP + HEIGHT + 22}" font-size="11" font-family="system-ui">'
            f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="#f6f8fa"/>{ticks}{"".join(lines)}{legend}</svg>')


def x(second, one):
    return LEFT + WIDTH * min(second / one.case.seconds, 1)


def y(value, most):
    return TOP + HEIGHT * (1 - min(value / most, 1))


def line(points, most, one, colour, width, dash=""):
    if not points:
        return ""
    path = " ".join(f"{x(t, one):.1f},{y(v, most):.1f}" for t, v in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dash}"/>'


def rates(samples):
    """kbit/s over the last second."""
    return [(b["t"], (b["bytes"] - a["bytes"]) * 8 / (b["t"] - a["t"]) / 1000) for a, b in zip(samples, samples[5:])]


def link_rate(one):
    """The emulated link's rate as steps; empty if it has none."""
    words = list(zip(*[iter(one.case.link)] * 3))
    rate = next((value for direction, key, value in words if key == "rate"), None)
    if rate is None:
        return []
    points = [(0.0, rate)]
    for at, command in sorted(one.case.steps):
        _, key, value = command.split()
        if key == "rate":
            points += [(at, points[-1][1]), (at, float(value))]
    return points + [(one.case.seconds, points[-1][1])]
