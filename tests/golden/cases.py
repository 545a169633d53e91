"""Release files that together ask every kind of question with every method and option."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.golden.data import write_key

FROZEN = Path(__file__).parent / "frozen"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A release file and which of the frozen data it is about."""

    data: str
    text: str

    def written(self, folder: Path) -> Path:
        """Copy the data, write the key and the release file; returns the latter."""
        shutil.copytree(FROZEN / "data" / self.data, folder, dirs_exist_ok=True)
        write_key(folder)
        path = folder / "release.toml"
        path.write_text(self.text, encoding="utf-8")
        return path


def tables(text: str) -> str:
    """A `[[table]]` section for every line `name | statistic; by; … | method and options`."""
    sections = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, asked, protect = (part.strip() for part in line.split("|"))
        keys = "\n".join(part.strip() for part in asked.split(";"))
        sections.append(f'[[table]]\nname = "{name}"\n{keys}\nprotect = {{ {protect} }}\n')
    return "\n".join(sections)


def of_bundle(name: str, case: Case) -> Case:
    """The same release with a bundle of its own, beside those of others."""
    return Case(data=case.data, text=case.text.replace("[data]", f'bundle = "{name}_bundle"\n\n[data]', 1))


def cubes(text: str) -> str:
    """A `[[cube]]` section for every line `name | options`."""
    sections = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, asked = (part.strip() for part in line.split("|"))
        keys = "\n".join(part.strip() for part in asked.split(";"))
        sections.append(f'[[cube]]\nname = "{name}"\n{keys}\n')
    return "\n".join(sections)


def jobs(about: str, text: str, *, frame: str = "") -> Case:
    """A release of jobs; `about` stands in its first section."""
    frame = frame or (
        'jobs = { path = "jobs.parquet", worker = "worker", workplace = "workplace" }\n'
        'workplaces = { path = "workplaces.parquet", key = "workplace" }\n'
        'workers = { path = "workers.parquet", key = "worker" }\n'
    )
    head = f"""[release]
title = "Jobs"
period = "2025"
{about}

[data]
{frame}public = ["place", "industry", "owner"]

[data.attributes]
place = {{ label = "Place of work", codes = {{ A = "Aville", B = "Btown", C = "Ceeport" }} }}
industry = {{ codes = ["62", "11", "81"] }}
owner = {{ codes = ["public", "private"] }}
sex = {{ codes = ["F", "M"] }}
age = {{ codes = ["1", "2", "3"] }}
tenure = {{ codes = ["short", "long"] }}

"""
    return Case(data="jobs", text=head + tables(text))


def totals(case: Case) -> Case:
    """The same release with a measure; any column of whole numbers is one."""
    measure = '[data.measures]\npay = { column = "worker", unit = "dollars", cap = 50 }\n\n[[table]]'
    return Case(data=case.data, text=case.text.replace("[[table]]", measure, 1))


PAID = 'budget = { alpha = 0.1, epsilon = 10000, totals = ["pay"] }'
PAY = """
jobs | count = "jobs"; by = ["place"] | epsilon = 2
pay | total = "pay"; by = ["place", "industry"] | epsilon = 2
pay_where | total = "pay"; by = ["place"]; where = { industry = ["62"] } | method = "smooth-pareto", epsilon = 2
pay_vector | total = "pay"; by = ["sex", "place"] | epsilon = 2
pay_silent | total = "pay"; by = ["place", "owner"]; establishments = false | epsilon = 3
pay_mean | mean = "pay"; by = ["place", "industry"] | epsilon = 4, count_share = 0.25
pay_parts | total = "pay"; by = ["industry", "sex"]; parts = 2 | method = "vector-pareto", epsilon = 3
"""
WEAK = 'budget = { alpha = 0.1, epsilon = 10000, delta = 0.5, definition = "weak" }'
STRONG = "budget = { alpha = 0.1, epsilon = 10000, delta = 0.5 }"
INDIVIDUALS = 'budget = { epsilon = 10000, delta = 0.5, definition = "individuals" }'
KEY = 'key = "sfumato.key"'

