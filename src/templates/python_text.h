// Strings as Python treats them, over UTF-8: positions count characters, white space is Unicode's,
// and numbers print as Python prints them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::templates {

// The parts point into the text, which must outlive them.
std::vector<std::string_view> split_characters(std::string_view text);
std::vector<std::string_view> split_characters(std::string&& text) = delete;
int64_t count_characters(std::string_view text);

// The shortest text that reads back as the number: "1.0", "1e+16", "nan".
std::string repr_of_float(double value);
// In quotes, with escapes.
std::string repr_of_string(std::string_view text);

// Without the characters of `set` at its ends; without a set: white space.
std::string_view strip(std::string_view text, std::optional<std::string_view> set, bool left,
                       bool right);

// str.split and str.rsplit. Without a separator: runs of white space, none empty. `max_splits` < 0:
// no limit. Precondition: the separator is not empty.
std::vector<std::string> split(std::string_view text, std::optional<std::string_view> separator,
                               int64_t max_splits);
std::vector<std::string> split_from_right(std::string_view text,
                                          std::optional<std::string_view> separator,
                                          int64_t max_splits);
// str.splitlines; with `keep_ends` the line breaks stay.
std::vector<std::string> split_lines(std::string_view text, bool keep_ends);

// `count` < 0: all. An empty `from` is found before every character and at the end.
std::string replace(std::string_view text, std::string_view from, std::string_view to,
                    int64_t count);

// One character for one: of those that Unicode maps to several (the German sharp s), the single
// mapping, which may be the character itself.
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string capitalize(std::string_view text);
// str.title: every run of letters begins large.
std::string title_runs(std::string_view text);
// The filter `title`: words begin after white space and - ( { [ < only.
std::string title_words(std::string_view text);

bool is_letters_digits(std::string_view text, bool allow_letters, bool allow_digits);
bool has_case(std::string_view text, bool upper);  // str.isupper and str.islower

}  // namespace rlx::templates
