#!/usr/bin/env python3
"""Renders the templates of tests/data/chat_templates with Python's jinja2 and writes what it says.

The environment is the one that chat templates are written for: sandboxed, with trim_blocks,
lstrip_blocks, loop controls, the 'generation' block, raise_exception, strftime_now and a tojson that
keeps characters as they are. Writes families.json (whole templates, each with several conversations)
and snippets.json (one construct each); tests compare our interpreter with both. Needs jinja2.

usage: tests/templates/make_expected.py
"""

import datetime
import json
import os

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

DATA = os.path.join(os.path.dirname(__file__), "..", "data", "chat_templates")
NOW = 1764590400  # noon of 1 December 2025, UTC


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_text")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _text(self, caller):
        return caller()


def make_environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    def strftime_now(form):
        return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).strftime(form)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    return environment


def say(role, content, **more):
    return {"role": role, "content": content, **more}


TOOLS = [
    {"type": "function", "function": {
        "name": "find_weather", "description": "Says the weather of a \"place\" <now>.",
        "parameters": {"type": "object", "properties": {
            "place": {"type": "string", "description": "A town, such as K\u00f6ln"},
            "unit": {"type": "string", "enum": ["celsius", "kelvin"], "default": "celsius"},
            "days": {"type": "array", "items": {"type": "integer"}, "nullable": True},
            "where": {"type": ["string", "null"]},
            "box": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
            "any": {"oneOf": [{"type": "string", "default": "a"},
                              {"type": "array", "items": {"type": "string"}}]},
            "deep": {"type": "array", "items": {"type": "object"}},
        }, "required": ["place"]},
        "return": {"type": "string"}}},
    {"type": "function", "function": {"name": "tell_time", "description": "Says the time.",
                                      "parameters": {"type": "object", "properties": {}}}},
]
CALL = {"id": "call12345", "type": "function",
        "function": {"name": "find_weather",
                     "arguments": {"place": "K\u00f6ln & <B>", "days": [1, 2.5, None, True]}}}
CONVERSATIONS = {
    "one": [say("user", "Hello there")],
    "system": [say("system", "Be brief."), say("user", "  Who are you?\n")],
    "turns": [say("system", "Be brief."), say("user", "Hi"), say("assistant", " Hello! "),
              say("user", "Caf\u00e9 \u65e5\u672c \U0001f600 'quoted' \"twice\" \\ back")],
    "answered": [say("user", "Hi"), say("assistant", "<think>\nShort.\n</think>\n\nHello!")],
    "thinking": [say("user", "1 + 1?"), say("assistant", "2", reasoning_content="Easy.\n",
                                            thinking="Easy.")],
    "wrong order": [say("assistant", "I begin"), say("user", "No")],
    "parts": [say("user", [{"type": "text", "text": " look "}, {"type": "image"}])],
    "empty": [],
}
TOOL_CONVERSATIONS = {
    "question": [say("user", "Weather?")],
    "call": [say("system", "Use tools."), say("user", "Weather?"),
             say("assistant", None, tool_calls=[CALL], thinking="I need the tool.")],
    "answer": [say("user", "Weather?"), say("assistant", "", tool_calls=[CALL]),
               say("tool", "{\"sky\": \"grey\"}", tool_call_id="call12345", name="find_weather")],
    "whole": [say("user", "Weather?"), say("assistant", "I look.", tool_calls=[CALL]),
              say("tool", "grey", tool_call_id="call12345"),
              say("tool", "cold", tool_call_id="call12345"),
              say("assistant", "Grey and cold."), say("user", "Thanks")],
    "two calls": [say("user", "Weather?"), say("assistant", None, tool_calls=[CALL, CALL])],
}


def family_contexts():
    for name, messages in CONVERSATIONS.items():
        for prompt in (True, False):
            yield (f"{name}, {'prompt' if prompt else 'whole'}",
                   {"messages": messages, "add_generation_prompt": prompt})
    for name, messages in TOOL_CONVERSATIONS.items():
        yield f"tools, {name}", {"messages": messages, "tools": TOOLS,
                                 "add_generation_prompt": True}
    yield "no thinking", {"messages": CONVERSATIONS["turns"], "add_generation_prompt": True,
                          "enable_thinking": False, "reasoning_effort": "low", "tools_first": False,
                          "tools": TOOLS, "date": "today"}


