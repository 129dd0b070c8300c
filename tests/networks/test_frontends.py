"""Front ends for frameworks that are not installed."""

import importlib.util

import pytest

from neuromanifold.errors import ArgumentError
from neuromanifold.networks.frontends.pytorch import from_torch


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")
def test_without_pytorch_the_sentence_says_what_to_install():
    with pytest.raises(ArgumentError, match=r"pip install 'neuromanifold\[torch\]'"):
        from_torch(None, None)
