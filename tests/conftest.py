import sys

import jaxtyping
import pytest
from hypothesis import settings

from architectures import ARCHITECTURES

settings.register_profile("neuromanifold", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("neuromanifold")


@pytest.fixture(params=ARCHITECTURES, ids=lambda architecture: architecture.name)
def architecture(request):
    """Every network of the table, one after another."""
    return request.param


@pytest.fixture(
    params=[
        pytest.param(one, marks=() if k % 4 == 1 else pytest.mark.slow)
        for k, one in enumerate(ARCHITECTURES)
    ],
    ids=lambda architecture: architecture.name,
)
def some_architecture(request):
    """Every network of the table, all but a quarter of them in the slow suite only."""
    return request.param


@pytest.fixture
def wrong_types():
    """Values of wrong types reach the code that refuses them: a user has no checks of types."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True)
def _forget_networks(request):
    """Networks made while something was patched, a formula say, are not kept for other tests."""
    yield
    diagrams = sys.modules.get("neuromanifold.symmetry.attention")
    if "monkeypatch" in request.fixturenames and diagrams is not None:
        diagrams.attention_network.cache_clear()