FORMAL = """
default | count = "jobs"; by = ["place"] | epsilon = 2
pareto | count = "jobs"; by = ["place", "industry"] | method = "smooth-pareto", epsilon = 2
pareto_alpha | count = "jobs"; by = ["place", "industry"] | method = "smooth-pareto", epsilon = 2, alpha = 0.05
pareto_third | count = "jobs"; by = ["place", "industry"] | method = "smooth-pareto", epsilon = "7/3"
pareto_turned | count = "jobs"; by = ["industry", "owner", "place"] | method = "smooth-pareto", epsilon = 2
pareto_where | count = "jobs"; by = ["place"]; where = { industry = "62" } | method = "smooth-pareto", epsilon = 2
pareto_two | count = "jobs"; by = ["place", "industry"]; where = { industry = ["81", "62"], owner = "private" } | \
method = "smooth-pareto", epsilon = 2
vector | count = "jobs"; by = ["place", "sex"]; title = "Jobs by place and sex" | method = "smooth-pareto", epsilon = 2
vector_form | count = "jobs"; by = ["place", "age"] | method = "smooth-pareto", form = "vector", epsilon = 2
vector_parts | count = "jobs"; by = ["industry", "sex"]; parts = 2 | method = "smooth-pareto", epsilon = 2
vector_where | count = "jobs"; by = ["industry", "sex"]; where = { place = ["A"] } | \
method = "smooth-pareto", epsilon = 2
vector_of_workers | count = "jobs"; by = ["sex", "age"] | method = "smooth-pareto", epsilon = 2
gamma | count = "jobs"; by = ["place", "industry"] | method = "smooth-gamma", epsilon = 2
gamma_tight | count = "jobs"; by = ["place", "industry"] | method = "smooth-gamma", epsilon = 2, tight = true
smooth_laplace | count = "jobs"; by = ["place", "industry"] | method = "smooth-laplace", epsilon = 3
smooth_laplace_delta | count = "jobs"; by = ["place", "industry"] | method = "smooth-laplace", epsilon = 2, delta = 1e-4
log_laplace | count = "jobs"; by = ["place", "industry"] | method = "log-laplace", epsilon = 2
log_laplace_tight | count = "jobs"; by = ["place", "industry"] | method = "log-laplace", epsilon = 2, tight = true
log_laplace_debias | count = "jobs"; by = ["place", "industry"] | method = "log-laplace", epsilon = 2, debias = true
log_box | count = "jobs"; by = ["place", "industry"] | method = "log-box", epsilon = 2
smooth_box | count = "jobs"; by = ["place", "industry"] | method = "smooth-box", epsilon = 2
auto | count = "jobs"; by = ["place", "industry"] | method = "auto", epsilon = 2
auto_size | count = "jobs"; by = ["place", "industry"] | method = "auto", epsilon = 2, mean_size = 50
nonnegative | count = "jobs"; by = ["place", "owner"]; nonnegative = true | method = "smooth-pareto", epsilon = 2
listed | count = "jobs"; by = ["industry", "place"]; structural_zeros = "listed" | method = "smooth-gamma", epsilon = 3
implied | count = "jobs"; by = ["industry", "place"]; structural_zeros = "implied" | \
method = "smooth-gamma", epsilon = 4
"""
BY_WORKERS = """
scalar | count = "jobs"; by = ["place", "sex"] | method = "smooth-pareto", form = "scalar", epsilon = 20
scalar_where | count = "jobs"; by = ["place"]; where = { sex = "F" } | method = "smooth-pareto", epsilon = 20
gamma_sex | count = "jobs"; by = ["place", "sex"] | method = "smooth-gamma", epsilon = 20
laplace_sex | count = "jobs"; by = ["place", "sex"] | method = "smooth-laplace", epsilon = 20, delta = 0.001
log_laplace_sex | count = "jobs"; by = ["sex", "place", "age"] | method = "log-laplace", epsilon = 20
log_box_sex | count = "jobs"; by = ["sex", "place"] | method = "log-box", epsilon = 20
smooth_box_sex | count = "jobs"; by = ["sex", "place"] | method = "smooth-box", epsilon = 20
auto_sex | count = "jobs"; by = ["sex", "place"] | method = "auto", epsilon = 20
tenure | count = "jobs"; by = ["place", "tenure"] | method = "smooth-gamma", epsilon = 20
tenure_where | count = "jobs"; by = ["place"]; where = { tenure = ["long"], age = ["3", "2"] } | \
method = "smooth-laplace", epsilon = 20
"""
BELL = """
vector_bell | count = "jobs"; by = ["sex", "place"] | method = "vector-bell", epsilon = 20
box_bell | count = "jobs"; by = ["sex", "place"] | method = "box-bell", epsilon = 20
sinh_box | count = "jobs"; by = ["sex", "place"] | method = "sinh-box", epsilon = 20
auto_bell | count = "jobs"; by = ["sex", "place"] | method = "auto-bell", epsilon = 20
vector_bell_scale | count = "jobs"; by = ["place", "sex"] | method = "vector-bell", epsilon = 2, error_epsilon = 0.2
auto_bell_size | count = "jobs"; by = ["place", "industry"] | method = "auto-bell", epsilon = 2, mean_size = 50
"""
OF_INDIVIDUALS = """
laplace | count = "jobs"; by = ["place", "industry"] | method = "laplace", epsilon = 1
laplace_sex | count = "jobs"; by = ["place", "sex", "age"] | method = "laplace", epsilon = 1
laplace_where | count = "jobs"; by = ["place"]; where = { sex = ["F"], industry = ["62", "11"] } | \
method = "laplace", epsilon = 1
node | count = "jobs"; by = ["place", "sex"] | method = "node-laplace", epsilon = 1
node_threshold | count = "jobs"; by = ["place", "sex"] | method = "node-laplace", epsilon = 1, threshold = 20
"""
# At such an epsilon it is all but certain which cells are listed, and none is by chance.
SPARSE = """
sparse | count = "jobs"; by = ["age", "place"] | method = "sparse-laplace", epsilon = 100, false_cells = 1e-6
sparse_options | count = "jobs"; by = ["sex", "place", "age"]; where = { industry = "62" } | \
method = "sparse-laplace", epsilon = 90, false_cells = 1e-6, size_share = 0.5, alpha = 0.05
"""
JOINED = 'jobs = { path = "joined.parquet" }\n'
UNNAMED = 'jobs = { path = "joined.parquet" }\nworkplaces = { path = "workplaces.parquet", key = "workplace" }\n'
AGREEING = """
by_place | count = "jobs"; by = ["place"] | method = "smooth-pareto", epsilon = 2
by_both | count = "jobs"; by = ["place", "industry"] | method = "smooth-gamma", epsilon = 2
by_sex | count = "jobs"; by = ["place", "sex"]; nonnegative = true | method = "smooth-pareto", epsilon = 2
"""
UNLINKED = """
by_place | count = "jobs"; by = ["place", "industry"] | method = "smooth-pareto", epsilon = 2
by_sex | count = "jobs"; by = ["place", "sex"] | method = "smooth-gamma", epsilon = 20
"""
SILENT = """
pareto | count = "jobs"; by = ["industry", "place"]; establishments = false | epsilon = 2
vector | count = "jobs"; by = ["place", "sex"]; establishments = false; parts = 2 | epsilon = 2
filtered | count = "jobs"; by = ["place"]; where = { industry = "62" }; establishments = false | epsilon = 2
"""
DRAWN = """
by_place | count = "jobs"; by = ["industry", "place"] | method = "noise-infusion", rounding = 1, \
small_cells = "posterior"
by_all | count = "jobs"; by = ["industry", "place", "sex", "age"] | method = "noise-infusion", rounding = 1, \
small_cells = "posterior"
"""
BOTH = """
keyed | count = "jobs"; by = ["place", "sex"] | method = "noise-infusion"
formal | count = "jobs"; by = ["place", "sex"] | method = "smooth-pareto", epsilon = 2
again | count = "jobs"; by = ["sex", "place"]; title = "The same" | method = "smooth-pareto", epsilon = 2
"""
KEYED_COUNTS = """
by_place | count = "jobs"; by = ["place"] | method = "noise-infusion"
by_all | count = "jobs"; by = ["industry", "place", "sex", "age"] | method = "noise-infusion"
base | count = "jobs"; by = ["place", "sex"] | method = "noise-infusion", rounding = 7
whole | count = "jobs"; by = ["place", "age"] | method = "noise-infusion", rounding = 1
filtered | count = "jobs"; by = ["industry", "sex"]; where = { age = ["3", "2"], place = "A" } | \
method = "noise-infusion"
silent | count = "jobs"; by = ["industry", "place"]; establishments = false | method = "noise-infusion"
silent_implied | count = "jobs"; by = ["place", "industry", "sex"]; establishments = false; \
structural_zeros = "implied" | method = "noise-infusion"
employers | graph = { attribute = "place" } | method = "noise-infusion"
employers_two | graph = { between = "employers", attribute = ["place", "industry"] } | method = "noise-infusion"
employers_workers | graph = { attribute = "industry", weight = "workers" } | method = "noise-infusion", minimum = 0
employers_model | graph = { attribute = ["industry", "place"], weight = "workers" } | \
method = "noise-infusion", below = "synthesised", minimum = 10
employers_letters | graph = { attribute = "owner" } | method = "noise-infusion", edges = "twelve-characters"
employers_rounded | graph = { attribute = "owner", weight = "workers" } | method = "noise-infusion", rounding = 20
workers | graph = { between = "workers", attribute = "sex" } | method = "noise-infusion"
workers_shared | graph = { between = "workers", attribute = ["sex", "age"], weight = "employers" } | \
method = "noise-infusion", minimum = 5
"""


