"""Many clients at a time get the same answers, and a large question does not stop the small ones."""

from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.serve.patient import PATIENCE
from tests.serve.running import Server

QUESTIONS = (
    "/tables/jobs_by_place/data?outputFormat=csv",
    "/tables/people/data?valueCodes[region]=*&valueCodes[job]=*",
    "/tables/indicators/data?outputFormat=parquet",
    "/tables/turnover_by_state_industry/data?outputFormat=xlsx",
    "/tables/flows_between_states/metadata",
)


def test_fifty_clients_get_identical_answers(server: Server) -> None:
    def ask(number: int) -> list[bytes]:
        with httpx.Client(timeout=PATIENCE) as client:
            turned = QUESTIONS[number % len(QUESTIONS) :] + QUESTIONS[: number % len(QUESTIONS)]
            found = {path: client.get(f"{server.v2}{path}") for path in turned}
        assert all(response.status_code == 200 for response in found.values())
        return [found[path].content for path in QUESTIONS]

    with ThreadPoolExecutor(50) as pool:
        first, *others = pool.map(ask, range(50))
    assert all(other == first for other in others)
