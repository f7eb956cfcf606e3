// The codebooks of the iq formats. An entry stands for 8 values (iq1, iq2) or 4 values (iq3), the
// first in the lowest bits: 2-bit codes for iq1 and iq2, 4-bit nibbles for iq3. What a code means
// is in packed_iq.cpp. The numbers are part of the file format.
#pragma once

#include <array>
#include <cstdint>

namespace rlx::packed {

extern const std::array<uint16_t, 256> kIq2XxsGrid;
extern const std::array<uint16_t, 512> kIq2XsGrid;
extern const std::array<uint16_t, 1024> kIq2SGrid;
extern const std::array<uint16_t, 256> kIq3XxsGrid;
extern const std::array<uint16_t, 512> kIq3SGrid;
extern const std::array<uint16_t, 2048> kIq1Grid;  // of both iq1_s and iq1_m

}  // namespace rlx::packed