def panel(period: str, first: str, last: str, text: str) -> Case:
    """A release of a panel by quarters or years."""
    head = f"""[release]
title = "Histories"
period = "{first} to {last}"
key = "sfumato.key"

[data]
jobs = {{ path = "{period}s.parquet", worker = "worker", workplace = "employer", period = "{period}", \
first = "{first}", last = "{last}", earnings = "earnings" }}
workplaces = {{ path = "employers.parquet", key = "employer" }}
workers = {{ path = "workers.parquet", key = "worker" }}
public = ["state", "agency"]

[data.attributes]
state = {{ codes = ["A", "B"] }}
agency = {{ codes = ["Z", "Y", "X"] }}
sex = {{ codes = {{ F = "Women", M = "Men" }} }}

"""
    return Case(data="panel", text=head + tables(text.replace("PERIOD", period)))


PANEL = """
all | indicators = "all"; by = ["state", "PERIOD"] | method = "noise-infusion"
all_sex | indicators = "all"; by = ["sex", "PERIOD", "state"] | method = "noise-infusion"
some | indicators = ["end", "employment", "payroll"]; by = ["PERIOD", "agency"] | method = "noise-infusion"
at_least | indicators = ["beginning", "new_hires"]; by = ["PERIOD", "agency", "state"] | \
method = "noise-infusion", minimum = 5
bases | indicators = "all"; by = ["agency", "PERIOD"] | method = "noise-infusion", rounding = 7, earnings_rounding = 300
silent | indicators = "all"; by = ["agency", "sex", "PERIOD"]; establishments = false | method = "noise-infusion"
women | indicators = ["employment", "payroll"]; by = ["agency", "PERIOD"]; where = { sex = "F" } | \
method = "noise-infusion"
flow | flow = { attribute = "state" }; by = ["PERIOD"] | method = "noise-infusion"
flow_all | flow = { attribute = "agency" } | method = "noise-infusion"
flow_two | flow = { attribute = ["state", "agency"] }; by = ["PERIOD", "sex"] | method = "noise-infusion", minimum = 0
exchange | flow = { attribute = "agency", directed = false }; by = ["sex"] | method = "noise-infusion"
exchange_edges | flow = { attribute = "state", directed = false, weight = "edges" }; by = ["PERIOD"] | \
method = "noise-infusion"
flow_edges | flow = { attribute = "agency", weight = "edges" }; where = { sex = "M" } | method = "noise-infusion"
flow_model | flow = { attribute = "agency" }; by = ["PERIOD", "sex"] | \
method = "noise-infusion", below = "synthesised", minimum = 6
flow_letters | flow = { attribute = "agency" }; by = ["PERIOD"] | method = "noise-infusion", edges = "twelve-characters"
graph | graph = { attribute = "agency" } | method = "noise-infusion"
graph_workers | graph = { between = "workers", attribute = "sex", weight = "employers" } | method = "noise-infusion"
"""

SELECTED = """
loops | graph = { attribute = "state", weight = "workers", loops = true } | method = "noise-infusion"
loops_edges | graph = { attribute = "agency", loops = true }; by = ["sex"] | method = "noise-infusion", minimum = 0
women | graph = { attribute = "agency", weight = "workers" }; where = { sex = "F" } | method = "noise-infusion"
each | graph = { attribute = "state", weight = "workers" }; by = ["PERIOD", "sex"] | method = "noise-infusion"
half | graph = { attribute = "agency" }; where = { PERIOD = ["2024-Q1", "2024-Q2"] } | method = "noise-infusion"
one_end | graph = { attribute = "agency" }; where = { second_state = "A" } | method = "noise-infusion"
both_ends | graph = { attribute = "agency" }; where = { state = "A", agency = ["X", "Z"] } | method = "noise-infusion"
since | graph = { attribute = "agency", weight = "workers", directed = true } | method = "noise-infusion"
pay | graph = { attribute = "state", weight = "earnings", loops = true } | method = "noise-infusion"
since_pay | graph = { attribute = "state", weight = "origin-earnings", directed = true } | method = "noise-infusion"
ratio | graph = { attribute = "state", weight = "workers" } | method = "noise-infusion", convergence = true
colleagues | graph = { between = "workers", attribute = "sex", loops = true }; by = ["agency"]; \
where = { state = "B", PERIOD = "2024-Q3" } | method = "noise-infusion"
flow_pay | flow = { attribute = "agency", weight = "earnings" }; by = ["PERIOD"] | method = "noise-infusion"
flow_origin | flow = { attribute = "agency", weight = "origin-earnings" } | method = "noise-infusion", minimum = 1
flow_ends | flow = { attribute = "agency" }; by = ["PERIOD"]; where = { origin_state = "A", agency = ["X", "Y"] } | \
method = "noise-infusion", minimum = 0
exchange_pay | flow = { attribute = "agency", directed = false, weight = "earnings" } | method = "noise-infusion"
"""

