#include "usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace rlx::cli {
namespace {

// Insertions, deletions, substitutions and swaps of neighbours that turn one word into the other
// (optimal string alignment).
size_t count_edits(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        table[i][j] = i + j;
        continue;
      }
      table[i][j] = std::min({table[i - 1][j] + 1, table[i][j - 1] + 1,
                              table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
      }
    }
  }
  return table[a.size()][b.size()];
}

// "-p" and "--prompt" for every option; the positional ones have no such name.
std::vector<std::string> list_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string suggest(const std::string& word, const std::vector<std::string>& known) {
  const std::string nearest = find_nearest(word, known);
  return nearest.empty() ? "" : fmt::format(" Did you mean '{}'?", nearest);
}

[[noreturn]] void fail_on_word(const CLI::App& command, const std::string& word) {
  const std::string name = command.get_name();
  if (word.size() < 2 || word[0] != '-') {
    throw UsageError(fmt::format(
        "'{}' is one word too many for '{}'. 'rlx {} --help' shows what it takes; a text of "
        "several words needs quotes.",
        word, name, name));
  }
  const std::vector<std::string> known = list_options(command);
  const std::string option = word.substr(0, word.find('='));
  throw UsageError(fmt::format("'{}' has no option '{}'.{} It has: {}.", name, option,
                               suggest(option, known), fmt::join(known, ", ")));
}

}  // namespace

std::string find_nearest(const std::string& word, const std::vector<std::string>& known) {
  // A third of the letters may be wrong; more is another word.
  size_t fewest = std::max<size_t>(1, word.size() / 3) + 1;
  std::string nearest;
  for (const std::string& candidate : known) {
    const size_t edits = count_edits(word, candidate);
    if (edits < fewest && edits < candidate.size()) {
      fewest = edits;
      nearest = candidate;
    }
  }
  return nearest;
}

std::vector<std::string> list_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

void check_leftovers(const CLI::App& app, const CLI::App* command) {
  std::vector<std::string> words = app.remaining();
  if (command == nullptr) {
    if (words.empty()) return;
    const std::vector<std::string> known = list_commands(app);
    if (words[0].starts_with("-")) {
      throw UsageError(
          fmt::format("There is no option '{}' before the command; there are: "
                      "--help, --version.",
                      words[0]));
    }
    throw UsageError(fmt::format("There is no command '{}'.{} The commands are: {}.", words[0],
                                 suggest(words[0], known), fmt::join(known, ", ")));
  }
  const std::vector<std::string> own = command->remaining();
  words.insert(words.end(), own.begin(), own.end());
  std::erase(words, "--");  // says that no option follows, and is kept with the leftovers
  // A wrong option explains the words around it, so it goes first.
  const auto is_option = [](const std::string& word) { return word.size() > 1 && word[0] == '-'; };
  const auto option = std::find_if(words.begin(), words.end(), is_option);
  if (option != words.end()) fail_on_word(*command, *option);
  if (!words.empty()) fail_on_word(*command, words[0]);
}

}  // namespace rlx::cli
