"""One module per source: ``FILES``, ``CITATION``, ``LICENCE``, and ``read(folder)``, which yields forecasters.

``LEFT_OUT`` says what is left out of a source, and why.
"""
