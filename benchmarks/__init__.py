"""Races of Prudent against general solvers, on the same arrays in one run; see README.md."""
