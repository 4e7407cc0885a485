"""What the paper says of its simulations: a function a figure, sentence by sentence.

Words such as low, high or similar have no number in the paper: the limit that stands in a claim is
our reading of them. "Consistently" and "always" are judged at every value of the parameter.
"""

from __future__ import annotations

from covaria.paper.evidence import Evidence
from covaria.paper.studies import DF, FOUR, RHO

LEARNERS = {"boosting": " with boosting", "network": " with the network",
            "kernel": " with the kernel machine"}  # fmt: skip
LARGE, SMALL = ["x1", "x2", "x3", "x4"], ["x7", "x8"]
RIVALS = ("loco", "dropout", "permutation", "lasso", "knockoffs")
ONE_MODEL = ("loco", "dropout", "permutation")
B, C, D = {"scenario": "additive"}, {"scenario": "interaction"}, {"scenario": "single_index"}
A = {"scenario": "linear"}
MAIN = ("accuracy", "f1")


def fig1(e: Evidence) -> None:
    e.says("5.1", "plot (a) shows that all approaches have similar performance in the linear model "
           "case")  # fmt: skip
    e.similar(("accuracy", "recall", "f1", "fdr"), FOUR, "in (a)", 0.05, **A)
    e.says("5.1", "GCM can identify more significant variables than LOCO as long as the ratio "
           "checking … LHS over RHS in assumption (A) in Theorem 4 holds")  # fmt: skip
    e.higher("recall", "gcm", "loco", "in (b)", **B)
    e.oftener(["x4", "x5", "x6", "x7", "x8"], "gcm", "loco", "of (b), whose ratio is above 1,", **B)
    e.says("5.1", "The first two ratios are 0 because the quadratic and cosine functions are even "
           "functions … which violates assumption (A)")  # fmt: skip
    e.misses(["gcm"], ["x1", "x2"], "in (b)", 0.1, **B)
    e.says("5.1", "all four methods effectively identify variables with relatively large weights "
           "but fail to detect those with smaller contributions")  # fmt: skip
    e.finds(FOUR, LARGE, "in (d)", 0.8, **D)
    e.misses(FOUR, SMALL, "in (d)", 0.5, **D)


def fig3(e: Evidence) -> None:
    e.says("5.1", "The performance of lasso is slightly better than others with the highest "
           "averaged accuracy and F1 score")  # fmt: skip
    for metric in MAIN:
        e.best(metric, "lasso", "in (a)", **A)
    e.says("5.1", "LOCO requires approximately half the computational time of GCM")
    e.time_ratio("loco", "gcm", "in (b)", 0.35, 0.65, **B)
    e.says("5.1", "GCM outperforms knockoff and lasso methods in the non-linear model with high "
           "accuracy, F1 score and low FDR")  # fmt: skip
    for metric in MAIN:
        e.higher(metric, "gcm", ("knockoffs", "lasso"), "in (b)", **B)
    e.at_most("fdr", ["gcm"], "in (b)", 0.1, **B)
    e.says("5.1", "all of the approaches barely identify the significant features which yields low "
           "recall")  # fmt: skip
    e.at_most("recall", (*FOUR, "lasso", "knockoffs"), "in (c)", 0.5, **C)
    e.says("5.1", "The GCM measure is the most computationally demanding method, as it requires "
           "training 2p models")  # fmt: skip
    e.higher("seconds", "gcm", RIVALS, "over (a) to (d)")
    e.says("5.1", "the LOCO approach trains p+1 models, while the dropout, permutation and lasso "
           "method requires less computational effort")  # fmt: skip
    e.higher("seconds", "loco", ("dropout", "permutation"), "over (a) to (d)")
    e.says("5.1", "The knockoff filter method maintains single-model computation efficiency but "
           "requires extra time for knockoff feature generation")  # fmt: skip
    e.higher("seconds", "knockoffs", "lasso", "over (a) to (d)")
    e.says("5.1", "Overall, the GCM approach is more stable and effective compared to all other "
           "feature selection methods")  # fmt: skip
    e.higher("f1", "gcm", RIVALS, "over (a) to (d)")


