#!/usr/bin/env python3
"""check_site.py FOLDER: checks a built site.

Every link leads to a page, and to a place that the page has. All files that pages and styles load
lie in the folder. The search knows every page.
"""
import html.parser
import json
import pathlib
import re
import sys
import urllib.parse

LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src")}
STYLE_LINK = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class Page(html.parser.HTMLParser):
    """The places of a page (names that links may lead to), its links, and the files it loads."""

    def __init__(self, path):
        super().__init__()
        self.places, self.links, self.loads = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            if (tag, name) == ("a", "href"):
                self.links.append(value)
            if (tag, name) in LOADED:
                self.loads.append(value)


def wrong(site, pages):
    """Yields a line for each fault of the site."""
    for path, page in pages.items():
        for link in page.links + page.loads:
            url = urllib.parse.urlsplit(link or "")
            if url.scheme or url.netloc:
                if link in page.loads and url.scheme != "data":
                    yield f"{path}: loads {link}"
                continue
            target = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
            if url.path.startswith("/") or not target.exists():
                yield f"{path}: no {link}"
            elif url.fragment and target in pages and url.fragment not in pages[target].places:
                yield f"{path}: no place {link}"
    for path in site.rglob("*.css"):
        for found in STYLE_LINK.finditer(path.read_text(encoding="utf-8")):
            link = found[1] or found[2]
            if not link.startswith("data:") and not (path.parent / re.sub(r"[?#].*", "", link)).exists():
                yield f"{path}: loads {link}"


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    pages = {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}
    found = list(wrong(site, pages))
    entries = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]
    searched = {entry["location"].split("#")[0] or "index.html" for entry in entries}
    for path in pages:
        if path.name != "search.html" and path.relative_to(site).as_posix() not in searched:
            found.append(f"{path}: the search does not know it")
    print("\n".join(found) if found else f"site: {len(pages)} pages, nothing wrong")
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
