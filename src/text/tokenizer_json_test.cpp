// Every kind of tokenizer.json against ids and text from the reference library.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "text/tokenizer.h"

namespace rlx {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class TokenizerKind : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string folder = std::string("tests/data/tokenizers/") + GetParam();
    tokenizer_.emplace(
        make_tokenizer_from_json(read_file(folder + "/tokenizer.json"), "tokenizer.json"));
    cases_ = nlohmann::json::parse(read_file(folder + "/cases.json"));
  }
  std::optional<Tokenizer> tokenizer_;
  nlohmann::json cases_;
};

TEST_P(TokenizerKind, EncodesAndDecodesLikeTheReference) {
  for (const auto& c : cases_) {
    const auto text = c["text"].get<std::string>();
    const auto ids = c["ids"].get<std::vector<int32_t>>();
    const auto text_ids = c["ids_no_special"].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer_->encode(text), ids) << text;
    EXPECT_EQ(tokenizer_->encode(text, {.add_special = false}), text_ids) << text;
    EXPECT_EQ(tokenizer_->decode(text_ids, false), c["decoded"].get<std::string>()) << text;
    EXPECT_EQ(tokenizer_->decode(ids), c["decoded_skip_special"].get<std::string>()) << text;
  }
}

TEST_P(TokenizerKind, StreamsWhatItDecodes) {
  for (const bool skip_special : {true, false}) {
    StreamDecoder stream(*tokenizer_, skip_special);
    for (const auto& c : cases_) {
      const auto ids = c["ids"].get<std::vector<int32_t>>();
      std::string text;
      for (const int32_t id : ids) text += stream.push(id);
      text += stream.finish();
      EXPECT_EQ(text, tokenizer_->decode(ids, skip_special));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerKind,
                         testing::Values("bytelevel-gpt2", "bytelevel-qwen2", "demo",
                                         "wordpiece-bert", "bpe-byte-fallback", "unigram"));

// Each entry replaces components of one of the tokenizers above, such as its pre-tokenizer.
TEST(TokenizerComponents, EncodeLikeTheReference) {
  const auto variants = nlohmann::json::parse(read_file("tests/data/tokenizers/components.json"));
  for (const auto& variant : variants) {
    const auto base = variant["base"].get<std::string>();
    const auto name = variant["name"].get<std::string>();
    auto file =
        nlohmann::json::parse(read_file("tests/data/tokenizers/" + base + "/tokenizer.json"));
    for (const auto& [key, value] : variant["patch"].items()) {
      if (key == "model.ignore_merges") {
        file["model"]["ignore_merges"] = value;
      } else if (key == "added_tokens") {
        // Tokens of the base that appear again have other flags here.
        for (const auto& token : value) {
          auto& list = file["added_tokens"];
          list.erase(std::remove_if(list.begin(), list.end(),
                                    [&](const auto& old) { return old["id"] == token["id"]; }),
                     list.end());
          list.push_back(token);
        }
      } else {
        file[key] = value;
      }
    }
    const Tokenizer tokenizer = make_tokenizer_from_json(file.dump(), name);
    for (const auto& c : variant["cases"]) {
      const auto text = c["text"].get<std::string>();
      const auto ids = c["ids"].get<std::vector<int32_t>>();
      EXPECT_EQ(tokenizer.encode(text), ids) << name << ": " << text;
      if (c.contains("plain_ids")) {
        EXPECT_EQ(tokenizer.encode(text, {.add_special = false, .parse_special = false}),
                  c["plain_ids"].get<std::vector<int32_t>>())
            << name << ": " << text;
      }
      if (c.contains("decoded")) {
        EXPECT_EQ(tokenizer.decode(ids, false), c["decoded"].get<std::string>()) << name;
        EXPECT_EQ(tokenizer.decode(ids), c["decoded_skip_special"].get<std::string>()) << name;
      }
    }
  }
}

}  // namespace
}  // namespace rlx
