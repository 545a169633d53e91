"""Workforces differ between industries and establishments by more than the luck of hiring."""

import pytest

GROUPS = ["sex = 'F'", "education = 'college'", "race = 'white'", "ethnicity = 'hispanic'"]

BETWEEN = """
    with large as (
        select workplace, industry, count(*) as n, avg(({group})::int) as share
        from jobs join workers using (worker) join workplaces using (workplace)
        group by all having n >= 50
    ), centred as (select *, avg(share) over ({within}) as middle from large)
    select avg((share - middle) ** 2) / avg(middle * (1 - middle) / n) from centred
"""


@pytest.mark.parametrize("group", GROUPS)
def test_shares_vary_between_establishments_several_times_the_binomial_variance(query, group):
    [(ratio,)] = query(BETWEEN.format(group=group, within=""))
    assert ratio > 5


@pytest.mark.parametrize("group", GROUPS)
def test_shares_vary_between_establishments_of_one_industry_too(query, group):
    [(ratio,)] = query(BETWEEN.format(group=group, within="partition by industry"))
    assert ratio > 4


def test_shares_of_women_and_graduates_differ_by_industry(query):
    shares = {
        industry: (women, graduates)
        for industry, women, graduates in query(
            "select industry, avg((sex = 'F')::int), avg((education = 'college')::int)"
            " from jobs join workers using (worker) join workplaces using (workplace) group by industry"
        )
    }
    assert shares["62"][0] > 3 * shares["23"][0]
    assert shares["54"][1] > 3 * shares["72"][1]


def test_earnings_rise_with_education(query):
    medians = query(
        "select median(earnings) from jobs join workers using (worker) where age = '35-44' group by education"
        " order by list_position(['no-diploma', 'high-school', 'some-college', 'college'], education)"
    )
    assert medians == sorted(medians)


def test_a_second_job_pays_less(query):
    [(first, second)] = query(
        "select median(earnings) filter (n = 1), median(earnings) filter (n = 2) from"
        " (select earnings, row_number() over (partition by worker order by earnings desc) n from jobs)"
    )
    assert second < 0.6 * first


def test_all_ages_and_both_sexes_are_there_in_believable_shares(query):
    shares = dict(query("select age, count(*) / (select count(*) from workers) from workers group by age"))
    assert all(0.02 < share < 0.3 for share in shares.values())
    [(women,)] = query("select avg((sex = 'F')::int) from workers")
    assert 0.45 < women < 0.52
