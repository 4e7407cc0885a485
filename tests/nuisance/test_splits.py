"""Which rows a model learns from, and which it is tested on: counted."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, ShuffleSplit

from covaria.errors import InputError
from covaria.nuisance.splits import by_appearance, describe, in_parts, make_splits
from covaria.tables.beside import MIN_CLUSTERS
from covaria.tables.dataset import Dataset
from covaria.tables.layout import Feature


def table(n_rows=60, y=None, **more):
    X = np.random.default_rng(0).normal(size=(n_rows, 1))
    y = X[:, 0] if y is None else np.asarray(y, dtype=float)
    return Dataset(X=X, y=y, features=(Feature("x", "number", (0,)),), **more)


def refusal(data, splits):
    with pytest.raises(InputError) as caught:
        make_splits(data, splits, 0)
    return str(caught.value)


def assert_cross_fit(folds, n_rows):
    """Every row is tested once, by a model of all rows outside its fold."""
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(n_rows))
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(n_rows))
        assert (np.diff(test) > 0).all()


def equal(some, others):
    return all(np.array_equal(a, b) for s, o in zip(some, others, strict=True)
               for a, b in zip(s, o, strict=True))  # fmt: skip


# --- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, 7, np.int64(5)])
def test_folds_test_every_row_once_and_are_of_one_size(count):
    folds = make_splits(table(31), count, 0)
    assert len(folds) == count
    assert_cross_fit(folds, 31)
    sizes = [len(test) for _, test in folds]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("splits", [5, 0.3])
@pytest.mark.parametrize("kind", ["numbers", "classes", "clusters"])
def test_the_same_seed_draws_the_same_rows_and_another_seed_or_repeat_others(splits, kind):
    more = {"y": np.arange(60) % 2, "classes": ("a", "b")} if kind == "classes" else {}
    if kind == "clusters":
        more = {"clusters": np.arange(60) % 20}
    data = table(**more)
    folds = make_splits(data, splits, 3, repeat=1)
    assert equal(folds, make_splits(data, splits, 3, repeat=1))
    assert not equal(folds, make_splits(data, splits, 3, repeat=2))
    assert not equal(folds, make_splits(data, splits, 4, repeat=1))
    assert equal(make_splits(data, splits, 3), make_splits(data, splits, 3, repeat=0))


@pytest.mark.parametrize("share", [0.25, np.float32(0.5), 0.1])
def test_a_share_of_the_rows_is_held_out_once(share):
    ((train, test),) = make_splits(table(60), share, 0)
    assert len(test) == round(60 * float(share))
    assert sorted([*train, *test]) == list(range(60))


def test_in_sample_all_rows_are_on_both_sides():
    ((train, test),) = make_splits(table(12), "none", 0)
    assert train.tolist() == test.tolist() == list(range(12))


def test_too_many_and_too_few_folds_are_refused_with_how_many_there_can_be():
    assert len(make_splits(table(11), 5, 0)) == 5
    assert "splits=6 is too many for 11 rows. Use 5 or fewer." in refusal(table(11), 6)
    assert "splits=1 is too few" in refusal(table(11), 1)
    clustered = table(60, clusters=np.arange(60) % 13)
    assert len(make_splits(clustered, 13, 0)) == 13
    assert "splits=14 is too many for 13 clusters. Use 13 or fewer." in refusal(clustered, 14)


@pytest.mark.parametrize("count", [6, 9])
def test_five_folds_of_six_to_nine_clusters_have_a_cluster_each(count):
    data = table(60, clusters=np.arange(60) % count)
    for _, test in make_splits(data, 5, 0):
        assert 1 <= len(np.unique(data.clusters[test])) <= 2


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 1.5, float("nan")])
def test_a_share_outside_0_and_1_is_refused(share):
    assert "must lie between 0 and 1" in refusal(table(), share)


def test_a_share_leaves_two_rows_on_either_side():
    for share in (0.1, 0.9):
        ((train, test),) = make_splits(table(20), share, 0)
        assert min(len(train), len(test)) == 2
    for share in (0.05, 0.95):
        assert "leaves too few of the 20 rows" in refusal(table(20), share)


@pytest.mark.parametrize("splits", [True, False, np.bool_(True), None])
def test_a_truth_is_no_number_of_folds(splits):
    assert "a number of folds, a share to hold out, or" in refusal(table(), splits)


def test_a_word_but_none_is_refused():
    assert "splits='all' is not known" in refusal(table(), "all")


# --- classes and clusters -----------------------------------------------------------------------


def in_classes(counts, **more):
    y = np.random.default_rng(1).permutation(np.repeat(np.arange(len(counts)), counts))
    return table(len(y), y, classes=tuple("abcdef"[: len(counts)]), **more)


def test_every_fold_has_its_share_of_every_class():
    data = in_classes([11, 30, 19])
    folds = make_splits(data, 5, 0)
    assert_cross_fit(folds, 60)
    counts = np.array([np.bincount(data.y[test].astype(int), minlength=3) for _, test in folds])
    assert (np.ptp(counts, axis=0) <= 1).all()
    ((_, test),) = make_splits(data, 0.5, 0)
    assert np.abs(np.bincount(data.y[test].astype(int)) - [5.5, 15, 9.5]).max() <= 1


def test_the_order_of_class_names_does_not_change_the_folds():
    data = in_classes([15, 25, 20])
    renamed = table(60, np.array([2, 0, 1])[data.y.astype(int)], classes=data.classes)
    for splits in (4, 0.3):
        assert equal(make_splits(data, splits, 0), make_splits(renamed, splits, 0))


def test_values_are_numbered_by_their_first_appearance():
    assert by_appearance(np.array([5, 5, 9, 1, 9, 5, 0])).tolist() == [0, 0, 1, 2, 1, 0, 3]


def test_a_class_with_fewer_rows_than_folds_is_named():
    assert len(make_splits(in_classes([4, 30, 20]), 4, 0)) == 4
    said = refusal(in_classes([20, 30, 4]), 5)
    assert "Class 'c' of the target 'y' has 4 rows, fewer than the 5 folds." in said
    assert len(make_splits(in_classes([2, 30]), 0.5, 0)) == 1
    assert "Class 'a'" in refusal(in_classes([1, 30]), 0.5)
    assert "1 row," in refusal(in_classes([1, 30]), 0.5)


def is_together(clusters, folds):
    return all(not np.isin(clusters[train], clusters[test]).any() for train, test in folds)


@pytest.mark.parametrize("splits", [4, 0.4])
def test_clusters_stay_together(splits):
    clusters = np.random.default_rng(2).permutation(np.arange(60) % 20)
    folds = make_splits(table(60, clusters=clusters), splits, 0)
    assert is_together(clusters, folds)
    assert len(folds) == (4 if splits == 4 else 1)
    if splits == 4:
        assert_cross_fit(folds, 60)


@pytest.mark.parametrize("splits", [5, 0.5])
def test_clusters_of_one_class_each_are_shared_out_by_class(splits):
    clusters = np.random.default_rng(3).permutation(np.arange(60) % 30)
    y = (np.arange(30) < 10)[clusters]
    data = table(60, y, classes=("no", "yes"), clusters=clusters)
    folds = make_splits(data, splits, 0)
    assert is_together(clusters, folds)
    for _, test in folds:
        share = 5 if splits == 0.5 else 2
        assert len(np.unique(clusters[test][y[test]])) == share
    few = (np.arange(30) < 3)[clusters]
    data = table(60, few, classes=("no", "yes"), clusters=clusters)
    assert "Class 'yes' of the target 'y' has 3 clusters, fewer than the 5" in refusal(data, 5)


@pytest.mark.parametrize("splits", [3, 0.5])
def test_clusters_of_mixed_classes_stay_together_too(splits):
    clusters = np.arange(60) % 20
    data = table(60, np.arange(60) >= 30, classes=("no", "yes"), clusters=clusters)
    folds = make_splits(data, splits, 0)
    assert is_together(clusters, folds)


def test_too_few_clusters_tested_are_refused():
    data = table(60, clusters=np.arange(60) % 20)

    def held_out(count):
        is_test = np.isin(data.clusters, np.arange(count))
        return [(np.flatnonzero(~is_test), np.flatnonzero(is_test))]

    assert len(make_splits(data, held_out(MIN_CLUSTERS), 0)) == 1
    said = refusal(data, held_out(MIN_CLUSTERS - 1))
    assert "splits tests 4 clusters; at least 5 are needed" in said


def test_clusters_and_copies_on_both_sides_are_refused_each_with_its_cure():
    halves, clusters = [(np.arange(30), np.arange(30, 60))], np.arange(60) % 30
    assert "rows of one cluster into both" in refusal(table(60, clusters=clusters), halves)
    thirds = [(np.arange(20), np.arange(20, 30)), *halves]
    assert "rows of one cluster into both" in refusal(table(60, clusters=clusters), thirds[::-1])
    copied = table(60, clusters=clusters, n_copies=30)
    assert "30 rows of the table repeat others" in refusal(copied, halves)


# --- splitters ----------------------------------------------------------------------------------


def test_a_splitter_without_a_seed_gets_ours_and_stays_as_it_was():
    splitter, data = KFold(3, shuffle=True), table(30)
    folds = make_splits(data, splitter, 5)
    assert equal(folds, make_splits(data, splitter, 5))
    assert not equal(folds, make_splits(data, splitter, 6))
    assert splitter.random_state is None
    assert_cross_fit(folds, 30)


def test_a_splitter_with_a_seed_keeps_it():
    splitter, data = KFold(3, shuffle=True, random_state=1), table(30)
    assert equal(make_splits(data, splitter, 5), splitter.split(data.X))
    assert equal(make_splits(data, splitter, 5), make_splits(data, splitter, 6))
    once = ShuffleSplit(1, test_size=7, random_state=2)
    assert len(make_splits(data, once, 0)[0][1]) == 7


class Halves:
    """A splitter without a seed, that keeps what it was given."""

    def split(self, X, y, groups):
        self.given = (X, y, groups)
        half = len(X) // 2
        yield np.arange(half), np.arange(half, len(X))


def test_any_object_that_splits_is_a_splitter_and_is_given_the_table():
    data, splitter = table(60, clusters=np.arange(60) // 3), Halves()
    ((train, test),) = make_splits(data, splitter, 0)
    assert (train.tolist(), test.tolist()) == (list(range(30)), list(range(30, 60)))
    assert all(a is b for a, b in zip(splitter.given, (data.X, data.y, data.clusters), strict=True))


def test_a_splitter_that_does_not_care_for_groups_may_say_so_in_vain():
    data = table(60, clusters=np.arange(60) // 3)
    assert_cross_fit(make_splits(data, KFold(4), 0), 60)


def test_a_splitter_that_fails_is_named_with_its_reason():
    said = refusal(table(30), KFold(31))
    assert "splits=KFold(…) cannot split these rows (Cannot have number of splits" in said
    assert ".)." not in said
    assert "splits=KFold(…)" in refusal(table(30), KFold)


# --- given rows ---------------------------------------------------------------------------------


def test_given_rows_may_be_lists_masks_or_any_whole_numbers():
    mask = np.arange(12) < 5
    for train, test in (
        ([0, 1, 2, 3, 4], [11, 10, 9, 8, 7, 6, 5]),
        (mask, ~mask),
        (np.arange(5, dtype=np.uint8), np.arange(5, 12, dtype=np.int16)),
    ):
        ((own, tested),) = make_splits(table(12), iter([(train, test)]), 0)
        assert (own.tolist(), tested.tolist()) == ([0, 1, 2, 3, 4], [5, 6, 7, 8, 9, 10, 11])
        assert own.dtype == tested.dtype == np.intp


def test_rows_drawn_with_replacement_to_learn_from_are_no_mask():
    drawn = [0, 0, 1, 1, 1, 2, 3, 3, 4, 4, 5, 5]
    ((train, _),) = make_splits(table(12), [(drawn, [6, 7, 8])], 0)
    assert train.tolist() == drawn


BAD = {
    "splits is empty": [],
    "tests some rows twice": [([0, 1], [2, 3]), ([0, 1], [3, 4])],
    "tests fewer than two rows": [([0, 1], [2])],
    "outside 0 … 11": [([0, 1], [11, 12])],
    "row outside 0": [([-1, 0], [2, 3])],
    "splits must hold pairs": [([0.0, 1.0], [2, 3])],
    "non-empty arrays": [([], [2, 3])],
    "arrays of row numbers": [([[0, 1]], [2, 3])],
    "pairs of non-empty": [(np.ones(7, dtype=bool), [8, 9])],
    "list of (train, test) pairs": [([0], [1], [2])],
    "splits must be a number of folds, a share, 'none'": 3j,
    "splits has 2 rows in both training and test (of pair 2)": [([0], [5]), ([1, 2, 3], [2, 3, 4])],
    "splits has 1 row in both training and test (of pair 1)": [([0, 1, 2], [2, 3, 4])],
}


@pytest.mark.parametrize("message", BAD)
def test_rows_that_cannot_be_split_so_are_refused_in_a_sentence(message):
    assert message in refusal(table(12), BAD[message])


def test_the_first_and_the_last_row_and_two_rows_to_test_will_do():
    ((train, test),) = make_splits(table(12), [([0, 11], [1, 10])], 0)
    assert (train.tolist(), test.tolist()) == ([0, 11], [1, 10])
    assert len(make_splits(table(12), [([0], [1]), ([1], [0])], 0)) == 2


@pytest.mark.parametrize("where", ["learned", "tested"])
def test_two_rows_of_a_fold_must_have_a_weight(where):
    folds = [(np.arange(10), np.arange(10, 20)), (np.arange(10, 20), np.arange(10))]
    half = folds[:1]
    for used, enough in ((2, True), (1, False)):
        weights = np.ones(20)
        weights[: 10 - used if where == "learned" else 0] = 0
        weights[10 + used if where == "tested" else 20 :] = 0
        data = table(20, weights=weights)
        if enough:
            assert len(make_splits(data, half, 0)) == 1
        else:
            assert "above 0 in fewer than 2 rows of a fold" in refusal(data, half)


# --- parts and words ----------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, 4])
def test_parts_are_of_one_size_and_random(count):
    rows = np.arange(100, 123)
    parts = in_parts(rows, None, count, np.random.default_rng(0))
    sizes = np.bincount(parts)
    assert len(sizes) == count
    assert np.ptp(sizes) <= 1
    assert not np.array_equal(parts, in_parts(rows, None, count, np.random.default_rng(1)))


def test_parts_keep_the_clusters_of_their_rows_together():
    clusters, rows = np.arange(40) % 9, np.arange(5, 40)
    parts = in_parts(rows, clusters, 3, np.random.default_rng(0))
    of_cluster = [set(parts[clusters[rows] == c]) for c in range(9)]
    assert all(len(own) == 1 for own in of_cluster)
    assert np.bincount([own.pop() for own in of_cluster]).tolist() == [3, 3, 3]


def test_splits_are_described_in_words():
    assert describe("none") == "in sample"
    assert describe(5) == describe(np.int64(5)) == "5-fold cross-fit"
    assert describe(0.25) == describe(np.float32(0.25)) == "hold-out of 25%"
    assert describe(0.9) == "hold-out of 90%"
    assert describe(KFold(3)) == repr(KFold(3))
    assert describe([(1, 2)]) == "given splits"
