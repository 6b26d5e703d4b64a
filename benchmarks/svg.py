"""Pictures of the documentation as SVG: lines, dots, boxes and words on a white ground, and axes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

BLUE, ORANGE, RED, GREEN, GREY, DARK = "#06c", "#c60", "#c22", "#282", "#777", "#222"
SIZE = 12


@dataclass
class Picture:
    """An SVG on a white ground, which is readable where a page is dark, too.

    title, description: what a screen reader says of it.
    """

    title: str
    width: int
    height: int
    description: str
    parts: list[str] = field(default_factory=list)

    def line(
        self, points: Iterable[tuple[float, float]], colour: str, width: float = 1.5, dash: str = ""
    ) -> None:
        path = "L".join(f"{x:g} {y:g}" for x, y in points)
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<path d="M{path}" stroke="{colour}" stroke-width="{width:g}" fill="none"{dashes}/>'
        )

    def dot(self, x: float, y: float, colour: str, radius: float = 4.5) -> None:
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{colour}"/>')

    def diamond(self, x: float, y: float, colour: str) -> None:
        self.parts.append(f'<path d="M{x:g} {y - 6:g}l6 6l-6 6l-6 -6z" fill="{colour}"/>')

    def box(
        self, x: float, y: float, width: float, height: float, colour: str, opacity: float = 0.12
    ) -> None:
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" fill="{colour}" '
            f'opacity="{opacity:g}"/>'
        )

    def text(self, x: float, y: float, words: str, colour: str = DARK, anchor: str = "start") -> None:
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" fill="{colour}" text-anchor="{anchor}" stroke="#fff" '
            f'stroke-width="3" paint-order="stroke">{escape(words)}</text>'
        )

    def svg(self) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'font-family="sans-serif" font-size="{SIZE}" role="img">'
        )
        said = f"<title>{escape(self.title)}</title>\n  <desc>{escape(self.description)}</desc>"
        ground = f'<rect width="{self.width}" height="{self.height}" fill="#fff"/>'
        return "\n  ".join([head, said, ground, *self.parts]) + "\n</svg>\n"


def steps(points: list[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    """Return the corners of a line that stays level from each point to the next."""
    corners = []
    for (x, y), (until, _) in zip(points, [*points[1:], (end, 0.0)], strict=True):
        corners += [(x, y), (until, y)]
    return corners


class Axes:
    """A pair of axes in a picture: it turns values into places, and draws curves of values."""

    def __init__(
        self,
        picture: Picture,
        place: tuple[float, float, float, float],
        x: tuple[float, float],
        y: tuple[float, float],
    ) -> None:
        """Take the left, top, width and height of the axes, and the least and greatest x and y."""
        self.picture, self.x, self.y = picture, x, y
        self.left, self.top, self.width, self.height = place

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point stands, to a tenth of a pixel."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return round(self.left + self.width * across, 1), round(self.top + self.height * (1 - up), 1)

    def frame(
        self,
        x_words: str,
        y_words: str,
        x_ticks: Sequence[float],
        y_ticks: Sequence[float],
        x_text: Callable[[float], str] = "{:g}".format,
        y_text: Callable[[float], str] = "{:g}".format,
    ) -> None:
        """Draw both axes with their ticks and what they show."""
        bottom, right = self.top + self.height, self.left + self.width
        self.picture.line([(self.left, self.top), (self.left, bottom), (right, bottom)], GREY, 1)
        for tick in x_ticks:
            self.picture.text(self.at(tick, self.y[0])[0], bottom + 16, x_text(tick), GREY, "middle")
        for tick in y_ticks:
            self.picture.text(self.left - 6, self.at(self.x[0], tick)[1] + 4, y_text(tick), GREY, "end")
        self.picture.text(right, bottom + 33, x_words, GREY, "end")
        self.picture.text(self.left, self.top - 8, y_words, GREY)

    def curve(
        self, x: Iterable[float], y: Iterable[float], colour: str, width: float = 1.8, dash: str = ""
    ) -> None:
        self.picture.line([self.at(*point) for point in zip(x, y, strict=True)], colour, width, dash)

    def band(
        self,
        x: Sequence[float],
        low: Sequence[float],
        high: Sequence[float],
        colour: str,
        opacity: float = 0.15,
    ) -> None:
        """Fill what lies between two curves."""
        edge = [*zip(x, high, strict=True), *zip(reversed(x), reversed(low), strict=True)]
        path = "L".join("{:g} {:g}".format(*self.at(*point)) for point in edge)
        self.picture.parts.append(f'<path d="M{path}z" fill="{colour}" opacity="{opacity:g}"/>')

    def dot(self, x: float, y: float, colour: str, radius: float = 3.5) -> None:
        self.picture.dot(*self.at(x, y), colour, radius)

    def text(self, x: float, y: float, words: str, colour: str = DARK, anchor: str = "start") -> None:
        self.picture.text(*self.at(x, y), words, colour, anchor)


def write(pictures: dict[str, Callable[[], Picture]]) -> None:
    """Draw each picture into a file of its name, in the folder of the command line or in docs/img."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "img"
    for name, draw in pictures.items():
        (folder / f"{name}.svg").write_text(draw().svg(), "utf-8")
