// Problems and plans as comma-separated text, the form in which published instances come and in
// which other tools can be compared: `id,lower,upper,size`, one unit a line, alive in steps [lower,
// upper).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "memory/place.h"
#include "memory/problem.h"

namespace rlx::memory {

struct CsvProblem {
  std::vector<std::string> ids;  // one per unit, as written
  Problem problem;
  std::vector<int64_t> offsets;  // of the column `offset`, one per unit; empty without that column
};

// Reads text whose first line names the columns, in any order: `id`, `lower`, `upper`, `size`, and
// optionally `alignment` (bytes) and `offset` (a plan, to be checked). Fields may be quoted; lines
// end in LF or CRLF; empty lines are skipped. Throws rlx::Error naming `name` and the line.
CsvProblem parse_csv(std::string_view text, const std::string& name);

// The same for a file.
CsvProblem read_csv(const std::string& path);

// The lines of `csv` in the same order, with the offsets of `placement` in a last column `offset`.
// The column `alignment` is written when a unit has an alignment over 1. Precondition: every unit
// is a whole rectangle, as those that parse_csv makes.
std::string write_csv(const CsvProblem& csv, const Placement& placement);

}  // namespace rlx::memory
