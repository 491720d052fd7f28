"""The worst worlds that a guarantee allows: for one policy, and for several in each other's."""
