#include "templates/builtin.h"

namespace rlx::templates {
namespace {

struct Entry {
  std::string_view name, source;
};

constexpr Entry kTemplates[] = {
    {"chatml", R"({%- for message in messages %}
{{- '<|im_start|>' ~ message.role ~ '\n' ~ message.content ~ '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})"},
    {"gemma", R"({{- bos_token }}
{%- set ns = namespace(lead='') %}
{%- for message in messages %}
{%- if message.role == 'system' %}{% set ns.lead = message.content | trim ~ '\n\n' %}
{%- else %}
{{- '<start_of_turn>' ~ ('model' if message.role == 'assistant' else message.role) ~ '\n' }}
{{- ns.lead ~ message.content | trim ~ '<end_of_turn>\n' }}
{%- set ns.lead = '' %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %})"},
    {"llama-2", R"({%- set ns = namespace(lead='') %}
{%- for message in messages %}
{%- if message.role == 'system' %}
{%- set ns.lead = '<<SYS>>\n' ~ message.content ~ '\n<</SYS>>\n\n' %}
{%- elif message.role == 'user' %}
{{- bos_token ~ '[INST] ' ~ ns.lead ~ message.content | trim ~ ' [/INST]' }}
{%- set ns.lead = '' %}
{%- else %}{{ ' ' ~ message.content | trim ~ ' ' ~ eos_token }}
{%- endif %}
{%- endfor %})"},
    {"llama-3", R"({{- bos_token }}
{%- for message in messages %}
{{- '<|start_header_id|>' ~ message.role ~ '<|end_header_id|>\n\n' }}
{{- message.content | trim ~ '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %})"},
    {"mistral", R"({{- bos_token }}
{%- set ns = namespace(lead='') %}
{%- for message in messages %}
{%- if message.role == 'system' %}{% set ns.lead = message.content ~ '\n\n' %}
{%- elif message.role == 'user' %}
{{- '[INST] ' ~ ns.lead ~ message.content ~ ' [/INST]' }}
{%- set ns.lead = '' %}
{%- else %}{{ ' ' ~ message.content | trim ~ eos_token }}
{%- endif %}
{%- endfor %})"},
    {"phi-3", R"({%- for message in messages %}
{{- '<|' ~ message.role ~ '|>\n' ~ message.content ~ '<|end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %})"},
    {"plain", R"({{- bos_token }}
{%- for message in messages %}
{{- (message.role | capitalize ~ ': ' if message.role != 'system' else '') }}
{{- message.content | trim ~ '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ 'Assistant:' }}{% endif %})"},
    {"zephyr", R"({%- for message in messages %}
{{- '<|' ~ message.role ~ '|>\n' ~ message.content ~ eos_token ~ '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %})"},
};

}  // namespace

std::string_view find_builtin_template(std::string_view name) {
  for (const Entry& entry : kTemplates) {
    if (entry.name == name) return entry.source;
  }
  return {};
}

std::vector<std::string> list_builtin_templates() {
  std::vector<std::string> names;
  for (const Entry& entry : kTemplates) names.emplace_back(entry.name);
  return names;
}

}  // namespace rlx::templates