SNIPPETS = [
    # Output of every kind of value.
    "{{ none }} {{ true }} {{ 1 }} {{ -2.50 }} {{ 1e20 }} {{ 1e-7 }} {{ 0.1 + 0.2 }} {{ 3.0 }} {{ x }}",
    "{{ [1, 'a', \"it's\", none, true, 1.0] }} {{ (1,) }} {{ () }} {{ (1, 2) }} {{ {} }} {{ {'a': [1]} }}",
    "{{ 'tab\\t nl\\n quote\\' \\\\ \\x41 \\u00e9' }} {{ ['\\n\\t\\'\\\\'] }}",
    "{{ 'a' 'b' \"c\" }} {{ 1_000 }} {{ 1.5e3 }} {{ missing }}|",
    # Arithmetic.
    "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 4 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }}",
    "{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1 + 2 * 3 - 4 }} {{ (1 + 2) * 3 }} {{ -2 ** 2 }} {{ +3 }} {{ 2 ** 3 ** 2 }}",
    "{{ 'ab' * 3 }} {{ 2 * [1, 2] }} {{ [1] + [2] }} {{ (1,) + (2,) }} {{ true + 1 }} {{ 'a' + 'b' }}",
    "{{ 1 ~ 'a' ~ none ~ 2.0 ~ [1] }}",
    "{{ 1 / 0 }}", "{{ 1 + 'a' }}", "{{ 'a' + 1 }}", "{{ none + 1 }}", "{{ missing + 1 }}", "{{ -'a' }}",
    # Comparison and logic.
    "{{ 1 < 2 }} {{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }}",
    "{{ 1 != 2 }} {{ [1] == (1,) }} {{ {'a': 1} == {'a': 1.0} }} {{ none == missing }} {{ missing == gone }}",
    "{{ 'a' in 'abc' }} {{ 'a' not in ['a'] }} {{ 'k' in {'k': 1} }} {{ 2 in (1, 2) }} {{ 1 in missing }}",
    "{{ 1 and 2 }} {{ 0 or 'x' }} {{ not '' }} {{ not [0] }} {{ 0 and x or 'y' }} {{ not 1 == 2 }}",
    "{{ 'yes' if 1 else 'no' }} {{ 'yes' if 0 else 'no' }} {{ 'yes' if 0 }}| {{ 1 if 0 else 2 if 0 else 3 }}",
    "{{ 1 < 'a' }}", "{{ none < 1 }}", "{{ 1 in 'a' }}", "{{ 1 in none }}",
    # Items, attributes, slices.
    "{{ x.a }} {{ x['b'] }} {{ x.missing }}| {{ x['c'][-1] }} {{ x.c.0 }} {{ x.c[9] }}| {{ 'abc'[1] }} {{ 'abc'[-1] }}",
    "{{ x.get('a') }} {{ x.get('z') }} {{ x.get('z', 5) }} {{ x.keys() | list }} {{ x.values() | list }}",
    "{{ l[1:] }} {{ l[:-1] }} {{ l[::-1] }} {{ l[::2] }} {{ l[1:3] }} {{ l[-2:] }} {{ l[5:] }} {{ l[3:1:-1] }} {{ 'h\u00e9llo'[1:3] }}",
    "{{ l[-100:2] }} {{ l[100::-1] }} {{ l[:-100:-1] }} {{ (1, 2, 3)[1:] }} {{ 'abc'[::-1] }} {{ l[none:2] }}",
    "{{ missing.a }}", "{{ missing['a'] }}", "{{ none.a }}|{{ (1).b }}|", "{{ l['a':] }}", "{{ x[1:] }}", "{{ l[::0] }}",
    "{{ {'items': 1}['items'] }} {{ {'items': 1}.items() | list }} {{ {1: 'a', 'b': 2}[1] }}",
    # Statements.
    "{% set a = 1 %}{% set b, c = 2, [3] %}{{ a }}{{ b }}{{ c }}{% set t = 1, %}{{ t }}",
    "{% set a %}text {{ l[0] }}{% endset %}[{{ a }}]{% set b | upper | trim %}  mixed Case {% endset %}[{{ b }}]",
    "{% set ns = namespace(a=1, b='x') %}{% for i in l %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}",
    "{% set a = 1 %}{% for i in l %}{{ a }}{% set a = i %}{{ a }} {% endfor %}{{ a }}",
    "{% if false %}{% set a = 1 %}{% endif %}{{ a is defined }} {% if true %}{% set b = 1 %}{% endif %}{{ b }}",
    "{% if a %}1{% elif l %}2{% else %}3{% endif %}{% if a %}1{% elif b %}2{% else %}3{% endif %}{% if a %}1{% endif %}",
    "{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for i in l %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {{ loop.cycle('a', 'b') }} {{ loop.changed(i > 2) }};{% endfor %}",
    "{% for k, v in x.items() %}{{ k }}={{ v }};{% endfor %}{% for k in x %}{{ k }}{% endfor %}{% for c in 'h\u00e9y' %}{{ c }}.{% endfor %}",
    "{% for i in [] %}{{ i }}{% else %}none{% endfor %}{% for i in missing %}{{ i }}{% else %}undefined{% endfor %}",
    "{% for i in l if i % 2 == 1 %}{{ loop.index }}:{{ i }}/{{ loop.length }} {% else %}no{% endfor %}",
    "{% for i in l %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3)), (4, (5, 6))] %}{{ a }}{{ b }}{{ c }} {% endfor %}",
    "{% for i in tree recursive %}{{ i.n }}@{{ loop.depth }}{% if i.c %}({{ loop(i.c) }}){% endif %}{% endfor %}",
    "{% for i in range(3) %}{% for j in range(2) %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}",
    "{% for i in none %}{% endfor %}", "{% for i in 5 %}{% endfor %}", "{% for a, b in [1] %}{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{% endfor %}", "{{ loop }}|", "{% for i in [1] %}{{ loop([]) }}{% endfor %}",
    "{{ range(5) | list }} {{ range(1, 4) | list }} {{ range(5, 0, -2) | list }} {{ range(0) | list }}",
    "{% macro m(a, b=2, c='x') %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, c=3) }} {{ m(1, 2, 3) }} {{ m() }}",
    "{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(3) }}{{ m(2) | length }}",
    "{% macro m() %}{{ g }}{% endmacro %}{% set g = 'late' %}{{ m() }}",
    "{% macro box(t) %}<{{ t }}>{{ caller() }}</>{% endmacro %}{% call box('a') %}in {{ l[0] }}{% endcall %}",
    "{% macro each(xs) %}{% for x in xs %}{{ caller(x) }};{% endfor %}{% endmacro %}{% call(i) each(l) %}{{ i * 2 }}{% endcall %}",
    "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}",
    "{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}{{ m(1) }}{{ m.name }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=1) }}", "{{ l() }}", "{{ missing() }}",
    "{% filter upper %}a {{ l[0] }} b{% endfilter %} {% filter replace('a', 'b') | upper %}aba{% endfilter %}",
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}",
    "{% generation %}text {{ l[0] }}{% endgeneration %}|",
    # White space.
    "a\n  {% if true %}\n  b\n  {% endif %}\nc\n", "a\n  {%- if true -%}\n  b\n  {%- endif -%}\nc", "a  {{- 1 -}}  b",
    "a\n  {%+ if true %}\n  b\n  {%+ endif %}\nc", "{% if true +%}\nb{% endif %}", "  {# note #}\n  x {# two #} y\n\n",
    "a\r\nb\rc\n{% raw %}{{ x }} {% y %}{% endraw %}\nd", "{% raw -%}  a {%- endraw %}  b", "x\n\n", "x\n", "\n\n{{ 1 }}\n\n",
    "{{ 1 }}\n{{ 2 }}\n  {% set a = 1 %}  \n{{ a }}", "{% set a = 1 %}{% set b = 2 %}\n\n  {{ a }}", "{#- a -#}  b  {#- c #}",
    "{{ {'a': {'b': 1}}['a']['b'] }}{{'}}'}}{{ \"{%\" }}", "\t{% if true %}\t\nx{% endif %}",
    # Filters.
    "{{ '  a b ' | trim }}|{{ 'xxaxx' | trim('x') }} {{ 'aB' | upper }} {{ 'aB' | lower }} {{ 'hELLO wORLD' | capitalize }}",
    "{{ 'hello wORLD-foo (bar)' | title }} {{ \"they're bill's\" | title }} {{ '\u00e9t\u00e9' | upper }} {{ '\u00c9T\u00c9' | lower }}",
    "{{ l | length }} {{ 'h\u00e9' | length }} {{ x | count }} {{ missing | length }} {{ l | first }} {{ l | last }} {{ [] | first }}|",
    "{{ l | join(', ') }} {{ l | join }} {{ ['a', none] | join('-') }} {{ 'abc' | join('.') }} {{ [x] | join('|', attribute='a') }}",
    "{{ missing | default('d') }} {{ '' | default('d') }} {{ '' | default('d', true) }} {{ none | d(1) }} {{ x.z | default }}|",
    "{{ 'aXbX' | replace('X', 'y') }} {{ 'aXbX' | replace('X', 'y', 1) }} {{ 12 | replace(1, 3) }} {{ 'ab' | replace('', '-') }}",
    "{{ x | tojson }} {{ x | tojson(indent=2) }} {{ [] | tojson(indent=2) }} {{ l | tojson(separators=(',', ':')) }}",
    "{{ '<\u00e9\"\\n\\u0001\\\\/>' | tojson }} {{ '\u00e9\U0001f600' | tojson(ensure_ascii=true) }} {{ {'b': 1, 'a': [1.0, none, true]} | tojson(sort_keys=true) }}",
    "{{ {1: 'a', none: 2, true: 3} | tojson }} {{ (1, 2) | tojson }} {{ 1e16 | tojson }} {{ 1.5 | tojson }}",
    "{{ missing | tojson }}", "{{ range | tojson }}",
    "{{ 'a\nb\n\nc' | indent }} {{ 'a\nb' | indent(2, true) }} {{ 'a\n\nb' | indent(width=1, blank=true) }} {{ 'a\nb' | indent('> ') }}",
    "{{ msgs | map(attribute='role') | join(',') }} {{ ['a', 'b'] | map('upper') | list }} {{ msgs | map(attribute='n', default=0) | list }}",
    "{{ msgs | selectattr('role', 'equalto', 'user') | map(attribute='content') | list }} {{ msgs | rejectattr('role', 'eq', 'user') | list | length }}",
    "{{ msgs | selectattr('n') | list | length }} {{ msgs | selectattr('n', 'defined') | list | length }} {{ msgs | rejectattr('f.g', 'none') | list | length }}",
    "{{ l | select('odd') | list }} {{ l | reject('odd') | list }} {{ l | select('>', 2) | list }} {{ [0, 1] | select | list }} {{ l | select('in', [1, 2]) | list }}",
    "{{ [3, 1, 2] | sort }} {{ ['b', 'A', 'c'] | sort }} {{ ['b', 'A'] | sort(case_sensitive=true) }} {{ [1, 2] | sort(reverse=true) }} {{ msgs | sort(attribute='role') | map(attribute='role') | list }}",
    "{{ {'b': 1, 'a': 2} | dictsort }} {{ {'b': 1, 'a': 2} | dictsort(by='value') }} {{ x | items | list }} {{ missing | items | list }}",
    "{{ [1, 2, 1, 'a', 'A'] | unique | list }} {{ l | max }} {{ l | min }} {{ l | sum }} {{ msgs | sum(attribute='k') }} {{ l | reverse | list }} {{ 'abc' | reverse }}",
    "{{ '42' | int }} {{ 'x' | int }} {{ 'x' | int(7) }} {{ 3.9 | int }} {{ '3.9' | int }} {{ 'ff' | int(base=16) }} {{ '1.5' | float }} {{ 'x' | float }} {{ 3 | string }}",
    "{{ -3 | abs }} {{ 2.567 | round(2) }} {{ 2.5 | round }} {{ 2.1 | round(method='ceil') | int }} {{ 'a b c' | wordcount }} {{ 'ab' | center(6) }}|",
    "{{ '%s is %d of %.2f' | format('a', 3, 1.5) }} {{ '%5s|%-5s|%05d' % ('a', 'b', 42) }} {{ '%s' % 'x' }} {{ '100%%' % () }}",
    "{{ '<a & \"b\">' | e }} {{ '<a>' | safe }} {{ x | attr('a') }}| {{ l | string }} {{ l | list }} {{ 'ab' | list }}",
    "{{ (l | select('odd')) is sequence }} {{ 'yes' if [] | select else 'no' }} {{ l | select('odd') | first }}",
    "{% set g = l | select('odd') %}{{ g | first }}{{ g | list }}{{ g | list }}", "{{ l | select('odd') | length }}", "{{ 5 | length }}", "{{ l | nofilter }}",
    # Tests.
    "{{ x is defined }} {{ z is defined }} {{ z is undefined }} {{ none is none }} {{ x is mapping }} {{ l is mapping }} {{ l is sequence }} {{ x is sequence }}",
    "{{ 'a' is string }} {{ 1 is string }} {{ 1 is number }} {{ true is number }} {{ 1 is integer }} {{ true is integer }} {{ 1.0 is float }} {{ true is boolean }}",
    "{{ l is iterable }} {{ 'a' is iterable }} {{ 1 is iterable }} {{ none is iterable }} {{ missing is iterable }} {{ true is true }} {{ 1 is true }} {{ false is false }} {{ 0 is false }}",
    "{{ 3 is odd }} {{ 3 is even }} {{ 6 is divisibleby 3 }} {{ 1 is eq 1 }} {{ 1 is ne 2 }} {{ 1 is lt 2 }} {{ 2 is ge 2 }} {{ 'a' is in 'abc' }} {{ 1 is sameas 1 }}",
    "{{ 'ab' is lower }} {{ 'AB' is upper }} {{ range is callable }} {{ x is callable }} {{ 'upper' is filter }} {{ 1 is not none }} {{ not 1 is none }} {{ x.a is not defined }}",
    "{{ 1 is nosuchtest }}", "{{ missing.a is defined }}", "{{ 'a' is defined and 'b' is string }} {{ 1 if z is defined else 2 }}", "{{ x.a.b.c is defined }}",
    # Methods.
    "{{ '  a '.strip() }}|{{ ' a '.lstrip() }}|{{ ' a '.rstrip() }}|{{ 'xaxx'.strip('x') }}|{{ 'abcab'.strip('ab') }}|{{ '\\na\\n'.strip('\\n') }}",
    "{{ 'a,b,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ ' a  b '.split() }} {{ 'a b c'.rsplit(' ', 1) }} {{ ' a b  c '.split(none, 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a  b c '.rsplit(none, 1) }}",
    "{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'aBc'.upper() }} {{ 'aBc'.lower() }} {{ \"they're hERE\".title() }} {{ 'aBC d'.capitalize() }}",
    "{{ 'aXbX'.replace('X', 'y') }} {{ 'aXbX'.replace('X', '', 1) }} {{ 'abcabc'.find('c') }} {{ 'abc'.find('z') }} {{ 'abcabc'.rfind('c') }} {{ 'abcabc'.count('b') }} {{ '\u00e9a'.find('a') }}",
    "{{ '12'.isdigit() }} {{ 'a1'.isalnum() }} {{ 'ab'.isalpha() }} {{ ' '.isspace() }} {{ 'AB'.isupper() }} {{ 'ab'.islower() }} {{ ''.isdigit() }}",
    "{{ '-'.join(['a', 'b']) }} {{ 'a\nb\r\nc'.splitlines() }} {{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.removeprefix('a') }} {{ 'abc'.removesuffix('c') }}",
    "{{ '{} {} {}'.format(1, 'a', none) }} {{ '{0}{1}{0}'.format('a', 'b') }} {{ '{n}'.format(n=3) }} {{ '{{}}'.format() }}",
    "{{ l.index(2) }} {{ l.count(2) }} {{ x.copy() == x }} {{ 'a'.nosuch }}|", "{{ l.append(1) }}", "{{ x.update({}) }}", "{{ x.pop('a') }}", "{{ 'a'.nosuch() }}", "{{ l.index(99) }}",
    "{{ '-'.join([1]) }}", "{{ 'a'.split('') }}",
    # Functions.
    "{{ strftime_now('%d %b %Y') }} {{ dict(a=1, b=2) }} {{ namespace(a=1).a }} {{ dict({'a': 1}, b=2) }}",
    "{{ raise_exception('no') }}", "{% set ns = namespace() %}{% set ns.x = 1 %}{{ ns.x }}{{ ns.y }}|", "{% set x.a = 1 %}", "{{ range(1000000) }}",
    # Grammar.
    "{{ 1 + }}", "{{ 'a }}", "{% if %}{% endif %}", "{% if 1 %}", "{% endif %}", "{% nosuch %}", "{{ a b }}", "{{ [1, 2 }}", "{# open", "{% raw %} a", "{{ 1 }", "{% for in l %}{% endfor %}",
    "{% break %}", "{{ }}", "{% set %}", "{% macro %}{% endmacro %}", "{{ 1 is }}", "{{ l | }}", "{{ ) }}", "{% else %}", "{% for i in l %}{% endif %}", "{{ @ }}", "{{ x.}}",
    "{{ [1, 2,] }} {{ (1, 2,) }} {{ {'a': 1,} }}",
    "{ { % } } {{ '{{' }} { {{ 1 }} }", "{{ x['a'] | upper ~ 'b' | upper }} {{ 'a' ~ 'b' | upper }} {{ -1 | abs }} {{ 2 * 'a' | length }}",
    "{{ not x is mapping or 1 }} {{ 1 == 1 and 2 in [2] }} {{ 1 + 1 == 2 }} {{ 'a' if 1 else 'b' | upper }} {{ ('a' if 0 else 'b') | upper }}",
    "{% for i in l if i > 1 and i < 4 %}{{ i }}{% endfor %}{% for i in (l if true else []) %}{{ i }}{% endfor %}{% for i in l[1:] + [9] %}{{ i }}{% endfor %}",
]
SNIPPET_CONTEXT = {
    "x": {"a": 1, "b": "two", "c": [1, 2, 3]}, "l": [1, 2, 3, 4],
    "tree": [{"n": 1, "c": [{"n": 2, "c": []}, {"n": 3, "c": [{"n": 4}]}]}, {"n": 5}],
    "msgs": [{"role": "user", "content": "q", "n": 1, "k": 1, "f": {"g": 1}},
             {"role": "assistant", "content": "a", "k": 2, "f": {"g": None}},
             {"role": "user", "content": "r", "n": 0, "k": 3, "f": {}}],
}


