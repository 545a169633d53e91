"""Identical questions at a time are one question: one computation, one answer or one error, and nobody spoils it."""

from pathlib import Path

from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.figures import BoundedCache
from sfumato.serve.core.model import Figures, Selection
from tests.serve.raw import heard, request
from tests.serve.test_fair_work import Held, busy

MANY = 40


def test_many_who_ask_the_same_at_a_time_get_one_answer_that_is_worked_out_once(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    with busy(catalogue, tmp_path) as server:
        asked = [server.download(0, last) for last in range(1, MANY)]
        assert server.heard_of(len(asked))
        assert server.held.began()
        server.held.finish.release()
        told = [heard(connection) for connection in asked]
        assert {said.status for said in told} == {200}
        assert len({said.body for said in told}) == 1
    assert server.held.order == [0]


def test_the_same_question_in_other_words_is_the_same_question(catalogue: Catalogue, tmp_path: Path) -> None:
    spellings = ("a]=c1,c0&valueCodes[b]=*", "b]=*&valueCodes[A]=c0,c1")
    with busy(catalogue, tmp_path) as server:
        path = "/api/v2/tables/long/data?outputFormat=parquet&valueCodes["
        asked = [server.sent(request("GET", path + words), last) for last, words in enumerate(spellings, start=1)]
        assert server.heard_of(2)
        assert server.held.began()
        server.held.finish.release()
        assert len({heard(connection).body for connection in asked}) == 1
    assert server.held.order == [0]


def test_a_new_page_is_written_once_for_all_its_readers(catalogue: Catalogue, tmp_path: Path) -> None:
    with busy(catalogue, tmp_path, most_lined_up=1) as server:
        asked = [server.sent(request("GET", "/tables/long"), last) for last in range(1, MANY)]
        assert server.heard_of(len(asked))
        server.held.finish.release(1_000)
        assert {heard(connection).status for connection in asked} == {200}, "none is told that the lines are full"
        begun = len(server.held.order)
        assert heard(server.sent(request("GET", "/tables/long"), 1)).status == 200
        assert len(server.held.order) == begun, "it is kept"
    assert begun == 1


def test_who_asked_first_may_leave_without_taking_the_answer_from_the_others(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    with busy(catalogue, tmp_path, downloads=1) as server:
        before = server.download(7, 9)
        assert server.held.began()
        waiting = [server.download(0, last) for last in (1, 2, 3)]
        assert server.heard_of(4)
        waiting[0].close()  # before its turn
        assert server.heard_of(3)
        server.held.finish.release()
        assert heard(before).status == 200
        assert server.held.began()
        waiting[1].close()  # while it is worked out
        server.held.finish.release()
        assert heard(waiting[2]).status == 200
    assert server.held.order == [7, 0]


def test_a_question_that_all_have_left_is_not_begun(catalogue: Catalogue, tmp_path: Path) -> None:
    with busy(catalogue, tmp_path, downloads=1) as server:
        before = server.download(7, 9)
        assert server.held.began()
        both = [server.download(0, last) for last in (1, 2)]
        assert server.heard_of(3)
        for connection in both:
            connection.close()
        assert server.heard_of(1)
        server.held.finish.release()
        assert heard(before).status == 200
        assert server.held.order == [7]
        again = server.download(0, 1)
        server.held.finish.release()
        assert heard(again).status == 200


def test_nobody_waits_behind_the_questions_of_another_client_who_asks_the_same(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    with busy(catalogue, tmp_path, downloads=1) as server:
        first = server.download(0, 1)
        assert server.held.began()
        line = [server.download(code, 1) for code in (1, 2, 3)]
        assert server.heard_of(4)
        hot = [server.download(9, 1)]
        assert server.heard_of(5)
        hot.append(server.download(9, 2))
        assert server.heard_of(6)
        server.held.finish.release(5)
        assert {heard(connection).status for connection in (first, *line, *hot)} == {200}
    assert sorted(server.held.order) == [0, 1, 2, 3, 9]
    assert server.held.order.index(9) <= 2, "the second client's turn comes after one answer, not after four"


class Failing(Held):
    """Figures that are refused when the test says so, the first time."""

    def figures(self, selection: Selection) -> Figures:
        found = super().figures(selection)
        if len(self.order) == 1:
            raise RefusedError("figures", expected="some", found="none this time", do="ask again", status=404)
        return found


def test_an_error_is_shared_and_not_kept(catalogue: Catalogue, tmp_path: Path) -> None:
    with busy(catalogue, tmp_path, held=Failing()) as server:
        asked = [server.download(0, last) for last in range(1, 9)]
        assert server.heard_of(len(asked))
        server.held.finish.release()
        assert {heard(connection).problem["status"] for connection in asked} == {404}
        server.held.finish.release()
        assert heard(server.download(0, 1)).status == 200
    assert server.held.order == [0, 0]


def test_those_who_share_are_a_bounded_number_too(catalogue: Catalogue, tmp_path: Path) -> None:
    with busy(catalogue, tmp_path, most_sharing=2) as server:
        asked = [server.download(0, last) for last in (1, 2, 3)]
        assert server.heard_of(3)
        assert heard(server.download(0, 4)).problem["status"] == 503
        server.held.finish.release()
        assert {heard(connection).status for connection in asked} == {200}


def test_what_was_worked_out_for_one_edition_is_not_given_for_the_next(catalogue: Catalogue, tmp_path: Path) -> None:
    with busy(catalogue, tmp_path) as server:
        earlier = server.download(0, 1)
        assert server.held.began()
        server.renew()
        later = server.download(0, 2)
        assert server.held.began(), "it is worked out anew"
        server.held.finish.release(2)
        assert [heard(connection).status for connection in (earlier, later)] == [200, 200]


def test_finished_answers_are_bounded() -> None:
    cache = BoundedCache[bytes](800)
    for number in range(100):
        cache.put(number, b"", size=100)
    assert [number for number in range(100) if cache.get(number) is not None] == list(range(92, 100))
