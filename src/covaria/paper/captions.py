"""What there is to see in each picture, in our words: a caption a figure."""

P = (
    "The mean p-value of each feature and its standard deviation over runs, cut at 0 and 1. The "
    "shaded features matter, the others do not. The dashed line is the level, .05: a feature is "
    "selected in the runs whose p-value is below it."
)
BARS = (
    "Means over runs, with the standard deviation cut at 0 and 1; the dashed line is what selecting"
    " by a fair coin gives. Seconds, on a log scale, are those of the models that a method needs."
)
SWEEP = (
    "A row a learner: the mean p-value of three features (dashed: .05), then recall, F1 and FDR; "
    "bars are Monte-Carlo standard errors, cut at 0 and 1."
)
RATES = (
    "The share of parts in which a feature is selected, over all draws of the folds; a stable "
    "feature is right of the dashed line, at .8."
)
SURROGATE = (
    "The share of runs that select x2, with its Monte-Carlo standard error; the dashed line is the "
    'level, .05, which a test of a true null should keep. "Done right" is cross-fitted in five '
    "folds and corrected by Benjamini and Hochberg. The default has one choice of learners, `auto`."
)
CAPTIONS = {
    "theory": "Theorems 1 and 2 with least squares, Theorem 6 with networks (half of the rows "
    "train, half are tested): the spread of √n (estimate − truth) over that of the limit, for x1, "
    "which matters, and x2, a null. LOCO's and Lazy-VI's fall to 0 at the null: there their limit "
    "gives no test.",
    "fig1": P,
    "fig2": "The two sides of Assumption (A) as a ratio, for the noise that the model has and for "
    "the error that boosting makes; crosses are exact. Above the dashed line, at 1, GCM is the "
    "more efficient.",
    "fig3": BARS,
    "fig4": SWEEP + " x2 is the surrogate: it does not matter given x1.",
    "fig5": SWEEP + " Left the heaviest tails, right normal features.",
    "fig6": BARS,
    "fig7": BARS,
    "sfig1": P,
    "sfig2": P,
    "sfig3": BARS,
    "sfig4": BARS,
    **dict.fromkeys(("fig8", "fig9", "sfig5", "sfig6", "sfig7", "sfig8"), RATES),
}
