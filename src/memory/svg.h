// A plan as a picture: offsets upwards, steps to the right, every value a box that names itself
// under the pointer. It is how a user sees where the bytes are, so it must read well for five
// values and for five thousand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rlx::memory {

struct PictureValue {
  std::string name;
  std::string op;     // what makes it; decides the color; may be empty
  std::string shape;  // with the element type, such as "f32[1, 512, 2048]"; may be empty
  int32_t band = 0;   // index into PictureInput::bands
  int64_t offset_bytes = 0;
  int64_t size_bytes = 0;
  int64_t start = 0, end = 0;  // steps, [start, end)
};

// A segment, drawn apart from the others with a scale of its own.
struct PictureBand {
  std::string label;
  int64_t size_bytes = 0;
  int64_t bound_bytes = -1;  // drawn as a line; -1: none
};

struct PictureInput {
  std::string title;
  int64_t num_steps = 0;
  int64_t peak_step = -1;  // marked in every band; -1: none
  std::vector<PictureBand> bands;
  std::vector<PictureValue> values;
};

// Returns an SVG document that refers to nothing outside itself. Values of zero bytes are left out,
// lifetimes are cut to [0, num_steps). Throws rlx::Error for a value whose band does not exist.
std::string render_svg(const PictureInput& input);

// Returns an HTML page with the picture, the sizes of the bands and the values alive at the peak.
std::string render_html(const PictureInput& input);

}  // namespace rlx::memory
