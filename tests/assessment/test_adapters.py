"""The test as causal-learn, pgmpy and tigramite ask for it, in their searches where installed."""

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from covaria import InputError, independence_test
from covaria.assessment import adapters

EDGES = {("a", "b"), ("b", "d"), ("c", "d"), ("d", "e")}


@pytest.fixture(scope="module")
def graph():
    """Return 400 rows of a → b → d ← c, d → e; no effect of it is a line alone."""
    rng = np.random.default_rng(1)
    a, c = rng.normal(size=(2, 400))
    b = a**2 + 0.5 * rng.normal(size=400)
    d = np.sin(b) + np.abs(c) + 0.2 * rng.normal(size=400)
    e = np.exp(d / 2) + 0.2 * rng.normal(size=400)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d, "e": e})


def named(pairs):
    return {tuple(sorted(pair)) for pair in pairs}


class Cit(ModuleType):
    """What of causal-learn's module of tests the adapter needs, called as its PC calls it."""

    class CIT_Base:
        def __init__(self, data, cache_path=None):
            assert isinstance(data, np.ndarray)
            self.cache_path, self.pvalue_cache = cache_path, {}

        def check_cache_method_consistent(self, method_name, parameters_hash):
            self.method, self.parameters = method_name, parameters_hash

        def get_formatted_XYZ_and_cachekey(self, X, Y, condition_set):
            x, y = sorted((int(X), int(Y)))
            given = sorted({int(at) for at in condition_set or ()})
            return [x], [y], given, f"{x};{y}|{'.'.join(map(str, given))}"

    def __init__(self):
        super().__init__("causallearn.utils.cit")
        self.tests = {}

    def register_ci_test(self, name, kind):
        assert issubclass(kind, self.CIT_Base)
        self.tests[name] = kind
        return kind


@pytest.fixture
def imitation(monkeypatch):
    """Return an imitation of causal-learn in its place."""
    cit = Cit()
    for name in ("causallearn", "causallearn.utils"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "causallearn.utils.cit", cit)
    return cit


def test_causal_learn_gets_p_values_of_column_numbers(graph, imitation):
    name = adapters.causal_learn(learner="linear")
    data = graph.to_numpy()
    test = imitation.tests[name](data, cache_path=None)
    wanted = independence_test(
        data[:, 0], data[:, 3], given=data[:, [1, 2]], learner="linear", check=False, symmetric=True
    )
    assert test(np.int64(0), 3, (2, 1)) == pytest.approx(wanted.p_value, rel=1e-9)
    assert test(3, 0, [1, 2]) == test(0, 3, {1, 2})
    assert 0 <= test(0, 2) <= 1
    assert imitation.tests[name](data, methods="gcm").asked.options["methods"] == "gcm"


def test_causal_learn_keeps_answers_by_question_and_options(graph, imitation):
    name = adapters.causal_learn(learner="linear")
    test = imitation.tests[name](graph.to_numpy())
    p = test(3, 0, [2, 1])
    assert test.pvalue_cache == {"0;3|1.2": p}
    test.pvalue_cache["0;1|"] = 0.25  # as read from a file
    assert test(1, 0) == 0.25
    other = imitation.tests[name](graph.to_numpy(), learner="splines")
    assert other.parameters != test.parameters


def test_answers_are_kept_without_what_they_were_made_of(graph):
    test = adapters.pgmpy(graph, learner="linear")
    test("a", "c", ["b"])
    assert [found.results for found in test.asked.known.values()] == [()]


def test_columns_of_codes_may_be_classes(graph, imitation):
    data = np.column_stack([graph["a"], np.digitize(graph["a"] ** 2, [0.3, 1.2])])
    name = adapters.causal_learn("ours", classes=[1], learner="boosting(trees=30)")
    assert name == "ours"
    assert imitation.tests[name](data)(0, 1) < 1e-6


def test_pgmpy_gets_a_yes_or_no_and_the_numbers(graph):
    test = adapters.pgmpy(graph, learner="splines")
    assert not test("a", "b", [], significance_level=0.01)
    assert test.p_value_ < 0.01
    assert test("a", "c", ())
    assert test("c", "a", [], data=graph, significance_level=test.p_value_)
    assert test.effect_size_ == test.found_.effect


def test_an_old_pgmpy_hands_more_and_is_not_heard(graph):
    test = adapters.pgmpy(graph, learner="linear")
    assert test("a", "c", [], graph, None, significance_level=0.05, boolean=True)


