# Configures a project that adds this one as a subdirectory, with a shared and with a static library:
# the target is there, and nothing but the library is added. Needs WORK_DIR, GENERATOR and CXX.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/run_command.cmake")

file(REMOVE_RECURSE "${WORK_DIR}")
foreach(shared ON OFF)
  run_command("${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${CMAKE_CURRENT_LIST_DIR}/parent"
    -B "${WORK_DIR}/${shared}" "-DRLX_SHARED=${shared}" "-DCMAKE_CXX_COMPILER=${CXX}")
  file(GLOB_RECURSE test_files "${WORK_DIR}/${shared}/CTestTestfile.cmake")
  if(test_files)
    message(FATAL_ERROR "As a subdirectory the project declares tests: ${test_files}")
  endif()
  # --target help lists what could be built.
  run_command("${CMAKE_COMMAND}" --build "${WORK_DIR}/${shared}" --target help OUTPUT targets)
  if(NOT targets MATCHES "librlx\\.")
    message(FATAL_ERROR "As a subdirectory the project offers no librlx:\n${targets}")
  endif()
  if(targets MATCHES "[a-z_]+_(test|fuzz|bench): phony")
    message(FATAL_ERROR "As a subdirectory the project adds more than the library: ${CMAKE_MATCH_0}")
  endif()
endforeach()
