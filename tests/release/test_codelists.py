"""Code lists as offices have them: tables of any form, classifications with parents, SDMX."""

import json
from pathlib import Path
from typing import Any

import pytest

from sfumato.checking import check
from sfumato.cli.release import plan_summary
from sfumato.errors import ReleaseError
from sfumato.frame.codelists import Codelist, CodelistFile
from sfumato.release import load

NACE = """Order;Level;Code;Parent;Description;Includes
398481;1;A;;AGRICULTURE, FORESTRY;"a; b"
398482;2;01;A;Crops "and" animals;
398483;3;01.1;01;Non-perennial crops;
398484;4;01.11;01.1;Cereals;
398485;1;B;;MINING;
398486;2;05;B;Coal;
398487;3;05.1;05;Hard coal;
398488;4;05.10;05.1;Hard coal;
"""
NAICS = """2022 NAICS codes,,
Seq. No.,2022 NAICS US   Code,2022 NAICS US Title
,,
1,31-33,ManufacturingT
2,311,Food ManufacturingT
3,3111,Animal Food
4,31111,Animal Food
5,311111,Dog and Cat Food
6,62,Health Care
7,621,Ambulatory Care
T = shared by three countries,,
"""
XML = """<?xml version="1.0" encoding="UTF-8"?>
<mes:Structure xmlns:mes="urn:m" xmlns:str="urn:s" xmlns:com="urn:c"><mes:Structures><str:Codelists>
<str:Codelist id="CL_SEX"><com:Name xml:lang="en">Sex</com:Name>
 <str:Code id="F"><com:Name xml:lang="de">Frauen</com:Name><com:Name xml:lang="en">Women</com:Name></str:Code>
 <str:Code id="M"><com:Name xml:lang="de">Männer</com:Name><com:Name xml:lang="en">Men</com:Name></str:Code>
</str:Codelist>
<str:Codelist id="CL_AREA"><str:Code id="AT"><com:Name>Austria</com:Name></str:Code>
 <str:Code id="AT1"><com:Name>East</com:Name>{parent}</str:Code></str:Codelist>
</str:Codelists></mes:Structures></mes:Structure>"""


def read(folder: Path, content: str | bytes, name: str = "list.csv", **options: Any) -> Codelist:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return CodelistFile.model_validate({"file": name, **options}).read(folder)


