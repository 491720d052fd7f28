"""The simulation of bounds by periods sees what it is for: rows as units break, periods hold."""

from benchmarks.period_simulations import World, simulate


def test_bounds_by_periods_hold_where_those_by_rows_break() -> None:
    found = simulate(World("as large as noise", 1.0, equal=True), 20, 100)
    assert found["long periods 0.05"][0] >= 0.88
    assert found["next periods 0.05"][0] >= 0.88
    assert found["long rows 0.05"][0] <= 0.85
    assert found["next rows 0.05"][0] <= 0.8
