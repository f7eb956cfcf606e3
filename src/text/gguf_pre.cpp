#include "text/gguf_pre.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "text/pre_tokenizer.h"

namespace rlx {
namespace {

constexpr std::string_view kGpt2 = kGpt2Pattern;
// Han, and the kana blocks.
constexpr std::string_view kHanAndKana =
    R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)";
constexpr std::string_view kEastAsian = R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)";
// Letters that have case.
constexpr std::string_view kCasedLetters =
    R"(\s?[A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293})"
    R"(\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a})"
    R"(\x{38c}\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556})"
    R"(\x{10a0}-\x{10c5}\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf})"
    R"(\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d})"
    R"(\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d})"
    R"(\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4})"
    R"(\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4})"
    R"(\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}\x{2124})"
    R"(\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f})"
    R"(\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4})"
    R"(\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f})"
    R"(\x{a771}-\x{a787}\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17})"
    R"(\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3})"
    R"(\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df})"
    R"(\x{1e900}-\x{1e943}]+)";
constexpr std::string_view kNotPunctuation =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{964}\x{6d4}\x{60c})]+)";

constexpr std::string_view kGpt2Patterns[] = {kGpt2};
constexpr std::string_view kGpt2Names[] = {
    "gpt-2",    "phi-2",   "jina-es",  "jina-de",        "jina-v2-es", "jina-v2-de",
    "gigachat", "a.x-4.0", "mellum",   "modern-bert",    "exaone4",    "mpt",
    "olmo",     "jais",    "trillion", "granite-docling"};

constexpr std::string_view kLlama3Patterns[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kLlama3Names[] = {"llama-bpe", "llama3",    "llama-v3",
                                             "falcon3",   "falcon-h1", "pixtral",
                                             "midm-2.0",  "lfm2",      "jina-v5-nano"};
constexpr std::string_view kDbrxNames[] = {"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"};

constexpr std::string_view kQwen2Patterns[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kQwen2Names[] = {"qwen2"};
constexpr std::string_view kLikeQwen2Names[] = {"deepseek-r1-qwen", "stablelm2",  "megrez",
                                                "hunyuan",          "solar-open", "kormo",
                                                "f2llmv2",          "grok-2"};

constexpr std::string_view kQwen35Patterns[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+)"
    R"([\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kQwen35Names[] = {"qwen35"};

constexpr std::string_view kDigitsPatterns[] = {R"(\p{N})", kGpt2};
constexpr std::string_view kDigitsNames[] = {"smollm",    "starcoder", "refact",     "command-r",
                                             "codeshell", "exaone",    "minerva-7b", "mellum2"};

constexpr std::string_view kDeepseekCoderPatterns[] = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                                       kEastAsian, R"(\p{N})"};
constexpr std::string_view kDeepseekCoderNames[] = {"deepseek-coder"};

constexpr std::string_view kDeepseekLlmPatterns[] = {
    R"([\r\n])",
    kCasedLetters,
    R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)",
    R"(\s+$)",
    kEastAsian,
    R"(\p{N}+)"};
constexpr std::string_view kDeepseekLlmNames[] = {"deepseek-llm"};

constexpr std::string_view kDeepseekV3Patterns[] = {
    R"(\p{N}{1,3})", kHanAndKana,
    R"re([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)re"
    R"re(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
constexpr std::string_view kDeepseekV3Names[] = {"deepseek-v3", "hunyuan-dense", "joyai-llm",
                                                 "hy_v4"};

constexpr std::string_view kFalconPatterns[] = {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2,
                                                R"([0-9][0-9][0-9])"};
constexpr std::string_view kFalconNames[] = {"falcon"};

constexpr std::string_view kBloomPatterns[] = {kNotPunctuation};
constexpr std::string_view kBloomNames[] = {"bloom", "gpt3-finnish", "poro-chat"};
constexpr std::string_view kVikingPatterns[] = {kNotPunctuation, R"(\p{N})"};
constexpr std::string_view kVikingNames[] = {"viking"};

constexpr std::string_view kTekkenPatterns[] = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kTekkenNames[] = {"tekken"};

constexpr std::string_view kGpt4oPatterns[] = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kGpt4oNames[] = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"};

// Words exclude Han, which the published pattern says by intersecting classes.
constexpr std::string_view kKimiPatterns[] = {
    R"(\p{Han}+)"
    R"(|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*)"
    R"((?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+)"
    R"((?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kKimiNames[] = {"kimi-k2"};

constexpr std::string_view kBailingPatterns[] = {
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
    R"(|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr std::string_view kBailingNames[] = {"bailingmoe", "bailingmoe2", "llada-moe"};

constexpr std::string_view kSeedCoderPatterns[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kSeedCoderNames[] = {"seed-coder"};

constexpr std::string_view kSuperbpePatterns[] = {R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"};
constexpr std::string_view kSuperbpeNames[] = {"superbpe"};

constexpr std::string_view kExaoneMoePatterns[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr std::string_view kExaoneMoeNames[] = {"exaone-moe"};

// What files have that were made before the key was agreed on.
constexpr std::string_view kDefaultPatterns[] = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)",
                                                 R"([0-9][0-9][0-9])"};
constexpr std::string_view kDefaultNames[] = {"default"};

constexpr GgufPre kTable[] = {
    {kGpt2Names, kGpt2Patterns},
    {.names = kLlama3Names, .patterns = kLlama3Patterns, .ignore_merges = true, .add_bos = true},
    {kDbrxNames, kLlama3Patterns},
    {.names = kQwen2Names, .patterns = kQwen2Patterns, .nfc = true},
    {kLikeQwen2Names, kQwen2Patterns},
    {.names = kQwen35Names, .patterns = kQwen35Patterns, .nfc = true},
    {kDigitsNames, kDigitsPatterns},
    {kDeepseekCoderNames, kDeepseekCoderPatterns},
    {kDeepseekLlmNames, kDeepseekLlmPatterns},
    {kDeepseekV3Names, kDeepseekV3Patterns},
    {kFalconNames, kFalconPatterns},
    {kBloomNames, kBloomPatterns},
    {kVikingNames, kVikingPatterns},
    {.names = kTekkenNames, .patterns = kTekkenPatterns, .ignore_merges = true, .add_bos = true},
    {kGpt4oNames, kGpt4oPatterns},
    {kKimiNames, kKimiPatterns},
    {kBailingNames, kBailingPatterns},
    {kSeedCoderNames, kSeedCoderPatterns},
    {kSuperbpeNames, kSuperbpePatterns},
    {kExaoneMoeNames, kExaoneMoePatterns},
    {kDefaultNames, kDefaultPatterns},
};

}  // namespace

std::span<const GgufPre> gguf_pre_table() { return kTable; }

std::string known_gguf_pre_names() {
  std::vector<std::string_view> names;
  for (const GgufPre& pre : kTable) names.insert(names.end(), pre.names.begin(), pre.names.end());
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

const GgufPre& find_gguf_pre(std::string_view name) {
  for (const GgufPre& pre : kTable) {
    if (std::find(pre.names.begin(), pre.names.end(), name) != pre.names.end()) return pre;
  }
  throw_error(
      ErrorCode::kUnsupported,
      "The key 'tokenizer.ggml.pre' is '{}', which names no known pre-tokenizer. Known: {}.", name,
      known_gguf_pre_names());
}

}  // namespace rlx
