#!/usr/bin/env python3
"""Reads the source tree for the other tools: the files, the layers, and the includes of each file.

A check that finds nothing to look at is an error. tree.py PATTERN... prints the files of the
repository that match.
"""
import fnmatch
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def files(folder, *endings):
    """Returns the files under a folder of the repository with one of these endings, sorted."""
    found = sorted(p for p in (ROOT / folder).rglob("*") if p.suffix in endings and p.is_file())
    if not found:
        sys.exit(f"{folder}: no file there ends in {' or '.join(endings)}")
    return found


def known_to_git():
    """Returns the names of all files that git knows or would add. None: there is no repository or
    no git, or git refuses to read the repository, which belongs to another user."""
    if not (ROOT / ".git").exists():
        return None
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def found_without_git():
    """Returns the names of all files that .gitignore does not leave out. The function knows only
    .gitignore's rules for names and folders."""
    rules = [line.strip() for line in (ROOT / ".gitignore").read_text().splitlines() if line.strip()] + [".git"]

    def ignored(path, is_folder):
        name = path.relative_to(ROOT).as_posix()
        for rule in rules:
            if rule.endswith("/") and not is_folder:
                continue
            plain = rule.rstrip("/")
            if fnmatch.fnmatchcase(name, plain[1:]) if plain.startswith("/") else fnmatch.fnmatchcase(path.name, plain):
                return True
        return False

    names = []
    for folder, folders, files_here in os.walk(ROOT):
        here = pathlib.Path(folder)
        folders[:] = [name for name in folders if not ignored(here / name, True)]
        names += [name_of(here / name) for name in files_here if not ignored(here / name, False)]
    return names


def listed(*patterns):
    """Returns the names of the repository's files that match a pattern, sorted. `*` also matches
    `/`. A pattern that matches no file is an error."""
    names = known_to_git()
    if names is None:
        names = found_without_git()
    matching = {pattern: fnmatch.filter(names, pattern) for pattern in patterns}
    for pattern, found in matching.items():
        if not found:
            sys.exit(f"{pattern}: no file of the repository matches")
    return sorted(set().union(*matching.values()))


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def layers():
    """Returns {layer: the layers that it declares}, lowest first, as in CMakeLists.txt."""
    found = {}
    text = (ROOT / "CMakeLists.txt").read_text()
    for name, rest in re.findall(r"^add_layer\((\w+)([^)]*)\)", text, re.MULTILINE):
        deps = re.search(r"\bDEPS\b(.*?)(\bTEST_DEPS\b|\bLIBS\b|$)", rest, re.DOTALL)
        words = deps.group(1).split() if deps else []
        found[name] = list(found) if words == ["${PRUNER_LAYERS}"] else words
    if not found:
        sys.exit("CMakeLists.txt: no layer is there")
    return found


def includes(path):
    """Returns (line, included name, whether the name stands in quotes) for each include of a file.
    Includes in quotes are includes of our own files."""
    text = path.read_text()
    return [
        (text.count("\n", 0, m.start(m.lastindex)) + 1, m.group(m.lastindex), m.lastindex == 1)
        for m in INCLUDE.finditer(text)
    ]


if __name__ == "__main__":
    print("\n".join(listed(*sys.argv[1:])))
