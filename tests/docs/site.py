"""`python -m tests.docs.site site`: whether the built site is whole, without a network.

Every link, picture, script and style of every page must lead to a file of the site, and every `#anchor` to an element;
what a page loads may not come from another host. Links to other hosts are not followed. The exit code is 1 if something
is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: What a page loads by itself, and what a reader follows.
_LOADED = {"img": "src", "script": "src", "link": "href", "source": "src", "iframe": "src"}
#: Links that say what a page is, and load nothing.
_NOT_LOADED = {"canonical", "next", "prev", "alternate"}


@dataclass
class Page(HTMLParser):
    """What a page of HTML holds: the ids of its elements, what it loads and where its links lead."""

    ids: set[str] = field(default_factory=set)
    loads: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids.update(found[key] or "" for key in ("id", "name") if key in found)
        target = found.get(_LOADED.get(tag, "href"))
        if target and not (tag == "link" and set((found.get("rel") or "").split()) & _NOT_LOADED):
            (self.loads if tag in _LOADED else self.links).append(target)


def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def file_of(site: Path, page: Path, link: str) -> Path:
    """The file that a link of a page means; a folder means its `index.html`."""
    path = unquote(urlsplit(link).path)
    found = site / path.lstrip("/") if path.startswith("/") else page.parent / path if path else page
    return found / "index.html" if found.is_dir() else found


def wrong(site: Path) -> Iterator[str]:
    """A line for every link that leads nowhere, and for everything that is loaded from another host."""
    pages = {path.resolve(): read(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for link in (*page.loads, *page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    yield f"{name}: loads {link}"
                continue
            target = file_of(site.resolve(), path, link).resolve()
            if not target.is_file():
                yield f"{name}: {link} leads nowhere"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                yield f"{name}: {link} has no such anchor"


def main(folder: str) -> int:
    site = Path(folder)
    if not (site / "index.html").is_file():
        print(f"no site in {folder}: zensical build makes it", file=sys.stderr)
        return 1
    found = list(wrong(site))
    print("\n".join(found) or f"{len(list(site.rglob('*.html')))} pages, every link leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:] or ["site"]))
