#include "line_reader.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "commands.h"

namespace rlx::cli {
namespace {

[[noreturn]] void fail_cancelled() {
  throw Error(ErrorCode::kCancelled, "Stopped while reading stdin.");
}

}  // namespace

struct LineReader::Terminal {
  explicit Terminal(std::string text) : prompt(std::move(text)) {
    std::setlocale(LC_CTYPE, "");  // how many columns a character takes
    editor = el_init("rlx", stdin, stdout, stderr);
    lines = history_init();
    if (editor == nullptr || lines == nullptr) {
      close();
      throw_error(ErrorCode::kIo, "Cannot set up the terminal for editing.");
    }
    HistEvent event;
    history(lines, &event, H_SETSIZE, 1000);
    history(lines, &event, H_SETUNIQUE, 1);
    el_set(editor, EL_CLIENTDATA, this);
    el_set(
        editor, EL_PROMPT, +[](EditLine* line) {
          void* self = nullptr;
          el_get(line, EL_CLIENTDATA, &self);
          return static_cast<Terminal*>(self)->prompt.data();
        });
    el_set(editor, EL_EDITOR, "emacs");
    el_set(editor, EL_SIGNAL, 0);
    el_set(editor, EL_HIST, history, lines);
  }
  ~Terminal() { close(); }
  void close() {
    if (lines != nullptr) history_end(lines);
    if (editor != nullptr) el_end(editor);
  }

  std::optional<std::string> read() {
    int count = 0;
    errno = 0;
    const char* line = el_gets(editor, &count);
    if (interrupted.load()) {
      el_reset(editor);
      std::fputs("\n", stdout);
      fail_cancelled();
    }
    if (line == nullptr || count <= 0) {
      if (count < 0 && errno != 0) {
        throw_error(ErrorCode::kIo, "Cannot read stdin: {}.", std::strerror(errno));
      }
      std::fputs("\n", stdout);
      return std::nullopt;
    }
    std::string text(line, static_cast<size_t>(count));
    while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
    if (!text.empty()) {
      HistEvent event;
      history(lines, &event, H_ENTER, text.c_str());
    }
    return text;
  }

  std::string prompt;
  EditLine* editor = nullptr;
  History* lines = nullptr;
};

LineReader::LineReader(std::string prompt) {
  if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) {
    terminal_ = std::make_unique<Terminal>(std::move(prompt));
  }
}
LineReader::~LineReader() = default;

bool LineReader::is_terminal() const { return terminal_ != nullptr; }

std::optional<std::string> LineReader::read() {
  return terminal_ ? terminal_->read() : read_plain();
}

std::optional<std::string> LineReader::read_plain() {
  while (true) {
    const size_t end = rest_.find('\n');
    if (end != std::string::npos || (at_end_ && !rest_.empty())) {
      std::string line = rest_.substr(0, end);
      rest_.erase(0, end == std::string::npos ? end : end + 1);
      if (line.ends_with('\r')) line.pop_back();
      return line;
    }
    if (at_end_) return std::nullopt;
    // A signal may come just before the wait begins, so the wait is short and the flag looked at
    // again.
    pollfd stdin_event{STDIN_FILENO, POLLIN, 0};
    constexpr int kWaitMilliseconds = 100;
    const int ready = poll(&stdin_event, 1, kWaitMilliseconds);
    if (interrupted.load()) fail_cancelled();
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    char buffer[1 << 12];
    const ssize_t count = ready < 0 ? -1 : ::read(STDIN_FILENO, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_error(ErrorCode::kIo, "Cannot read stdin: {}.", std::strerror(errno));
    at_end_ = count == 0;
    rest_.append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace rlx::cli