DEGREES = """
degrees | degrees = { bounds = [1, 2, 4] }; by = ["state"] | method = "noise-infusion", minimum = 0
strengths | degrees = { weight = "workers" }; by = ["agency", "state"]; where = { sex = "F", PERIOD = "2024-Q2" } | \
method = "noise-infusion", edges = "twelve-characters"
"""

PANEL_OF_YEARS = """
all | indicators = "all"; by = ["state", "PERIOD", "sex"] | method = "noise-infusion"
flow | flow = { attribute = ["agency", "state"] }; by = ["PERIOD"] | method = "noise-infusion"
graph | graph = { attribute = "state", weight = "workers" } | method = "noise-infusion"
"""


PANEL_PROTECTED = """
all | indicators = "all"; by = ["state", "PERIOD"]; where = { PERIOD = ["2024-Q4", "2025-Q1"] } | \
method = "smooth-pareto", epsilon = 8
all_sex | indicators = "all"; by = ["sex", "PERIOD", "state"] | epsilon = 30
some | indicators = ["end", "employment"]; by = ["PERIOD", "agency"] | method = "vector-pareto", epsilon = 6
each | indicators = ["job_creation", "payroll"]; by = ["agency", "PERIOD"]; \
where = { PERIOD = ["2024-Q2", "2024-Q3"] } | epsilon = { "2024-Q2" = 3, "2024-Q3" = 4 }, \
shares = { counts = 2, changes = 1, payroll = 1 }
silent | indicators = ["accessions"]; by = ["agency", "PERIOD"]; establishments = false | epsilon = 6
"""
PANEL_MOVES = """
moves | flow = { attribute = "state" }; by = ["PERIOD"] | method = "laplace", epsilon = 4
moves_all | flow = { attribute = "agency", directed = false }; where = { sex = "F" } | method = "laplace", epsilon = 4
moves_each | flow = { attribute = "agency" }; by = ["PERIOD"]; where = { PERIOD = ["2024-Q2", "2024-Q3"] } | \
method = "laplace", epsilon = { "2024-Q2" = 1, "2024-Q3" = 2 }
"""


def protected(budget: str, case: Case) -> Case:
    """A release of a panel with a budget instead of a key, and a cap of earnings."""
    text = case.text.replace('key = "sfumato.key"', f"budget = {{ {budget} }}", 1)
    measure = '[data.measures]\nearnings = { unit = "dollars", cap = 60000 }\n\n[[table]]'
    return Case(data=case.data, text=text.replace("[[table]]", measure, 1))


def businesses(records: str, text: str) -> Case:
    """A release of businesses; `records` are further keys of the description of their file."""
    head = f"""[release]
title = "Businesses"
population = "businesses"
period = "2025"
key = "sfumato.key"

[data]
records = {{ path = "records.parquet", unit = "business"{records} }}
public = ["state"]

[data.attributes]
state = {{ codes = ["A", "B"] }}
industry = {{ codes = ["Y", "X", "Z"] }}

[data.measures]
turnover = {{ label = "Turnover", unit = "dollars" }}
profit = {{ minimum = -1000000 }}

"""
    return Case(data="businesses", text=head + tables(text))


def of_values(records: str, text: str) -> Case:
    """A release of businesses whose values are hidden."""
    case = businesses(f"{records}, public = true", text)
    budget = 'budget = { definition = "units", alpha = 0.1, epsilon = 100, totals = ["profit", "turnover"] }'
    changed = {
        'key = "sfumato.key"': budget,
        'public = ["state"]': 'public = ["state", "industry"]',
        'unit = "dollars" }': 'unit = "dollars", floor = 500 }',
        "minimum = -1000000 }": "minimum = -1000000, floor = 100 }",
    }
    for old, new in changed.items():
        case = Case(data=case.data, text=case.text.replace(old, new))
    return case


OF_UNITS = """
total | total = "turnover"; by = ["state", "industry"] | method = "smooth-pareto", epsilon = 4, most_cells = 6
mean | mean = "turnover"; by = ["industry", "state"] | epsilon = 4, most_cells = 6
profit | total = "profit"; by = ["state"] | epsilon = 4, most_cells = 2
mean_profit | mean = "profit"; by = ["industry"]; decimals = 0; where = { state = "A" } | epsilon = 4, most_cells = 3
"""


def of_enterprises(text: str) -> Case:
    """A release of cubes of businesses that hides whole enterprises."""
    case = businesses(EVERY_RECORD, "")
    budget = 'budget = { alpha = 1, epsilon = 100, delta = 0.99, definition = "individuals" }'
    return Case(
        data=case.data,
        text=case.text.replace("\n\n[data]", f"\n{budget}\n\n[data]") + cubes(text) + tables(COUNTED_UNITS),
    )


COUNTED_UNITS = """
counted | count = "records"; by = ["state"] | \
method = "laplace", epsilon = 1, largest_weight = 10, protects = "unit", most_records = 2
"""
UNITS = """
units | by = ["state", "industry"]; epsilon = 1; cap = 30; protects = "unit"; most_records = 2
measured | by = ["industry", "state"]; epsilon = 1; cap = 40; protects = "unit"; most_records = 3; \
measures = ["turnover"]; controls = [{ by = ["state"], epsilon = 0.5 }]
strict | by = ["state"]; epsilon = 2; cap = 30; protects = "unit"; most_records = 2; sensitivity = "weight"; \
largest_weight = 10
records | by = ["state", "industry"]; epsilon = 1; cap = 30
"""
CONTRIBUTORS = """
total | total = "turnover"; by = ["state", "industry"]; totals = true | method = "top-contributors"OPTIONS
mean | mean = "turnover"; by = ["industry", "state"] | method = "top-contributors"OPTIONS
records | count = "records"; by = ["industry", "state"]; totals = true | method = "top-contributors"OPTIONS
"""
MORE_CONTRIBUTORS = """
profit | total = "profit"; by = ["industry"] | method = "top-contributors"OPTIONS
mean_decimals | mean = "profit"; by = ["industry"]; decimals = 4; totals = true | method = "top-contributors"OPTIONS
some_records | count = "records"; by = ["state"]; where = { industry = ["X", "Z"] } | method = "top-contributors"OPTIONS
some | total = "turnover"; by = ["industry"]; where = { state = "A" } | method = "top-contributors"OPTIONS
"""
VALUES = "perturbed-values"
RULES = ("jackknife", "successive-difference", "bootstrap")
REPLICATES = {rule: f', weight = "weight", replicates = {{ columns = "rw_*", rule = "{rule}" }}' for rule in RULES}
CONTRIBUTOR_OPTIONS = {
    "plain": ("", ""),
    "weighted": (', weight = "weight"', ""),
    "consent": (', consent = "asked", weight = "weight"', ""),
    "jackknife": (REPLICATES["jackknife"], ""),
    "differences": (REPLICATES["successive-difference"], ", sampling_relief = true"),
    "bootstrap": (REPLICATES["bootstrap"].replace('"bootstrap"', '"bootstrap", scale = 0.5'), ""),
    "magnitudes": ("", ", magnitudes = [0.6, 0.2]"),
    "by_shape": ("", ", by_shape = true"),
    "spread": ("", ", spread = 0.1"),
    "suppress": ("", ", suppress = 4"),
    "parity": ("", ", parity = true"),
    "weight_relief": (', weight = "weight"', ", weight_relief = true"),
    "counts": (', weight = "weight"', ", count_variance = 2, count_deviation = 4"),
    "withheld": (', weight = "weight"', ", most_perturbation = 0.9"),
}


