// What holds for every tokenizer: bytes that are not UTF-8, ids out of range, streaming, long
// words, several threads; and the errors for files that contradict themselves.
#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "text/unicode.h"

namespace rlx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

Tokenizer load(const std::string& kind) {
  const std::string path = "tests/data/tokenizers/" + kind + "/tokenizer.json";
  return make_tokenizer_from_json(read_file(path), path);
}

std::string error_of(std::string_view json_text) {
  try {
    make_tokenizer_from_json(json_text, "tokenizer.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// A BPE file with the given text for some of its keys.
struct SmallFile {
  std::string vocab = R"({"a": 0, "b": 1, "ab": 2})";
  std::string merges = R"(["a b"])";
  std::string model_extra;
  std::string extra;
  std::string text() const {
    return R"({"model": {"type": "BPE", "vocab": )" + vocab + R"(, "merges": )" + merges +
           model_extra + "}" + extra + "}";
  }
};

TEST(Tokenizer, KeepsInvalidBytesWhereEveryByteHasAToken) {
  const Tokenizer tokenizer = load("bytelevel-qwen2");
  const std::string text = "ab\xFF\xFE cd \xE6\x97 ef\xC3";
  const std::vector<int32_t> ids = tokenizer.encode(text);
  EXPECT_EQ(tokenizer.decode_bytes(ids), text);
  EXPECT_EQ(tokenizer.decode(ids), "ab\uFFFD\uFFFD cd \uFFFD ef\uFFFD");
  // The bytes do not touch how their neighbours are encoded.
  EXPECT_THAT(ids, testing::IsSupersetOf(tokenizer.encode(" ef")));
}

TEST(Tokenizer, ReplacesInvalidBytesElsewhere) {
  for (const char* kind : {"bpe-byte-fallback", "unigram", "wordpiece-bert"}) {
    const Tokenizer tokenizer = load(kind);
    EXPECT_EQ(tokenizer.encode("ab \xFF cd \xE6\x97"), tokenizer.encode("ab \uFFFD cd \uFFFD"))
        << kind;
  }
}

TEST(Tokenizer, NamesAnIdOutOfRange) {
  const Tokenizer tokenizer = load("bytelevel-gpt2");
  EXPECT_EQ(tokenizer.vocab_size(), 1500);
  for (const int32_t id : {-1, 1500}) {
    try {
      tokenizer.decode(std::vector<int32_t>{5, id});
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("The token id {} is out of range", id)));
      EXPECT_THAT(error.what(), HasSubstr("1500"));
    }
    EXPECT_THROW(tokenizer.token_text(id), Error);
    EXPECT_THROW(tokenizer.is_special(id), Error);
    EXPECT_THROW(StreamDecoder(tokenizer).push(id), Error);
  }
}

TEST(Tokenizer, FindsTokensAndTheEndsOfText) {
  const Tokenizer demo = load("demo");
  EXPECT_EQ(demo.find_token("<|begin_of_text|>"), 2046);
  EXPECT_EQ(demo.find_token("no such token"), std::nullopt);
  EXPECT_EQ(demo.token_text(0), "!");
  EXPECT_TRUE(demo.is_special(2047));
  EXPECT_FALSE(demo.is_special(0));
  EXPECT_EQ(demo.bos_id(), 2046);
  EXPECT_EQ(demo.eos_id(), std::nullopt);
  EXPECT_EQ(load("unigram").eos_id(), 1);
}

TEST(Tokenizer, TakesSpecialTokensAsTextOnRequest) {
  const Tokenizer tokenizer = load("demo");
  EXPECT_THAT(tokenizer.encode("<|end_of_text|>", {.add_special = false}), ElementsAre(2047));
  const std::vector<int32_t> ids =
      tokenizer.encode("<|end_of_text|>", {.add_special = false, .parse_special = false});
  EXPECT_GT(ids.size(), 3u);
  EXPECT_EQ(tokenizer.decode(ids), "<|end_of_text|>");
}

// A word without a place to split must not cost quadratic time: that would be hours here.
TEST(Tokenizer, EncodesHugeWordsInReasonableTime) {
  const auto start = std::chrono::steady_clock::now();
  const auto encode = [](const Tokenizer& tokenizer, const std::string& unit, size_t size_bytes) {
    std::string text;
    while (text.size() < size_bytes) text += unit;
    return tokenizer.encode(text, {.add_special = false}).size();
  };
  EXPECT_GT(encode(load("bytelevel-gpt2"), "e", 1'000'000), 100'000u);
  for (const char* kind : {"bytelevel-gpt2", "bpe-byte-fallback", "unigram", "wordpiece-bert"}) {
    const Tokenizer tokenizer = load(kind);
    for (const char* unit : {"e", " ", "he", "\u65E5", "\xFF"}) encode(tokenizer, unit, 200'000);
  }
  const auto elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_LT(std::chrono::duration_cast<std::chrono::seconds>(elapsed).count(), 200);
}

TEST(Tokenizer, EncodesFromSeveralThreads) {
  const Tokenizer tokenizer = load("demo");
  const std::string text = read_file("tests/data/tokenizers/demo/cases.json");
  const std::vector<int32_t> expected = tokenizer.encode(text);
  std::vector<std::thread> threads;
  std::vector<std::vector<int32_t>> results(4);
  for (auto& result : results) {
    threads.emplace_back([&] { result = tokenizer.encode(text); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

TEST(StreamDecoder, NeverGivesHalfACharacter) {
  const Tokenizer tokenizer = load("bytelevel-gpt2");
  const std::string text = "\U0001F642 \u65E5\u672C e\u0301 \U0001F468\u200D\U0001F469";
  StreamDecoder stream(tokenizer);
  std::string streamed;
  for (const int32_t id : tokenizer.encode(text)) {
    const std::string part = stream.push(id);
    EXPECT_EQ(valid_utf8_length(part), part.size());
    streamed += part;
  }
  EXPECT_EQ(streamed, text);
  EXPECT_EQ(stream.finish(), "");
}

TEST(StreamDecoder, ReplacesWhatCannotBecomeACharacter) {
  const Tokenizer tokenizer = load("bytelevel-gpt2");
  for (const std::string text : {"\xE6\x97", "\xFF", "a\xE6\x97z", "\xE6\xE6\xE6\x97\xA5",
                                 "\xF0\x9F", "\xC3\xC3\xA9\x80\x80 x"}) {
    const std::vector<int32_t> ids = tokenizer.encode(text);
    StreamDecoder stream(tokenizer);
    std::string streamed;
    for (const int32_t id : ids) streamed += stream.push(id);
    EXPECT_EQ(streamed + stream.finish(), tokenizer.decode(ids));
  }
}

TEST(StreamDecoder, AgreesWithDecodeOverLongTexts) {
  for (const char* kind :
       {"bytelevel-gpt2", "demo", "bpe-byte-fallback", "unigram", "wordpiece-bert"}) {
    const Tokenizer tokenizer = load(kind);
    const std::vector<int32_t> ids =
        tokenizer.encode(read_file("tests/data/tokenizers/demo/cases.json") + "\xFF\xE6");
    for (const bool skip_special : {true, false}) {
      StreamDecoder stream(tokenizer, skip_special);
      std::string streamed;
      for (const int32_t id : ids) streamed += stream.push(id);
      EXPECT_EQ(streamed + stream.finish(), tokenizer.decode(ids, skip_special)) << kind;
    }
  }
}

TEST(TokenizerJson, LoadsTheSmallFile) {
  const Tokenizer tokenizer = make_tokenizer_from_json(SmallFile().text(), "");
  EXPECT_THAT(tokenizer.encode("abba"), ElementsAre(2, 1, 0));
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{2, 0}), "ab a");  // no decoder: spaces between
}

TEST(TokenizerJson, LeavesGapsBetweenIdsUnused) {
  SmallFile file;
  file.vocab = R"({"a": 0, "b": 1, "ab": 5})";
  const Tokenizer tokenizer = make_tokenizer_from_json(file.text(), "");
  EXPECT_EQ(tokenizer.vocab_size(), 6);
  EXPECT_EQ(tokenizer.token_text(3), "");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{0, 3, 5}), "a ab");
  EXPECT_EQ(tokenizer.find_token(""), std::nullopt);
}

TEST(TokenizerJson, NamesTheFileAndWhatIsNotJson) {
  EXPECT_THAT(error_of(""), HasSubstr("tokenizer.json: The text is not valid JSON at byte"));
  EXPECT_THAT(error_of("{\"model\": "), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of("{\"model\": {\"type\": \"\xFF\"}}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of("[1]"), HasSubstr("'(root)' is an array, but an object is expected"));
  EXPECT_THAT(error_of(std::string(100000, '[')), HasSubstr("nested deeper than 64 levels"));
  std::string bomb;
  for (int i = 0; i < 100000; ++i) bomb += "{\"model\":";
  EXPECT_THAT(error_of(bomb), HasSubstr("nested deeper than 64 levels"));
}

TEST(TokenizerJson, NamesMissingKeysAndWrongTypes) {
  EXPECT_THAT(error_of("{}"), HasSubstr("The key 'model' is missing."));
  EXPECT_THAT(error_of(R"({"model": 3})"), HasSubstr("'model.vocab' is missing"));
  EXPECT_THAT(error_of(R"({"model": {"type": "BPE", "vocab": 7}})"),
              HasSubstr("'model.vocab' is missing or neither"));
  EXPECT_THAT(error_of(R"({"model": {"type": "BPE", "vocab": {}, "merges": []}})"),
              HasSubstr("model.vocab: The vocabulary is empty."));
  EXPECT_THAT(error_of(R"({"model": {"type": "BPE", "vocab": {"a": 0}}})"),
              HasSubstr("'model.merges' is missing"));
  EXPECT_THAT(error_of(R"({"model": {"vocab": {"a": 0}}})"), HasSubstr("'model.type' is missing"));
  EXPECT_THAT(error_of(R"({"model": {"type": "Unigram", "vocab": {"a": 0}}})"),
              HasSubstr("'model.vocab' is an object, but Unigram has an array"));
  EXPECT_THAT(error_of(R"({"model": {"type": "Unigram", "vocab": [["a", 0], ["b"]]}})"),
              HasSubstr("Entry 1 of 'model.vocab' has fewer than two values"));
  EXPECT_THAT(error_of(R"({"model": {"type": "Unigram", "vocab": [["a", -1]], "unk_id": 1}})"),
              HasSubstr("'model.unk_id' is 1, but the vocabulary has 1 tokens"));
  EXPECT_THAT(error_of(R"({"model": {"type": "WordPiece", "vocab": {"a": 0}}})"),
              HasSubstr("The unknown token '[UNK]' is not in the vocabulary"));
  SmallFile file;
  file.model_extra = R"(, "byte_fallback": "yes")";
  EXPECT_THAT(error_of(file.text()),
              HasSubstr("'model.byte_fallback' is a string, but a boolean is expected"));
  file = {};
  file.extra = R"(, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "a"}})";
  EXPECT_THAT(error_of(file.text()), HasSubstr("The key 'pre_tokenizer.behavior' is missing."));
  file.extra = R"(, "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend"}]})";
  EXPECT_THAT(error_of(file.text()), HasSubstr("'normalizer.normalizers[0].prepend' is missing"));
}

TEST(TokenizerJson, NamesIdsAndMergesThatContradict) {
  SmallFile file;
  file.vocab = R"({"a": 0, "b": 0, "ab": 2})";
  EXPECT_THAT(error_of(file.text()),
              HasSubstr("model.vocab: The id 0 belongs to two tokens, 'a' and 'b'."));
  file.vocab = R"({"a": 0, "a": 1, "ab": 2})";
  EXPECT_THAT(error_of(file.text()), HasSubstr("The token 'a' has two ids, 0 and 1."));
  file.vocab = R"({"a": 0, "b": -1, "ab": 2})";
  EXPECT_THAT(error_of(file.text()), HasSubstr("The token 'b' has the id -1"));
  file.vocab = R"({"a": 0, "b": 99999999999, "ab": 2})";
  EXPECT_THAT(error_of(file.text()), HasSubstr("id 99999999999, but ids must be in [0, 4194304)"));
  file.vocab = R"({"a": 0, "b": 1.5, "ab": 2})";
  EXPECT_THAT(error_of(file.text()),
              HasSubstr("the value of 'b' is a number with a fraction, but an integer id"));
  file.vocab = R"({"a": 0, "b": {"c": 1}, "ab": 2})";
  EXPECT_THAT(error_of(file.text()), HasSubstr("the value of 'b' is an object"));
  file = {};
  file.merges = R"(["a b", "a c"])";
  EXPECT_THAT(error_of(file.text()),
              HasSubstr("model.merges: Merge 1 joins 'a' and 'c', but 'c' is"));
  file.merges = R"([["b", "a"]])";
  EXPECT_THAT(error_of(file.text()), HasSubstr("but 'ba' is not in the vocabulary"));
  file.merges = R"(["ab"])";
  EXPECT_THAT(error_of(file.text()), HasSubstr("Entry 0 of 'model.merges' has one token"));
  file.merges = R"([["a", "b", "c"]])";
  EXPECT_THAT(error_of(file.text()), HasSubstr("Entry 0 of 'model.merges' has a third string"));
  file.merges = R"([3])";
  EXPECT_THAT(error_of(file.text()), HasSubstr("Entry 0 of 'model.merges' has a number"));
  file = {};
  file.extra = R"(, "added_tokens": [{"id": 7, "content": "a"}])";
  EXPECT_THAT(error_of(file.text()),
              HasSubstr("added_tokens[0]: The token 'a' has two ids, 0 and 7"));
  file.extra = R"(, "added_tokens": [{"id": 0, "content": "x"}])";
  EXPECT_THAT(error_of(file.text()), HasSubstr("The id 0 belongs to two tokens"));
  file.extra =
      R"(, "post_processor": {"type": "BertProcessing", "cls": ["x", 0], "sep": ["y", 9]})";
  EXPECT_THAT(error_of(file.text()), HasSubstr("'post_processor.sep[1]' is the id 9"));
}

TEST(TokenizerJson, RefusesByNameWhatItDoesNotKnow) {
  EXPECT_THAT(error_of(R"({"model": {"type": "WordLevel", "vocab": {"a": 0}}})"),
              HasSubstr("the model 'WordLevel', which is not supported. Supported: BPE, Unigram"));
  const auto message = [](const std::string& extra) {
    SmallFile file;
    file.extra = extra;
    return error_of(file.text());
  };
  EXPECT_THAT(message(R"(, "normalizer": {"type": "Odd"})"),
              HasSubstr("'normalizer' has the normalizer 'Odd', which is not supported"));
  EXPECT_THAT(message(R"(, "pre_tokenizer": {"type": "UnicodeScripts"})"),
              HasSubstr("the pre-tokenizer 'UnicodeScripts'"));
  EXPECT_THAT(message(R"(, "decoder": {"type": "CTC"})"), HasSubstr("the decoder 'CTC'"));
  EXPECT_THAT(message(R"(, "post_processor": {"type": "Odd"})"),
              HasSubstr("the post-processor 'Odd'"));
  EXPECT_THAT(message(R"(, "pre_tokenizer": {"type": "Split", "behavior": "Isolated",
                         "pattern": {"Regex": "[a-z&&[^b]]"}})"),
              HasSubstr("an intersection of classes"));
  EXPECT_THAT(message(R"(, "pre_tokenizer": {"type": "Split", "behavior": "Isolated",
                         "pattern": {"Regex": "(a"}})"),
              HasSubstr("cannot be compiled"));
  SmallFile file;
  file.model_extra = R"(, "dropout": 0.1)";
  EXPECT_THAT(error_of(file.text()), HasSubstr("'model.dropout' has random dropout"));
}

}  // namespace
}  // namespace rlx