def expect(environment, source, context):
    """The text, or what Python says is wrong."""
    try:
        return {"expected": environment.from_string(source).render(**context)}
    except Exception as error:  # any failure of jinja2 is the expected outcome
        return {"error": f"{type(error).__name__}: {error}"}


def main():
    environment = make_environment()
    contexts = {name: {"bos_token": "<s>", "eos_token": "</s>", **context}
                for name, context in family_contexts()}
    families = []
    for file in sorted(os.listdir(DATA)):
        if not file.endswith(".jinja"):
            continue
        with open(os.path.join(DATA, file), encoding="utf-8", newline="") as stream:
            source = stream.read()
        for name, context in contexts.items():
            families.append({"template": file, "context": name,
                             **expect(environment, source, context)})
    snippets = [{"source": source, **expect(environment, source, SNIPPET_CONTEXT)}
                for source in SNIPPETS]
    for name, content in (("families.json", {"contexts": contexts, "cases": families}),
                          ("snippets.json", {"context": SNIPPET_CONTEXT, "cases": snippets})):
        with open(os.path.join(DATA, name), "w", encoding="utf-8") as stream:
            json.dump(content, stream, indent=1)
            stream.write("\n")
    bad = sum("error" in case for case in families)
    print(f"{len(families)} conversations ({bad} refused), {len(snippets)} snippets")


if __name__ == "__main__":
    main()
