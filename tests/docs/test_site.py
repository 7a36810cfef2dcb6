"""Links of the pages lead to pages and headings; the check of the built site finds what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT
from tests.docs.site import main, wrong

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
#: Pages that are beside the site.
BESIDE = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the site and hosts of repositories make them."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    plain = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in _HEADING.findall(text))
    return {re.sub(r"\s+", "-", heading) for heading in plain}


@pytest.mark.parametrize("page", [*PAGES, *BESIDE], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_what_is_wrong_with_a_site_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(str(tmp_path)) == 1
    page = tmp_path / "a" / "index.html"
    page.parent.mkdir()
    page.write_text('<h1 id="top"><a href="../">home</a><a href="#top">up</a></h1>')
    home = tmp_path / "index.html"
    home.write_text(
        '<a href="a/#top">a</a><a href="https://example.org">out</a><link rel="canonical" href="https://x.org">'
    )
    assert main(str(tmp_path)) == 0 and "2 pages" in capsys.readouterr().out
    home.write_text(
        '<a href="b/">b</a><a href="a/#end">a</a><script src="https://example.org/x.js"></script><img src="p.png">'
    )
    assert list(wrong(tmp_path)) == [
        "index.html: loads https://example.org/x.js",
        "index.html: p.png leads nowhere",
        "index.html: b/ leads nowhere",
        "index.html: a/#end has no such anchor",
    ]
