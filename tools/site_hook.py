"""Extends mkdocs (mkdocs.yml) beyond docs/.

The site also has the results and the changelog. If a link leads to another file of the tree, the
site shows the path of the file. A page that the navigation does not have is a warning.
"""
import logging
import os
import posixpath
import re

from mkdocs.structure.files import File

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
log = logging.getLogger("mkdocs.site_hook")


def added():
    """Returns the files outside docs/ that are part of the site. The result maps the path in the
    tree to the path among the pages."""
    results = {f"bench/results/{name}": f"results/{name}" for name in os.listdir(f"{ROOT}/bench/results")}
    return {"CHANGELOG.md": "changelog.md"} | results


def on_files(files, config):
    for source, place in sorted(added().items()):
        file = File(place, ROOT, config["site_dir"], config["use_directory_urls"])
        file.abs_src_path = f"{ROOT}/{source}"
        files.append(file)
    return files


def on_nav(nav, config, files):
    listed = {page.file.src_uri for page in nav.pages}
    for file in files.documentation_pages():
        if file.src_uri not in listed:
            log.warning(f"{file.src_uri} has no place in the navigation of mkdocs.yml")
    return nav


def on_page_markdown(markdown, page, config, files):
    places = added()
    here = {place: source for source, place in places.items()}.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def on_the_site(match):
        image, label, target, anchor = match.groups()
        if ":" in target:
            return match.group(0)
        path = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
        place = path[len("docs/"):] if path.startswith("docs/") else places.get(path)
        if place:
            place = posixpath.relpath(place, posixpath.dirname(page.file.src_uri))
            return f"{image}[{label}]({place}{anchor or ''})"
        return f"`{path}`" if path.endswith(label.strip("`")) else f"{label} (`{path}`)"

    return LINK.sub(on_the_site, markdown)