def people(records: str, years: str, text: str) -> Case:
    """A release of people."""
    head = f"""[release]
title = "People who left"
population = "people who left"
period = "2001-2002"
budget = {{ epsilon = 10000, definition = "individuals", conditional = true }}

[data]
records = {{ {records} }}

[data.attributes]
{years}title = {{ codes = ["faculty", "staff"] }}
sector = {{ codes = ["a", "b", "c"] }}

[data.measures]
rank = {{ unit = "percentiles", minimum = 0, maximum = 100 }}
score = {{ minimum = 0, maximum = 100, outside = "clip" }}
earnings = {{ unit = "dollars a year", minimum = 0, maximum = 200000, outside = "clip" }}

"""
    return Case(data="people", text=head + tables(text))


PREDICT = 'predict = { outcome = "score", on = "rank", at = [25, 75] }'
GUESS = "bins = { median = 40000, sigma = 0.6, number = 16 }"
QUARTILES = f'quantiles = {{ of = "earnings", at = [25, 50, 75], {GUESS} }}'
EDGES = "bins = [0, 20000, 40000, 60000, 100000, 200000]"
ONCE = f"""
count | count = "records"; by = ["title", "sector"] | method = "laplace", epsilon = 2
count_turned | count = "records"; by = ["sector"]; where = {{ title = "staff" }} | method = "laplace", epsilon = 2
count_parts | count = "records"; by = ["sector"]; parts = 2 | method = "laplace", epsilon = 2
mean | mean = "earnings"; by = ["title"] | method = "mose", epsilon = 3
mean_counts | mean = "earnings"; by = ["title"]; decimals = 0 | method = "mose", epsilon = 3, count_epsilon = 0.5
mean_chi | mean = "earnings"; by = ["sector"] | method = "mose", epsilon = 3, chi = 200000
mean_minimum | mean = "earnings"; by = ["sector"] | method = "mose", epsilon = 3, minimum = 5
mean_free | mean = "earnings"; by = ["sector"] | method = "mose", epsilon = 3, clip = false
mean_groups | mean = "earnings"; by = ["sector"] | method = "mose", epsilon = 3, least_groups = 2
mean_classes | mean = "score"; by = ["sector", "title"]; decimals = 1; unknown_errors = "published" | \
method = "mose", epsilon = 3, classes = ["title"]
scores | {PREDICT}; by = ["title", "sector"] | method = "mose", epsilon = 3, count_epsilon = 0.25, classes = "title"
scores_shown | {PREDICT}; by = ["title"]; unknown_errors = "published"; decimals = 3 | method = "mose", epsilon = 3
regression | {PREDICT}; by = ["title", "sector"] | method = "noisy-regression", epsilon = 5
regression_minimum | {PREDICT}; by = ["title"]; where = {{ sector = ["a", "b"] }} | \
method = "noisy-regression", epsilon = 5, minimum = 25
regression_one | predict = {{ outcome = "earnings", on = "rank", at = [50] }}; by = ["title"] | \
method = "noisy-regression", epsilon = 5
theil_sen | {PREDICT}; by = ["title"]; unknown_errors = "published" | method = "theil-sen", epsilon = 4
theil_sen_options | {PREDICT}; by = ["title"]; unknown_errors = "published"; decimals = 0 | \
method = "theil-sen", epsilon = 4, partners = 2, width = 0.01, minimum = 30, count_epsilon = 1
quartiles | {QUARTILES}; by = ["title"] | method = "noisy-quantiles", epsilon = 2
quartiles_minimum | {QUARTILES}; by = ["title"]; decimals = 0 | method = "noisy-quantiles", epsilon = 2, minimum = 60
listed | quantiles = {{ of = "earnings", at = [10, 50.5, 90], {EDGES} }}; by = ["sector"] | \
method = "noisy-quantiles", epsilon = 2
"""
ONCE += "".join(
    f'{curve} | {QUARTILES}; by = ["title"] | method = "noisy-quantiles", epsilon = 2, curve = "{curve}"\n'
    for curve in ("adaptive", "isotonic", "hierarchical", "exponential", "plain")
)
ONCE += f"""
global | {PREDICT}; by = ["title"] | method = "global-sensitivity", epsilon = 4
global_mean | mean = "score"; by = ["title"] | method = "global-sensitivity", epsilon = 4, minimum = 5
local | {PREDICT}; by = ["title"] | method = "local-sensitivity", epsilon = 3, accept_leak = true, tell_scales = true
"""
YEARS = f"""
count | count = "records"; by = ["title", "sector", "year"] | method = "laplace", epsilon = 2
count_one | count = "records"; by = ["title"]; where = {{ year = ["2001"] }} | method = "laplace", epsilon = 2
mean | mean = "earnings"; by = ["title", "year"] | method = "mose", epsilon = 3, count_epsilon = 0.5
scores | {PREDICT}; by = ["title", "year"] | method = "mose", epsilon = 6
scores_one | {PREDICT}; by = ["title"]; where = {{ year = "2002" }} | method = "noisy-regression", epsilon = 5
theil_sen | {PREDICT}; by = ["title", "year"]; unknown_errors = "published" | method = "theil-sen", epsilon = 8
quartiles | {QUARTILES}; by = ["year", "title"]; decimals = 0 | method = "noisy-quantiles", epsilon = 2
count_each | count = "records"; by = ["title", "year"] | method = "laplace", epsilon = {{ 2001 = 0.5, 2002 = 1 }}
mean_each | mean = "earnings"; by = ["title", "year"] | \
method = "mose", epsilon = {{ 2001 = 2, 2002 = 3 }}, count_epsilon = 0.5, chi = 200000
theil_sen_each | {PREDICT}; by = ["title", "year"]; unknown_errors = "published" | \
method = "theil-sen", epsilon = {{ 2001 = 2, 2002 = 3 }}
quartiles_each | {QUARTILES}; by = ["title", "year"]; decimals = 0 | \
method = "noisy-quantiles", epsilon = {{ 2001 = 0.5, 2002 = 1 }}
"""
SUMS = """
total | total = "earnings"; by = ["title", "sector", "year"] | method = "laplace", epsilon = 2
total_one | total = "score"; by = ["title"]; where = { year = ["2001"] } | method = "laplace", epsilon = 2
total_each | total = "earnings"; by = ["title", "year"] | method = "laplace", epsilon = { 2001 = 0.5, 2002 = 1 }
mean | mean = "earnings"; by = ["title", "year"] | method = "laplace", epsilon = 4
mean_one | mean = "score"; by = ["sector"]; where = { year = "2002" }; decimals = 1 | method = "laplace", epsilon = 3
mean_each | mean = "earnings"; by = ["year", "title"]; decimals = 0 | \
method = "laplace", epsilon = { 2001 = 2, 2002 = 3 }
"""
WEIGHED_SUMS = """
total | total = "pay"; by = ["region"] | method = "laplace", epsilon = 2, largest_weight = 80
mean | mean = "pay"; by = ["region", "job"] | method = "laplace", epsilon = 2, largest_weight = 80
mean_clipped | mean = "pay"; by = ["region"]; decimals = 0 | \
method = "laplace", epsilon = 1, largest_weight = 5, weights_above = "clip"
"""


