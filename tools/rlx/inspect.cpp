#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "api/compiled_model.h"
#include "base/error.h"
#include "base/group_digits.h"
#include "commands.h"
#include "ir/text.h"

namespace rlx::cli {
namespace {

using nlohmann::ordered_json;

struct DTypeTotal {
  int64_t tensors = 0, elements = 0, bytes = 0;
};

int64_t count_elements(const WeightInfo& info) {
  int64_t elements = 1;
  for (int64_t extent : info.shape) elements *= extent;
  return elements;
}

std::map<std::string, DTypeTotal> sum_by_dtype(const ModelFile& file) {
  std::map<std::string, DTypeTotal> totals;
  for (const std::string& name : file.list_names()) {
    const WeightInfo& info = *file.find(name);
    DTypeTotal& total = totals[std::string(to_string(info.dtype))];
    ++total.tensors;
    total.elements += count_elements(info);
    total.bytes += info.size_bytes;
  }
  return totals;
}

const char* format_name(const ModelFile& file) {
  return file.format() == ModelFormat::kGguf ? "gguf" : "safetensors";
}

void print_json(const ModelFile& file, bool tensors) {
  ordered_json json;
  json["path"] = file.path();
  json["format"] = format_name(file);
  json["architecture"] = file.architecture();
  int64_t parameters = 0;
  for (const auto& [dtype, total] : sum_by_dtype(file)) {
    parameters += total.elements;
    json["dtypes"][dtype] = {
        {"tensors", total.tensors}, {"elements", total.elements}, {"bytes", total.bytes}};
  }
  json["parameters"] = parameters;
  json["metadata"] = ordered_json::object();
  for (const auto& [key, value] : file.list_metadata()) json["metadata"][key] = value;
  if (tensors) {
    json["tensors"] = ordered_json::array();
    for (const std::string& name : file.list_names()) {
      const WeightInfo& info = *file.find(name);
      json["tensors"].push_back({{"name", name},
                                 {"dtype", to_string(info.dtype)},
                                 {"shape", info.shape},
                                 {"file", info.file},
                                 {"offset", info.offset_bytes},
                                 {"bytes", info.size_bytes}});
    }
  }
  // A name or value that is not UTF-8 is shown with replacement characters.
  fmt::print("{}\n", json.dump(2, ' ', false, ordered_json::error_handler_t::replace));
}

void print_summary(const ModelFile& file, bool tensors) {
  int64_t parameters = 0;
  const auto totals = sum_by_dtype(file);
  for (const auto& [dtype, total] : totals) parameters += total.elements;
  fmt::print("path          {}\nformat        {}\narchitecture  {}\nparameters    {}\n",
             file.path(), format_name(file), file.architecture(), group_digits(parameters));
  for (const auto& [dtype, total] : totals) {
    fmt::print("  {:<8}{:>6} tensors {:>18} elements {:>18} B\n", dtype, total.tensors,
               group_digits(total.elements), group_digits(total.bytes));
  }
  fmt::print("metadata\n");
  for (const auto& [key, value] : file.list_metadata()) fmt::print("  {} = {}\n", key, value);
  if (!tensors) return;
  fmt::print("tensors\n");
  for (const std::string& name : file.list_names()) {
    const WeightInfo& info = *file.find(name);
    fmt::print("  {} : {}[{}]  {} B at {}\n", name, to_string(info.dtype),
               fmt::join(info.shape, ", "), group_digits(info.size_bytes),
               group_digits(info.offset_bytes));
  }
}

void print_passes(const PipelineResult& result) {
  for (const PassTiming& timing : result.timings) {
    fmt::print("{:<36}{:>9.3f} ms {:>6} -> {} nodes{}\n", timing.name, timing.milliseconds,
               timing.nodes_before, timing.nodes_after, timing.changed ? "" : ", unchanged");
  }
}

}  // namespace

int inspect(const InspectOptions& options) {
  const std::shared_ptr<const ModelFile> file = ModelFile::open(options.model.model);
  const LanguageModelOptions load = make_load_options(options.model, DType::kF16);
  CompileOptions compile_options;
  compile_options.disabled_passes = options.disabled_passes;
  if (options.program) {
    const CompiledModel model =
        compile_model(file, make_graph_options(load), make_target_options(load), compile_options);
    fmt::print("{}", to_string(*model.program));
    return 0;
  }
  if (!options.graph.empty() || options.passes) {
    const Graph graph = build_graph(*file, make_graph_options(load));
    if (options.graph == "source") {
      fmt::print("{}", to_string(graph));
      return 0;
    }
    const PipelineResult result =
        optimize(graph, cpu::CpuTarget(make_target_options(load)), compile_options);
    if (options.passes) print_passes(result);
    if (!options.graph.empty()) fmt::print("{}", to_string(result.graph));
    return 0;
  }
  if (options.json) {
    print_json(*file, options.tensors);
  } else {
    print_summary(*file, options.tensors);
  }
  return 0;
}

}  // namespace rlx::cli
