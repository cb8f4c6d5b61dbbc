#!/usr/bin/env python3
"""Checks that the base, files, package lists and preset that the Dockerfile names exist.

Nothing is built, so that the check also runs on a machine without a container engine.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def instructions(text):
    """Yields each instruction as a pair such as ("RUN", "a && b"), with continued lines joined."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            yield word, rest


def missing(name, rest):
    """Yields a text for each thing that an instruction names and that does not exist."""
    if name == "FROM" and rest != "debian:12":
        yield f"{rest}: tools/packages.sh has the packages of debian:12"
    if name == "COPY":
        paths = rest.split()[:-1]
    else:
        paths = re.findall(r"(?<![\w/])(?:\./)?(?:tools/)?\w+\.sh\b", rest)
    for path in paths:
        if not (ROOT / path).exists():
            yield f"no file {path}"
    lists = (ROOT / "tools/packages.sh").read_text()
    for word in re.findall(r"\$(\w+_packages)", rest) + re.findall(r"\binstall_\w+", rest):
        if not re.search(rf"^{word}(=|\(\))", lists, re.MULTILINE):
            yield f"tools/packages.sh has no {word}"
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    for preset in re.findall(r"--preset (\w+)", rest):
        if preset not in [p["name"] for p in presets]:
            yield f"no preset {preset}"


def main():
    text = (ROOT / "Dockerfile").read_text()
    if not any(name == "RUN" for name, _ in instructions(text)):
        sys.exit("Dockerfile: no instruction was found that builds anything")
    found = [f"Dockerfile: {name}: {what}" for name, rest in instructions(text)
             for what in missing(name, rest)]
    print("\n".join(found) if found else "container: what the Dockerfile names is here")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
