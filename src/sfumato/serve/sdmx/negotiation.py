"""Which format a client wants: by the header Accept, or by name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sfumato.serve.errors import RefusedError

_LONGEST = 4_000


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A format: its name, and the media types a client may ask for it by, the first of which is its own."""

    name: str
    version: str
    media_types: tuple[str, ...]

    def content_type(self, media_type: str) -> str:
        """How the answer calls itself to a client that asked for one of the media types."""
        own = media_type == self.media_types[0]
        return f"{media_type};version={self.version}" if own else f"{media_type}; charset=utf-8"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A media type or range that a client accepts."""

    media_type: str
    version: str | None
    quality: float

    def fits(self, offer: Offer) -> str | None:
        """The media type of an offer that is accepted, if one is."""
        if self.version is not None and _short(self.version) != _short(offer.version):
            return None
        if self.media_type == "*/*":
            return offer.media_types[0]
        kind, _, rest = self.media_type.partition("/")
        if rest == "*":
            return next((one for one in offer.media_types if one.startswith(f"{kind}/")), None)
        return next((one for one in offer.media_types if one == self.media_type), None)


def negotiated(offers: Sequence[Offer], *, accept: str | None, name: str | None) -> tuple[Offer, str]:
    """The offer to make, and its content type; a name comes before the header, and without either the first one."""
    if name is not None:
        for offer in offers:
            if offer.name == name.lower():
                return offer, offer.content_type(offer.media_types[0])
        known = ", ".join(offer.name for offer in offers)
        raise RefusedError("format", expected=f"one of {known}", found=name, do="choose one of them")
    ranked = sorted(_read(accept or "*/*"), key=lambda one: (-one.quality, one.media_type.count("*")))
    for wanted in ranked:
        for offer in offers:
            media_type = wanted.fits(offer)
            if media_type is not None and wanted.quality > 0:
                return offer, offer.content_type(media_type)
    raise RefusedError(
        "Accept",
        expected=" or ".join(offer.content_type(offer.media_types[0]) for offer in offers),
        found=accept or "",
        do="accept one of them, or anything",
        status=406,
    )


def _read(accept: str) -> Iterator[Wanted]:
    for text in accept[:_LONGEST].split(","):
        media_type, *parameters = (part.strip() for part in text.split(";"))
        named: Mapping[str, str] = {
            name.strip().lower(): value.strip().strip('"') for name, _, value in (p.partition("=") for p in parameters)
        }
        yield Wanted(
            media_type=media_type.lower() or "*/*", version=named.get("version"), quality=_quality(named.get("q", "1"))
        )


def _quality(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0


def _short(version: str) -> str:
    """Versions differ in how many zeros they are written with.

    >>> _short("1.0.0") == _short("1.0") == _short("1")
    True
    """
    return re.sub(r"(?:\.0+)+$", "", version)
