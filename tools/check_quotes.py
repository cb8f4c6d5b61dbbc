#!/usr/bin/env python3
"""Checks pages with the line MARK: the sources have each block of C++ that the page shows, and the
tree has each file that the page names.

White space does not count. A name with NAME in it stands for a file that the reader makes.
"""
import re
import sys

import tree

MARK = "<!-- quotes the source -->"
BLOCK = re.compile(r"^```cpp\n(.*?)^```", re.MULTILINE | re.DOTALL)
PLACE = re.compile(r"`((?:src|include|tests|python|devices|bench|tools|docs)/[\w./]+)`")


def plain(text):
    """Returns the words of a text with one space between two of them."""
    return " ".join(text.split())


def wrong(page, sources):
    """Yields what a page shows or names that is not there."""
    for block in BLOCK.findall(page):
        if plain(block) not in sources:
            yield f"no source has: {block.strip().splitlines()[0]} ..."
    for place in PLACE.findall(page):
        if "NAME" not in place and not (tree.ROOT / place).exists():
            yield f"no {place}"


def main():
    pages = {name: (tree.ROOT / name).read_text(encoding="utf-8") for name in tree.listed("*.md")}
    pages = {name: text for name, text in pages.items() if MARK in text.splitlines()}
    if not pages:
        sys.exit(f"quotes: no page has the line {MARK}")
    names = tree.listed("src/*.cpp", "src/*.h", "tests/*.cpp")
    sources = "\n".join(plain((tree.ROOT / name).read_text(encoding="utf-8")) for name in names)
    found = [f"{name}: {fault}" for name, text in pages.items() for fault in wrong(text, sources)]
    print("\n".join(found) if found else f"quotes: {len(pages)} pages, the sources have what they show")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
