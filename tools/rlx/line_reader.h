// Reads what a user types, a line at a time: with editing and history (libedit) when stdin is a
// terminal, plainly otherwise.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace rlx::cli {

class LineReader {
 public:
  // `prompt` stands before the line on a terminal, and nowhere else.
  explicit LineReader(std::string prompt);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  bool is_terminal() const;
  // The next line without its end; nothing at the end of the input. Throws kCancelled when Ctrl-C
  // comes instead, and kIo when the input cannot be read.
  std::optional<std::string> read();

 private:
  struct Terminal;
  std::optional<std::string> read_plain();

  std::unique_ptr<Terminal> terminal_;  // null: stdin is none
  std::string rest_;                    // read but not handed out
  bool at_end_ = false;
};

}  // namespace rlx::cli
