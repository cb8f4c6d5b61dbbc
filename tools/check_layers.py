#!/usr/bin/env python3
"""Checks the includes of src/. A layer includes only itself and its DEPS, which stand above it in
CMakeLists.txt. A third-party library is included only in its one door."""
import sys

import tree

# Maps the start of an include's path to the file or folder that may have the include.
DOORS = {
    "llvm/": "src/codegen/llvm/",
    "llvm-c/": "src/codegen/llvm/",
    "lld/": "src/codegen/llvm/",
    "onnx/": "src/graph/onnx/",
    "google/protobuf/": "src/graph/onnx/",
    "CLI/": "src/cli/",
    "nats/": "src/fleet/nats_broker.cpp",
    "openssl/": "src/fleet/nkey.cpp",
    "nlohmann/": "src/support/json.h",
    "spdlog/": "src/support/log.",
    "tl/": "src/support/result.h",
    "xxhash.h": "src/support/hash.cpp",
    "torch/": "src/model/nn/torch/",
    "zip.h": "src/support/zip.cpp",
    "zstd.h": "src/support/zstd.cpp",
}


def main():
    layers = tree.layers()
    found = []
    used = {name: set() for name in layers}
    order = list(layers)
    for name, deps in layers.items():
        for dep in deps:
            if dep not in order[: order.index(name)]:
                found.append(f"CMakeLists.txt: {name} declares {dep}, which does not stand above it")
    for path in tree.files("src", ".h", ".cpp", ".c"):
        name = tree.name_of(path)
        layer = name.split("/")[1]
        if layer not in layers:
            found.append(f"{name}: {layer} is no layer of CMakeLists.txt")
            continue
        for line, included, ours in tree.includes(path):
            target = included.split("/")[0]
            if ours and target in layers and target != layer:
                used[layer].add(target)
                if target not in layers[layer]:
                    found.append(f"{name}:{line}: {layer} may not include {included}")
            for start, door in DOORS.items():
                if included.startswith(start) and not name.startswith(door):
                    found.append(f"{name}:{line}: {included} is included only in {door}")
    if "--used" in sys.argv[1:]:
        for layer in order:
            print(f"{layer}: {' '.join(x for x in order if x in used[layer])}")
    print("\n".join(found) if found else f"layers: {len(order)}, every include points up the list")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
