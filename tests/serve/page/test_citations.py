"""Citations that programs and people can use as they are."""

import re
from dataclasses import replace

from sfumato.serve.page.citations import citations
from tests.serve.page.made import dimension, table


def test_the_name_of_an_office_is_one_name_and_a_title_is_printed_as_it_is() -> None:
    """In single braces, Office of Statistics would be a person called Statistics."""
    made = replace(table(dimension("sex", ("f", "m"))), id="a~b", title="Jobs & pay, 100 % of {all} _firms_")
    (_, words), (_, entry) = citations(made, "https://office.example/tables/a~b?x=1&y=2", source="Office of Statistics")
    assert words.startswith("Office of Statistics (2025): Jobs & pay, 100 % of {all} _firms_, 2025. ")
    assert entry.startswith("@misc{a-b,\n")
    assert "  author = {{Office of Statistics}},\n" in entry
    assert "  title = {{Jobs \\& pay, 100 \\% of all \\_firms\\_, 2025}},\n" in entry
    assert "  url = {https://office.example/tables/a~b?x=1&y=2}\n" in entry
    assert re.sub(r"[^{]", "", entry).count("{") == re.sub(r"[^}]", "", entry).count("}")
