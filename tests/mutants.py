"""Small mistakes put into the core on purpose: every one of them must make a test of every round fail.

`python -m tests.mutants` draws a seeded sample of mutations of the modules that draw noise, calibrate it, compose
guarantees and keep the ledger. Each is applied to a copy of the sources, never to the checkout, and the tests that
cover its module run against the copy until one fails. Whatever survives needs a test, or a reason in `EQUIVALENT`.
"""

import argparse
import ast
import copy
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
SEED, NUMBER, LIMIT = 16, 48, 150
"""The sample that is kept green: its seed, its size, and the seconds that the tests of one mutant may take."""

# Which tests cover a module, the sharpest first.

COVERED = {
    module: tuple(f"tests/{folder}/test_{name}.py" for folder, names in tests.items() for name in names.split())
    for module, tests in {
        "noise/box_laplace": {"noise": "second_pass box_noise", "statistics/methods": "box_methods vector_audit"},
        "noise/box_pareto": {
            "statistics/methods": "box_methods vector_pareto",
            "noise": "vector_tails second_pass simplex_pareto box_noise",
        },
        "noise/choice": {"noise": "weighted_choice private_median", "statistics/methods": "noisy_quantiles theil_sen"},
        "noise/factors": {
            "noise": "factors triangular edges",
            "release": "infusion_rounding",
            "statistics/methods": "infused_sums contributor_perturbation",
            "golden": "golden",
        },
        "noise/geometric": {
            "noise": "geometric truncated_geometric second_pass",
            "statistics/cube": "truncated_laplace",
            "statistics/methods": "baselines",
        },
        "noise/keyed": {"noise": "keyed decimal_text factors", "golden": "golden"},
        "noise/laplace": {
            "noise": "laplace second_pass log_laplace",
            "statistics/methods": "log_laplace smooth_laplace mose",
        },
        "noise/pareto": {
            "noise": "double_pareto simplex_pareto second_pass",
            "statistics/methods": "smooth_pareto vector_pareto",
        },
        "noise/passes": {"noise": "refinement randomness second_pass double_pareto simplex_pareto laplace box_noise"},
        "noise/quartic": {"noise": "quartic second_pass", "statistics/methods": "smooth_gamma"},
        "noise/randomness": {"noise": "randomness", "golden": "golden"},
        "noise/refinement": {"noise": "twofold refinement second_pass double_pareto laplace"},
        "statistics/jobs/calibration": {"statistics/methods": "smooth_pareto vector_pareto auto"},
        "statistics/jobs/smooth": {
            "statistics/methods": "smooth_pareto smooth_gamma smooth_laplace local_sensitivity requirements registry "
            "intervals",
            "contracts": "every_method",
        },
        "statistics/jobs/vector": {
            "statistics/methods": "box_methods vector_pareto vector_audit auto requirements",
            "contracts": "every_method",
        },
        "statistics/jobs/logarithms": {
            "statistics/methods": "log_laplace box_methods vector_audit auto requirements",
            "contracts": "every_method",
        },
        "statistics/jobs/laplace": {
            "statistics/methods": "baselines intervals requirements",
            "contracts": "every_method",
        },
        "statistics/cube/truncated_laplace": {
            "statistics/cube": "truncated_laplace empty_cells protected_cube",
            "identity": "orders",
            "statistics/methods": "several_levels",
        },
        "statistics/totals/perturbation": {"statistics/methods": "contributor_perturbation top_contributors"},
        "privacy/guarantee": {
            "privacy": "guarantee distance steps composition conditions",
            "bundle": "statement",
        },
        "privacy/account": {"privacy": "conditions composition ledger tampering", "statistics/cube": "cube_release"},
        "privacy/steps": {"privacy": "steps distance guarantee"},
        "privacy/windows": {"privacy": "windows"},
        "privacy/ledger": {"privacy": "ledger windows tampering conditions remembering", "running": "rolled_back"},
        "privacy/entries": {"privacy": "remembering tampering ledger conditions", "running": "rolled_back"},
        "privacy/store": {"privacy": "store ledger tampering"},
        "privacy/book": {"privacy": "remembering ledger windows conditions tampering", "identity": "same_data"},
        "privacy/answers": {"running": "parts rolled_back", "identity": "orders"},
    }.items()
}
"""The modules of the core, and the tests of each."""

