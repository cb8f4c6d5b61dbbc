#!/usr/bin/env python3
"""Checks that no type name is defined twice in one namespace of src/ and include/. The linker would
take one type for the other.

Types in unnamed namespaces and in classes may share a name, because only their file or class sees
them.
"""
import collections
import re
import sys

import tree

# Matches text that is no code: comments, strings, characters.
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
TOKEN = re.compile(r"[{};]|[^{};]+")
NAMESPACE = re.compile(r"\bnamespace\b\s*([\w:]*)\s*$")
TYPE = re.compile(r"^\s*(?:template\s*<.*>\s*)?(?:struct|class|union|enum(?:\s+class)?)\s+(\w+)\s*(?:final\s*)?(?::[^:].*)?$", re.DOTALL)


def without_preprocessor(text):
    return re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.MULTILINE)


def types_of(text):
    """Yields (namespace, name) for each definition."""
    scopes = []  # names of the open namespaces, None for any other open brace
    head = ""
    for token in TOKEN.findall(NOT_CODE.sub(" ", without_preprocessor(text))):
        if token == "{":
            namespace, kind = NAMESPACE.search(head), TYPE.match(head.replace("\n", " "))
            if kind and all(scopes):
                yield "::".join(scopes), kind[1]
            scopes.append(namespace[1] or None if namespace else None)
        elif token == "}":
            if scopes:
                scopes.pop()
        head = "" if token in "{};" else token


def main():
    found = collections.defaultdict(list)
    files = tree.files("src", ".h", ".cpp") + tree.files("include", ".h", ".hpp")
    for path in files:
        for name in types_of(path.read_text()):
            found[name].append(tree.name_of(path))
    twice = {name: paths for name, paths in found.items() if len(paths) > 1}
    for (namespace, name), paths in sorted(twice.items()):
        print(f"{namespace}::{name} is defined {len(paths)} times: {', '.join(map(str, paths))}")
    if not found:
        print("no type was found at all")
    sys.exit(bool(twice) or not found)


if __name__ == "__main__":
    main()
