"""Shows the results of Transfer-Tuning's lines: a table, and the paper's figures 5a and 5b as SVG. Its
lines ran `pruner transfer` and `pruner tune`; this script only reads what they wrote."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import model_set
import published

published.Line(__doc__).parse_args()
RESULTS, SEARCHES = pathlib.Path("data/results"), pathlib.Path("data/raw/chocolate_tt_ansor")
COLORS = {"Transfer-Tuning": "#31688e", "Ansor": "#90d743"}
BAR, GAP, HEIGHT, LEFT, BOTTOM = 28, 24, 220, 60, 300  # in pixels


def chart(file, title, rows):
    """Writes a chart of bars, two for each network: {network: (transfer, Ansor or None)}."""
    most = max(value for values in rows.values() for value in values if value is not None)
    wide = LEFT + len(rows) * (2 * BAR + GAP) + 180
    parts = [f'<text x="{LEFT}" y="30" font-size="15">{title}</text>',
             f'<line x1="{LEFT}" y1="{BOTTOM}" x2="{wide - 20}" y2="{BOTTOM}" stroke="black"/>']
    for i, (network, values) in enumerate(rows.items()):
        x = LEFT + GAP + i * (2 * BAR + GAP)
        for k, (value, color) in enumerate(zip(values, COLORS.values())):
            if value is None:
                continue
            high, bar_x = HEIGHT * value / most, x + k * BAR
            top = BOTTOM - high
            parts.append(f'<rect x="{bar_x}" y="{top:.1f}" width="{BAR}" height="{high:.1f}" fill="{color}"/>')
            parts.append(f'<text x="{bar_x + BAR / 2}" y="{top - 5:.1f}" text-anchor="middle">{value:.3g}</text>')
        parts.append(f'<text transform="translate({x + BAR},{BOTTOM + 18}) rotate(30)">{network}</text>')
    for k, (name, color) in enumerate(COLORS.items()):
        parts.append(f'<rect x="{LEFT + 130 * k}" y="42" width="12" height="12" fill="{color}"/>')
        parts.append(f'<text x="{LEFT + 130 * k + 18}" y="53">{name}</text>')
    file.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{BOTTOM + 200}" '
                    'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>'
                    + "".join(parts) + "</svg>\n")


def cell(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"


transfers = {file.stem: model_set.read(file) for file in sorted((RESULTS / "tt_multi_models").glob("*.json"))}
if not transfers:
    published.refuse(f"{RESULTS}/tt_multi_models: no results; src/scripts/tt_multi_models_pact.py makes them")
gains, times = {}, {}
print("| network | transfer: gain | s | Ansor in the same time: gain | Ansor as good after s |")
print("|---|--:|--:|--:|--:|")
for name, found in transfers.items():
    gain = found["untuned_ms"] / found["transferred_ms"]
    file = SEARCHES / name / "stops.json"
    stops = model_set.read(file) if file.exists() else []
    reached = next((stop["search_s"] for stop in stops if stop["speedup"] >= max(1, gain)), None)
    gains[name] = (gain, stops[0]["speedup"] if stops else None)
    times[name] = (found["search_s"], reached)
    print(f"| {name} | {gain:.3f} | {found['search_s']:.1f} | {cell(gains[name][1], 3)} | {cell(reached, 1)} |")
chart(RESULTS / "fig_5a.svg", "How many times as fast as the untuned network", gains)
chart(RESULTS / "fig_5b.svg", "Seconds of search", times)
print(f"Written: {RESULTS}/fig_5a.svg, {RESULTS}/fig_5b.svg")
