#include "memory/svg.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/group_digits.h"
#include "memory/report.h"

namespace rlx::memory {
namespace {

constexpr double kLeft = 92, kPlotWidth = 1180, kRight = 24, kTop = 44, kBandGap = 46;
constexpr double kMinBandHeight = 70, kMaxBandHeight = 460;

std::string escape(std::string_view text) {
  std::string result;
  for (char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        // XML knows no other control characters.
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n') result += c;
    }
  }
  return result;
}

// A hue per op, the same in every picture (FNV-1a).
int find_hue(std::string_view op) {
  uint32_t hash = 2166136261u;
  for (char c : op) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  hash ^= hash >> 15;
  return static_cast<int>(hash % 360);
}

// The least of 1, 2, 5 times a power of `base` that is at least `rough`.
double round_up_tick(double rough, double base) {
  double power = 1;
  while (power * base <= rough) power *= base;
  for (double factor = 1; factor < base; factor *= 2) {
    if (power * factor >= rough) return power * factor;
  }
  return power * base;
}

std::string format_tick(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 6) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", bytes, kUnits[unit]);
}

struct BandFrame {
  double top, height;  // pixels
  double bytes;        // at the top edge
  double y_of(double byte) const { return top + height - byte / bytes * height; }
};

class Picture {
 public:
  explicit Picture(const PictureInput& input) : input_(input) {
    num_steps_ = static_cast<double>(std::max<int64_t>(input.num_steps, 1));
    int64_t largest = 1;
    for (const PictureBand& band : input.bands) largest = std::max(largest, band.size_bytes);
    double top = kTop;
    for (const PictureBand& band : input.bands) {
      // Roots, so that a small segment beside a large one is still seen.
      const double share =
          std::sqrt(static_cast<double>(std::max<int64_t>(band.size_bytes, 0)) / largest);
      const double height = std::max(kMinBandHeight, kMaxBandHeight * share);
      const double bytes = std::max<double>(1, std::max(band.size_bytes, band.bound_bytes));
      frames_.push_back({top + 20, height, bytes});
      top += 20 + height + kBandGap;
    }
    height_ = top + 10;
  }

