# Installs the build to a prefix, moves the prefix, and uses what is there as a stranger would: by
# find_package, by pkg-config, and header by header. Needs RLX_BUILD_DIR, RLX_CONFIG, WORK_DIR,
# GENERATOR and CXX.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/run_command.cmake")

file(REMOVE_RECURSE "${WORK_DIR}")
file(MAKE_DIRECTORY "${WORK_DIR}")
set(prefix "${WORK_DIR}/moved prefix")
run_command("${CMAKE_COMMAND}" --install "${RLX_BUILD_DIR}" --config "${RLX_CONFIG}"
  --prefix "${WORK_DIR}/prefix")
# Nothing installed may remember where it was installed to or built.
file(RENAME "${WORK_DIR}/prefix" "${prefix}")

function(expect_greeting output who)
  if(NOT output MATCHES "rlx [0-9.]+: 2 4 6")
    message(FATAL_ERROR "The consumer built with ${who} printed:\n${output}")
  endif()
endfunction()

# find_package
run_command("${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${CMAKE_CURRENT_LIST_DIR}/consumer"
  -B "${WORK_DIR}/consumer" "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${CXX}"
  -DCMAKE_BUILD_TYPE=Release)
run_command("${CMAKE_COMMAND}" --build "${WORK_DIR}/consumer")
run_command("${WORK_DIR}/consumer/consumer" OUTPUT output)
expect_greeting("${output}" "find_package")

# pkg-config; --static also names what a static library needs.
file(GLOB_RECURSE pc_files "${prefix}/*/rlx.pc")
list(LENGTH pc_files num_pc_files)
if(NOT num_pc_files EQUAL 1)
  message(FATAL_ERROR "Expected one rlx.pc under ${prefix}, found: ${pc_files}")
endif()
cmake_path(GET pc_files PARENT_PATH pc_dir)
set(ENV{PKG_CONFIG_PATH} "${pc_dir}")
file(GLOB_RECURSE shared_libraries "${prefix}/*/librlx.so")
set(static_option)
if(NOT shared_libraries)
  set(static_option --static)
endif()
run_command(pkg-config --cflags --libs ${static_option} rlx OUTPUT flags)
separate_arguments(flags UNIX_COMMAND "${flags}")
run_command("${CXX}" -std=c++20 "${CMAKE_CURRENT_LIST_DIR}/consumer/main.cpp" ${flags}
  -o "${WORK_DIR}/pkg_config_consumer")
cmake_path(GET pc_dir PARENT_PATH library_dir)
set(ENV{LD_LIBRARY_PATH} "${library_dir}")
run_command("${WORK_DIR}/pkg_config_consumer" OUTPUT output)
expect_greeting("${output}" "pkg-config")
unset(ENV{LD_LIBRARY_PATH})

# Each header compiles alone, without a warning.
file(GLOB_RECURSE headers "${prefix}/include/rlx/*.h")
if(NOT headers)
  message(FATAL_ERROR "No header was installed under ${prefix}/include/rlx.")
endif()
foreach(header IN LISTS headers)
  file(WRITE "${WORK_DIR}/header.cpp" "#include \"${header}\"\n")
  run_command("${CXX}" -std=c++20 -fsyntax-only -Wall -Wextra -Werror "-I${prefix}/include"
    "${WORK_DIR}/header.cpp")
endforeach()

# The installed program finds the library beside itself.
if(EXISTS "${prefix}/bin/rlx")
  run_command("${prefix}/bin/rlx" --version OUTPUT output)
endif()
