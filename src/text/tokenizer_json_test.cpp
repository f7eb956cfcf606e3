// Every kind of tokenizer.json against ids and text from the reference library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace rlx