def fig4(e: Evidence) -> None:
    for learner, named in LEARNERS.items():
        e.learner = learner
        e.says("5.2", "GCM always identifies X1 regardless of whether X2 is weakly or strongly "
               "correlated with X1")  # fmt: skip
        e.finds_at_every("gcm", "x1", "rho", RHO, 0.9, named, learner=learner)
        e.says("5.2", "whereas LOCO is more sensitive to the correlation and produces more false "
               "discoveries")  # fmt: skip
        e.steadier("gcm", "loco", "rho", RHO, named, learner=learner)
        e.higher("fdr", "loco", "gcm", f"over all ρ{named}", learner=learner)
        e.says("5.2", "Neither method reliably detects the non-additive interaction term X3 and X4")
        e.misses(("gcm", "loco"), ["x3", "x4"], named.strip(), 0.5, learner=learner)
        e.says("5.2", "Overall, GCM is more stable than LOCO, achieving higher F1 score and recall")
        for metric in ("f1", "recall"):
            e.higher(metric, "gcm", "loco", f"over all ρ{named}", learner=learner)


def fig5(e: Evidence) -> None:
    for learner, named in LEARNERS.items():
        e.learner = learner
        e.says("5.2", "GCM is more stable than LOCO across different degrees of freedom and "
               "machine learners")  # fmt: skip
        e.steadier("gcm", "loco", "df", DF, named, learner=learner)
        e.says("5.2", "GCM consistently achieves higher F1 score and recall while maintaining a "
               "lower FDR")  # fmt: skip
        for metric in ("f1", "recall"):
            e.everywhere(metric, "gcm", "loco", "df", DF, named=named, learner=learner)
        e.everywhere("fdr", "gcm", "loco", "df", DF, sign=-1.0, named=named, learner=learner)
        e.says("5.2", "LOCO performs worse under heavier tails, but gradually improves as the "
               "degrees of freedom increase")  # fmt: skip
        e.trend("f1", "loco", "df", DF, named, learner=learner)


def fig6(e: Evidence) -> None:
    methods = ("gcm", "loco", "dropout", "lazy")
    where = {"in (b)": B, "in (d)": D | {"link": "sigmoid"}}
    e.says("5.3", "GCM still has better performance than others in terms of high accuracy, F1 "
           "score and recall in model b) and d) with sigmoid link function")  # fmt: skip
    for place, part in where.items():
        for metric in ("accuracy", "f1", "recall"):
            e.best(metric, "gcm", place, **part)
    e.says("5.3", "albeit at the expense of computational time")
    e.higher("seconds", "gcm", ("loco", "dropout", "lazy"), "over all models")
    e.says("5.3", "Lazy-VI has proved to be fast and accurate in approximating the LOCO test")
    e.lower("seconds", "lazy", "loco", "over all models")
    e.says("5.3", "LOCO and Lazy-VI have similar performance which is consistent with our theory")
    for place, part in where.items():
        e.similar(("accuracy", "recall", "f1", "fdr"), ("loco", "lazy"), place, 0.1, **part)
    e.says("5.3", "For model (c), all methods perform poorly due to interaction terms, resulting "
           "in low statistical power")  # fmt: skip
    e.at_most("recall", methods, "in (c)", 0.5, **C)
    e.says("5.3", "the gaussian link function … none of the feature selection methods work well")
    e.at_most("f1", methods, "in (d) with the Gaussian link", 0.5, **D, link="gaussian")


def fig7(e: Evidence) -> None:
    e.says("5.4", "Knockoff filter method works well in all sparse models with high F1 score and "
           "low FDR")  # fmt: skip
    for place, part in (("in (a)", A), ("in (b)", B)):
        e.at_least("f1", ["knockoffs"], place, 0.7, **part)
        e.at_most("fdr", ["knockoffs"], place, 0.2, **part)
    e.says("5.4", "lasso has the best performance in sparse linear model (a)")
    e.best("f1", "lasso", "in (a)", **A)
    e.says("5.4", "The performance of GCM is slightly better than other wrapper-based selection "
           "with higher accuracy, recall and F1 score in case (a)")  # fmt: skip
    for metric in ("accuracy", "recall", "f1"):
        e.higher(metric, "gcm", ONE_MODEL, "in (a)", **A)
    e.says("5.4", "GCM performs as good as others in non-linear high-dimensional setting")
    for metric in MAIN:
        for rival in ONE_MODEL:
            e.no_worse(metric, "gcm", rival, "in (b)", 0.02, **B)
    e.says("5.4", "The computational burden is more pronounced in high-dimensional setup since GCM "
           "requires retraining more models")  # fmt: skip
    e.higher("seconds", "gcm", ONE_MODEL, "over (a) and (b)")


