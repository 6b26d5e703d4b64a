"""The compilation of kernels, and the helpers that all kernels share. Imports only `process` of the package.

`compile` has the decorators (`entry`, `inlined`, `scanning`, ...). `linking` has the compilers that turn
helpers into machine code only as parts of kernels. `cache_folder` is the folder of compiled kernels, `cache`
reads and writes a kernel in it. `announcement` says that a process waits for kernels. `records` makes arrays
of records as kernels take them. `bits` counts and finds bits. `rings` moves along ring buffers. `exact_sums`
adds floats without rounding. Read in this order.
"""
