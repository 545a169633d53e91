"""Files as offices have them, of every kind of data: small, and the same at every run."""

from datetime import date
from pathlib import Path
from random import Random


def table(path: Path, heading: str, rows: list[str], encoding: str = "utf-8") -> Path:
    path.write_text("\n".join([heading, *rows]) + "\n", encoding=encoding)
    return path


def register(folder: Path) -> Path:
    """A register of establishments with headcounts, semicolons, Latin-1, and codes with zeros in front."""
    draw = Random(1)
    rows = [
        f"{100 + n};{draw.choice(['01', '05', '62'])};{draw.choice(['Köln', 'Bonn'])};{draw.randint(0, 40)}"
        for n in range(300)
    ]
    return table(folder / "register_2024.csv", "Betrieb;NACE;Region;Beschäftigte", rows, "latin-1")


def persons(folder: Path) -> Path:
    """A survey of persons with weights, semicolons and decimal commas; one person alone has a rare code."""
    draw = Random(2)
    rows = [
        f"{n:05d};{draw.choice('12')};{draw.randint(15, 90)};{'einzig' if n == 7 else draw.choice(['hoch', 'tief'])};"
        + f"{draw.uniform(20, 90):.2f}".replace(".", ",")
        for n in range(500)
    ]
    return table(folder / "persons.csv", "PersNr;Geschlecht;Alter;Bildung;Gewicht", rows)


def businesses(folder: Path) -> Path:
    """Businesses with measures, one of which has cents, and one losses and a name with a dot."""
    draw = Random(3)
    rows = [
        f"B{n}\t{draw.choice('ABC')}\t{draw.choice('NSW')}\t{draw.lognormvariate(8, 2):.2f}\t{draw.randint(-9, 99)}"
        for n in range(400)
    ]
    return table(folder / "businesses.tsv", "business\tnace\tregion\tturnover\tNET.PROFIT", rows)


def linked(folder: Path) -> list[Path]:
    """Jobs, workplaces and workers, under names of their own."""
    draw = Random(4)
    workplaces = [f"{n},{draw.choice(['N', 'S'])},{draw.choice(['11', '62'])}" for n in range(1, 61)]
    workers = [f"{n},{draw.choice('FM')},{draw.choice(['low', 'high'])}" for n in range(5000, 5600)]
    jobs = [f"{n},{draw.randint(1, 55)},{draw.randint(1000, 9000)}" for n in range(5000, 5600)]
    return [
        table(folder / "employment.csv", "person,firm,pay", jobs),
        table(folder / "firms.csv", "firm_id,region,industry", workplaces),
        table(folder / "people.csv", "person,sex,education", workers),
    ]


def panel(folder: Path) -> list[Path]:
    """Jobs of four quarters with earnings, and their employers."""
    draw = Random(5)
    employers = [f"{n},{draw.choice(['AA', 'BB'])}" for n in range(1, 21)]
    jobs = [
        f"{worker},{draw.randint(1, 20)},{quarter},{draw.randint(1000, 9000)}"
        for worker in range(100, 400)
        for quarter in ("2024Q1", "2024Q2", "2024Q3", "2024Q4")
    ]
    return [
        table(folder / "histories.csv", "worker,employer,quarter,earnings", jobs),
        table(folder / "employers.csv", "employer,agency", employers),
    ]


def graduates(folder: Path) -> Path:
    """Persons one and five years after they graduated."""
    draw = Random(6)
    rows = [
        f"{person},{draw.choice(['BA', 'MA'])},{year},{draw.randint(0, 90000)}"
        for person in range(300)
        for year in (1, 5)
    ]
    return table(folder / "graduates.csv", "person,degree,years,earnings", rows)


def joined(folder: Path) -> Path:
    """Jobs with the attributes of workplace and worker in one table."""
    draw = Random(7)
    rows = []
    for worker in range(600):
        firm = draw.randint(1, 40)
        rows.append(f"{worker},{firm},{'ABCDEFG'[firm % 7]},{draw.choice('MF')}")
    return table(folder / "joined.csv", "worker,firm,nace,sex", rows)


def by_sex(folder: Path) -> list[Path]:
    """A register with the numbers of women and men, some rows without an industry, and the list of industries."""
    draw = Random(8)
    rows = [
        f"{n};{draw.choice(['01', '46', ''])};{draw.choice(['Nord', 'Süd'])};{draw.randint(0, 9)};{draw.randint(0, 9)};"
        f"{draw.randint(0, 3)}"
        for n in range(200)
    ]
    heading = "Betriebs-Nr.;WZ 2008;Kreis;Beschäftigte Frauen;Beschäftigte Männer;Beschäftigte Azubis"
    listed = ["A;;1;Landwirtschaft", "01;A;2;Anbau", "G;;1;Handel", "46;G;2;Großhandel", "47;G;2;Einzelhandel"]
    return [
        table(folder / "betriebe.csv", heading, rows, "latin-1"),
        table(folder / "nace.csv", "Schlüssel;Übergeordnet;Ebene;Bezeichnung", listed),
    ]


def monthly(folder: Path) -> Path:
    """A workbook with a title above the heading, and months as dates."""
    from openpyxl import Workbook

    draw, book = Random(9), Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["Monatserhebung, Stand 15.1.2026"])
    sheet.append([])
    sheet.append(["Unternehmen-Nr", "Berichtsmonat", "Branche", "Umsatz (k€)"])
    for firm in range(60):
        branch = draw.choice(["Bau", "Handel"])
        for month in (date(2024, 11, 1), date(2024, 12, 1), date(2025, 1, 1)):
            sheet.append([f"DE{firm:05}", month, branch, round(draw.lognormvariate(6, 1), 1)])
    book.save(folder / "umsatz.xlsx")
    return folder / "umsatz.xlsx"


def spss(folder: Path) -> Path:
    """Persons with short German names, labels, some rows without a degree, and a code that is on no row."""
    import pandas as pd
    import pyreadstat

    draw, people = Random(10), range(1, 301)
    columns = {
        "PERSNR": [float(n) for n in people],
        "GESCHL": [float(draw.choice((1, 2))) for _ in people],
        "ABSCHL": [draw.choice((1.0, 2.0, None)) for _ in people],
        "HRF": [round(draw.uniform(20, 90), 4) for _ in people],
    }
    pyreadstat.write_sav(
        pd.DataFrame(columns),
        folder / "mz.sav",
        column_labels=["Personennummer", "Geschlecht", "Abschluss", "Hochrechnungsfaktor"],
        variable_value_labels={
            "GESCHL": {1.0: "weiblich", 2.0: "männlich"},
            "ABSCHL": {1.0: "ohne", 2.0: "Lehre", 3.0: "Promotion"},
        },
    )
    return folder / "mz.sav"
