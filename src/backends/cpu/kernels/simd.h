// The Highway settings of every vectorised kernel file. A file is compiled once per target below,
// and the processor found at run time picks; nothing needs -march. Include this before any Highway
// header:
//
//   #include "backends/cpu/kernels/simd.h"
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "backends/cpu/kernels/this_file.cpp"
//   #include <hwy/foreach_target.h>
//   #include <hwy/highway.h>
//   #include "backends/cpu/kernels/simd_math-inl.h"  // when it needs the functions there
//   HWY_BEFORE_NAMESPACE();
//   namespace rlx::cpu::HWY_NAMESPACE { ... }
//   HWY_AFTER_NAMESPACE();
//   #if HWY_ONCE
//   namespace rlx::cpu { HWY_EXPORT(function); ... HWY_DYNAMIC_DISPATCH(function)(arguments); }
//   #endif
//
// Each target costs about as much compile time as the whole rest of a file, so the list is short:
// AVX2 with FMA and F16C, SSE4, NEON on Arm, and the scalar fallback that the baseline needs. SSSE3
// alone is not worth a build. AVX-512 and SVE are left out until a kernel gains from them: what
// these files do is bound by memory, or waits in dense matrix kernels that choose for themselves.
#pragma once

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif

#include <hwy/base.h>
