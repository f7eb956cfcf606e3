// Vocabularies from GGUF files against ids from llama.cpp, and the checks of the loader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "frontends/gguf/gguf_file.h"
#include "text/gguf_pre.h"
#include "text/regex.h"
#include "text/tokenizer.h"

namespace rlx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const GgufVocab& vocab) {
  try {
    make_tokenizer_from_gguf(vocab, "model.gguf");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::optional<int32_t> find_id(const GgufFile& file, const char* key) {
  const auto value = file.find_int(std::string("tokenizer.ggml.") + key);
  return value ? std::optional<int32_t>(static_cast<int32_t>(*value)) : std::nullopt;
}

GgufVocab read_vocab(const GgufFile& file) {
  GgufVocab vocab;
  vocab.model = file.find_string("tokenizer.ggml.model").value_or("");
  vocab.pre = file.find_string("tokenizer.ggml.pre").value_or("");
  vocab.tokens = file.find_string_array("tokenizer.ggml.tokens").value();
  if (auto merges = file.find_string_array("tokenizer.ggml.merges")) vocab.merges = *merges;
  if (auto scores = file.find_float_array("tokenizer.ggml.scores")) vocab.scores = *scores;
  if (auto types = file.find_int_array("tokenizer.ggml.token_type")) {
    vocab.token_types.assign(types->begin(), types->end());
  }
  vocab.bos = find_id(file, "bos_token_id");
  vocab.eos = find_id(file, "eos_token_id");
  vocab.unk = find_id(file, "unknown_token_id");
  vocab.pad = find_id(file, "padding_token_id");
  vocab.cls = find_id(file, "cls_token_id");
  vocab.sep = find_id(file, "seperator_token_id");
  vocab.add_bos = file.find_bool("tokenizer.ggml.add_bos_token");
  vocab.add_eos = file.find_bool("tokenizer.ggml.add_eos_token");
  vocab.add_space_prefix = file.find_bool("tokenizer.ggml.add_space_prefix");
  return vocab;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> read_texts(const std::string& path) {
  const std::string all = read_file(path);
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  size_t begin = 0;
  for (size_t at; (at = all.find(separator, begin)) != std::string::npos;) {
    texts.push_back(all.substr(begin, at - begin));
    begin = at + separator.size();
  }
  return texts;  // what follows the last separator is no text
}

class GgufVocabFile : public testing::TestWithParam<const char*> {};

TEST_P(GgufVocabFile, EncodesLikeLlamaCpp) {
  const std::string name = std::string("ggml-vocab-") + GetParam() + ".gguf";
  std::string folder = "tests/data/tokenizers/gguf-vocab/";
  if (!std::filesystem::exists(folder + name)) folder = "../shared/fixtures/tokenizers/gguf-vocab/";
  if (!std::filesystem::exists(folder + name)) GTEST_SKIP() << name << " is not here";
  const GgufFile file(folder + name);
  const Tokenizer tokenizer = make_tokenizer_from_gguf(read_vocab(file), name);

  const std::vector<std::string> texts = read_texts(folder + name + ".inp");
  std::istringstream lines(read_file(folder + name + ".out"));
  ASSERT_GT(texts.size(), 40u);
  for (const std::string& text : texts) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    std::istringstream numbers(line);
    const std::vector<int32_t> expected{std::istream_iterator<int32_t>(numbers), {}};
    const std::vector<int32_t> ids = tokenizer.encode(text, {.add_special = false});
    EXPECT_EQ(ids, expected) << "'" << text << "'";
    if (std::string_view(GetParam()) != "bert-bge") {
      EXPECT_EQ(tokenizer.decode(ids), text);
    }
    StreamDecoder stream(tokenizer);
    std::string streamed;
    for (const int32_t id : ids) streamed += stream.push(id);
    EXPECT_EQ(streamed + stream.finish(), tokenizer.decode(ids));
  }
}

INSTANTIATE_TEST_SUITE_P(All, GgufVocabFile,
                         testing::Values("gpt-2", "deepseek-coder", "llama-spm", "bert-bge"));

TEST(GgufPre, CompilesEveryPattern) {
  for (const GgufPre& pre : gguf_pre_table()) {
    for (const std::string_view pattern : pre.patterns) EXPECT_NO_THROW(Regex{pattern}) << pattern;
  }
}

TEST(GgufPre, NamesTheUnknownAndTheKnown) {
  GgufVocab vocab{.model = "gpt2", .pre = "qwen99", .tokens = {"a"}};
  EXPECT_THAT(error_of(vocab), HasSubstr("model.gguf: The key 'tokenizer.ggml.pre' is 'qwen99'"));
  EXPECT_THAT(error_of(vocab), HasSubstr("llama-bpe, llama-v3, llama3"));
  vocab.pre = "";
  EXPECT_THAT(error_of(vocab), HasSubstr("'tokenizer.ggml.pre' is missing"));
}

// Two letters, their merge, and a beginning of text.
GgufVocab small_bpe(std::string_view pre) {
  return {.model = "gpt2",
          .pre = pre,
          .tokens = {"a", "b", "ab", "abb", "<s>"},
          .merges = {"a b"},
          .token_types = {1, 1, 1, 1, 3},
          .bos = 4};
}

TEST(TokenizerGguf, IgnoresMergesAndAddsTheBeginningForLlamaBpe) {
  EXPECT_THAT(make_tokenizer_from_gguf(small_bpe("gpt-2"), "").encode("abb"), ElementsAre(2, 1));
  EXPECT_THAT(make_tokenizer_from_gguf(small_bpe("llama-bpe"), "").encode("abb"),
              ElementsAre(4, 3));
  GgufVocab without = small_bpe("llama-bpe");
  without.add_bos = false;
  EXPECT_THAT(make_tokenizer_from_gguf(without, "").encode("abb"), ElementsAre(3));
}

TEST(TokenizerGguf, TreatsSpecialTokensAsTextOnRequest) {
  const Tokenizer tokenizer =
      make_tokenizer_from_gguf({.model = "llama",
                                .tokens = {"<unk>", "<s>", "<", "s", ">", "<s", "\xE2\x96\x81"},
                                .scores = {0, 0, -1, -2, -3, -4, -5},
                                .token_types = {2, 3, 1, 1, 1, 1, 1},
                                .bos = 1,
                                .unk = 0,
                                .add_bos = false},
                               "");
  EXPECT_THAT(tokenizer.encode("<s>"), ElementsAre(1));
  // The control token is not put together from its letters either.
  EXPECT_THAT(tokenizer.encode("<s>", {.parse_special = false}), ElementsAre(6, 5, 4));
}

TEST(TokenizerGguf, RefusesContradictions) {
  GgufVocab vocab = small_bpe("gpt-2");
  vocab.model = "t5";
  EXPECT_THAT(error_of(vocab), HasSubstr("'tokenizer.ggml.model' is 't5', which is not supported"));
  vocab = small_bpe("gpt-2");
  vocab.bos = 5;
  EXPECT_THAT(error_of(vocab), HasSubstr("'tokenizer.ggml.bos_token_id' is 5, but there are 5"));
  vocab = small_bpe("gpt-2");
  vocab.token_types.pop_back();
  EXPECT_THAT(error_of(vocab), HasSubstr("'tokenizer.ggml.token_type' has 4 entries"));
  vocab = small_bpe("gpt-2");
  vocab.merges = {"a c"};
  EXPECT_THAT(error_of(vocab),
              HasSubstr("tokenizer.ggml.merges: Merge 0 joins 'a' and 'c', but 'c'"));
  vocab.merges = {"ab"};
  EXPECT_THAT(error_of(vocab), HasSubstr("Entry 0 of 'tokenizer.ggml.merges' is 'ab'"));
  vocab = small_bpe("gpt-2");
  vocab.tokens[1] = "a";
  EXPECT_THAT(error_of(vocab), HasSubstr("The token 'a' has two ids, 0 and 1."));
  vocab = small_bpe("llama-bpe");
  vocab.bos.reset();
  EXPECT_THAT(error_of(vocab), HasSubstr("'tokenizer.ggml.bos_token_id' is missing"));
  vocab.model = "llama";
  EXPECT_THAT(error_of(vocab), HasSubstr("'tokenizer.ggml.scores' is missing"));
  EXPECT_THAT(error_of({.model = "gpt2"}), HasSubstr("'tokenizer.ggml.tokens' has 0 entries"));
}

}  // namespace
}  // namespace rlx
