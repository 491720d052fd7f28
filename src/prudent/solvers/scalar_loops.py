"""One coordinate: what selection and certificates do with a row, as loops to be compiled.

Every function is one pass over the rows. Sums are returned per block of rows, so that their rounding is bounded
(:mod:`prudent.solvers.bounds`); inside a block each step runs over all its rows before the next one starts, which
is what vector registers need. Weights are one per row, or a block of equal ones
(:func:`loop_weights`). Divisions by zero give what they give in NumPy.
"""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray, IntArray

__all__ = [
    "BLOCK",
    "add_up_tests",
    "find_crossings",
    "guarantee_blocks",
    "hold_blocks",
    "loop_weights",
    "place_beliefs",
]

#: Rows that a loop adds up one after the other; the sums of blocks are added pairwise or exactly. It stands in this
#: file because what numba keeps on disk is made anew when this file changes, and not when another one does.
BLOCK = 256


def loop_weights(weights: FloatArray) -> FloatArray:
    """Weights as loops read them: one per row, or a single block where all are a view of one number."""
    return np.full(BLOCK, weights[0]) if weights.strides == (0,) else np.ascontiguousarray(weights)


def add_up_tests(values: FloatArray, weights: FloatArray, forecasts: FloatArray) -> FloatArray:
    """Sums of ``w h`` where it is positive, where it is negative, and of ``w h v``, shape ``(3, blocks)``."""
    sums = np.zeros((3, (values.size + BLOCK - 1) // BLOCK))
    for block in range(sums.shape[1]):
        part = slice(block * BLOCK, (block + 1) * BLOCK)
        h, v, w = values[part], forecasts[part], weights[part] if weights.size == values.size else weights
        positive, negative, moment = 0.0, 0.0, 0.0
        for i in range(h.size):
            strength = w[i] * h[i]
            positive += strength if strength > 0 else 0.0
            negative += strength if strength < 0 else 0.0
            moment += strength * v[i]
        sums[0, block], sums[1, block], sums[2, block] = positive, negative, moment
    return sums


def find_crossings(
    values: FloatArray,
    weights: FloatArray,
    turns: FloatArray,
    widths: FloatArray,
    surely: FloatArray,
    maybe: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Jumps surely before a bracket, added up by block, and positions and sizes of those that may lie inside.

    A row crosses slope ``j`` at ``turns_j / h``; before the bracket if ``|h| > surely_j``, in it or before it if
    ``|h| >= maybe_j``, and only if ``h`` has the sign of the turn.
    """
    before = np.zeros((values.size + BLOCK - 1) // BLOCK)
    inside, count = np.empty(BLOCK, dtype=np.int64), 0
    positions, sizes = np.empty(1024), np.empty(1024)
    for block in range(before.size):
        part = slice(block * BLOCK, (block + 1) * BLOCK)
        h, w = values[part], weights[part] if weights.size == values.size else weights
        while count + turns.size * BLOCK > positions.size:
            positions, sizes = np.append(positions, positions), np.append(sizes, sizes)  # twice the room
        total = 0.0
        for j in range(turns.size):
            sign = 1.0 if turns[j] > 0 else -1.0
            sure, near, width = surely[j], maybe[j], widths[j]
            some = 0
            for i in range(h.size):
                side = sign * h[i]
                total += w[i] * side * width if side > sure else 0.0
                some += (side >= near) & (side <= sure)
            if some == 0:
                continue
            some = 0
            for i in range(h.size):
                inside[some] = i
                some += (sign * h[i] >= near) & (sign * h[i] <= sure)
            for i in inside[:some]:
                positions[count] = turns[j] / h[i]
                sizes[count] = w[i] * (sign * h[i]) * width
                count += 1
        before[block] = total
    return before, positions[:count], sizes[:count]


def place_beliefs(
    values: FloatArray,
    weights: FloatArray,
    multiplier: float,
    slopes: FloatArray,
    margins: FloatArray,
    points: FloatArray,
    beliefs: FloatArray,
) -> tuple[FloatArray, IntArray]:
    """Write every row's belief at a multiplier; return ``w h q`` by block, and the rows that are nearly at a jump."""
    moments = np.zeros((values.size + BLOCK - 1) // BLOCK)
    close, count = np.empty(1024, dtype=np.int64), 0
    for block in range(moments.size):
        part = slice(block * BLOCK, (block + 1) * BLOCK)
        h, q, w = values[part], beliefs[part], weights[part] if weights.size == values.size else weights
        q[:] = points[0]
        some = 0
        for j in range(slopes.size):
            slope, margin, point = slopes[j], margins[j], points[j + 1]
            for i in range(h.size):
                ahead = -multiplier * h[i] - slope
                q[i] = point if ahead > margin else q[i]
                some += (ahead >= -margin) & (ahead <= margin)
        moment = 0.0
        for i in range(h.size):
            moment += w[i] * h[i] * q[i]
        moments[block] = moment
        if some == 0:
            continue
        while count + BLOCK > close.size:
            close = np.append(close, close)  # twice the room
        for i in range(h.size):
            for j in range(slopes.size):
                if abs(-multiplier * h[i] - slopes[j]) <= margins[j] and h[i] != 0:
                    close[count] = part.start + i
                    count += 1
                    break
    return moments, close[:count]


def guarantee_blocks(
    values: FloatArray,
    multipliers: FloatArray,
    forecasts: FloatArray,
    weights: FloatArray,
    slopes: FloatArray,
    heights: FloatArray,
    chords: FloatArray,
    low: float,
    width: float,
) -> FloatArray:
    """What the envelope's mixtures guarantee at the tilts of tests ``(k, n)``, and what tilts are made of.

    Shape ``(2, blocks)``: ``w [c + min_p p (r + s) - s v]`` with outcomes measured from ``low``, and
    ``w sum_j |lambda_j h_j|``. Mixtures are those of :meth:`prudent.solvers.envelope.Envelope.mixed`.
    """
    sums = np.zeros((2, (forecasts.size + BLOCK - 1) // BLOCK))
    least_slope, most_slope = slopes[0], slopes[-1]
    tilt, size, slope, constant = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for block in range(sums.shape[1]):
        part = slice(block * BLOCK, (block + 1) * BLOCK)
        v, w = forecasts[part], weights[part] if weights.size == forecasts.size else weights
        tilt[:], size[:] = 0.0, 0.0
        for j in range(multipliers.size):
            h = values[j, part]
            for i in range(v.size):
                share = h[i] * multipliers[j]
                tilt[i] += share
                size[i] += abs(share)
        for i in range(v.size):
            steep = max(least_slope, -tilt[i])
            slope[i] = min(most_slope, steep)
        constant[:] = np.inf if chords.size else heights[0]
        for j in range(chords.size):
            height, start, chord = heights[j], slopes[j], chords[j]
            for i in range(v.size):
                line = height + (slope[i] - start) * chord
                constant[i] = min(constant[i], line)
        value, reach = 0.0, 0.0
        for i in range(v.size):
            direction = slope[i] + tilt[i]
            least = direction * width if direction < 0 else 0.0
            value += w[i] * (constant[i] + least - tilt[i] * (v[i] - low))
            reach += w[i] * size[i]
        sums[0, block], sums[1, block] = value, reach
    return sums


def hold_blocks(
    values: FloatArray,
    forecasts: FloatArray,
    beliefs: FloatArray,
    weights: FloatArray,
    slopes: FloatArray,
    offsets: FloatArray,
    low: float,
) -> FloatArray:
    """What a world holds every policy to, ``w val(q)``, and its moments ``w h (q - v)``, shape ``(1 + k, blocks)``."""
    sums = np.zeros((1 + values.shape[0], (forecasts.size + BLOCK - 1) // BLOCK))
    best = np.empty(BLOCK)
    for block in range(sums.shape[1]):
        part = slice(block * BLOCK, (block + 1) * BLOCK)
        v, q, w = forecasts[part], beliefs[part], weights[part] if weights.size == forecasts.size else weights
        best[:] = -np.inf
        for a in range(slopes.size):
            slope, offset = slopes[a], offsets[a]
            for i in range(v.size):
                utility = (q[i] - low) * slope + offset
                best[i] = max(best[i], utility)
        value = 0.0
        for i in range(v.size):
            value += w[i] * best[i]
        sums[0, block] = value
        for j in range(values.shape[0]):
            h = values[j, part]
            moment = 0.0
            for i in range(v.size):
                moment += w[i] * h[i] * (q[i] - v[i])
            sums[1 + j, block] = moment
    return sums
