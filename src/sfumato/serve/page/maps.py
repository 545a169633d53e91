"""Maps of a view: its areas shaded, or flows between them, each linked with its row of the table."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product
from math import isfinite, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Flags
from sfumato.charts.maps import (
    CAUTION,
    MOST_AREAS,
    MOST_FLOWS,
    SURE,
    Area,
    Flow,
    MapPanel,
    draw_flows,
    draw_map,
)
from sfumato.charts.svg import Wording
from sfumato.geography.project import Projected
from sfumato.serve.core.status import REMARKS, Remark
from sfumato.serve.page.figures import format_figure
from sfumato.serve.page.language import ENGLISH, Language
from sfumato.serve.page.rating import Numbers
from sfumato.serve.page.sheet import shown_part
from sfumato.serve.page.view import Edge, View

MOST_PANELS = 6
FEWEST_AREAS = 2
_LISTED = 5


class Drawn(NamedTuple):
    """A map, and what is to be said of it."""

    svg: str
    notes: tuple[str, ...]


def suits_map(view: View) -> bool:
    """Whether a map shows all of a view: one variable on a map with few columns, or the two ends of flows."""
    found = Mapped.of(view)
    return found is not None and (found.destination is not None or found.others <= found.most_panels)


def draw(view: View, *, title: str, name: str, linked: bool, directed: bool, say: Language = ENGLISH) -> Drawn | None:
    """The map of a view, of its first figure; None where none of its variables is on a map."""
    found = Mapped.of(view)
    if found is None:
        return None
    mapped = replace(found, linked=linked, say=say)
    return mapped.flows(title, name, directed=directed) if mapped.destination is not None else mapped.areas(title, name)


@dataclass(frozen=True, kw_only=True, eq=False)
class Mapped:
    """A view with the variable that is on a map, or with the two that are on the same one."""

    view: View
    place: int
    """Of the variable, among those of rows and columns."""
    destination: int | None = None
    """Of the other end of flows."""
    linked: bool = True
    say: Language = ENGLISH

    @classmethod
    def of(cls, view: View) -> "Mapped | None":
        """The variables of a view that are on a map, if any is, with not too many areas."""
        edges = (*view.rows, *view.columns)
        mapped = [at for at, edge in enumerate(edges) if edge.geography is not None]
        for at in mapped:
            same = [place for place in mapped if edges[place].geography is edges[at].geography and place > at]
            if len(edges[at].single) >= FEWEST_AREAS and sum(map(len, edges[at].members)) <= MOST_AREAS:
                if same and edges[same[0]].origin:
                    return cls(view=view, place=same[0], destination=at)
                return cls(view=view, place=at, destination=same[0] if same else None)
        return None

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The variables of rows, then those of columns."""
        return (*self.view.rows, *self.view.columns)

    @property
    def geography(self) -> Projected:
        """The map."""
        found = self.edges[self.place].geography
        assert found is not None
        return found

    @property
    def ends(self) -> tuple[int, ...]:
        """The places of the variables that are on the map."""
        return (self.place,) if self.destination is None else (self.place, self.destination)

    @property
    def others(self) -> int:
        """How many maps there are: combinations of the codes of all other variables."""
        return prod(len(edge.single) for at, edge in enumerate(self.edges) if at not in self.ends)

    @property
    def most_panels(self) -> int:
        """How many maps there is room for: of many areas, fewer."""
        return max(min(MOST_PANELS, MOST_AREAS // sum(map(len, self.edges[self.place].members))), 1)

    def combinations(self) -> Iterator[tuple[tuple[int, ...], str]]:
        """What the maps are of: places in all variables, 0 in those on the map, and the texts of the others."""
        choices = [[0] if at in self.ends else edge.single for at, edge in enumerate(self.edges)]
        for places in product(*choices):
            chosen = [edge.texts[place] for edge, place in zip(self.edges, places, strict=True)]
            yield places, ", ".join(text for at, text in enumerate(chosen) if at not in self.ends)

    # Figures with what is said of them.

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        return tuple(len(edge.texts) for edge in self.edges)

    @cached_property
    def _lines(self) -> dict[int, int]:
        """Where rows stand in the table, as far as they are shown."""
        part = shown_part(self.view)
        return {row: line for line, row in enumerate(self.view.order[part.top : part.bottom])}

    def _cell(self, places: Sequence[int]) -> tuple[int, int]:
        rows = len(self.view.rows)
        return tuple(  # type: ignore[return-value]
            int(np.ravel_multi_index(tuple(part), size)) if size else 0
            for part, size in ((places[:rows], self._shape[:rows]), (places[rows:], self._shape[rows:]))
        )

    def figure(self, places: Sequence[int]) -> tuple[float, int, str]:
        """The figure of a combination, how far it can be relied on, and both in words."""
        view, (row, column) = self.view, self._cell(places)
        value, said = float(view.values[row, column, view.first]), REMARKS[int(view.remarks[row, column, view.first])]
        metric = view.metrics[view.first]
        if not isfinite(value):
            return value, SURE, self._said(said) or self.say("not published")
        text = self._written(value) + ("%" if view.percent and metric.additive else "")
        about = {one.kind: at for at, one in enumerate(view.metrics) if one.about == metric.code}
        for kind, words in (("rse", "relative error {error}%"), ("error", "error {error}")):
            if kind in about and isfinite(error := float(view.values[row, column, about[kind]])):
                written = self.say.figures(format_figure(error, view.metrics[about[kind]], percent=view.percent))
                text += ", " + self.say(words, error=written)
                break
        remarked = f"{text}; {self._said(said)}" if said.text else text
        return value, max(said.mark, CAUTION if said.symbol else SURE), remarked

    def _said(self, remark: Remark) -> str:
        return ", ".join(self.say(part.text) for part in remark.parts)

    def link(self, places: Sequence[int]) -> str:
        """The head of the row that has a combination, or that of its column where the map is of columns."""
        row, column = self._cell(places)
        if not self.linked:
            return ""
        if min(self.ends) < len(self.view.rows):
            return f"r{len(self.view.rows) - 1}-{self._lines[row]}" if row in self._lines else ""
        part = shown_part(self.view)
        return f"c{len(self.view.columns) - 1}-{column}" if part.left <= column < part.right else ""

    def at(self, places: Sequence[int], *chosen: int) -> list[int]:
        """A combination with other codes of the variables on the map."""
        found = list(places)
        for end, code in zip(self.ends, chosen, strict=True):
            found[end] = code
        return found

    # Areas.

    def areas(self, title: str, name: str) -> Drawn:
        """A map for every combination of the other variables, as many as there is room for."""
        edge = self.edges[self.place]
        panels, kept = [], self._in_order(edge)
        for places, texts in islice(self.combinations(), self.most_panels):
            areas: dict[str, Area] = {}
            for entry in kept:
                value, mark, said = self.figure(self.at(places, entry))
                area = Area(value, mark, f"{edge.texts[entry]}: {said}", self.link(self.at(places, entry)))
                areas |= {code: area for code in edge.members[entry] if code in self.geography.boxes}
            panels.append(MapPanel(texts, areas))
        lost = [edge.texts[at] for at in kept if not any(code in self.geography.boxes for code in edge.members[at])]
        notes = (*self._summary(panels), *self._lost(lost), *self._cut())
        svg = draw_map(
            self.geography,
            panels,
            title=title,
            name=name,
            description=" ".join(notes),
            text=self._written,
            wording=self._wording,
        )
        return Drawn(svg, notes)

    def _in_order(self, edge: Edge) -> list[int]:
        """The entries of the variable on the map in the order of the table."""
        if self.view.rows != (edge,):
            return edge.single
        return [row for row in self.view.order if row != edge.total]

    def _written(self, value: float) -> str:
        return self.say.figures(format_figure(value, self.view.metrics[self.view.first], percent=self.view.percent))

    @property
    def _wording(self) -> Wording:
        return Wording(say=self.say, figures=self.say.figures)

    def _summary(self, panels: Sequence[MapPanel]) -> Iterator[str]:
        """The highest and the lowest area, and how many are hatched, in words."""
        known = [area for area in panels[0].areas.values() if isfinite(area.value)]
        if len(panels) == 1 and known:
            high, low = max(known, key=lambda area: area.value), min(known, key=lambda area: area.value)
            yield self.say("Highest: {high}. Lowest: {low}.", high=_first(high.text), low=_first(low.text))
        every = [area for panel in panels for area in panel.areas.values()]
        hatched = sum(area.mark > SURE and isfinite(area.value) for area in every)
        if hatched:
            yield self.say(
                "{hatched} of {all} areas are hatched: uncertain figures, as marked in the table.",
                hatched=self.say.number(hatched),
                all=self.say.number(len(every)),
            )

    def _lost(self, names: Sequence[str]) -> Iterator[str]:
        if names:
            more = len(names) - _LISTED
            also = self.say(" and {count} more", count=self.say.number(more)) if more > 0 else ""
            yield self.say("Not on the map: {areas}.", areas=f"{', '.join(names[:_LISTED])}{also}")

    def _cut(self) -> Iterator[str]:
        if self.others > self.most_panels:
            yield self.say(
                "The chart shows {shown} of {all} maps: make the other variables filters to see them one by one.",
                shown=self.most_panels,
                all=self.say.number(self.others),
            )

    # Flows.

    def flows(self, title: str, name: str, *, directed: bool) -> Drawn:
        """The largest flows of the first combination of the other variables."""
        assert self.destination is not None
        origins, destinations = self.edges[self.place], self.edges[self.destination]
        places, texts = next(self.combinations())
        figures = self._between(places)
        here, there = _codes(origins), _codes(destinations)
        known = [np.isin(codes, list(self.geography.boxes)) for codes in (here, there)]
        drawn = (figures > 0) & known[0][:, None] & known[1][None, :]
        same = here[:, None] == there[None, :]
        if not directed:  # where both ways are shown they are one pair
            twice = np.isin(here, there)[:, None] & np.isin(there, here)[None, :]
            drawn &= ~twice | (here[:, None] <= there[None, :])
        between = self._largest(drawn & ~same, figures, places, MOST_FLOWS, directed=directed)
        within = self._largest(drawn & same, figures, places, len(here), directed=directed)
        notes = [*self._told(between, within, texts, int((drawn & ~same).sum()))]
        codes = [code for edge in (origins, destinations) for some in edge.members for code in some]
        svg = draw_flows(
            self.geography,
            [*between, *within],
            codes=[code for code in dict.fromkeys(codes) if code in self.geography.boxes],
            directed=directed,
            title=title,
            name=name,
            description=" ".join(notes),
            text=self._written,
            wording=self._wording,
        )
        return Drawn(svg, tuple(notes))

    def _between(self, places: Sequence[int]) -> Numbers:
        """The figures of one combination of the other variables, by origin and destination."""
        figures = self.view.values[..., self.view.first].reshape(self._shape)
        chosen = tuple(slice(None) if at in self.ends else place for at, place in enumerate(places))
        found: Numbers = figures[chosen] if self.ends[0] < self.ends[1] else figures[chosen].T
        return found

    def _largest(
        self, which: Flags, figures: Numbers, places: Sequence[int], most: int, *, directed: bool
    ) -> list[Flow]:
        """The largest of some flows, in words."""
        rows, columns = np.nonzero(which)
        order = np.argsort(-figures[rows, columns], kind="stable")[:most]
        return [self._flow(places, int(rows[at]), int(columns[at]), directed=directed) for at in order]

    def _flow(self, places: Sequence[int], origin: int, destination: int, *, directed: bool) -> Flow:
        origins, destinations = (self.edges[at] for at in self.ends)
        here, there = origins.members[origin][0], destinations.members[destination][0]
        names = origins.texts[origin], destinations.texts[destination]
        between = "{begin} to {end}" if directed else "{begin} and {end}"
        ends = (
            self.say("Within {area}", area=names[0])
            if here == there
            else self.say(between, begin=names[0], end=names[1])
        )
        chosen = self.at(places, origin, destination)
        value, _, said = self.figure(chosen)
        return Flow(here, there, value, f"{ends}: {said}", self.link(chosen))

    def _told(self, between: Sequence[Flow], within: Sequence[Flow], texts: str, count: int) -> Iterator[str]:
        if texts:
            yield self.say("Shown: {what}.", what=texts)
        if between:
            first = "; ".join(_first(flow.text) for flow in between[:3])
            yield self.say("Largest: {flows}.", flows=first)
        if len(between) < count:
            yield self.say(
                "Lines are the {shown} largest of {all} flows.", shown=len(between), all=self.say.number(count)
            )
        if within:
            yield self.say("Circles are what stays within an area, on a scale of their own.")


def _codes(edge: Edge) -> NDArray[np.str_]:
    """The area of every entry: of a group its first, of a total none."""
    members = [some[0] for some in edge.members]
    return np.array(["" if at == edge.total else members[at] for at in range(len(edge.texts))])


def _first(text: str) -> str:
    """A name and its figure, without what else is said.

    >>> _first("Upper Ford, West: 1,200, error 30; error 25 % or more")
    'Upper Ford, West: 1,200'
    """
    name, _, figure = text.rpartition(": ")
    return f"{name}: {re.split('[;,] ', figure)[0]}"
