// The version of the library that is linked.
#pragma once

namespace rlx {

// "0.1.0".
const char* version();

}  // namespace rlx