def survey(records: str, text: str, asked: str = "") -> Case:
    """A release of cubes of a survey, and of tables of it."""
    head = f"""[release]
title = "A survey"
population = "people"
period = "2025"
budget = {{ alpha = 1, epsilon = 10000, delta = 0.99, definition = "individuals" }}

[data]
records = {{ path = "survey.parquet", unit = "id"{records} }}

[data.attributes]
region = {{ label = "Region of the country", codes = {{ N = "North", E = "East", S = "South", W = "West" }} }}
job = {{ codes = ["a", "b", "c"] }}
level = {{ codes = ["2", "1"] }}

[data.measures]
pay = {{ unit = "dollars" }}
hours = {{}}

"""
    return Case(data="survey", text=head + cubes(text) + tables(asked))


def bounded(case: Case) -> Case:
    """The same with bounds of pay, which sums of people need."""
    limits = 'pay = { unit = "dollars", minimum = 100, maximum = 60000, outside = "clip" }'
    return Case(data=case.data, text=case.text.replace('pay = { unit = "dollars" }', limits))


CUBES = """
plain | by = ["region", "job"]; epsilon = 1; cap = 9
titled | by = ["job", "region", "level"]; epsilon = 1; cap = 9; title = "All"; least_count = 5; largest_cv = 0.3
measured | by = ["region", "job"]; epsilon = 1; cap = 9; measures = ["pay", "hours"]
one_measure | by = ["region", "job"]; epsilon = 1; cap = 9; measures = ["hours"]
controls | by = ["region", "job"]; epsilon = 1; cap = 9; controls = [{ by = ["region"], epsilon = 0.5 }, \
{ by = [], epsilon = 0.25, cap = 30 }]
capped | by = ["region", "job", "level"]; epsilon = 2; cap = 9; controls = [{ by = ["level", "job"], epsilon = 0.5, \
cap = 25 }, { by = ["region"], epsilon = 0.5 }]; measures = ["pay"]
disclosed | by = ["region", "job"]; epsilon = 1; cap = 9; controls = [{ by = ["job"], exact = true }]
raked | by = ["region", "job"]; epsilon = 1; cap = 9; controls = [{ by = ["region"], epsilon = 1 }]; \
calibration = "raking"
nonnegative | by = ["region", "job"]; epsilon = 1; cap = 9; nonnegative = true
empty | by = ["region", "job", "level"]; epsilon = 1; cap = 9; empty_cells = 0.5
levels | by = ["region", "job", "level"]; epsilon = 2; cap = 9; approach = "several-levels"; levels = [["job"], \
["level", "region"]]
levels_share | by = ["region", "job"]; epsilon = 2; cap = 9; approach = "several-levels"; levels = [["job"]]; \
levels_share = 0.5
levels_whole | by = ["region", "job"]; epsilon = 2; cap = 9; approach = "several-levels"; levels = [["job"], \
["region"]]; nonnegative = true
public | by = ["level", "region"]; epsilon = 1; cap = 7; controls = [{ by = ["region"], totals = "totals.csv", \
source = "The census" }]
"""
OF_WEIGHTS = """
strata | by = ["region", "job"]; epsilon = 1; cap = 9; weights = "region"
strata_controls | by = ["region", "job"]; epsilon = 1; cap = 9; weights = "region"; controls = [{ by = ["region"], \
epsilon = 1 }]
public_weights | by = ["level", "region"]; epsilon = 1; cap = 7; controls = [{ by = ["level"], \
totals = "weighted.csv" }]
weight | by = ["region", "job"]; epsilon = 1; cap = 9; sensitivity = "weight"; largest_weight = 70
weight_unit | by = ["region", "job"]; epsilon = 1; cap = 9; sensitivity = "weight"; largest_weight = 70; \
weight_unit = 5; controls = [{ by = ["job"], epsilon = 1 }]
sampling | by = ["region", "job"]; epsilon = 1; cap = 9; sensitivity = "weight"; largest_weight = 70; \
sampling = { square = 0.001, linear = 12.5 }
weight_levels | by = ["region", "job"]; epsilon = 2; cap = 9; sensitivity = "weight"; largest_weight = 70; \
approach = "several-levels"; levels = [["job"]]
"""

