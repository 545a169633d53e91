# A pattern by GaussSuppression: Rscript gauss.R FILE OUT exact|intervals; prints its version, CPU and elapsed seconds.
suppressMessages(library(GaussSuppression))
given <- commandArgs(TRUE)
data <- read.csv(given[1], colClasses = "character")
data$amount <- as.numeric(data$amount)
intervals <- given[3] == "intervals"
time <- system.time(
  # A share of exactly k counts as dominant there, and not here: hence a little more.
  found <- SuppressDominantCells(data, dimVar = setdiff(names(data), c("id", "amount")), numVar = "amount",
                                 contributorVar = "id", dominanceVar = "amount", n = 1, k = 75.0001, printInc = FALSE,
                                 protectionIntervals = intervals, lpPackage = if (intervals) "highs")
)
write.csv(found[, c("place", "industry", "primary", "suppressed")], given[2], row.names = FALSE, quote = FALSE)
cat("\n", as.character(packageVersion("GaussSuppression")), sum(time[c(1, 2, 4, 5)]), time[["elapsed"]], "\n")
