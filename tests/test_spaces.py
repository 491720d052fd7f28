"""Outcome spaces: bounds, snapping, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from prudent import Box, Grid, Simplex
from prudent.errors import FileFormatError, InputError, OutsideSpaceError
from prudent.spaces import space_from_dict


def test_box_takes_scalars_and_sequences() -> None:
    assert Box(0, 1).dimension == 1
    assert Box([0, -5], 10).bounds[1].tolist() == [10, 10]
    assert Box(0, 1) == Box(0.0, 1.0)
    assert Box(0, 1) != Box(0, 2)
    assert len({Box(0, 1), Box(0, 1), Simplex(2)}) == 2


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (1, 1, "lower must be below upper"),
        ([0, 3], [1, 2], "coordinate 1"),
        (0, np.inf, "upper must be finite"),
        (np.nan, 1, "lower must be finite"),
        ([0, 0], [1, 1, 1], "same length"),
        (-1.7e308, 1.7e308, "too wide"),
        ("a", 1, "lower must be numbers"),
    ],
)
def test_bad_boxes_are_refused(lower: object, upper: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Box(lower, upper)


@pytest.mark.parametrize("n_classes", [1, 0, -3, 2.5, True, "3"])
def test_bad_simplices_are_refused(n_classes: object) -> None:
    with pytest.raises(InputError, match="n_classes must be a whole number of at least 2"):
        Simplex(n_classes)


def test_class_names_are_checked() -> None:
    with pytest.raises(InputError, match="classes must name 3 classes; got 2"):
        Simplex(3, classes=["a", "b"])
    with pytest.raises(InputError, match="distinct; 'a' stands at positions 0 and 2"):
        Simplex(3, classes=["a", "b", "a"])


def test_box_snaps_what_is_within_a_millionth_of_its_width_and_counts_it() -> None:
    box = Box(100, 300)
    points, snapped = box.place([100 - 1e-4, 200, 300 + 1.9e-4], "forecasts")
    assert points.ravel().tolist() == [100, 200, 300]
    assert snapped == 2


def test_box_refuses_what_is_further_out_and_names_the_rows() -> None:
    with pytest.raises(
        OutsideSpaceError, match=r"forecasts must lie in Box\(0.0, 1.0\); rows 1, 3 do not, worst row 3"
    ) as caught:
        Box(0, 1).place([0.5, -0.01, 0.7, 1.2], "forecasts")
    assert caught.value.rows == (1, 3)
    assert "clipping changes the forecaster" in str(caught.value)


def test_simplex_snaps_rounding_and_refuses_more() -> None:
    simplex = Simplex(3)
    points, snapped = simplex.place([[0.2, 0.3, 0.5], [0.2, 0.3, 0.5 + 5e-7], [-5e-7, 0.5, 0.5]], "forecasts")
    assert snapped == 2
    np.testing.assert_allclose(points.sum(axis=1), 1, atol=1e-15)
    assert points.min() >= 0
    with pytest.raises(OutsideSpaceError, match=r"row 0 does not.*its sum is 0.9") as caught:
        simplex.place([[0.2, 0.2, 0.5]], "forecasts")
    assert caught.value.rows == (0,)
    with pytest.raises(OutsideSpaceError, match="non-negative"):
        simplex.place([[-0.1, 0.6, 0.5]], "forecasts")


def test_single_precision_probabilities_are_snapped() -> None:
    rows = np.random.default_rng(0).dirichlet(np.ones(4), size=50).astype(np.float32)
    points, _ = Simplex(4).place(rows, "forecasts")
    np.testing.assert_allclose(points.sum(axis=1), 1, atol=1e-15)


def test_outcomes_on_the_simplex_may_be_labels() -> None:
    named = Simplex(3, classes=["cat", "dog", "owl"])
    np.testing.assert_array_equal(named.place_outcomes(["owl", "cat"]), [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(Simplex(3).place_outcomes([2, 0]), [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(Simplex(3).place_outcomes(np.eye(3)), np.eye(3))
    with pytest.raises(InputError, match=r"among the classes \['cat', 'dog', 'owl'\]; got 'cow' in row 1"):
        named.place_outcomes(["cat", "cow"])
    with pytest.raises(InputError, match=r"among the classes \[0, 1, 2\]"):
        Simplex(3).place_outcomes([0, 3])
    with pytest.raises(InputError, match=r"class labels of shape \(n,\) or rows of shape \(n, 3\)"):
        Simplex(3).place_outcomes(np.ones((4, 2)))


def test_input_is_never_changed() -> None:
    values = np.array([[0.2, 0.3, 0.5 + 5e-7]])
    values.setflags(write=False)
    Simplex(3).place(values, "forecasts")
    edge = np.array([1.0 + 1e-7])
    Box(0, 1).place(edge, "forecasts")
    assert edge[0] == 1.0 + 1e-7


@pytest.mark.parametrize("space", [Box([0, -2], [1, 5]), Simplex(2)])
def test_support_minimum_is_attained_at_the_minimizer(space: Box | Simplex) -> None:
    directions = np.random.default_rng(0).normal(size=(40, 2))
    points = space.support_minimizer(directions)
    np.testing.assert_allclose((points * directions).sum(axis=1), space.support_minimum(directions))
    for corner in ([0, 1], [1, 0]):
        inside = np.array(corner, dtype=float)
        assert (space.support_minimum(directions) <= directions @ inside + 1e-12).all()


def test_projection_onto_the_simplex_is_the_nearest_point() -> None:
    rng = np.random.default_rng(5)
    space = Simplex(4)
    points = rng.normal(size=(200, 4))
    near = space.project(points)
    np.testing.assert_allclose(near.sum(axis=1), 1.0)
    assert near.min() >= 0
    others = rng.dirichlet(np.ones(4), 500)
    # The angle at a projection onto a convex set is never acute.
    inner = ((points - near)[:, None, :] * (others[None] - near[:, None, :])).sum(axis=2)
    assert inner.max() <= 1e-9


def test_spaces_say_what_differs_between_them() -> None:
    line, plane, animals = Box(0, 2), Box([0, 0], [1, 4]), Simplex(3, classes=["cat", "dog", "owl"])
    assert [space.free_dimension for space in (line, plane, animals)] == [1, 2, 2]
    assert [space.classes for space in (line, plane, animals)] == [None, None, ("cat", "dog", "owl")]
    assert [space.reads_labels(1) for space in (line, plane, animals)] == [False, False, True]
    assert not animals.reads_labels(3)
    assert line.columns_needed == "1 column(s), one per coordinate of the outcome space"
    assert plane.columns_needed == "2 column(s), one per coordinate of the outcome space"
    assert animals.columns_needed == "3 column(s), one per class (cat, dog, owl), in their order"


def test_classes_of_a_classifier_come_in_the_order_of_the_space() -> None:
    assert Box(0, 1).order_classes(["no", "yes"]) == ("no", "yes")
    assert Simplex(2).order_classes(["no", "yes"]) == ("no", "yes")
    assert Simplex(2, classes=["yes", "no"]).order_classes(["no", "yes"]) == ("yes", "no")
    with pytest.raises(InputError, match="needs a problem on the Simplex"):
        Box(0, 1).order_classes([0, 1, 2])
    with pytest.raises(InputError, match=r"classes of the outcome space, \['yes', 'no'\]; got 2, \['a', 'b'\]"):
        Simplex(2, classes=["yes", "no"]).order_classes(["a", "b"])


def test_a_grid_places_numbers_between_its_points_and_keeps_their_mean() -> None:
    points = np.array([-5.0, 0.0, 1.0, 10.0])
    grid = Grid(points)
    numbers = np.random.default_rng(0).uniform(-5, 10, 200)
    placed = grid.place_outcomes(numbers)
    assert grid.contains(placed)
    assert ((placed > 0).sum(axis=1) <= 2).all()
    np.testing.assert_allclose(placed @ points, numbers, atol=1e-12)
    np.testing.assert_array_equal(grid.place_outcomes(points), np.eye(4))
    np.testing.assert_array_equal(grid.place_outcomes([[1], [0]]), np.eye(4)[[2, 1]])  # not positions 1 and 0
    np.testing.assert_array_equal(grid.place_outcomes(placed), placed)
    assert grid.coordinate_names[1] == "y[0.0]"


@pytest.mark.parametrize(
    ("values", "message"),
    [([11], "numbers from -5 to 10"), ([0, -5.1], "row 1"), (["a"], "must be numbers"), ([np.nan], "must be finite")],
)
def test_a_grid_refuses_what_it_does_not_reach(values: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Grid([-5, 10]).place_outcomes(values)


@pytest.mark.parametrize("points", [[1], [1, 1], [2, 1], [0, np.inf], 3, "ab"])
def test_bad_grids_are_refused(points: object) -> None:
    with pytest.raises(InputError, match="points"):
        Grid(points)


def test_grids_are_told_apart_and_survive_a_file() -> None:
    grid = Grid([0, 1, 2])
    assert grid == Grid([0.0, 1.0, 2.0])
    assert grid not in (Grid([0, 1, 3]), Simplex(3), Simplex(3, classes=[0.0, 1.0, 2.0]))
    assert grid.same_as(Grid([0, 1, 2]))
    assert not grid.same_as(Grid([0, 1, 3]))
    assert space_from_dict(grid.to_dict()) == grid
    for broken in ({"kind": "grid"}, {"kind": "grid", "points": [0, 1], "more": 1}):
        with pytest.raises(FileFormatError, match="space must be"):
            space_from_dict(broken)


@pytest.mark.parametrize(
    "classes",
    [["b", "a", "c"], [3, 1, 2], [2.5, 0.5, 1.0], [True, False], ["x", 1, 2.5], [np.int64(7), np.str_("u"), False]],
    ids=str,
)
@pytest.mark.parametrize("kind", [list, tuple, pd.Series, lambda labels: np.array(labels, dtype=object)])
def test_classes_of_any_type_come_in_any_order_and_one_may_be_absent(classes: list[object], kind: object) -> None:
    space = Simplex(len(classes), classes=classes)
    numbers = [1, 0, 1, 1, 0]  # of three classes the last is absent
    labels = kind([classes[number] for number in numbers])
    np.testing.assert_array_equal(space.place_outcomes(labels), np.eye(len(classes))[numbers])
