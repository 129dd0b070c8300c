"""The one list of statements whose code is still to come, each with the work that will bring it.

A test fails when a statement that is not on this list has no code or no test, and when one that has
both is still on it.
"""

from typing import Literal

Topic = Literal["paper"]

PENDING: dict[str, Topic] = {
    "fig-1": "paper",
    "fig-2": "paper",
    "fig-3": "paper",
    "fig-4": "paper",
}