  std::string render() {
    const double width = kLeft + kPlotWidth + kRight;
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" "
        "height=\"{:.0f}\" font-family=\"system-ui, sans-serif\" font-size=\"11\">\n",
        width, height_, width, height_);
    out_ +=
        "<style>.v rect{stroke:#00000066;stroke-width:.4}.v g:hover "
        "rect{stroke:#000;stroke-width:2}.v text{pointer-events:none;fill:#000}</style>\n";
    out_ += fmt::format("<rect width=\"{:.0f}\" height=\"{:.0f}\" fill=\"#ffffff\"/>\n", width,
                        height_);
    out_ +=
        fmt::format("<text x=\"{:.0f}\" y=\"24\" font-size=\"16\" font-weight=\"600\">{}</text>\n",
                    kLeft, escape(input_.title));
    for (size_t i = 0; i < frames_.size(); ++i) render_axes(i);
    render_values();
    for (size_t i = 0; i < frames_.size(); ++i) render_marks(i);
    return out_ + "</svg>\n";
  }

 private:
  double x_of(double step) const { return kLeft + step / num_steps_ * kPlotWidth; }

  void render_axes(size_t index) {
    const BandFrame& frame = frames_[index];
    const PictureBand& band = input_.bands[index];
    out_ += fmt::format(
        "<text x=\"{:.0f}\" y=\"{:.1f}\" font-weight=\"600\">{}  {} B</text>\n"
        "<rect x=\"{:.0f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.1f}\" fill=\"#f6f6f4\"/>\n",
        kLeft, frame.top - 6, escape(band.label), group_digits(band.size_bytes), kLeft, frame.top,
        kPlotWidth, frame.height);
    const double tick = round_up_tick(frame.bytes / std::max(2.0, frame.height / 60), 1024);
    for (double byte = 0; byte <= frame.bytes; byte += tick) {
      out_ += fmt::format(
          "<path d=\"M{:.0f} {:.1f}h{:.0f}\" stroke=\"#00000018\"/><text x=\"{:.0f}\" y=\"{:.1f}\" "
          "text-anchor=\"end\" fill=\"#555\">{}</text>\n",
          kLeft, frame.y_of(byte), kPlotWidth, kLeft - 6, frame.y_of(byte) + 4, format_tick(byte));
    }
    const double step_tick = std::max(1.0, round_up_tick(num_steps_ / 14, 10));
    for (double step = 0; step <= num_steps_; step += step_tick) {
      out_ += fmt::format(
          "<path d=\"M{:.2f} {:.1f}v4\" stroke=\"#555\"/><text x=\"{:.2f}\" y=\"{:.1f}\" "
          "text-anchor=\"middle\" fill=\"#555\">{:.0f}</text>\n",
          x_of(step), frame.top + frame.height, x_of(step), frame.top + frame.height + 16, step);
    }
  }

  void render_values() {
    out_ += "<g class=\"v\">\n";
    for (const PictureValue& value : input_.values) render_value(value);
    out_ += "</g>\n";
  }

  void render_value(const PictureValue& value) {
    if (value.band < 0 || static_cast<size_t>(value.band) >= frames_.size()) {
      throw_error(ErrorCode::kInvalidArgument,
                  "Value '{}' lies in band {}, but the picture has {} bands.", value.name,
                  value.band, frames_.size());
    }
    const double start = std::clamp<double>(static_cast<double>(value.start), 0, num_steps_);
    const double end = std::clamp<double>(static_cast<double>(value.end), 0, num_steps_);
    if (value.size_bytes <= 0 || start >= end) return;
    const BandFrame& frame = frames_[value.band];
    const double low = static_cast<double>(value.offset_bytes);
    const double top = frame.y_of(low + static_cast<double>(value.size_bytes));
    const double x = x_of(start);
    // A value of a few bytes still shows as a hair.
    const double width = std::max(0.4, x_of(end) - x),
                 height = std::max(0.4, frame.y_of(low) - top);
    std::string title = escape(value.name);
    if (!value.op.empty()) title += fmt::format("\n{}", escape(value.op));
    if (!value.shape.empty()) title += fmt::format("\n{}", escape(value.shape));
    title += fmt::format("\n{} B at {} B\nsteps {} to {}", group_digits(value.size_bytes),
                         group_digits(value.offset_bytes), value.start, value.end);
    out_ += fmt::format(
        "<g><title>{}</title><rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
        "fill=\"hsl({} 58% {}%)\"/>",
        title, x, top, width, height, find_hue(value.op), value.op.empty() ? 82 : 74);
    const double room = (width - 6) / 6.2;  // letters of about 6.2 pixels
    if (height >= 12 && room >= 3) {
      std::string label = value.name;
      if (static_cast<double>(label.size()) > room) {
        size_t keep = static_cast<size_t>(room) - 1;
        while (keep > 0 && (static_cast<unsigned char>(label[keep]) & 0xC0) == 0x80) --keep;
        label = fmt::format("{}~", label.substr(0, keep));
      }
      out_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" font-size=\"10\">{}</text>", x + 3,
                          top + std::min(height / 2 + 4, 14.0), escape(label));
    }
    out_ += "</g>\n";
  }

  void render_marks(size_t index) {
    const BandFrame& frame = frames_[index];
    const PictureBand& band = input_.bands[index];
    if (band.bound_bytes >= 0) {
      const double y = frame.y_of(static_cast<double>(band.bound_bytes));
      out_ += fmt::format(
          "<path d=\"M{:.0f} {:.2f}h{:.0f}\" stroke=\"#c00000\" stroke-width=\"1.5\" "
          "stroke-dasharray=\"6 4\"><title>lower bound {} B</title></path>"
          "<text x=\"{:.0f}\" y=\"{:.2f}\" text-anchor=\"end\" fill=\"#c00000\">bound {} "
          "B</text>\n",
          kLeft, y, kPlotWidth, group_digits(band.bound_bytes), kLeft + kPlotWidth, frame.top - 6,
          group_digits(band.bound_bytes));
    }
    if (input_.peak_step >= 0 && input_.peak_step < input_.num_steps) {
      const double x = x_of(static_cast<double>(input_.peak_step) + 0.5);
      out_ += fmt::format(
          "<path d=\"M{:.2f} {:.1f}v{:.1f}\" stroke=\"#1040c0\" stroke-width=\"1.2\" "
          "stroke-dasharray=\"2 3\"><title>peak at step {}</title></path>"
          "<text x=\"{:.2f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#1040c0\">peak "
          "{}</text>\n",
          x, frame.top, frame.height, input_.peak_step, x, frame.top + frame.height + 29,
          input_.peak_step);
    }
  }

  const PictureInput& input_;
  double num_steps_ = 1;
  double height_ = 0;
  std::vector<BandFrame> frames_;
  std::string out_;
};

