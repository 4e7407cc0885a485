"""The front door: a table in, a Result out. `question` is it for two columns, given others."""

from covaria.assessment.front import WITHOUT_CHECKS as WITHOUT_CHECKS
from covaria.assessment.front import assess as assess
from covaria.assessment.front import defaults as defaults
from covaria.assessment.front import prepare as prepare
from covaria.assessment.pipeline import Job as Job