OF_ONE_DRAW = """
shared | by = ["region", "job"]; epsilon = 1; cap = 9; draws = "shared"
shared_controls | by = ["region", "job"]; epsilon = 1; cap = 9; draws = "shared"; controls = [{ by = ["region"], \
epsilon = 1 }]; least_count = 5; least_weighted = 100; rules_before = { least_count = 30 }; identifying = ["job"]
"""
ONE_BY_ONE = """
weighted | count = "records"; by = ["region", "job"] | method = "laplace", epsilon = 2, largest_weight = 70
weighted_some | count = "records"; by = ["job"]; where = { level = "1" } | method = "laplace", epsilon = 1, \
largest_weight = 80
"""
OF_PERSONS = """
clipped | count = "records"; by = ["job"] | method = "laplace", epsilon = 1, largest_weight = 20, weights_above = "clip"
weighted_percentiles | quantiles = { of = "hours", at = [50], bins = [0, 20, 40, 80] }; by = ["job"] | \
method = "noisy-quantiles", epsilon = 1, largest_weight = 80
"""

WITHHELD = """
true | count = "jobs"; by = ["place", "industry"] | method = "suppression", minimum_units = 2, dominance = [[1, 75]], \
levels = ["owner"]
true_count | count = "jobs"; by = ["sex"]; where = { place = "A" } | method = "suppression", minimum_count = 3, \
p = 10, cost = "value", levels = ["owner"]
"""
ROUNDED = """
rounded | count = "jobs"; by = ["place", "sex"] | method = "rounding"
rounded_total | count = "jobs"; by = ["place"]; totals = true | method = "rounding"
"""
BY_CHANCE = """
rounded_random | count = "jobs"; by = ["place", "industry"] | method = "rounding", base = 3, form = "random"
"""
MERGED = """
merged | count = "jobs"; by = ["place", "industry"] | method = "coarsening", minimum_units = 2
"""
IN_RANGES = """
in_ranges | count = "jobs"; by = ["place", "industry"]; totals = true | method = "ranges", width = 2, \
minimum_units = 2
in_ranges_too | count = "jobs"; by = ["place", "sex"]; totals = true | method = "ranges", width = 2, zeros = "protected"
"""
OF_RECORDS = """
true_records | count = "records"; by = ["state", "industry"] | method = "suppression", minimum_units = 3
"""

FEW = "".join(line + "\n" for line in CUBES.splitlines() if line.startswith(("plain", "one_measure")))
EVERY_RECORD = ', levels = ["enterprise"], weight = "weight"'
YEAR = 'year = { codes = ["2002", "2001"] }\n'
KEPT_JOBS = """
keyed | count = "jobs"; by = ["place", "industry"] | method = "noise-infusion"
graph | graph = { attribute = "place" } | method = "noise-infusion"
formal | count = "jobs"; by = ["place", "sex"] | method = "smooth-pareto", epsilon = 2
gamma | count = "jobs"; by = ["place"]; where = { sex = "F" } | method = "smooth-gamma", epsilon = 20
parts | count = "jobs"; by = ["industry", "age"]; parts = 2 | method = "smooth-pareto", epsilon = 2
"""
KEPT_CUBES = "".join(
    line + "\n" for line in CUBES.replace("\\\n", "").splitlines() if line.startswith(("capped", "levels |"))
)


def at_periods(budget: str, text: str, population: str = "") -> Case:
    """A release of jobs at periods of a panel, with a guarantee."""
    case = panel("quarter", "2024-Q1", "2025-Q2", text)
    chosen = f', population = "{population}" }}' if population else " }"
    changed = case.text.replace('key = "sfumato.key"', f"budget = {{ {budget} }}")
    changed = changed.replace(' earnings = "earnings" }', f' earnings = "earnings"{chosen}')
    measures = '[data.measures]\nearnings = { unit = "dollars", cap = 45 }\n\n[[table]]'
    return Case(data=case.data, text=changed.replace("[[table]]", measures, 1))


AT_PERIODS = """
one | count = "jobs"; by = ["state", "agency"]; where = { PERIOD = "2024-Q3" } | method = "smooth-pareto", epsilon = 2
several | count = "jobs"; by = ["PERIOD", "state"]; where = { PERIOD = ["2025-Q1", "2024-Q4"] } | \
method = "smooth-pareto", epsilon = 4
each | count = "jobs"; by = ["state", "PERIOD"]; where = { PERIOD = ["2025-Q1", "2024-Q4"] } | \
method = "smooth-pareto", epsilon = { "2024-Q4" = 1, "2025-Q1" = 2 }
sexes | count = "jobs"; by = ["sex", "PERIOD", "agency"]; where = { PERIOD = ["2025-Q1", "2024-Q4"] } | \
method = "vector-pareto", epsilon = 4
sparse | count = "jobs"; by = ["sex", "PERIOD"]; where = { PERIOD = ["2025-Q1", "2024-Q4"] } | \
method = "sparse-laplace", epsilon = 4
bought | count = "jobs"; by = ["state", "PERIOD"]; where = { PERIOD = ["2025-Q1", "2024-Q4"] } | \
method = "smooth-pareto", epsilon = 4, error_epsilon = 0.5
silent | count = "jobs"; by = ["state", "PERIOD"]; where = { PERIOD = ["2025-Q1"] }; establishments = false | \
method = "smooth-pareto", epsilon = 2
pay | total = "earnings"; by = ["state", "PERIOD"]; where = { PERIOD = ["2025-Q1", "2024-Q4"] } | \
method = "smooth-pareto", epsilon = 4
mean | mean = "earnings"; by = ["state", "PERIOD"]; where = { PERIOD = ["2025-Q1", "2024-Q4"] } | \
method = "smooth-pareto", epsilon = 8
""".replace("\\\n", "")
ANY_PERIOD = """
laplace | count = "jobs"; by = ["PERIOD", "sex"] | method = "laplace", epsilon = 6
delta | count = "jobs"; by = ["PERIOD", "state"] | method = "smooth-laplace", epsilon = 36, delta = 0.06
"""

