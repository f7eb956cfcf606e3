// Plans random problems of up to eight units, with pins, pieces and alignments, and compares each
// with the least height by brute force: what the tests do for seconds, for as long as one likes.
//
//   fuzz_memory [ROUNDS] [SEED]
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "memory/random_problem.h"
#include "rlx/error.h"

int main(int argc, char** argv) {
  const int64_t num_rounds = argc > 1 ? std::atoll(argv[1]) : 100000;
  const uint64_t seed = argc > 2 ? static_cast<uint64_t>(std::atoll(argv[2])) : 1;
  rlx::memory::Random random(seed);
  int64_t num_above_bound = 0, num_faults = 0;
  for (int64_t round = 0; round < num_rounds; ++round) {
    std::string fault;
    bool is_above_bound = false;
    try {
      fault = rlx::memory::run_fuzz_round(random, is_above_bound);
    } catch (const rlx::Error& error) {
      fault = error.what();
    }
    num_above_bound += is_above_bound;
    if (fault.empty()) continue;
    ++num_faults;
    if (num_faults <= 20) fmt::print("seed {} round {}: {}\n", seed, round, fault);
  }
  fmt::print("{} rounds, {} with the least height above the bytes alive, {} faults\n", num_rounds,
             num_above_bound, num_faults);
  return num_faults == 0 ? 0 : 1;
}
