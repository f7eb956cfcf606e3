#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "base/error.h"
#include "commands.h"
#include "line_reader.h"

namespace rlx::cli {
namespace {

// The first Ctrl-C stops the answer, or the line that is being typed; another one before the next
// line or answer begins ends the process.
void handle_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) {
    constexpr int kExitCode = 130;
    if (interrupted.exchange(true)) _exit(kExitCode);
  };
  action.sa_flags = 0;  // a read that waits returns
  sigaction(SIGINT, &action, nullptr);
}

void show_note(std::string_view text) {
  std::fflush(stdout);
  fmt::print(stderr, "{}\n", text);
}

ChatTemplate choose_template(const LanguageModel& model, const std::string& choice) {
  if (choice.empty()) {
    try {
      return model.chat_template();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound) throw;
      throw_error(ErrorCode::kNotFound, "{} Give one with --chat-template: a file, or one of {}.",
                  error.what(), fmt::join(list_builtin_chat_templates(), ", "));
    }
  }
  const std::string_view builtin = find_builtin_chat_template(choice);
  if (!builtin.empty()) return model.make_chat_template(builtin, "chat template " + choice);
  std::ifstream stream(choice, std::ios::binary);
  if (!stream || std::filesystem::is_directory(choice)) {
    throw_error(ErrorCode::kNotFound,
                "'{}' is neither a file with a chat template nor a built-in one; there are: {}.",
                choice, fmt::join(list_builtin_chat_templates(), ", "));
  }
  const std::string source{std::istreambuf_iterator<char>(stream), {}};
  return model.make_chat_template(source, choice);
}

class Chat {
 public:
  explicit Chat(const ChatOptions& options)
      : options_(options),
        model_(LanguageModel::load(
            options.model.model,
            fit_budget(options.model, make_load_options(options.model, DType::kF16)))),
        template_(choose_template(model_, options.chat_template)),
        reader_("> ") {
    if (!options.load_state.empty()) model_.load_state(options.load_state);
    generate_ = options.generate;
    seed_ = options.has_seed ? options.generate.seed : std::random_device()();
    generate_.cancel = &interrupted;
    generate_.reuse_prefix = true;
    generate_.on_text = [](std::string_view piece) { write_text(piece); };
    reset();
  }

  int run() {
    handle_interrupts();
    if (reader_.is_terminal()) {
      show_note("/help shows the commands; Ctrl-C stops an answer, Ctrl-D ends the chat.");
    }
    while (true) {
      std::optional<std::string> line;
      try {
        line = reader_.read();
      } catch (const Error& error) {
        // On a terminal Ctrl-C drops the line; twice without a line between them it leaves.
        if (error.code() != ErrorCode::kCancelled || !reader_.is_terminal()) throw;
        interrupted = false;
        if (std::exchange(dropped_line_, true)) return 130;
        show_note("Ctrl-C again, or /exit, ends the chat.");
        continue;
      }
      dropped_line_ = false;
      if (!line || *line == "/exit" || *line == "/quit") break;
      if (line->empty()) continue;
      if (line->starts_with('/')) {
        run_command(*line);
      } else {
        answer(*line);
      }
    }
    if (!options_.save_state.empty()) model_.save_state(options_.save_state);
    return 0;
  }

 private:
  void reset() {
    messages_.clear();
    if (options_.has_system) messages_.push_back({"system", options_.system});
    num_answers_ = 0;
  }

  void run_command(const std::string& line) {
    if (line == "/reset") {
      reset();
      show_note("The conversation begins anew.");
    } else if (line == "/help") {
      show_note(
          "/reset   forget the conversation\n"
          "/exit    end the chat, as does the end of the input\n"
          "/help    show this\n"
          "Ctrl-C stops an answer and keeps what is there; twice ends the chat.");
    } else {
      show_note(fmt::format("There is no command '{}'; /help shows those there are.", line));
    }
  }

  void answer(const std::string& text) {
    messages_.push_back({"user", text});
    const std::string prompt = template_.render(messages_);
    const std::vector<int32_t> tokens = model_.tokenize(prompt, {.add_special = false});
    if (static_cast<int64_t>(tokens.size()) >= model_.context()) {
      const std::string message = fmt::format(
          "The conversation has {} tokens, but the context holds {} tokens and must hold an answer "
          "too.",
          tokens.size(), model_.context());
      messages_.pop_back();
      if (!reader_.is_terminal()) throw Error(ErrorCode::kOutOfRange, message);
      show_note(message + " /reset begins anew.");
      return;
    }
    // Each turn draws other numbers, and the same seed gives the same conversation.
    generate_.seed = seed_ + num_answers_++;
    interrupted = false;
    const GenerateResult result = model_.generate(tokens, generate_);
    write_text("\n");
    messages_.push_back({"assistant", result.text});
    if (result.stop_reason == StopReason::kContextFull) {
      show_note("The context is full; /reset begins anew.");
    }
    if (result.stop_reason == StopReason::kCancelled && !reader_.is_terminal()) {
      throw Error(ErrorCode::kCancelled, "Stopped while answering.");
    }
    interrupted = false;
  }

  const ChatOptions& options_;
  LanguageModel model_;
  ChatTemplate template_;
  LineReader reader_;
  GenerateOptions generate_;
  std::vector<ChatMessage> messages_;
  uint64_t seed_ = 0;
  uint64_t num_answers_ = 0;
  bool dropped_line_ = false;
};

}  // namespace

int chat(const ChatOptions& options) { return Chat(options).run(); }

}  // namespace rlx::cli
