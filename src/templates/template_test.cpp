#include "templates/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "templates/builtin.h"
#include "templates/json.h"

namespace rlx::templates {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;

constexpr char kFolder[] = "tests/data/chat_templates/";
constexpr std::time_t kNow = 1764590400;  // what the expected texts were made with

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string render(const std::string& source, const std::string& context = "{}",
                   const Limits& limits = {}) {
  return Template(source, "test").render(read_json(context, "context"), kNow, limits);
}

std::string error_of(const std::string& source, const Limits& limits = {}) {
  try {
    return "no error: " + render(source, R"({"x": {"a": [1]}})", limits);
  } catch (const Error& error) {
    return error.what();
  }
}

class Expected : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    tzset();
  }

  // Compares one case; an error in Python must be one here, and the other way round.
  void check(const std::string& source, const std::string& context, const ordered_json& expected,
             const std::string& what) {
    try {
      const std::string text = render(source, context);
      if (expected.contains("error")) {
        ADD_FAILURE() << what << "\n  gives: " << text
                      << "\n  but Python says: " << expected["error"];
      } else {
        EXPECT_EQ(text, expected["expected"].get<std::string>()) << what;
      }
    } catch (const Error& error) {
      EXPECT_TRUE(expected.contains("error")) << what << "\n  fails: " << error.what();
      EXPECT_THAT(error.what(), HasSubstr("test: line ")) << what;
    }
  }
};

TEST_F(Expected, TemplatesOfFamiliesGiveWhatJinjaGives) {
  const auto data = ordered_json::parse(read_file(std::string(kFolder) + "families.json"));
  ASSERT_GT(data["cases"].size(), 200u);
  for (const auto& expected : data["cases"]) {
    const auto file = expected["template"].get<std::string>();
    const auto name = expected["context"].get<std::string>();
    check(read_file(kFolder + file), data["contexts"][name].dump(), expected, file + ": " + name);
  }
}

TEST_F(Expected, SnippetsGiveWhatJinjaGives) {
  const auto data = ordered_json::parse(read_file(std::string(kFolder) + "snippets.json"));
  ASSERT_GT(data["cases"].size(), 150u);
  for (const auto& expected : data["cases"]) {
    const auto source = expected["source"].get<std::string>();
    check(source, data["context"].dump(), expected, source);
  }
}

TEST(Template, NamesWhatItDoesNotSupportAndWhere) {
  EXPECT_EQ(error_of("a\n\n{% include 'x' %}"),
            "test: line 3: The statement 'include' is not supported.");
  EXPECT_EQ(error_of("{{ x | urlize }}"), "test: line 1: The filter 'urlize' is not supported.");
  EXPECT_EQ(error_of("\n{{ x is escaped }}"), "test: line 2: The test 'escaped' is not supported.");
  EXPECT_EQ(error_of("{{ f(*x) }}"),
            "test: line 1: Arguments that are unpacked with '*' are not supported.");
  EXPECT_THAT(error_of("{% macro m() %}{{ varargs }}{% endmacro %}"), HasSubstr("'varargs'"));
  EXPECT_EQ(error_of("{{ x.update({}) }}"),
            "test: line 1: The method 'update' changes its value, which a template must not.");
  EXPECT_THAT(error_of("{% set ns = namespace() %}{% set ns.f = range %}"),
              HasSubstr("only plain values are supported"));
}

TEST(Template, NamesTheLineOfAFaultWhileItRuns) {
  EXPECT_EQ(error_of("a\n{% if true %}\n{{ nothing.at.all }}\n{% endif %}"),
            "test: line 3: 'nothing' is undefined.");
  EXPECT_EQ(error_of("\n{{ raise_exception('Roles!') }}"),
            "test: line 2: The template refuses this conversation: Roles!");
}

TEST(Template, NamesTheLineOfABrokenGrammar) {
  EXPECT_EQ(error_of("\n\n{{ 1 + }}"),
            "test: line 3: '}}' is found, but an expression is expected.");
  EXPECT_THAT(error_of("{% if x %}\n\n"), HasSubstr("has no 'endif' at its end"));
  EXPECT_THAT(error_of("\n{% for a in x %}{% endif %}"), HasSubstr("line 2"));
}

TEST(Template, IsBoundedInWork) {
  const std::string loops =
      "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}"
      "{% endfor %}{% endfor %}{% endfor %}";
  EXPECT_THAT(error_of(loops, {.max_work = 1000}), HasSubstr("more than 1000 steps"));
}

