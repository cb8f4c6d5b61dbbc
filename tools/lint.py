#!/usr/bin/env python3
"""Prints the lines that break a rule of the project which neither compiler nor formatter knows."""
import re
import sys

# Each rule has a pattern of code, a pattern of file names, and what to do instead.
RULES = [
    (r"\bthrow\b", r"^(src|include)/", "return a Result (support/result.h)"),
    (r"\busing namespace std\b", r"", "spell std:: out"),
    (r"\bTODO\b(?!\(#\d+\))", r"", "write TODO(#number), or do it"),
    (r"[\"'](/work|/root|/home|/Users)/", r"", "a path of one machine"),
    (r"[\"']/tmp/\w", r"^(src|include)/", "ask std::filesystem::temp_directory_path()"),
    (r"\bassert\(", r"^src/(?!runtime/module/|graph/routines/)", "CHECK or DCHECK (support/check.h)"),
    (r"\bstd::(mt19937|random_device|default_random_engine)\b|\brand\(\)", r"^src/",
     "chance enters as an Rng& (support/rng.h)"),
    (r"\bsystem\(", r"^src/", "start a process with its arguments, without a shell"),
]
# A comment that begins so is a fragment whose subject is left out.
FRAGMENT = r"(?:of|that|what|where|which|as|by|from|for)\b"
BEHIND_CODE = re.compile(rf"\S.*(?://|/\*) {FRAGMENT}")
ALONE = re.compile(rf"^\s*(?:///?|/\*) {FRAGMENT}", re.IGNORECASE)
FILE_NAME = re.compile(r"(^|_)(utils?|manager|helpers?|info)\b")


def code_of(line):
    """Returns the line without its strings and its comment. Strings that begin with "/" are kept,
    and so are comments with TODO."""
    line = re.sub(r'"(?![/])(?:[^"\\]|\\.)*"', '""', line)
    return re.sub(r"(?<!:)//.*", lambda m: m.group(0) if "TODO" in m.group(0) else "", line)


def slips(path, text):
    previous = ""
    for number, line in enumerate(text.splitlines(), 1):
        code = code_of(line)
        for pattern, where, instead in RULES:
            if re.search(where, path) and re.search(pattern, code):
                yield f"{path}:{number}: {line.strip()}  <- {instead}"
        in_string = line.count('"', 0, max(line.find("// "), 0)) % 2 == 1
        begins = not in_string and BEHIND_CODE.search(line) and not re.match(r"\s*(//|/\*|\*)", line)
        if begins or (re.match(r"(src|include|plugins)/", path) and ALONE.search(line)
                      and not previous.lstrip().startswith("//")):
            yield f"{path}:{number}: {line.strip()}  <- a comment names its subject first"
        previous = line
    name = path.rsplit("/", 1)[-1]
    if FILE_NAME.search(name.split(".")[0]):
        yield f"{path}: a name that says nothing; call it after its one main thing"
    if re.match(r"src/(?!runtime/module/|graph/routines/).*\.h$", path):
        if not text.startswith("//"):
            yield f"{path}:1: the first line says what goes in and what comes out"
        if "#pragma once" not in text:
            yield f"{path}:1: #pragma once is missing"


def main():
    if len(sys.argv) < 2:
        sys.exit("lint: no file is named")
    found = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            found += slips(path, file.read())
    print("\n".join(found) if found else f"lint: {len(sys.argv) - 1} files, nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