CASES: Mapping[str, Case] = {
    "jobs_strong": jobs(STRONG, FORMAL),
    "jobs_weak": jobs(WEAK, BY_WORKERS),
    "jobs_bell": jobs(WEAK, BELL),
    "jobs_individuals": jobs(INDIVIDUALS, OF_INDIVIDUALS),
    "jobs_agreeing": jobs(WEAK + "\nreconcile = true", AGREEING),
    "jobs_silent": jobs(STRONG, SILENT),
    "jobs_sparse": jobs(STRONG, SPARSE),
    "jobs_totals": totals(jobs(PAID, PAY)),
    "jobs_joined": jobs(WEAK, UNLINKED, frame=JOINED),
    "jobs_unnamed": jobs(WEAK, UNLINKED, frame=UNNAMED),
    "jobs_keyed": jobs(KEY, KEYED_COUNTS),
    "jobs_drawn": jobs(KEY, DRAWN),
    "jobs_both": jobs(f"{KEY}\n{WEAK}", BOTH),
    "jobs_withheld": jobs("", WITHHELD),
    "jobs_rounded": jobs("", ROUNDED),
    "jobs_rounded_random": jobs(KEY, BY_CHANCE),
    "jobs_merged": jobs("", MERGED),
    "jobs_ranges": jobs("", IN_RANGES),
    "panel_quarters": panel("quarter", "2024-Q1", "2025-Q2", PANEL),
    "panel_selected": panel("quarter", "2024-Q1", "2025-Q2", SELECTED),
    "panel_degrees": panel("quarter", "2024-Q1", "2025-Q2", DEGREES),
    "panel_years": panel("year", "2023", "2025", PANEL_OF_YEARS),
    "panel_beginning": at_periods('alpha = 0.1, epsilon = 60, totals = ["earnings"]', AT_PERIODS),
    "panel_any": at_periods('alpha = 0.1, epsilon = 60, delta = 0.1, definition = "individuals"', ANY_PERIOD, "any"),
    "panel_protected": protected(
        'alpha = 0.1, epsilon = 100, totals = ["earnings"]', panel("quarter", "2024-Q1", "2025-Q2", PANEL_PROTECTED)
    ),
    "panel_moves": protected(
        'definition = "individuals", epsilon = 100', panel("quarter", "2024-Q1", "2025-Q2", PANEL_MOVES)
    ),
    "businesses": businesses(EVERY_RECORD, (CONTRIBUTORS + MORE_CONTRIBUTORS).replace("OPTIONS", "")),
    **{
        f"businesses_{name}": businesses(records, CONTRIBUTORS.replace("OPTIONS", options))
        for name, (records, options) in CONTRIBUTOR_OPTIONS.items()
    },
    "businesses_values": businesses(
        ', consent = "asked", weight = "weight"',
        CONTRIBUTORS.replace("OPTIONS", "").replace("top-contributors", VALUES),
    ),
    "businesses_hidden": of_values("", OF_UNITS.replace("most_cells = 6", "most_cells = 1")),
    "enterprises_hidden": of_values(EVERY_RECORD, OF_UNITS),
    "businesses_withheld": businesses(EVERY_RECORD, OF_RECORDS),
    "people": people('path = "once.parquet", unit = "person"', "", ONCE),
    "people_years": people('path = "people.parquet", unit = "person", period = "year"', YEAR, YEARS),
    "people_sums": people('path = "people.parquet", unit = "person", period = "year"', YEAR, SUMS),
    "cubes": survey("", CUBES),
    "cubes_weighted": survey(', weight = "weight"', FEW + OF_WEIGHTS),
    "cubes_jackknife": survey(REPLICATES["jackknife"], CUBES),
    "cubes_differences": survey(REPLICATES["successive-difference"], FEW + OF_WEIGHTS),
    "cubes_shared": survey(', weight = "weight"', OF_ONE_DRAW),
    "survey_tables": survey(', weight = "weight"', "", ONE_BY_ONE),
    "survey_persons": survey(', weight = "weight"', "", OF_PERSONS),
    "survey_sums": bounded(survey(', weight = "weight"', "", WEIGHED_SUMS)),
    "cubes_bootstrap": survey(REPLICATES["bootstrap"], FEW),
    "cubes_units": of_enterprises(UNITS),
}
"""The releases whose runs are frozen, by name."""

EARLIER: Mapping[str, Case] = {
    "jobs": jobs(f'{KEY}\n{WEAK}\nbundle = "jobs_bundle"', KEPT_JOBS),
    "people": of_bundle("people", CASES["people_years"]),
    "survey": of_bundle("survey", survey(REPLICATES["jackknife"], KEPT_CUBES)),
    "businesses": of_bundle("businesses", CASES["businesses"]),
}
"""The releases of the folder that is kept whole: one ledger, a bundle each. Every name is also that of its data."""
QUERIES: Mapping[str, tuple[str, ...]] = {
    "jobs": ("jobs_bundle",),
    "jobs_rows": ("jobs_bundle", "formal", "--where", "sex=F"),
    "people_rows": ("people_bundle", "mean"),
    "survey": ("survey_bundle",),
    "survey_total": ("survey_bundle", "capped"),
    "survey_count": ("survey_bundle", "capped", "--by", "region,job", "--column", "count"),
    "survey_where": ("survey_bundle", "capped", "--by", "job", "--where", "region=N,W", "--where", "level=1"),
    "survey_share": ("survey_bundle", "capped", "--by", "job", "--proportion"),
    "survey_share_within": ("survey_bundle", "capped", "--by", "job,level", "--proportion-within", "job"),
    "survey_mean": ("survey_bundle", "capped", "--by", "region", "--mean", "pay"),
    "survey_scores": ("survey_bundle", "levels", "--mean", "level", "--scores", "1=1,2=5"),
    "survey_median": ("survey_bundle", "levels", "--by", "region", "--quantile", "job=0.25,0.5"),
    "businesses_rows": ("businesses_bundle", "records"),
}
"""Questions to the bundles of that folder: arguments of `sfumato query`, the first of which is a bundle."""