# What is not mutated, and why.

NAMES: dict[str, str] = {
    **dict.fromkeys(
        (
            *("_STRIP", "_LONGEST", "_CHUNK", "_ROWS", "_LEVELS", "_PIECE", "_DRAWS", "_FIRST_CHUNK", "_LARGEST_CHUNK"),
            *("_AT_ONCE", "_AT_ONCE_CONTRIBUTOR_INTERVAL", "_AT_ONCE_CONTRIBUTOR_MAGNITUDES", "_LOCK_TIMEOUT"),
        ),
        "how much is worked on at a time, or how long is waited: decides the speed and no result",
    ),
    **dict.fromkeys(
        ("_ERROR", "ERROR", "_WIDENED", "_OUTWARD", "OUTWARD", "_UNIT", "_ROUGH", "_NEAREST"),
        "a margin wider than its proof needs: one more or less of it changes which pass decides, not what it decides",
    ),
    **dict.fromkeys(
        (
            *("_DIGITS", "_DIGITS_TRUNCATED_GEOMETRIC", "_DIRECT_TERMS", "_TERMS", "_LEAST_TERMS", "_HALVINGS"),
            *("_TANGENTS", "_STEPS", "_REACH", "_FAR", "_NEVER", "_FARTHEST", "_LARGE_SCALE", "_NODES", "_KEPT"),
        ),
        "more digits, terms or halvings than needed: one more or less is beyond the last digit of any result",
    ),
    **dict.fromkeys(("_SHORT", "_WEAKER", "LEAK"), "words for people, or how long they are"),
}
"""Constants by name."""
FUNCTIONS: dict[str, str] = {
    **dict.fromkeys(("chunks", "block_chunks", "_pieces"), "cuts work into pieces: decides the speed and no result"),
    **dict.fromkeys(("digits_for", "many_digits", "precise"), "digits to spare: one more or less changes no result"),
    **dict.fromkeys(("_advice", "__str__", "in_words"), "words for people"),
}
"""Functions by name."""
KEYWORDS: dict[str, str] = {
    "strict": "zip refuses lengths that no caller makes",
    "use_threads": "decides the speed and no result",
    "copy": "decides the speed and no result",
    "repr": "how an object looks to developers",
}
"""Arguments by name."""
MARGINS = frozenset({"error", "margin", "width"})
"""Assigned names in which constants are left alone: a proof leaves room around them. Operators are not left alone."""
KINDS: dict[str, str] = {
    "Raise": "the text of an error; that it is raised at all is mutated",
    "JoinedStr": "text for people",
    "Constant text": "docstrings and words",
    "annotation": "types; no value depends on them",
    "decorator": "frozen, cached or keyword-only; no value depends on it",
    "alias": "the name of a type",
}
"""Kinds of syntax, as `_Finder` leaves them out."""
EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "noise/choice",
        'end = min(end, int(np.searchsorted(ordered, ordered[begin] + ordered[begin] // 2, side="right")))',
        'end = min(end, int(np.searchsorted(ordered, ordered[begin] + ordered[begin] // (3), side="right")))',
    ): "how many groups are worked on at a time: decides the speed, and no group's distribution",
    (
        "privacy/steps",
        "k = max(1, round(log1p(wider) / log1p(alpha)) - 1)",
        "k = max((2), round(log1p(wider) / log1p(alpha)) - 1)",
    ): "a guess from which whole numbers go down or up to the least k",
    (
        "statistics/jobs/smooth",
        "return 4 * log_growth(alpha) + MARGIN < decimal(epsilon)",
        "return (4 * log_growth(alpha) + MARGIN <= decimal(epsilon))",
    ): "the one side is a logarithm and the other a fraction: they are never equal",
}
"""Mutants that change nothing that is promised, by module, line and what became of it; and the reason."""