@pytest.mark.parametrize("adapter", [adapters.causal_learn, adapters.tigramite])
def test_what_is_not_installed_is_one_sentence(adapter, monkeypatch):
    for name in ("causallearn.utils.cit", "tigramite.independence_tests.independence_tests_base"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=r"cannot be imported .*pip install"):
        adapter()


def test_options_are_checked_at_once(graph, imitation):
    with pytest.raises(InputError, match="no option 'learners'"):
        adapters.causal_learn(learners="linear")
    with pytest.raises(InputError, match="no option 'learners'"):
        adapters.pgmpy(graph, learners="linear")


# --- the searches themselves, where they are installed ------------------------------------------


def test_pc_of_causal_learn_finds_the_graph(graph):
    search = pytest.importorskip("causallearn.search.ConstraintBased.PC")
    test = adapters.causal_learn(learner="splines", methods="default")
    found = search.pc(graph.to_numpy(), 0.02, test, show_progress=False).G.graph
    edges = {(graph.columns[i], graph.columns[j]) for i, j in np.argwhere(found != 0)}
    assert named(edges) == EDGES
    # An arrow from i to j has -1 at (i, j) and 1 at (j, i): b → d ← c is a collider.
    assert found[3, 1] == found[3, 2] == 1


@pytest.mark.filterwarnings("ignore")
def test_pc_of_pgmpy_finds_the_skeleton(graph):
    pgmpy = pytest.importorskip("pgmpy.estimators")
    skeleton, _ = pgmpy.PC(graph).estimate(
        ci_test=adapters.pgmpy(graph, learner="splines"),
        return_type="skeleton",
        significance_level=0.02,
        show_progress=False,
    )
    assert named(skeleton.edges()) == EDGES


@pytest.mark.filterwarnings("ignore")
def test_pc_of_pgmpys_causal_discovery_finds_the_graph(graph):
    discovery = pytest.importorskip("pgmpy.causal_discovery")
    search = discovery.PC(
        ci_test=adapters.pgmpy(graph, learner="splines"),
        significance_level=0.02,
        n_jobs=1,
        show_progress=False,
    )
    found = set(search.fit(graph).causal_graph_.edges())
    assert named(found) == EDGES
    assert {("b", "d"), ("c", "d")} <= found
    assert not {("d", "b"), ("d", "c")} & found


@pytest.mark.filterwarnings("ignore")
def test_codes_of_classes_may_be_said_in_tigramite():
    pcmci = pytest.importorskip("tigramite.pcmci")
    from tigramite import data_processing

    rng = np.random.default_rng(2)
    series = rng.normal(size=(300, 2))
    series[:, 0] = np.digitize(series[:, 0], [-0.5, 0.5])  # the middle class is the one that acts
    series[1:, 1] += 2.0 * (series[:-1, 0] == 1)
    kinds = np.column_stack([np.ones(300, dtype=int), np.zeros(300, dtype=int)])
    frame = data_processing.DataFrame(series, data_type=kinds)
    search = pcmci.PCMCI(frame, cond_ind_test=adapters.tigramite(learner="linear"))
    found = search.run_pcmci(tau_max=1, pc_alpha=0.05)["p_matrix"][:, :, 1]
    assert {tuple(pair) for pair in np.argwhere(found < 0.01)} == {(0, 1)}


def test_pcmci_of_tigramite_finds_the_lags():
    pcmci = pytest.importorskip("tigramite.pcmci")
    from tigramite import data_processing

    rng = np.random.default_rng(1)
    series, noise = np.zeros((300, 3)), rng.normal(size=(300, 3))
    for t in range(1, 300):
        a, b, _ = series[t - 1]
        series[t] = [0.6 * a, np.sin(2 * a), b**2] + [1, 0.5, 0.5] * noise[t]
    frame = data_processing.DataFrame(series)
    search = pcmci.PCMCI(frame, cond_ind_test=adapters.tigramite(learner="splines"))
    found = search.run_pcmci(tau_max=1, pc_alpha=0.05)["p_matrix"][:, :, 1]
    assert {tuple(pair) for pair in np.argwhere(found < 0.01)} == {(0, 0), (0, 1), (1, 2)}


def test_the_path_they_had_before_still_leads_to_them():
    from covaria.independence import adapters as before

    assert before is adapters