std::string render_peak_table(const PictureInput& input) {
  constexpr size_t kMaxRows = 40;
  std::vector<const PictureValue*> alive;
  for (const PictureValue& value : input.values) {
    if (value.start <= input.peak_step && input.peak_step < value.end && value.size_bytes > 0) {
      alive.push_back(&value);
    }
  }
  std::stable_sort(alive.begin(), alive.end(), [](const PictureValue* a, const PictureValue* b) {
    return a->size_bytes > b->size_bytes;
  });
  std::string rows;
  for (size_t i = 0; i < std::min(alive.size(), kMaxRows); ++i) {
    const PictureValue& value = *alive[i];
    rows +=
        fmt::format("<tr><td>{}<td>{}<td>{}<td>{}<td class=\"n\">{} B<td class=\"n\">{} to {}\n",
                    escape(value.name), escape(value.op), escape(value.shape),
                    escape(input.bands[value.band].label), group_digits(value.size_bytes),
                    value.start, value.end);
  }
  if (alive.size() > kMaxRows) {
    rows += fmt::format("<tr><td colspan=\"6\">and {} smaller values\n", alive.size() - kMaxRows);
  }
  return fmt::format(
      "<h2>Alive at the peak, step {}</h2>\n<table>\n<tr><th>value<th>op<th>shape<th>segment"
      "<th>bytes<th>steps\n{}</table>\n",
      input.peak_step, rows);
}

}  // namespace

std::string render_svg(const PictureInput& input) { return Picture(input).render(); }

std::string render_html(const PictureInput& input) {
  const std::string picture = render_svg(input);
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n"
      "<style>body{{font:14px system-ui,sans-serif;margin:24px}}svg{{max-width:100%;height:auto}}"
      "table{{border-collapse:collapse}}td,th{{padding:2px 12px 2px 0;text-align:left;"
      "border-bottom:1px solid #ddd}}.n{{text-align:right}}</style></head><body>\n{}",
      escape(input.title), picture);
  page += "<table>\n<tr><th>segment<th>bytes<th>bound<th>gap\n";
  for (const PictureBand& band : input.bands) {
    page += fmt::format("<tr><td>{}<td class=\"n\">{} B", escape(band.label),
                        group_digits(band.size_bytes));
    if (band.bound_bytes < 0) {
      page += "<td><td>\n";
    } else {
      page += fmt::format("<td class=\"n\">{} B<td class=\"n\">{:.3f} %\n",
                          group_digits(band.bound_bytes),
                          find_gap_percent(band.size_bytes, band.bound_bytes));
    }
  }
  page += "</table>\n";
  if (input.peak_step >= 0) page += render_peak_table(input);
  return page + "</body></html>\n";
}

}  // namespace rlx::memory
