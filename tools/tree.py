"""What the tools read of the source tree: its files, its layers, and who includes whom."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def files(folder, *endings):
    """The files under a folder of the repository with one of these endings, sorted."""
    return sorted(p for p in (ROOT / folder).rglob("*") if p.suffix in endings and p.is_file())


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def layers():
    """{layer: the layers it declares}, lowest first, as CMakeLists.txt has them."""
    found = {}
    text = (ROOT / "CMakeLists.txt").read_text()
    for name, rest in re.findall(r"^add_layer\((\w+)([^)]*)\)", text, re.MULTILINE):
        deps = re.search(r"\bDEPS\b(.*?)(\bTEST_DEPS\b|\bLIBS\b|$)", rest, re.DOTALL)
        words = deps.group(1).split() if deps else []
        found[name] = list(found) if words == ["${PRUNER_LAYERS}"] else words
    return found


def includes(path):
    """[(line, included name, whether it is one of ours in quotes)]"""
    text = path.read_text()
    return [
        (text.count("\n", 0, m.start(m.lastindex)) + 1, m.group(m.lastindex), m.lastindex == 1)
        for m in INCLUDE.finditer(text)
    ]