TEST(Template, IsBoundedInMemory) {
  EXPECT_THAT(error_of("{{ 'a' * 99999999 }}"), HasSubstr("longer than"));
  EXPECT_THAT(error_of("{% set n = namespace(s='ab') %}{% for i in range(60) %}"
                       "{% set n.s = n.s ~ n.s %}{% endfor %}"),
              HasSubstr("longer than"));
  EXPECT_THAT(error_of("{% set n = namespace(s=[1]) %}{% for i in range(60) %}"
                       "{% set n.s = [n.s, n.s] %}{% endfor %}"),
              HasSubstr("more than"));
  EXPECT_THAT(error_of("{% set n = namespace(s=[1]) %}{% for i in range(600) %}"
                       "{% set n.s = [n.s] %}{% endfor %}"),
              HasSubstr("deeper than 100 levels"));
  EXPECT_THAT(error_of("{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
                       {.max_output_bytes = 5000}),
              HasSubstr("writes more than 5000 bytes"));
}

TEST(Template, IsBoundedInDepth) {
  EXPECT_THAT(error_of("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
              HasSubstr("nested deeper than 800 levels"));
  EXPECT_THAT(error_of("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}"),
              HasSubstr("nested deeper than 100 levels"));
  std::string chain = "{{ 1";
  for (int i = 0; i < 5000; ++i) chain += " + 1";
  EXPECT_THAT(error_of(chain + " }}"), HasSubstr("more than 400 levels"));
  std::string nots = "{{ ";
  for (int i = 0; i < 5000; ++i) nots += "not ";
  EXPECT_THAT(error_of(nots + "1 }}"), HasSubstr("nested deeper"));
  std::string branches = "{% if 0 %}";
  for (int i = 0; i < 5000; ++i) branches += "{% elif 0 %}";
  EXPECT_THAT(error_of(branches + "{% endif %}"), HasSubstr("more than 300 branches"));
  EXPECT_THAT(error_of(std::string(2 << 20, ' ')), HasSubstr("at most 1048576"));
}

TEST(Template, RendersAgainAndAgain) {
  const Template chat("{{ a }}{% set a = 2 %}{{ a }}", "test");
  const Value context = read_json(R"({"a": 1})", "context");
  EXPECT_EQ(chat.render(context), "12");
  EXPECT_EQ(chat.render(context), "12");
}

TEST(BuiltinTemplate, WritesTheShapeOfItsModels) {
  const std::string context = R"({"messages": [{"role": "system", "content": "Be brief."},
      {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"},
      {"role": "user", "content": "Bye"}],
      "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>"})";
  const auto write = [&](std::string_view name) {
    return render(std::string(find_builtin_template(name)), context);
  };
  EXPECT_EQ(write("chatml"),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\nHello<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(write("gemma"),
            "<s><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello"
            "<end_of_turn>\n<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n");
  EXPECT_EQ(write("llama-2"),
            "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Hello </s><s>[INST] Bye [/INST]");
  EXPECT_EQ(write("llama-3"),
            "<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nHello<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(write("mistral"), "<s>[INST] Be brief.\n\nHi [/INST] Hello</s>[INST] Bye [/INST]");
  EXPECT_EQ(write("phi-3"),
            "<|system|>\nBe brief.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\nHello<|end|>\n"
            "<|user|>\nBye<|end|>\n<|assistant|>\n");
  EXPECT_EQ(write("plain"), "<s>Be brief.\nUser: Hi\nAssistant: Hello\nUser: Bye\nAssistant:");
  EXPECT_EQ(write("zephyr"),
            "<|system|>\nBe brief.</s>\n<|user|>\nHi</s>\n<|assistant|>\nHello</s>\n"
            "<|user|>\nBye</s>\n<|assistant|>\n");
  EXPECT_EQ(list_builtin_templates().size(), 8u);
  EXPECT_TRUE(find_builtin_template("nothing").empty());
}

TEST(ReadJson, NamesWhereItIsNotJson) {
  EXPECT_THROW(read_json("[1, ", "messages"), Error);
  EXPECT_THROW(read_json("[18446744073709551615]", "messages"), Error);
  EXPECT_THROW(read_json(std::string(5000, '['), "messages"), Error);
  EXPECT_EQ(write_json(read_json(R"({"b": [1, 2.5, null, true, "x"], "a": {}})", "m"), {}),
            R"({"b": [1, 2.5, null, true, "x"], "a": {}})");
}

}  // namespace
}  // namespace rlx::templates
