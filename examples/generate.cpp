// Loads a language model and lets it write. usage: example_generate [MODEL [PROMPT]], from the root
// of the source tree unless a model is given.
#include <cstdio>
#include <string>
#include <string_view>

#include "rlx/rlx.h"

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "models/demo/demo-Q8_0.gguf";
  const std::string prompt = argc > 2 ? argv[2] : "In the beginning";
  try {
    // Loading maps the file, plans every byte and compiles. A model is loaded once, and then used
    // as often as you like.
    rlx::LanguageModel model = rlx::LanguageModel::load(path, {.context = 256});

    rlx::GenerateOptions options;
    options.max_new_tokens = 40;
    options.temperature = 0;  // always the likeliest token; 0.8 is livelier
    // Text arrives here while it is made, so a reader need not wait for the end.
    options.on_text = [](std::string_view piece) {
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
    };
    std::printf("%s", prompt.c_str());
    const rlx::GenerateResult result = model.generate(prompt, options);

    std::printf("\n\n%zu tokens in %.2f s, stopped by: %s\n", result.tokens.size(),
                result.prompt_seconds + result.generate_seconds, to_string(result.stop_reason));
  } catch (const rlx::Error& error) {
    // One sentence that names the file and what is wrong with it; error.code() is for programs.
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
