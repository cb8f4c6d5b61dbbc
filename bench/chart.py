#!/usr/bin/env python3
"""Draws the chart that the README links to, from a table of cpu_peers.py.

The bars show each network's time in each runtime, in parts of the time in the fastest peer.

    bench/chart.py bench/results/cpu_networks.tsv > bench/results/cpu_networks.svg
"""
import csv
import sys

SERIES = {"pruner, tuned": "#1b6ca8", "onnxruntime": "#9aa5b1", "openvino": "#c3cbd3", "torch": "#e1e5ea"}
ROW, BAR, LEFT, UNIT = 64, 12, 120, 260  # in pixels; UNIT is the fastest peer's time
LONGEST = 2.0                            # in units; a longer bar is cut, its number stays


def text(x, y, words, anchor="start", size=12):
    return (f'<text x="{x}" y="{y}" font-family="sans-serif" font-size="{size}" text-anchor="{anchor}" '
            f'fill="#333">{words}</text>')


def main():
    with open(sys.argv[1]) as table:
        rows = csv.DictReader((line for line in table if not line.startswith("#")), delimiter="\t")
        times = {}
        for row in rows:
            if row["runtime"] in SERIES:
                times.setdefault(row["network"], {})[row["runtime"]] = (
                    float(row["ratio_to_best_peer"]), float(row["median_ms"]))
    width, height = LEFT + UNIT * LONGEST + 150, 34 + ROW * len(times) + 8
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}">',
           f'<rect width="{width:.0f}" height="{height}" fill="white"/>']
    for i, (name, colour) in enumerate(SERIES.items()):
        x = LEFT + 140 * i
        out += [f'<rect x="{x}" y="8" width="12" height="12" fill="{colour}"/>', text(x + 18, 18, name)]
    for i, (network, of) in enumerate(times.items()):
        top = 34 + ROW * i
        out.append(text(LEFT - 8, top + 2.5 * BAR, network, "end"))
        for k, (name, colour) in enumerate(SERIES.items()):
            ratio, ms = of[name]
            y, length = top + BAR * k, UNIT * min(ratio, LONGEST)
            out += [f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 2}" fill="{colour}"/>',
                    text(LEFT + round(length, 1) + 5, y + BAR - 3, f"{ratio:.2f} ({ms:.3g} ms)", size=10)]
    line = LEFT + UNIT
    out += [f'<line x1="{line}" y1="28" x2="{line}" y2="{height - 8}" stroke="#333" stroke-dasharray="3 3"/>', "</svg>"]
    print("\n".join(out))


if __name__ == "__main__":
    main()
