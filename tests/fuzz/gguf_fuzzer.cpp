// Opens any bytes as a GGUF file and uses all that the reader then promises.

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "frontends/gguf/gguf_file.h"
#include "tensor/packed.h"
#include "tensor/storage.h"

namespace {

template <typename Call>
void ignore_errors(Call&& call) {
  try {
    call();
  } catch (const rlx::Error&) {
  }
}

void read_entry(const rlx::GgufFile& file, std::string_view key) {
  ignore_errors([&] { file.find_int(key); });
  ignore_errors([&] { file.find_float(key); });
  ignore_errors([&] { file.find_bool(key); });
  ignore_errors([&] { file.find_string(key); });
  ignore_errors([&] { file.find_int_array(key); });
  ignore_errors([&] { file.find_float_array(key); });
  ignore_errors([&] { file.find_bool_array(key); });
  ignore_errors([&] { file.find_string_array(key); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ignore_errors([&] {
    const auto bytes = std::as_bytes(std::span(data, size));
    const rlx::GgufFile file = rlx::GgufFile::from_bytes(bytes, "fuzz");
    for (const rlx::GgufValue& value : file.metadata()) {
      RLX_CHECK(file.find(value.key) == &value);
      rlx::printable_value(value);
      read_entry(file, value.key);
    }
    for (const rlx::GgufTensor& tensor : file.tensors()) {
      RLX_CHECK(file.find_tensor(tensor.name) == &tensor);
      const auto packed = file.data(tensor);
      if (!rlx::is_packed(tensor.dtype) || packed.empty()) continue;
      const int64_t elements = rlx::elements_per_block(tensor.dtype);
      std::vector<float> values(static_cast<size_t>(elements));
      rlx::decode_row(tensor.dtype, packed.data(), elements, values.data());
    }
  });
  return 0;
}
