"""The atlas: certificates of many architectures, on one machine or a cluster, and maps of them.

A *grid* describes a sweep: which values every field of an architecture takes. Its *tasks* are one
certificate each, for an architecture, a readout, a seed and a prime. They run on Dask in *batches*,
and their *records* go to a *store*, one SQLite file that survives being killed at any moment. What
is in the store is listed, mapped and exported.

Nothing is imported here, so that reading a store does not load an array library.
"""