# What a mutation is, and where there may be one.

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    one: other
    for pair in ((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn))
    for one, other in (pair, pair[::-1])
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    one: other
    for pair in ((ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.LShift, ast.RShift), (ast.BitAnd, ast.BitOr))
    for one, other in (pair, pair[::-1])
} | {ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.Mod: ast.FloorDiv}
RENAMED = {
    one: other
    for pair in ("min max", "floor ceil", "minimum maximum", "any all", "ROUND_CEILING ROUND_FLOOR")
    for one, other in (pair.split(), pair.split()[::-1])
}
IMPORTED = {"floor": "__import__('math').floor", "ceil": "__import__('math').ceil"}
IMPORTED |= {name: f"__import__('decimal').{name}" for name in ("ROUND_CEILING", "ROUND_FLOOR")}


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A place in a module, and what is put there."""

    module: str
    kind: str
    line: int
    start: int
    end: int
    replacement: str

    def applied(self, source: bytes) -> bytes:
        """The source with the mutation."""
        return source[: self.start] + self.replacement.encode() + source[self.end :]

    def lines(self, source: bytes) -> tuple[str, str]:
        """The changed line, or lines, before and after."""
        begin, stop = source.rfind(b"\n", 0, self.start) + 1, source.find(b"\n", self.end)
        after = source[begin : self.start] + self.replacement.encode() + source[self.end : stop]
        return " ".join(source[begin:stop].decode().split()), " ".join(after.decode().split())


class _Finder(ast.NodeVisitor):
    """Collects the mutations of one module."""

    def __init__(self, module: str, source: bytes) -> None:
        self.module, self.found = module, list[Mutation]()
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._margin = False
        self.visit(ast.parse(source))

    def _add(self, kind: str, node: ast.expr | ast.stmt, replacement: ast.AST | str) -> None:
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        text = replacement if isinstance(replacement, str) else f"({ast.unparse(replacement)})"
        self.found.append(
            Mutation(module=self.module, kind=kind, line=node.lineno, start=start, end=end, replacement=text)
        )

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in FUNCTIONS:
            return
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        for statement in node.body:
            self.visit(statement)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if not any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases):
            for statement in node.body:
                self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assigned([node.target], node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._assigned(node.targets, node.value)

    def _assigned(self, targets: list[ast.expr], value: ast.expr) -> None:
        names = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
        alias = isinstance(value, ast.Subscript | ast.BinOp) and names and re.fullmatch(r"[A-Z][a-z]\w*", names[0])
        if alias or any(name in NAMES for name in names):
            return
        self._margin = any(name in MARGINS for name in names)
        self.visit(value)
        self._margin = False

    def visit_Raise(self, node: ast.Raise) -> None:
        if node.exc is not None:
            self._add("refusal dropped", node, "pass")

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._add("statement dropped", node, "pass")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add("statement dropped", node, "pass")
        self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Text for people."""

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not (isinstance(node.value, ast.Name) and node.value.id in {"list", "dict", "set", "tuple", "Literal"}):
            self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in KEYWORDS:
            self.visit(node.value)

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, operator in enumerate(node.ops):
            other = copy.deepcopy(node)
            other.ops[place] = COMPARED[type(operator)]()
            self._add("comparison", node, other)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        text = any(
            isinstance(side, ast.JoinedStr | ast.Constant) and _is_text(side) for side in (node.left, node.right)
        )
        if type(node.op) in COMPUTED and not text:
            other = copy.deepcopy(node)
            other.op = COMPUTED[type(node.op)]()
            self._add("arithmetic", node, other)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = copy.deepcopy(node)
        other.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._add("and, or", node, other)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self._add("sign or negation", node, copy.deepcopy(node.operand))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add("constant", node, str(not node.value))
        elif isinstance(node.value, int | float) and not self._margin:
            self._add("constant", node, ast.Constant(node.value + 1))

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in RENAMED:
            other = RENAMED[node.id]
            self._add("direction", node, IMPORTED.get(other, other))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in RENAMED:
            self._add("direction", node, f"({ast.unparse(node.value)}).{RENAMED[node.attr]}")
        self.generic_visit(node)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def file_of(module: str, sources: Path = SOURCES) -> Path:
    """The file of a module of the core."""
    return sources / "sfumato" / f"{module}.py"


def candidates(module: str) -> list[Mutation]:
    """All mutations of a module."""
    return _Finder(module, file_of(module).read_bytes()).found


def sample(seed: int, number: int) -> list[Mutation]:
    """So many mutations, one of every module in turn."""
    chance = random.Random(seed)
    left = {module: candidates(module) for module in COVERED}
    for mutations in left.values():
        chance.shuffle(mutations)
    modules, drawn = list(left), list[Mutation]()
    chance.shuffle(modules)
    while len(drawn) < number and any(left.values()):
        drawn += [left[module].pop() for module in modules if left[module]][: number - len(drawn)]
    return drawn


