"""One module per source: ``FILES``, ``CITATION``, ``LICENCE``, and ``read(folder)``, which yields forecasters."""
