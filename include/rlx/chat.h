// Conversations as text: the template that turns messages into the exact text that a model was
// trained on. A model's own comes from LanguageModel::chat_template.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"; templates may know more
  std::string content;
};

// The texts of a model's special tokens, which templates write where they belong; empty: none.
struct ChatTokens {
  std::string bos, eos, unk, pad;
};

// Movable and copyable; const use is thread-safe.
class ChatTemplate {
 public:
  // `source` is the template, `name` stands for it in errors. Throws kInvalidArgument for what
  // breaks the grammar and kUnsupported naming a construct that is not supported, both with the
  // line.
  ChatTemplate(std::string_view source, std::string name, ChatTokens tokens = {});

  // The text of a conversation; with `add_generation_prompt` it ends where the assistant's answer
  // begins. Throws kInvalidArgument with what the template says when it refuses the conversation.
  std::string render(std::span<const ChatMessage> messages,
                     bool add_generation_prompt = true) const;

  // The same for variables of your own, as a JSON object: messages with more fields, tools,
  // enable_thinking and so on. The special tokens are there too, and tools and documents are none
  // unless given.
  std::string render_json(std::string_view variables) const;

 private:
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

// The source of a built-in template, for models whose file has none; empty when there is none of
// this name.
std::string_view find_builtin_chat_template(std::string_view name);
std::vector<std::string> list_builtin_chat_templates();

}  // namespace rlx