def sfig1(e: Evidence) -> None:
    e.says("S4.1", "plot (a) shows that all approaches work well in the linear model case")
    e.at_least("recall", FOUR, "in (a)", 0.8, **A)
    e.says("S4.1", "GCM demonstrates an advantage by accurately selecting variables with "
           "relatively small regression coefficients")  # fmt: skip
    e.oftener(["x1"], "gcm", "loco", "of (a), the smallest coefficient,", **A)
    e.says("S4.1", "The performance of dropout, permutation and LOCO are almost the same due to "
           "the independence structure in model (a)")  # fmt: skip
    e.similar(("accuracy", "recall", "f1", "fdr"), ONE_MODEL, "in (a)", 0.05, **A)
    e.says("S4.1", "GCM successfully captures all other features except the first two in the "
           "non-linear additive model (b)")  # fmt: skip
    e.finds(["gcm"], ["x3", "x4", "x5", "x6", "x7", "x8"], "in (b)", 0.8, **B)
    e.misses(["gcm"], ["x1", "x2"], "in (b)", 0.1, **B)
    e.says("S4.1", "None of the methods work well when the true model involves interaction terms "
           "as shown in plot (c)")  # fmt: skip
    e.at_most("recall", FOUR, "in (c)", 0.5, **C)
    e.says("S4.1", "GCM performs slightly better than LOCO as seen in plot (a) and (d)")
    for place, part in (("in (a)", A), ("in (d)", D)):
        e.higher("f1", "gcm", "loco", place, **part)


def sfig2(e: Evidence) -> None:
    e.says("S4.1", "dropout and permutation methods … show a significant loss of type I error "
           "control in case (b), achieving high recall but low specificity")  # fmt: skip
    for method in ("dropout", "permutation"):
        e.alarms(method, "in (b)", 0.1, above=True, **B)
    e.at_least("recall", ("dropout", "permutation"), "in (b)", 0.8, **B)
    e.at_most("specificity", ("dropout", "permutation"), "in (b)", 0.5, **B)
    e.says("S4.1", "We observe that GCM and LOCO show consistent results")
    for method in ("gcm", "loco"):
        e.alarms(method, "in (b)", 0.1, above=False, **B)


def sfig3(e: Evidence) -> None:
    e.says("S4.1", "LOCO requires approximately half the computational time of GCM")
    e.time_ratio("loco", "gcm", "over (a) to (d)", 0.35, 0.65)
    e.says("S4.1", "but GCM can identify more significant variables than LOCO")
    e.higher("recall", "gcm", "loco", "in (b)", **B)
    e.says("S4.1", "GCM outperforms knockoff and lasso methods in the non-linear model when the "
           "underlying model is not sparse")  # fmt: skip
    for metric in MAIN:
        e.higher(metric, "gcm", ("knockoffs", "lasso"), "in (b)", **B)
    e.says("S4.1", "GCM consistently outperforms or performs as good as LOCO")
    for place, part in (("(a)", A), ("(b)", B), ("(c)", C), ("(d)", D)):
        e.no_worse("f1", "gcm", "loco", f"in {place} with the kernel machine", 0.02, **part)


def sfig4(e: Evidence) -> None:
    e.says("S4.1", "Knockoff filter method and lasso work well in the sparse models")
    for place, part in (("in (a)", A), ("in (b)", B)):
        e.at_least("f1", ("knockoffs", "lasso"), place, 0.7, **part)
    e.says("S4.1", "GCM still significantly outshines other methods")
    for place, part in (("in (a)", A), ("in (b)", B)):
        e.higher("f1", "gcm", ONE_MODEL, place, **part)
