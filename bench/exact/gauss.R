# The pattern of GaussSuppression for one file: Rscript gauss.R FILE OUT, in CPU seconds.
suppressMessages(library(GaussSuppression))
given <- commandArgs(TRUE)
data <- read.csv(given[1], colClasses = "character")
data$amount <- as.numeric(data$amount)
by <- setdiff(names(data), c("id", "amount"))
time <- system.time(
  found <- SuppressDominantCells(data, dimVar = by, numVar = "amount", contributorVar = "id",
                                 dominanceVar = "amount", n = 1, k = 75, printInc = FALSE)
)
cells <- found[, c("place", "industry", "suppressed")]
write.csv(cells, given[2], row.names = FALSE, quote = FALSE)
cat(as.character(packageVersion("GaussSuppression")), time[["user.self"]] + time[["sys.self"]], time[["elapsed"]], "\n")
