#!/usr/bin/env python3
"""unity.py FILE: prints groups of C++ files that may be compiled as one file.

No file of a group uses a name that another file of the group keeps to itself. An input line has the
name of a target and the target's files, with `;` between them. An output line has the files of a
group, with `;` between them.

The script reads words and does not parse C++. A conflict that the script overlooks is an error of
the compiler.
"""
import collections
import functools
import itertools
import pathlib
import re
import sys

import tree

MOST = 16  # the largest number of files in a group
NOT_CODE = re.compile(
    r'//(?! namespace$)[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    r'|alignas\(\w+\) |__attribute__\(\(.*?\)\)+\s*', re.DOTALL | re.MULTILINE)
ANONYMOUS = re.compile(r"^namespace \{$.*?^\}  // namespace$", re.DOTALL | re.MULTILINE)
DECLARED = re.compile(r"^(?!namespace|static_assert|using (?!\w+ =))[A-Za-z][^;{=(]*[;{=(]", re.MULTILINE)
TYPE = re.compile(
    r"(?:template <.*>\s*)?(?:struct|class|union|enum(?: class)?|using) (\w+)(?: : .*)?\s*[;{=]$", re.DOTALL)
NAME = re.compile(r"(\w+)(?:\[[^\]]*\])*\s*[;{=(]$")
MORE = re.compile(r"^[A-Za-z].*[,;] (\w+) = ", re.MULTILINE)
MACRO = re.compile(r"^# *define (\w+)", re.MULTILINE)
CALLED = re.compile(r"(?<![.>:\w])(\w+)\(|\bpruner::(\w+)\(")
CAPITAL = re.compile(r"\b[A-Z]\w*\b|\bk[A-Z]\w*\b")


@functools.cache
def text(path):
    return NOT_CODE.sub("", path.read_text())


def declared(line):
    found = TYPE.match(line) or NAME.search(line)
    return {found.group(1)} if found and not re.fullmatch(r"[A-Z_]+", found.group(1)) else set()


@functools.cache
def hidden(path):
    """Returns the names that the file declares for itself: macros, static names, names in unnamed
    namespaces, and constants and types that none of its headers names."""
    names = set(MACRO.findall(text(path)))
    for part in ANONYMOUS.findall(text(path)):
        names.update(MORE.findall(part), *map(declared, DECLARED.findall(part)))
    outside = set()
    for line in DECLARED.findall(ANONYMOUS.sub("", text(path))):
        if line.startswith(("static ", "template ")):
            names |= declared(line)
        elif not line.endswith("("):
            outside |= declared(line)
    return frozenset(names | (outside - of_headers(path)))


@functools.cache
def used(path):
    """Returns the functions that the file calls or declares, and the types and constants that the
    file names."""
    calls = {name for pair in CALLED.findall(text(path)) for name in pair if name}
    return frozenset(calls | set(CAPITAL.findall(text(path))))


@functools.cache
def of_headers(path):
    """Returns the names that our headers use which the file includes, directly or indirectly."""
    names = set()
    for _, name, quoted in tree.includes(path):
        for folder in [path.parent, tree.ROOT / "src", tree.ROOT / "tests", tree.ROOT / "include"] if quoted else []:
            if (folder / name).is_file():
                names |= used(folder / name) | of_headers(folder / name)
                break
    return frozenset(names)


def apart(one, other):
    return any(hidden(a) & (hidden(b) | used(b) | of_headers(b)) for a, b in ((one, other), (other, one)))


def main():
    targets = collections.defaultdict(list)  # targets of each file
    for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
        target, *files = line.split(";")
        for name in files:
            targets[pathlib.Path(name)].append(target)
    groups = collections.defaultdict(list)  # groups of files, by the files' targets
    for path, key in targets.items():
        open_groups = groups[tuple(key)]
        for group in open_groups:
            if len(group) < MOST and not any(apart(path, member) for member in group):
                group.append(path)
                break
        else:
            open_groups.append([path])
    for group in itertools.chain.from_iterable(groups.values()):
        print(";".join(map(str, group)))


if __name__ == "__main__":
    main()
