# Publishes a case by sdcMicro: Rscript sdcmicro.R CASE OUT K COLUMN[=LEVEL]...
# CASE is a folder as tests/benchmarks/cases.py writes it. Columns are recoded to a level of their tree, 0 being the
# values, and then cells are suppressed until every combination occurs K times, a missing value being any.
suppressMessages({library(data.table); library(sdcMicro)})
args <- commandArgs(trailingOnly = TRUE)
name <- basename(args[1])
rows <- fread(file.path(args[1], paste0(name, ".csv")), sep = ";", colClasses = "character")
asked <- strsplit(args[-(1:3)], "=")
columns <- vapply(asked, `[`, "", 1)
for (one in asked) {
  tree <- fread(file.path(args[1], "hierarchies", paste0(name, "_hierarchy_", one[1], ".csv")),
                sep = ";", header = FALSE, colClasses = "character")
  level <- if (length(one) > 1) as.integer(one[2]) else 0L
  rows[[one[1]]] <- factor(tree[[level + 1L]][match(rows[[one[1]]], tree[[1]])])
}
set.seed(1)
keys <- setNames(as.data.frame(rows)[columns], make.names(columns))  # it takes names of R alone
done <- localSuppression(keys, keyVars = names(keys), k = as.integer(args[3]))
rows[, (columns) := lapply(done$xAnon[names(keys)], as.character)]
fwrite(rows, args[2], sep = ";", na = "")
