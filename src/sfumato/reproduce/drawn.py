"""Charts drawn to SVG without a browser or a network."""

from typing import Any

import vl_convert


def drawn(chart: Any) -> str:
    """An Altair chart of any kind as SVG, in the style of all pages."""
    styled = chart.configure(font="system-ui, sans-serif", background="transparent").configure_view(stroke=None)
    return vl_convert.vegalite_to_svg(styled.to_json())
