"""A page of HTML as a screen reader has it."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

#: Elements without an end.
VOID = {"meta", "br", "input"}


class Page(HTMLParser):
    """Elements with their attributes and texts; a tag that is not closed in order fails the test."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[dict[str, Any]] = []
        self.elements: list[dict[str, Any]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        element = {"tag": tag, "attrs": dict(attrs), "text": "", "inside": [one["tag"] for one in self.open]}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element["text"] += data

    def of(self, tag: str) -> list[dict[str, Any]]:
        return [element for element in self.elements if element["tag"] == tag]

    def tags(self) -> set[str]:
        return {element["tag"] for element in self.elements}
