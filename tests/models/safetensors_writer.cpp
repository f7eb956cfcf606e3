#include "safetensors_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "base/error.h"
#include "frontends/safetensors/safetensors_file.h"

namespace rlx::model_testing {
namespace {

const char* format_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kF16:
      return "F16";
    case DType::kI64:
      return "I64";
    case DType::kU8:
      return "U8";
    default:
      throw_error(ErrorCode::kUnsupported, "Tests write no {} tensors.", to_string(dtype));
  }
}

}  // namespace

StoredTensors read_safetensors(const std::string& path) {
  const SafetensorsFile file(path);
  StoredTensors tensors;
  for (const SafetensorsTensor& tensor : file.tensors()) {
    const std::span<const std::byte> bytes = file.data(tensor);
    tensors[tensor.name] = {tensor.dtype, tensor.shape,
                            std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())};
  }
  return tensors;
}

std::string make_safetensors(const StoredTensors& tensors) {
  std::string header = "{", data;
  for (const auto& [name, tensor] : tensors) {
    header +=
        fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                    data.empty() ? "" : ",", name, format_name(tensor.dtype),
                    fmt::join(tensor.shape, ","), data.size(), data.size() + tensor.bytes.size());
    data += tensor.bytes;
  }
  header += "}";
  const uint64_t size = header.size();
  char prefix[8];
  std::memcpy(prefix, &size, sizeof(prefix));
  return std::string(prefix, sizeof(prefix)) + header + data;
}

}  // namespace rlx::model_testing
