# Seconds of three fits of R's gbm at the size of Fig. 7: 1,000 rows, 499 columns, 4 splits a tree.
# Rscript benchmarks/wide_gbm.R
suppressMessages(library(gbm))
set.seed(1)
n <- 1000; p <- 500
X <- matrix(rnorm(n * p), n, p)
block <- function(Z) 2 * Z[, 1]^2 + 2 * cos(4 * Z[, 2]) + sin(Z[, 3]) + exp(Z[, 4] / 3) +
  3 * Z[, 5] + Z[, 6]^3 + 5 * Z[, 7] + pmax(0, Z[, 8])
y <- Reduce(`+`, lapply(0:4, function(k) block(X[, 8 * k + 1:8]))) + 0.1 * rnorm(n)
fit <- function(target, columns) {
  data <- data.frame(target = target, X[, columns])
  spent <- system.time(gbm(target ~ ., data = data, distribution = "gaussian",
                           interaction.depth = 4))
  spent[["user.self"]] + spent[["sys.self"]]
}
seconds <- c(full = fit(y, 1:p), reduced = fit(y, 2:p), feature = fit(X[, 1], 2:p))
print(round(seconds, 2))
fits <- 2 * p + 1
cat(sprintf("%d fits a run at %.2f s: %.0f s; 100 runs (2 models, 50 repeats): %.1f h\n",
            fits, mean(seconds), fits * mean(seconds), 100 * fits * mean(seconds) / 3600))
