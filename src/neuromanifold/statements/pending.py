"""The one list of statements whose code is still to come, each with the work that will bring it.

A test fails when a statement that is not on this list has no code or no test, and when one that has
both is still on it.
"""

from typing import Literal

Topic = Literal["exact", "fibers", "paper"]

PENDING: dict[str, Topic] = {
    "thm-3.2": "fibers",
    "lemma-3.5": "fibers",
    "thm-3.7": "fibers",
    "thm-3.9": "fibers",
    "fig-1": "paper",
    "fig-2": "paper",
    "fig-3": "paper",
    "fig-4": "paper",
}
