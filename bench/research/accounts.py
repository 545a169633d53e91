"""What concentrated accounting would gain over adding epsilons, with the mechanisms as they are.

`python -m bench.research.accounts` prints, for programmes of k tables of ε₀ each, what a reader may learn in all: by
adding up, by zCDP at some δ, and by the exact composition of pure guarantees (Kairouz, Oh and Viswanath 2015).
"""

from math import exp, inf, lgamma, log, log1p, sqrt, tanh

import numpy as np

DELTA = 1e-6


def concentration(epsilon: float) -> float:
    """The least ρ for which a pure ε guarantee is ρ-zCDP: of randomised response, which all pure guarantees refine."""
    p, q = 1 / (1 + exp(-epsilon)), 1 / (1 + exp(epsilon))
    orders = 1 + np.geomspace(1e-4, 1e4, 4_000)
    logs = np.logaddexp(orders * log(p) + (1 - orders) * log(q), orders * log(q) + (1 - orders) * log(p))
    return max(epsilon * tanh(epsilon / 2), float((logs / (orders - 1) / orders).max()))


def concentrated(rho: float, delta: float = DELTA) -> float:
    """The ε that ρ-zCDP implies at δ."""
    return rho + 2 * sqrt(rho * log(1 / delta))


def exact(tables: int, epsilon: float, delta: float = DELTA) -> float:
    """The least ε of k pure guarantees of ε₀ together at δ."""

    def fails(total: float) -> float:
        logs = [
            lgamma(tables + 1) - lgamma(j + 1) - lgamma(tables - j + 1) + (tables - j) * epsilon
            for j in range(tables + 1)
        ]
        whole = tables * log1p(exp(epsilon))
        return sum(
            max(exp(one - whole) - exp(total + one - whole - (tables - 2 * j) * epsilon), 0.0)
            for j, one in enumerate(logs)
        )

    low, high = 0.0, tables * epsilon
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if fails(middle) > delta else (low, middle)
    return high


def main() -> None:
    """Print what programmes reveal, when concentrated accounting begins to gain, and several steps."""
    print(f"k, epsilon of each: added up; zCDP, exact at delta = {DELTA:g}")
    for each in (0.05, 0.1, 0.25, 0.5, 1.0, 2.0):
        for tables in (10, 30, 100, 300):
            rho = tables * concentration(each)
            row = tables * each, concentrated(rho), exact(tables, each)
            print(tables, each, *(f"{one:.2f}" for one in row))
    print("epsilon of each: tables from which zCDP says less than adding up")
    for each in (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0):
        rho = concentration(each)
        margin = each - rho
        print(each, f"{4 * rho * log(1 / DELTA) / margin**2:.0f}" if margin > 0 else inf)
    print("within a total of 8, each of k tables: added up, zCDP; and what alpha = 0.1 needs at least")
    for tables in (30, 100, 300):
        limit = (-sqrt(log(1 / DELTA)) + sqrt(log(1 / DELTA) + 8)) ** 2
        low, high = 0.0, 8.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if tables * concentration(middle) < limit else (low, middle)
        print(tables, f"{8 / tables:.3f} {low:.3f} {log1p(0.1):.3f}")
    print("steps apart: added up, zCDP, for 100 tables of 0.25")
    for steps in (1, 2, 7, 20):
        rho = 100 * concentration(0.25)
        print(steps, f"{steps * 25:.1f} {concentrated(steps**2 * rho):.1f}")


if __name__ == "__main__":
    main()
