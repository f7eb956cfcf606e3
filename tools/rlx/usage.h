// What the user sees when the command line itself is wrong: one line that says what is wrong and
// what would be right.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace rlx::cli {

// Thrown for wrong usage; main prints the message and ends with exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The known word that a mistyped one most likely meant; empty when none is near.
std::string find_nearest(const std::string& word, const std::vector<std::string>& known);

// The commands' names, as the user types them.
std::vector<std::string> list_commands(const CLI::App& app);

// Throws a UsageError for words of the command line that no option, positional or command took.
// Both apps must allow extras, so that the words are kept; `command` is null when none was given.
void check_leftovers(const CLI::App& app, const CLI::App* command);

}  // namespace rlx::cli
