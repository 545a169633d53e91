# A pattern by sdcTable: Rscript sdctable.R FILE OUT METHOD; prints its version, CPU and elapsed seconds.
suppressMessages(library(sdcTable))
given <- commandArgs(TRUE)
data <- read.csv(given[1], colClasses = "character")
data$amount <- as.numeric(data$amount)
tree <- function(name) {
  above <- paste0(name, "_above")
  if (!above %in% names(data)) return(hier_create("Total", nodes = unique(data[[name]])))
  codes <- unique(data[c(above, name)])
  made <- hier_create("Total", nodes = unique(codes[[above]]))
  for (one in unique(codes[[above]])) made <- hier_add(made, root = one, nodes = codes[[name]][codes[[above]] == one])
  made
}
time <- system.time({
  problem <- makeProblem(data, dimList = list(place = tree("place"), industry = tree("industry")), numVarInd = "amount")
  problem <- primarySuppression(problem, type = "nk", n = 1, k = 75, numVarName = "amount")
  found <- if (given[3] %in% c("HITAS", "OPT")) protectTable(problem, method = given[3], useC = TRUE) else
    protectTable(problem, method = given[3], detectSingletons = TRUE)
})
found <- as.data.frame(getInfo(found, "finalData"))
found$primary <- found$sdcStatus == "u"
found$suppressed <- found$sdcStatus %in% c("u", "x")
write.csv(found[, c("place", "industry", "primary", "suppressed")], given[2], row.names = FALSE, quote = FALSE)
cat("\n", as.character(packageVersion("sdcTable")), sum(time[c(1, 2, 4, 5)]), time[["elapsed"]], "\n")
