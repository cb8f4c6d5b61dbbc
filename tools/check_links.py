#!/usr/bin/env python3
"""Checks that the targets of the links in Markdown files exist: files and folders of the tree, and
headings of pages."""
import re
import sys

import tree

ROOT = tree.ROOT
LINK = re.compile(r"\[[^\]]*\]\(([^)\s#]*)(?:#([^)\s]*))?\)")


def prose(path):
    """Yields the lines of a page outside of code blocks, without inline code."""
    fenced = False
    for line in path.read_text(encoding="utf-8").splitlines():
        fenced ^= line.lstrip().startswith("```")
        if not fenced:
            yield re.sub(r"`[^`]*`(?![^\[]*\]\()", "", line)


def anchors(path):
    """Yields the names of a page's headings in the spelling of links."""
    for line in prose(path):
        if line.startswith("#"):
            words = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
            yield words.replace(" ", "-")


def missing(path):
    """Yields the targets of a page's links that do not exist."""
    for line in prose(path):
        for target, anchor in LINK.findall(line):
            if ":" in target:
                continue
            file = path.parent / target if target else path
            if not file.exists():
                yield target
            elif anchor and anchor not in anchors(file):
                yield f"{target}#{anchor}"


def main():
    pages = tree.listed("*.md")
    found = [f"{name}: no {target}" for name in pages for target in missing(ROOT / name)]
    print("\n".join(found) if found else f"links: {len(pages)} pages, what they link to is here")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
