#!/usr/bin/env python3
"""Checks the prose of Markdown pages: everything but tables, code and headings.

A line has at most 100 columns, and a sentence of README.md or of a page in docs at most 35 words.
The option --fix wraps paragraphs and list items with a longer line, and leaves others unchanged.
"""
import re
import sys

import tree

WIDTH = 100
MOST_WORDS = 35
END = re.compile(r"(?<=[.!?:;])\s+")  # the end of a sentence or of a list's item
WORD = re.compile(r"(?:\[[^\]]*\]\([^)]*\)|`[^`]*`|\S)+")  # a link or inline code is one word
ITEM = re.compile(r"^(\s*)([-*+]|\d+[.)])(\s+)")
# At the start of a line such a word would begin a block of its own.
MARK = re.compile(r"^([-*+]|\d+[.)]|#+|>|\||```.*|:?-+:?)$")


def words_of(text):
    """Returns the words of a text. A word that would begin a block at the start of a line is joined
    to the word before it."""
    words = []
    for word in WORD.findall(text):
        if words and MARK.match(word):
            words[-1] += " " + word
        else:
            words.append(word)
    return words


def wrap(first, rest, text):
    """Returns the text in lines. `first` stands before the first line, `rest` before each other
    line."""
    lines, line = [], first
    begins = True
    for word in words_of(text):
        if not begins and len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line, begins = rest, True
        line += word if begins else " " + word
        begins = False
    return lines + [line]


def is_prose(line):
    return bool(line.strip()) and not re.match(r"^\s*(\||#|```|~~~|<|!!!|\?\?\?|>|\[[^\]]+\]:)", line)


def too_long(line):
    return len(line) > WIDTH and len(WORD.findall(ITEM.sub("", line))) > 1


def blocks(lines):
    """Yields paragraphs, list items and other lines, each as (lines, whether these are prose)."""
    block, in_fence, listed = [], False, False

    def kind():
        nonlocal listed
        indent = len(block[0]) - len(block[0].lstrip())
        item = ITEM.match(block[0])
        listed = bool(item) or (listed and (indent > 0 or not block[0].strip()))
        return is_prose(block[0]) and (indent < 4 or listed)

    for line in lines:
        fence = bool(re.match(r"^\s*(```|~~~)", line))
        begins = ITEM.match(line) or not is_prose(line) or (block and not is_prose(block[-1]))
        if block and (begins or fence or in_fence):
            yield block, kind()
            block = []
        if fence or in_fence:
            yield [line], False
            in_fence ^= fence
        else:
            block.append(line)
    if block:
        yield block, kind()


def wrapped(text):
    made = []
    for block, prose in blocks(text.split("\n")):
        breaks = any(line.endswith("  ") for line in block)  # two spaces break a line
        if not prose or breaks or not any(map(too_long, block)):
            made += block
            continue
        item = ITEM.match(block[0])
        first = item.group(0) if item else re.match(r"^\s*", block[0]).group(0)
        made += wrap(first, " " * len(first), " ".join(block)[len(first):])
    return "\n".join(made)


def long_lines(text):
    """Yields the numbers of the lines that are too long."""
    number = 0
    for block, prose in blocks(text.split("\n")):
        for line in block:
            number += 1
            if prose and too_long(line):
                yield number


def long_sentences(text):
    """Yields (number of its block's first line, number of words) for each sentence that is too
    long."""
    number = 1
    for block, prose in blocks(text.split("\n")):
        for sentence in END.split(" ".join(block)) if prose else []:
            if len(sentence.split()) > MOST_WORDS:
                yield number, len(sentence.split())
        number += len(block)


def main():
    fix = "--fix" in sys.argv[1:]
    found = []
    pages = tree.listed("*.md")
    for name in pages:
        path = tree.ROOT / name
        text = path.read_text(encoding="utf-8")
        if fix and (made := wrapped(text)) != text:
            path.write_text(made, encoding="utf-8")
            text = made
        found += [f"{name}:{number}: longer than {WIDTH} columns" for number in long_lines(text)]
        if name.startswith("docs/") or name == "README.md":
            found += [f"{name}:{number}: a sentence of {words} words"
                      for number, words in long_sentences(text)]
    print("\n".join(found) if found else f"pages: {len(pages)}, no line over {WIDTH} columns, no sentence over {MOST_WORDS} words")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
