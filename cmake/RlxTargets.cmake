# Functions that declare the project's targets, so that a folder's CMakeLists.txt is a list of
# files. Everything is set per target: nothing here touches directory scope.

add_library(rlx_options INTERFACE)
target_compile_features(rlx_options INTERFACE cxx_std_20)
target_compile_options(rlx_options INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers -fno-math-errno -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Lets ccache look through a precompiled header.
  target_compile_options(rlx_options INTERFACE -fpch-preprocess)
endif()
target_include_directories(rlx_options INTERFACE
  "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
if(RLX_SANITIZE)
  list(JOIN RLX_SANITIZE "," _rlx_sanitize)
  target_compile_options(rlx_options INTERFACE
    "-fsanitize=${_rlx_sanitize}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(rlx_options INTERFACE "-fsanitize=${_rlx_sanitize}")
endif()
if(RLX_BUILD_FUZZERS)
  target_compile_options(rlx_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# rlx_folder(NAME SOURCES ... DEPS ... PRIVATE_DEPS ...): the static library of one folder of src/.
# The installed librlx is made of all of them, so they are position independent.
function(rlx_folder name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC rlx_options ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  # Standard headers and fmt are read once for all folders: a third of a build's time. The kernels
  # are left out, whose files compile for several processors.
  if(name STREQUAL "rlx_base")
    target_precompile_headers(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src/base/precompiled.h")
  elseif(NOT name STREQUAL "rlx_cpu_kernels")
    target_precompile_headers(${name} REUSE_FROM rlx_base)
  endif()
  set_property(GLOBAL APPEND PROPERTY RLX_FOLDER_LIBRARIES ${name})
endfunction()

# Lets a test share one precompiled header with the standard headers, fmt and GoogleTest.
function(rlx_reuse_test_headers name)
  if(NOT TARGET rlx_test_headers)
    file(GENERATE OUTPUT "${CMAKE_BINARY_DIR}/rlx_test_headers.cpp" CONTENT "")
    add_library(rlx_test_headers OBJECT "${CMAKE_BINARY_DIR}/rlx_test_headers.cpp")
    target_link_libraries(rlx_test_headers PRIVATE
      rlx_options fmt::fmt Threads::Threads GTest::gtest_main GTest::gmock)
    target_compile_options(rlx_test_headers PRIVATE -O1)
    target_precompile_headers(rlx_test_headers PRIVATE
      "${PROJECT_SOURCE_DIR}/src/base/precompiled.h" <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  target_precompile_headers(${name} REUSE_FROM rlx_test_headers)
endfunction()

# rlx_test(NAME SOURCES ... DEPS ... [LABELS ...]): one GoogleTest executable, registered with ctest
# as one test. The working directory is the source tree, so tests read tests/data/... by that name.
function(rlx_test name)
  if(NOT RLX_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS fast)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE rlx_options ${ARG_DEPS} GTest::gtest_main GTest::gmock)
  # Compiled once each and run for seconds: -O1 builds a third faster.
  target_compile_options(${name} PRIVATE -O1)
  rlx_reuse_test_headers(${name})
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 300)
endfunction()
