"""Real transformers: files of weights, and what in them the function does not see.

`block` is what a configuration says, `readers` and `families` bring files to its tensors, `gauge`
is the group that acts on these. On them rest the questions: `audits`, `normal_form`, `equality`,
`distance`, `adapters`.
"""
