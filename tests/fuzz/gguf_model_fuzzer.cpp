// Opens any bytes as a model in one GGUF file, and takes from it all that a run would: tokenizer,
// end tokens, metadata, graph.

#include <cstdint>
#include <string>

#include "api/compiled_model.h"
#include "base/error.h"
#include "temporary_folder.h"

namespace {

template <typename Call>
void ignore_errors(Call&& call) {
  try {
    call();
  } catch (const rlx::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const rlx::fuzz::TemporaryFolder folder;
  const std::string path = folder.write("model.gguf", data, size);
  ignore_errors([&] {
    const auto file = rlx::ModelFile::open(path);
    file->list_metadata();
    ignore_errors([&] { file->list_end_tokens(); });
    ignore_errors([&] { rlx::build_graph(*file, {.max_tokens = 8}); });
    ignore_errors([&] {
      const rlx::Tokenizer tokenizer = rlx::load_tokenizer(*file);
      const auto ids = tokenizer.encode("In the beginning \xe4\xb8\x96 <s>\xff 1234");
      tokenizer.decode(ids);
    });
  });
  return 0;
}
