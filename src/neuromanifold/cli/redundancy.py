"""`neuromanifold redundancy`: how many parameters a network has too many, and why."""

from neuromanifold.cli.options import DEFAULT_NETWORK, NetworkOptions
from neuromanifold.cli.output import columns, print_answer
from neuromanifold.cli.run import Json


def redundancy(network: NetworkOptions = DEFAULT_NETWORK, *, json: Json = False) -> None:
    """Parameters against dimension, and what the difference is made of.

    Example: neuromanifold redundancy --widths 8,8,8 --ranks 8,8 --tokens 4
    """
    from neuromanifold.formula.redundancy import redundancy as count

    answer = count(network.architecture())
    rows = [(str(share.dimension), share.name, share.meaning) for share in answer.shares]
    print_answer(json, answer.to_dict(), str(answer), *(columns(rows) if rows else []))
