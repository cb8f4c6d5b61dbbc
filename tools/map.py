#!/usr/bin/env python3
"""Prints the map of the source tree.

The map has every layer with its headers; each header comes with the first sentence of its first
comment. Then the map has a line for each kind of thing in a table: the place of the table, and the
number of source files that name a row of it.
"""
import re
import textwrap

import tree


# Each row is kind: (place of the kind's rows, pattern of a file that names a row).
KINDS = {
    "dtype": ("include/pruner/dtype.h", r"\bDType::k"),
    "backend": ("src/target/backend.h", r"\bBackend::k"),
    "scalar operator": ("src/tensor/scalar_ops.h", r"\bBinaryOp::k"),
    "scalar function": ("src/tensor/scalar_ops.h", r"\bIntrinsic::k"),
    "graph operator": ("src/graph/ops", r'\bop [!=]= "[A-Z]|starts_with\("[A-Z]'),
    "structure of a contraction": ("src/space/structures.cpp", r"\bk(RegisterTile|CacheTile|BlockTile)\b"),
    "cost-model network": ("src/model/architecture.h", r"\bk(Pacm|TenSetMlp|Tlp)\b"),
}


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
    print("files that name one")
    sources = tree.files("src", ".cpp", ".h")
    for kind, (rows, name) in KINDS.items():
        count = sum(bool(re.search(name, path.read_text())) for path in sources)
        print(f"  {kind} (rows in {rows}): {count}")


if __name__ == "__main__":
    main()
