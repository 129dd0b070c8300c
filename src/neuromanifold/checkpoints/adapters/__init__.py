"""Low-rank adapters: updates ΔW = s B A of the weights of a model.

B A = (B G)(G^-1 A) for every invertible G, so that neither B nor A means anything alone (lora);
only their product does. Every question here is about the product, and is answered with matrices of
size r × r: with B = P R and Aᵀ = Q T (P, Q orthonormal) the product is P (s R Tᵀ) Qᵀ.
"""
