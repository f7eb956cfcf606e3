#include "rlx/chat.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/language_model_parts.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "rlx/language_model.h"
#include "templates/builtin.h"
#include "templates/json.h"
#include "templates/template.h"

namespace rlx {

using Variable = templates::Value;

struct ChatTemplate::Parts {
  Parts(std::string_view source, std::string name, ChatTokens special)
      : program(source, std::move(name)), tokens(std::move(special)) {}
  templates::Template program;
  ChatTokens tokens;
};

ChatTemplate::ChatTemplate(std::string_view source, std::string name, ChatTokens tokens)
    : parts_(std::make_shared<const Parts>(source, std::move(name), std::move(tokens))) {}

namespace {

using Entries = std::vector<std::pair<Variable, Variable>>;

// What every template finds, whoever calls it.
Entries make_common_variables(const ChatTokens& tokens) {
  Entries entries = {{"tools", templates::None{}}, {"documents", templates::None{}}};
  const std::pair<const char*, const std::string*> texts[] = {{"bos_token", &tokens.bos},
                                                              {"eos_token", &tokens.eos},
                                                              {"unk_token", &tokens.unk},
                                                              {"pad_token", &tokens.pad}};
  for (const auto& [name, text] : texts) {
    if (!text->empty()) entries.emplace_back(name, *text);
  }
  return entries;
}

}  // namespace

std::string ChatTemplate::render(std::span<const ChatMessage> messages,
                                 bool add_generation_prompt) const {
  std::vector<Variable> list;
  for (const ChatMessage& message : messages) {
    list.push_back(Variable::make_dict({{"role", message.role}, {"content", message.content}}));
  }
  Entries entries = make_common_variables(parts_->tokens);
  entries.emplace_back("messages", Variable::make_list(std::move(list)));
  entries.emplace_back("add_generation_prompt", add_generation_prompt);
  return parts_->program.render(Variable::make_dict(std::move(entries)));
}

std::string ChatTemplate::render_json(std::string_view variables) const {
  const Variable given = templates::read_json(variables, "the variables of a chat template");
  if (!given.is(templates::Kind::kDict)) {
    throw_error(ErrorCode::kInvalidArgument,
                "The variables of a chat template are a {}, but a JSON object is expected.",
                templates::type_name(given));
  }
  Entries entries = make_common_variables(parts_->tokens);
  for (const auto& entry : given.as_dict().entries) entries.push_back(entry);
  return parts_->program.render(Variable::make_dict(std::move(entries)));
}

std::string_view find_builtin_chat_template(std::string_view name) {
  return templates::find_builtin_template(name);
}

std::vector<std::string> list_builtin_chat_templates() {
  return templates::list_builtin_templates();
}

namespace {

using nlohmann::json;

std::string read_text(const std::string& path) {
  const MappedFile file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// tokenizer_config.json of a folder; null when there is none.
json read_tokenizer_config(const std::string& path) {
  if (!std::filesystem::exists(path)) return nullptr;
  json config = json::parse(read_text(path), nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) {
    throw_error(ErrorCode::kCorruptData, "{}: The file is not a JSON object.", path);
  }
  return config;
}

// A special token is a text, or an object with the text as its content.
std::string find_token_text(const json& config, const char* key) {
  if (!config.is_object() || !config.contains(key)) return {};
  const json& token = config[key];
  if (token.is_string()) return token.get<std::string>();
  if (token.is_object() && token.contains("content") && token["content"].is_string()) {
    return token["content"].get<std::string>();
  }
  return {};
}

std::string config_path(const ModelFile& file) { return file.path() + "/tokenizer_config.json"; }

ChatTokens find_chat_tokens(const ModelFile& file, const Tokenizer* tokenizer) {
  ChatTokens tokens;
  if (file.gguf() == nullptr) {
    const json config = read_tokenizer_config(config_path(file));
    tokens = {find_token_text(config, "bos_token"), find_token_text(config, "eos_token"),
              find_token_text(config, "unk_token"), find_token_text(config, "pad_token")};
  }
  if (tokenizer == nullptr) return tokens;
  const auto text_of = [&](std::optional<int32_t> id) {
    return id ? std::string(tokenizer->token_text(*id)) : std::string();
  };
  if (tokens.bos.empty()) tokens.bos = text_of(tokenizer->bos_id());
  if (tokens.eos.empty()) tokens.eos = text_of(tokenizer->eos_id());
  return tokens;
}

struct Source {
  std::string text, name;
};

// `chat_template` of tokenizer_config.json: the template, or several with names.
std::optional<Source> find_in_config(const std::string& path) {
  const json config = read_tokenizer_config(path);
  if (!config.is_object() || !config.contains("chat_template")) return std::nullopt;
  const json& found = config["chat_template"];
  const std::string name = path + ": chat_template";
  if (found.is_null()) return std::nullopt;
  if (found.is_string()) return Source{found.get<std::string>(), name};
  if (found.is_array()) {
    for (const json& entry : found) {
      if (find_token_text(entry, "name") == "default" && entry.contains("template") &&
          entry["template"].is_string()) {
        return Source{entry["template"].get<std::string>(), name};
      }
    }
  }
  throw_error(ErrorCode::kCorruptData,
              "{}: The key 'chat_template' is neither a string nor a list with a template that is "
              "named 'default'.",
              path);
}

std::optional<Source> find_chat_template(const ModelFile& file) {
  if (file.gguf() != nullptr) {
    const auto text = file.gguf()->find_string("tokenizer.chat_template");
    if (!text) return std::nullopt;
    return Source{std::string(*text), file.path() + ": tokenizer.chat_template"};
  }
  const std::string path = file.path() + "/chat_template.jinja";
  if (std::filesystem::exists(path)) return Source{read_text(path), path};
  return find_in_config(config_path(file));
}

}  // namespace

ChatTemplate LanguageModel::chat_template() const {
  const std::optional<Source> source = find_chat_template(*parts_->model.file);
  if (!source) {
    throw_error(ErrorCode::kNotFound, "{}: The model has no chat template.",
                parts_->model.file->path());
  }
  return make_chat_template(source->text, source->name);
}

ChatTemplate LanguageModel::make_chat_template(std::string_view source,
                                               const std::string& name) const {
  const Tokenizer* tokenizer = parts_->tokenizer ? &*parts_->tokenizer : nullptr;
  return {source, name, find_chat_tokens(*parts_->model.file, tokenizer)};
}

}  // namespace rlx
