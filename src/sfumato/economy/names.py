"""Names of places that exist nowhere."""

from itertools import product

from sfumato.economy.streams import Purpose, stream


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_FIRST = _words("""
    Alder Amber Apple Ash Barley Beech Bell Birch Bramble Briar Brindle Bry Cinder Clover Copper Cran
    Dapple Dove Elder Ember Fair Fal Fen Fern Finch Flint Fox Gander Glen Gold Gorse Hazel Heather Heron
    Hollin Honey Iron Ivy Juniper Kestrel Lark Laurel Linden Maple Marl Marsh Meadow Merry Mill Moss
    Nettle Oak Old Orchard Otter Owl Pebble Pine Plum Quill Raven Reed River Robin Rose Rowan Rush Sage
    Sand Silver Sorrel Spar Star Stone Summer Swan Tansy Teasel Thistle Thorn Violet Walnut Wester Wheat
    Willow Winter Wren Yarrow
""")
_LAST = _words("""
    bank beck bourne bridge brook bury by cliff combe cote cross dale dell den fall field ford gate glade
    grove ham haven hill holm hurst lake land leigh lock mead mere mill mont moor mouth pool port ridge
    shaw side stead stoke thorpe ton vale view water well wick wold wood worth
""")
_BEFORE = ("North", "South", "East", "West", "Upper", "Lower", "New", "Great", "Little", "High")

_PLAIN = tuple(first + last for first, last in product(_FIRST, _LAST) if first.lower() != last)

MOST = len(_PLAIN) * (1 + len(_BEFORE))
"""The number of names there are."""


def place_names(count: int, *, seed: int) -> list[str]:
    """Distinct names, the plain ones first: "Alderbrook" comes before any "North Alderbrook"."""
    shuffled = [_PLAIN[i] for i in stream(seed, Purpose.NAMES).permutation(len(_PLAIN))]
    if count <= len(shuffled):
        return shuffled[:count]
    qualified = [f"{before} {name}" for name, before in product(shuffled, _BEFORE)]
    return shuffled + qualified[: count - len(shuffled)]
