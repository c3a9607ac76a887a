"""The compiled loops: arrays in, arrays out. The only room that knows numba.

A kernel has the name of its algorithm, is a plain loop nest, returns arrays and never raises; its
slow twin stands in `tests/naive` under the same name. Compile flags live in `_jit.py`.
"""
