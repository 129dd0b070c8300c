"""The gauge group of a block: which changes of its tensors its function does not see, part by part.

A `GaugePart` is a group (or a family of moves) with coordinates: the shapes of its parameters, all
zero at the identity, and the action on tensors. Dimensions are counted from the shapes, tangent
vectors come from differentiating the action, random elements from drawing the parameters: each part
is written once.
"""