FORMS = {
    "semicolons": ("Kod;Nazwa\n01;Łódź\n02;Kraków\n".encode(), "delimiter ;"),
    "tabs": ("ID\tName\n01\tŁódź\n02\tKraków\n".encode(), "delimiter tab"),
    "bars and quotes": ('"code"|"label"\n"01"|"Łódź"\n"02"|"Kraków"\n'.encode(), "delimiter |"),
    "UTF-16": ("code,label\n01,Łódź\n02,Kraków\n".encode("utf-16"), "encoding utf-16"),
    "a mark of byte order": ("\ufeffcode,label\n01,Łódź\n02,Kraków\n".encode(), ""),
    "a title above": ("Voivodships 2025\n\nCode,Label (pl)\n01,Łódź\n02,Kraków\n".encode(), "heading in row 3"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_table_of_codes_is_read_whatever_its_form_and_the_guess_is_told(tmp_path: Path, form: str) -> None:
    content, told = FORMS[form]
    found = read(tmp_path, content)
    assert (found.codes, found.labels) == (("01", "02"), ("Łódź", "Kraków"))
    assert told in found.reading
    assert found.parents is None


def test_latin_1_and_windows_1252_are_told_apart(tmp_path: Path) -> None:
    assert read(tmp_path, "code;Beschreibung\n1;Büro\n".encode("latin-1")).labels == ("Büro",)
    assert read(tmp_path, "code;label\n1;5 €\n".encode("windows-1252")).labels == ("5 €",)


def test_the_plain_form_has_nothing_to_tell_and_keeps_codes_as_they_are(tmp_path: Path) -> None:
    found = read(tmp_path, "code,label\n01,One\n2,\n")
    assert (found.codes, found.labels, found.reading) == (("01", "2"), ("One", "2"), "")


def test_levels_leaves_digits_and_parents_pick_codes_of_nace(tmp_path: Path) -> None:
    whole = read(tmp_path, NACE)
    assert whole.parents == (None, "A", "01", "01.1", None, "B", "05", "05.1")
    assert whole.levels == (1, 2, 3, 4, 1, 2, 3, 4)
    assert "4 levels" in whole.reading
    divisions = read(tmp_path, NACE, level=2)
    assert divisions.codes == ("01", "05")
    assert divisions.parents == ("A", "B")
    assert divisions.labels == ('Crops "and" animals', "Coal")
    assert read(tmp_path, NACE, leaves=True).codes == ("01.11", "05.10")
    assert read(tmp_path, NACE, digits=3).codes == ("01.1", "05.1")
    assert read(tmp_path, NACE, below="B", level=3).codes == ("05.1",)


def test_codes_below_the_picked_ones_are_counted_in_them(tmp_path: Path) -> None:
    assert read(tmp_path, NACE, level=1).below == (
        *(("01", "A"), ("01.1", "A"), ("01.11", "A")),
        *(("05", "B"), ("05.1", "B"), ("05.10", "B")),
    )
    assert dict(read(tmp_path, NACE, digits=3).below) == {"01.11": "01.1", "05.10": "05.1"}
    assert read(tmp_path, NACE, leaves=True).below == read(tmp_path, "code,label\nA,1\nB,2\n").below == ()


def test_a_list_of_several_levels_is_nested_until_one_is_chosen_or_all_are(tmp_path: Path) -> None:
    assert read(tmp_path, NACE).nested
    assert read(tmp_path, NACE, below="A").nested
    assert "none is chosen" in read(tmp_path, NACE).reading
    chosen: list[dict[str, Any]] = [{"level": 2}, {"leaves": True}, {"digits": 2}, {"level": "all"}]
    assert not any(read(tmp_path, NACE, **choice).nested for choice in chosen)
    assert read(tmp_path, NACE, level="all").codes == read(tmp_path, NACE).codes
    assert not read(tmp_path, "code,label\n01,One\n02,Two\n").nested


def test_parents_of_nace_follow_from_levels_and_order_where_there_is_no_such_column(tmp_path: Path) -> None:
    without = "\n".join(";".join((*line.split(";")[1:3], line.split(";")[4])) for line in NACE.splitlines())
    found = read(tmp_path, without)
    assert found.parents == (None, "A", "01", "01.1", None, "B", "05", "05.1")
    assert "parents by levels and order" in found.reading
    by_level = "Level,Code\n1,A\n1,B\n2,01\n2,05\n"  # where no order tells them, no parent is made up
    assert read(tmp_path, by_level).parents is None


def test_naics_has_ranges_and_marks_and_footnotes(tmp_path: Path) -> None:
    found = read(tmp_path, NAICS)
    assert found.codes == ("31-33", "311", "3111", "31111", "311111", "62", "621")
    assert found.parents == (None, "31-33", "311", "3111", "31111", None, "62")
    assert found.labels[0] == "Manufacturing"
    assert read(tmp_path, NAICS, level=1).codes == read(tmp_path, NAICS, digits=2).codes == ("31-33", "62")


def test_isco_has_its_levels_by_how_codes_begin(tmp_path: Path) -> None:
    isco = (
        "Level,ISCO 08 Code,Title EN,Title DE\n1,1,Managers,Führung\n2,11,Chiefs,Leitung\n3,111,Law,Recht\n"
        "1,2,Pros,Profis\n2,21,Science,Forschung\n3,211,Physics,Physik\n"
    )
    found = read(tmp_path, isco, level=2, language="de")
    assert (found.codes, found.labels, found.parents) == (("11", "21"), ("Leitung", "Forschung"), ("1", "2"))


def test_a_level_may_be_a_word(tmp_path: Path) -> None:
    listed = "level,code\nSection,A\nDivision,01\nSection,B\nDivision,05\n"
    assert read(tmp_path, listed, level="division").codes == ("01", "05")
    with pytest.raises(ReleaseError, match="whose levels are Section, Division"):
        read(tmp_path, listed, level="Class")


@pytest.mark.parametrize("parent", ['<str:Parent><Ref id="AT"/></str:Parent>', "<str:Parent>AT</str:Parent>"])
def test_sdmx_ml_is_read_in_both_versions(tmp_path: Path, parent: str) -> None:
    message = XML.format(parent=parent)
    areas = read(tmp_path, message, "lists.xml", id="CL_AREA")
    assert (areas.codes, areas.labels, areas.parents) == (("AT", "AT1"), ("Austria", "East"), (None, "AT"))
    assert read(tmp_path, message, "lists.xml", id="CL_SEX").labels == ("Women", "Men")
    assert read(tmp_path, message, "lists.xml", id="CL_SEX", language="de").labels == ("Frauen", "Männer")
    with pytest.raises(ReleaseError, match="CL_SEX, CL_AREA"):
        read(tmp_path, message, "lists.xml")


def test_sdmx_ml_with_a_document_type_is_refused_before_anything_is_expanded(tmp_path: Path) -> None:
    bomb = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>'
    with pytest.raises(ReleaseError, match="document type"):
        read(tmp_path, bomb, "lists.xml")


def test_sdmx_json_is_read(tmp_path: Path) -> None:
    codes = [{"id": "AT", "name": "Austria"}, {"id": "AT1", "names": {"en": "East"}, "parent": "AT"}]
    found = read(tmp_path, json.dumps({"data": {"codelists": [{"id": "CL", "codes": codes}]}}), "list.json")
    assert (found.codes, found.labels, found.levels) == (("AT", "AT1"), ("Austria", "East"), (1, 2))
    with pytest.raises(ReleaseError, match="SDMX-JSON"):
        read(tmp_path, "{}", "list.json")


def test_messages_of_sdmx_2_0_are_read_too(tmp_path: Path) -> None:
    code = '<Code value="A"><Description xml:lang="en">First</Description></Code>'
    assert read(tmp_path, f'<S><CodeLists><CodeList id="CL">{code}</CodeList></CodeLists></S>', "old.xml").labels == (
        "First",
    )


def test_a_workbook_says_that_it_holds_codes_as_numbers_and_width_gives_zeros_back(tmp_path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    for row in (["Classification 2025"], ["Code", "Title"], [1, "Crops"], [2, "Forestry"], ["C", "Other"]):
        book.active.append(row)
    book.save(tmp_path / "list.xlsx")
    read_as = CodelistFile.model_validate("list.xlsx").read(tmp_path)
    assert read_as.codes == ("1", "2", "C")
    assert "holds as numbers" in read_as.reading
    assert CodelistFile.model_validate({"file": "list.xlsx", "width": 2}).read(tmp_path).codes == ("01", "02", "C")


def test_blanks_around_codes_are_told_and_taken_away_if_asked(tmp_path: Path) -> None:
    found = read(tmp_path, "code ; label\nA ; One\nB ; Two\n")
    assert found.codes == ("A ", "B ")
    assert "2 codes with blanks" in found.reading
    assert read(tmp_path, "code ; label\nA ; One\nB ; Two\n", trim=True).codes == ("A", "B")


FAULTS = {
    "a code twice": ("code;label\nA;1\nB;2\nA;3\n", {}, "row 4, column 'code'", "'A', which is in row 2 too"),
    "no code": ("code;label\nA;1\n;2\nB;3\n", {}, "row 3, column 'code'", "none"),
    "an unknown parent": ("code,parent\nA,\nB,C\n", {"columns": {"parent": "parent"}}, "row 3", "'C'"),
    "parents in a circle": ("code,parent\nA,B\nB,A\n", {}, "row 2", "below itself"),
    "a circle beside levels": ("code,parent,level\nA,B,1\nB,A,2\n", {}, "row 2", "below itself"),
    "no such column": ("code,label\nA,1\n", {"columns": {"code": "KOD"}}, "list.csv", "code, label"),
    "no such level": (NACE, {"level": 7}, "list.csv", "whose levels are 1, 2, 3, 4"),
    "no levels at all": ("code,label\nA,1\nB,2\n", {"level": 2}, "list.csv", "without levels"),
    "no such language": ("code,label\nA,1\n", {"language": "de"}, "list.csv", "code, label"),
    "no column of codes": ("what,ever\nA,1\n", {}, "list.csv", "the columns what, ever"),
}


def test_a_file_that_is_not_there_is_told_with_those_near_it(tmp_path: Path) -> None:
    read(tmp_path, "code,label\nA,1\n", "nace.csv")
    with pytest.raises(ReleaseError, match="no such file or folder") as error:
        CodelistFile.model_validate({"file": "nacce.csv"}).read(tmp_path)
    assert "nace.csv" in error.value.do


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, fault: str) -> None:
    content, options, where, found = FAULTS[fault]
    with pytest.raises(ReleaseError) as error:
        read(tmp_path, content, **options)
    assert where in error.value.where
    assert found in error.value.found


@pytest.mark.slow
def test_a_release_uses_a_level_of_a_classification_and_check_tells_it(release_folder: Path) -> None:
    release = release_folder / "release.toml"
    before = release.read_text(encoding="utf-8")
    codes = (release_folder / "codelists/industry.csv").read_text(encoding="utf-8").splitlines()[1:]
    listed = "\n".join(["Level;KOD;Bezeichnung", "1;ALL;All", *(f"2;{line.replace(',', ';', 1)}" for line in codes)])
    (release_folder / "nace.csv").write_bytes(listed.encode("latin-1"))
    release.write_text(before.replace('"codelists/industry.csv"', '{ file = "nace.csv", level = 2 }'), encoding="utf-8")
    findings = check(load(release))
    assert findings.plan.codelists["industry"].codes == tuple(line.partition(",")[0] for line in codes)
    facts = plan_summary(findings)[1]["codelists_read"]
    assert "delimiter ;" in facts["industry"]
    assert facts.keys() == {"industry"}
