"""What a table asks of the data."""

from sfumato.statistics.jobs.question import Question
from sfumato.statistics.panel.question import IndicatorQuestion, PairQuestion
from sfumato.statistics.people.question import SampleQuestion
from sfumato.statistics.totals.question import ContributorQuestion

Asked = Question | IndicatorQuestion | PairQuestion | ContributorQuestion | SampleQuestion
