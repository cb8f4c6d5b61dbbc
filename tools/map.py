#!/usr/bin/env python3
"""Prints the map: every layer, and what each of its headers takes and gives by its first comment."""
import re
import textwrap

import tree


def first_sentence(path):
    lines = []
    for line in path.read_text().splitlines():
        if not line.startswith("//"):
            break
        lines.append(line.lstrip("/ ").strip())
    sentence = re.split(r"(?<=[.;])\s", " ".join(lines), maxsplit=1)[0].rstrip(".;")
    return textwrap.shorten(sentence, 120, placeholder=" ...")


def main():
    for layer in tree.layers():
        print(layer)
        for path in tree.files(f"src/{layer}", ".h"):
            print(f"  {path.relative_to(tree.ROOT / 'src' / layer)}: {first_sentence(path)}")


if __name__ == "__main__":
    main()