# Running the tests against a mutant.

_NO_TESTS = 5  # what pytest says where it found none


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a mutant."""

    module: str
    line: int
    kind: str
    before: str
    after: str
    outcome: str
    """killed, survived, equivalent or time (no test failed before the limit)."""
    by: str
    """The test that failed, or why the mutant is equivalent."""
    seconds: float


def outcomes(mutations: list[Mutation], limit: float) -> Iterator[Outcome]:
    """What becomes of each mutant, in a copy of the sources that is mended after each."""
    with tempfile.TemporaryDirectory(prefix="mutants") as folder:
        sources = Path(folder) / "src"
        shutil.copytree(SOURCES, sources, ignore=shutil.ignore_patterns("__pycache__"))
        for mutation in mutations:
            path = file_of(mutation.module, sources)
            source = path.read_bytes()
            before, after = mutation.lines(source)
            reason = EQUIVALENT.get((mutation.module, before, after))
            started = time.monotonic()
            if reason is None:
                _write(path, mutation.applied(source))
                outcome, by = tested(COVERED[mutation.module], sources, limit)
                _write(path, source)
            else:
                outcome, by = "equivalent", reason
            yield Outcome(
                module=mutation.module,
                line=mutation.line,
                kind=mutation.kind,
                before=before,
                after=after,
                outcome=outcome,
                by=by,
                seconds=round(time.monotonic() - started, 1),
            )


def _write(path: Path, source: bytes) -> None:
    path.write_bytes(source)
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):  # may have the same size and second
        compiled.unlink()


def tested(files: tuple[str, ...], sources: Path, limit: float) -> tuple[str, str]:
    """What the tests of every round say of these sources, and which of them failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "--tb=no", "-p", "no:cacheprovider"]
    command += ["-m", "not slow", "--hypothesis-profile=mutants", *files]
    environment = os.environ | {
        "PYTHONPATH": str(sources),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(sources.parent / "drawn"),
    }
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # so that processes which tests start end with them
    )
    try:
        said, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return "time", ""
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode == 0:
        return "survived", ""
    if process.returncode == _NO_TESTS:
        raise SystemExit(f"no tests in {files}")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", said, flags=re.MULTILINE)
    return "killed", failed[1] if failed else said.strip().splitlines()[-1]


def main() -> int:
    """Draw, run and report; an exit code other than 0 says that a mutant survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--number", type=int, default=NUMBER)
    parser.add_argument("--skip", type=int, default=0, help="leave out so many at the beginning")
    parser.add_argument("--only", default="", help="modules whose name contains this")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for the tests of one mutant")
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    given = parser.parse_args()
    drawn = [each for each in sample(given.seed, given.number)[given.skip :] if given.only in each.module]
    if given.list:
        for mutation in drawn:
            before, after = mutation.lines(file_of(mutation.module).read_bytes())
            print(f"{mutation.module}:{mutation.line} ({mutation.kind})\n  - {before}\n  + {after}")
        print(f"{len(drawn)} of {sum(len(candidates(module)) for module in COVERED):,} mutations")
        return 0
    kept, _ = tested(tuple(sorted({COVERED[m.module][0] for m in drawn})[:1]), SOURCES, given.limit)
    if kept != "survived":
        raise SystemExit("tests fail without any mutation: mend them first")
    found = []
    for outcome in outcomes(drawn, given.limit):
        found.append(outcome)
        print(f"{outcome.outcome:10} {outcome.seconds:6.1f} s  {outcome.module}:{outcome.line} ({outcome.kind})")
        print(f"  - {outcome.before}\n  + {outcome.after}\n  {outcome.by}", flush=True)
    counts = {kind: sum(o.outcome == kind for o in found) for kind in ("killed", "equivalent", "survived", "time")}
    seconds = sum(o.seconds for o in found)
    print(f"{len(found)} mutants, seed {given.seed}: {counts}, {seconds:.0f} s")
    if given.json:
        result = {"seed": given.seed, "counts": counts, "mutants": [asdict(outcome) for outcome in found]}
        given.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if counts["survived"] or counts["time"] else 0


if __name__ == "__main__":
    sys.exit(main())
