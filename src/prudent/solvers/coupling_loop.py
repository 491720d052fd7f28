"""Moments of all rows and the system that couples them, as loops to be compiled: MomentSystem and DefiniteSystem."""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray
from prudent.solvers.step_state import Factors, Program

__all__ = ["CALLED", "couple_moments", "factor_definite", "moments_of", "solve_definite", "tilts_of"]


def tilts_of(program: Program, multipliers: FloatArray) -> FloatArray:
    """Tilts of all rows, ``(d, n)``."""
    d, n = program.forecasts.shape
    tilts = np.zeros((d, n))
    for t in range(program.values.shape[0]):
        test = program.values[t]
        for j in range(d):
            factor, tilt = 0.0, tilts[j]
            for k in range(multipliers.size):
                factor += program.combination[t * d + j, k] * multipliers[k]
            for i in range(n):
                tilt[i] += factor * test[i]
    return tilts


def moments_of(program: Program, residuals: FloatArray) -> FloatArray:
    """Moments of residuals ``(d, n)``, ``(K,)``."""
    d, n = residuals.shape
    moments = np.zeros(program.combination.shape[1])
    weighted = np.empty(n)
    for j in range(d):
        residual = residuals[j]
        for i in range(n):
            weighted[i] = program.weights[i] * residual[i]
        for t in range(program.values.shape[0]):
            test, total = program.values[t], 0.0
            for i in range(n):
                total += test[i] * weighted[i]
            for k in range(moments.size):
                moments[k] += program.combination[t * d + j, k] * total
    return moments


def couple_moments(program: Program, metric: FloatArray) -> FloatArray:
    """Moments' responses to their multipliers, ``(K, K)``."""
    k, n = program.values.shape
    d = program.forecasts.shape[0]
    size, moments = program.combination.shape
    blocks = np.zeros((size, size))
    product = np.empty(n)
    for t in range(k):
        for s in range(t, k):
            one, other = program.values[t], program.values[s]
            for i in range(n):
                product[i] = one[i] * other[i] * program.weights[i]
            for a in range(d):
                for b in range(a, d):
                    entry, total = metric[a * (2 * d - a - 1) // 2 + b], 0.0
                    for i in range(n):
                        total += product[i] * entry[i]
                    blocks[t * d + a, s * d + b] = blocks[t * d + b, s * d + a] = total
                    blocks[s * d + a, t * d + b] = blocks[s * d + b, t * d + a] = total
    trace, ones = 0.0, 0.0
    for a in range(size):
        trace += blocks[a, a]
        ones += program.free[a]
    if ones > 0:
        # On the simplex the metric is zero along ones; fill that direction so that the system is definite.
        diagonal = max(trace / size, 1e-300)
        for t in range(k):
            for a in range(t * d, (t + 1) * d):
                for b in range(t * d, (t + 1) * d):
                    blocks[a, b] += diagonal / d * program.free[a] * program.free[b]
    half, whole = np.zeros((size, moments)), np.zeros((moments, moments))
    for a in range(size):
        for b in range(size):
            for c in range(moments):
                half[a, c] += blocks[a, b] * program.combination[b, c]
    for a in range(size):
        for c in range(moments):
            for e in range(moments):
                whole[c, e] += program.combination[a, c] * half[a, e]
    return whole


def factor_definite(matrix: FloatArray, shift: float) -> tuple[bool, FloatArray]:
    """Lower triangle of a factorisation; False if the matrix is not definite."""
    size = matrix.shape[0]
    triangle = np.zeros((size, size))
    for j in range(size):
        pivot = matrix[j, j] + shift
        for k in range(j):
            pivot -= triangle[j, k] * triangle[j, k]
        if not pivot > 0.0:
            return False, triangle
        triangle[j, j] = np.sqrt(pivot)
        for i in range(j + 1, size):
            rest = matrix[i, j]
            for k in range(j):
                rest -= triangle[i, k] * triangle[j, k]
            triangle[i, j] = rest / triangle[j, j]
    return True, triangle


def solve_definite(factors: Factors, right: FloatArray) -> None:
    """Solve for the multipliers, refined, in place of the right side."""
    size = right.size
    solution, rest = np.zeros(size), np.empty(size)
    for _ in range(3):
        for i in range(size):
            rest[i] = right[i] / factors.size[i]
            for j in range(size):
                rest[i] -= factors.scaled[i, j] * solution[j]
        for i in range(size):
            for j in range(i):
                rest[i] -= factors.triangle[i, j] * rest[j]
            rest[i] /= factors.triangle[i, i]
        for i in range(size - 1, -1, -1):
            for j in range(i + 1, size):
                rest[i] -= factors.triangle[j, i] * rest[j]
            rest[i] /= factors.triangle[i, i]
        for i in range(size):
            solution[i] += rest[i]
    for i in range(size):
        right[i] = solution[i] / factors.size[i]


#: All of them, for the step that calls them.
CALLED = (tilts_of, moments_of, couple_moments, factor_definite, solve_definite)
