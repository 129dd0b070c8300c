"""What a configuration does not say is what Hugging Face's class takes."""

import pytest
import transformers

from neuromanifold.checkpoints.families.llama import DEFAULTS

CLASSES = {
    "gemma2": transformers.Gemma2Config,
    "mistral": transformers.MistralConfig,
    "phi3": transformers.Phi3Config,
    "qwen2": transformers.Qwen2Config,
    "qwen3": transformers.Qwen3Config,
}


@pytest.mark.parametrize(
    ("model", "key"), [(model, key) for model, known in DEFAULTS.items() for key in known]
)
def test_a_missing_key_has_the_value_of_the_class(model, key):
    # Qwen's classes drop the window unless it is to be used
    used = {"use_sliding_window": True} if key == "sliding_window" else {}
    assert getattr(CLASSES[model](**used), key) == DEFAULTS[model][key]
