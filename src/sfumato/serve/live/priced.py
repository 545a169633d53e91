"""What a question would cost, and how far its answer would be off, in numbers and words."""

from fractions import Fraction

from sfumato.live import FormalLive, Live
from sfumato.live.formal import Price as FormalPrice
from sfumato.plan import PlannedTable
from sfumato.serve.live.schemas import ExpectedError, Price

SIZES = (10, 100, 1_000)
"""Establishments, or cells, whose errors are told as examples."""


def priced(live: Live | FormalLive, planned: PlannedTable, *, analyst: str | None) -> Price:
    """The price of a question; one about records costs nothing, and its errors come with the answer."""
    if isinstance(live, Live):
        return Price(cells=planned.cells, method=planned.method.name, epsilon=0, answered=False, fits=True)
    return as_told(planned, live.price(planned, analyst=analyst))


def as_told(planned: PlannedTable, price: FormalPrice) -> Price:
    """The price of a question that costs something, in numbers and words."""
    guarantee, refusal = price.guarantee, price.refusal
    return Price(
        cells=planned.cells,
        method=planned.method.name,
        definition=guarantee.definition,
        alpha=float(guarantee.alpha),
        epsilon=_cost(price.epsilon, price),
        delta=_cost(price.delta, price),
        left=float(price.left.remaining_epsilon),
        answered=price.answered,
        fits=refusal is None,
        refusal="" if refusal is None else f"expected {refusal.expected}; found {refusal.found}. To do: {refusal.do}.",
        error=expected_error(planned),
    )


def _cost(number: Fraction | None, price: FormalPrice) -> float | None:
    """What is taken from the budget; nothing is said where the budget cannot pay for such a question at all."""
    if price.answered:
        return 0
    return None if number is None else float(number)


def expected_error(planned: PlannedTable) -> ExpectedError:
    """The mean absolute error of a cell, from the parameters alone."""
    error = planned.method.planned_error()
    share = error.share or 0.0
    return ExpectedError(
        small=error.floor,
        small_size=error.floor_size,
        share=error.share,
        of=error.of,
        examples={
            str(size): error.floor if size <= error.floor_size else max(error.floor, share * size) for size in SIZES
        },
    )
