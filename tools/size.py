#!/usr/bin/env python3
"""Prints sizes of the source tree that say where to look again. The sizes never fail a check."""
import collections
import re

import tree

RUN = 6  # length, in lines, of a run that counts as repeated


def functions(path):
    """Returns (number of lines, number of the first line) for each function that begins and ends in
    the first column."""
    found, start = [], None
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        if line.startswith("}") and start is not None:
            found.append((number - start + 1, start))
            start = None
        elif re.match(r"(namespace|class|struct|enum|union|extern|inline constexpr)\b", line):
            continue
        elif re.match(r"[A-Za-z_].*[({,]\s*$", line) and start is None and "=" not in line:
            start = number
        elif start is not None and line.endswith(";") and not line.startswith(" "):
            start = None
        elif start is not None and not line.strip():
            if not any("{" in text for text in lines[start - 1 : number]):
                start = None
    return found


def repeated_share(paths):
    """Returns the percentage of repeated lines of code, and the three files with the most. A line
    is repeated if it lies in a run of RUN lines that also stands elsewhere."""
    places = collections.defaultdict(list)
    total = 0
    for path in paths:
        numbered = [
            (number, line.strip())
            for number, line in enumerate(path.read_text().splitlines())
            if line.strip() and not re.match(r"\s*(//|#include|#pragma|}$|namespace)", line)
        ]
        total += len(numbered)
        for i in range(len(numbered) - RUN + 1):
            run = numbered[i : i + RUN]
            places[tuple(text for _, text in run)].append((path, [n for n, _ in run]))
    repeated = set()
    for where in places.values():
        if len(where) > 1:
            repeated.update((path, number) for path, numbers in where for number in numbers)
    worst = collections.Counter(tree.name_of(path) for path, _ in repeated).most_common(3)
    return 100 * len(repeated) / max(total, 1), worst


def count_lines(paths):
    return {path: path.read_text().count("\n") for path in paths}


def median(values):
    return sorted(values)[len(values) // 2] if values else 0


def row(what, usual, look, value, where=""):
    print(f"{what:<34}{usual:<14}{look:<12}{value:<12}{where}")


def main():
    code = tree.files("src", ".cpp", ".h", ".c") + tree.files("include", ".h", ".hpp")
    tests = tree.files("tests", ".cpp", ".h")
    lines = count_lines(code)
    test_lines = count_lines(tests)
    sized = sorted(((n, tree.name_of(p)) for p, n in lines.items()), reverse=True)
    lengths = sorted(
        ((n, f"{tree.name_of(p)}:{at}") for p in code for n, at in functions(p)), reverse=True
    )
    folders = collections.Counter(tree.name_of(p.parent) for p in code)
    depth = max((len(tree.name_of(p).split("/")) - 2 for p in code), default=0)
    share, worst = repeated_share(code)
    fullest = folders.most_common(1)[0] if folders else ("", 0)

    row("what", "usual", "look again", "here", "where")
    row("lines in a file: median", "100 to 200", "", median(list(lines.values())))
    row("lines in a file: most", "", "600", sized[0][0], sized[0][1])
    row("lines in a function: median", "5 to 10", "", median([n for n, _ in lengths]))
    for n, where in lengths[:1] + [x for x in lengths[1:6] if x[0] >= 60]:
        row("lines in a function: most", "", "60", n, where)
    row("files in a folder: most", "up to 12", "20", fullest[1], fullest[0])
    row("folders below src/: deepest", "2", "3", depth)
    row("repeated runs of six lines, %", "under 1", "2", f"{share:.1f}",
        ", ".join(f"{name} {n}" for name, n in worst))
    row("test lines per code line", "1", "under 0.7",
        f"{sum(test_lines.values()) / max(sum(lines.values()), 1):.2f}",
        f"{sum(lines.values())} lines in {len(code)} files, {sum(test_lines.values())} of tests")


if __name__ == "__main__":
    main()
