# Makes the installed library out of the folder libraries, and installs it with what a consumer needs
# to find it: headers, a CMake package and a pkg-config file.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# What the folders link that an installed static library needs again at the consumer's link, as
# "target|find_dependency arguments|pkg-config package|pkg-config target prefix". A folder that
# links anything else stops the configuration, so that this list cannot fall behind.
set(_rlx_dependencies
  "Threads::Threads|Threads||"
  "fmt::fmt|fmt|fmt|"
  "PkgConfig::HWY||libhwy|HWY"
  "PkgConfig::PCRE2||libpcre2-8|PCRE2"
  "PkgConfig::UTF8PROC||libutf8proc|UTF8PROC")

# Used while compiling the folders, and gone afterwards.
set(_rlx_compile_only rlx_options nlohmann_json::nlohmann_json)

# rlx_install_library(): the target `rlx` (alias rlx::rlx), shared or static by RLX_SHARED, made of
# the objects of every folder declared so far, with its install rules. Call it once, after the last
# rlx_folder().
function(rlx_install_library)
  get_property(folders GLOBAL PROPERTY RLX_FOLDER_LIBRARIES)
  set(objects)
  set(dependencies)
  foreach(folder IN LISTS folders)
    list(APPEND objects "$<TARGET_OBJECTS:${folder}>")
    get_target_property(links ${folder} LINK_LIBRARIES)
    list(APPEND dependencies ${links})
  endforeach()
  list(REMOVE_ITEM dependencies ${folders} ${_rlx_compile_only})
  list(REMOVE_DUPLICATES dependencies)
  list(SORT dependencies)

  if(RLX_SHARED)
    add_library(rlx SHARED ${objects})
  else()
    add_library(rlx STATIC ${objects})
  endif()
  add_library(rlx::rlx ALIAS rlx)
  set_target_properties(rlx PROPERTIES
    LINKER_LANGUAGE CXX
    VERSION "${PROJECT_VERSION}"
    SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
  target_compile_features(rlx INTERFACE cxx_std_20)
  target_include_directories(rlx INTERFACE
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(rlx PRIVATE "$<BUILD_INTERFACE:rlx_options>" ${dependencies})

  _rlx_describe_dependencies("${dependencies}" RLX_FIND_DEPENDENCIES RLX_REQUIRES_PRIVATE)
  _rlx_write_package("${RLX_FIND_DEPENDENCIES}" "${RLX_REQUIRES_PRIVATE}")

  install(TARGETS rlx EXPORT rlxTargets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/rlx" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    FILES_MATCHING PATTERN "*.h")
  install(EXPORT rlxTargets NAMESPACE rlx::
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/rlx")
endfunction()

# rlx_install_program(TARGET): installs a command-line program that finds librlx beside itself,
# wherever the prefix is moved to.
function(rlx_install_program target)
  file(RELATIVE_PATH to_libraries
    "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${to_libraries}")
  install(TARGETS ${target} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endfunction()

# Turns the linked targets into the lines of rlxConfig.cmake and the Requires.private of rlx.pc.
function(_rlx_describe_dependencies dependencies out_find out_requires)
  set(find "")
  set(requires "")
  foreach(dependency IN LISTS dependencies)
    set(row "")
    foreach(candidate IN LISTS _rlx_dependencies)
      if(candidate MATCHES "^${dependency}\\|")
        set(row "${candidate}")
      endif()
    endforeach()
    if(NOT row)
      message(FATAL_ERROR "A folder of src/ links '${dependency}', which cmake/RlxInstall.cmake "
        "does not know. Add it to _rlx_dependencies, or to _rlx_compile_only if it is headers alone.")
    endif()
    string(REPLACE "|" ";" fields "${row}")
    list(GET fields 1 package)
    list(GET fields 2 module)
    list(GET fields 3 prefix)
    if(package)
      string(APPEND find "find_dependency(${package})\n")
    else()
      string(APPEND find
        "find_dependency(PkgConfig)\npkg_check_modules(${prefix} REQUIRED IMPORTED_TARGET ${module})\n")
    endif()
    if(module)
      list(APPEND requires ${module})
    endif()
  endforeach()
  # A shared library brings its dependencies along: a consumer needs none of their packages.
  if(RLX_SHARED)
    set(find "")
  endif()
  set(${out_find} "${find}" PARENT_SCOPE)
  list(JOIN requires ", " requires)
  set(${out_requires} "${requires}" PARENT_SCOPE)
endfunction()

function(_rlx_write_package RLX_FIND_DEPENDENCIES RLX_REQUIRES_PRIVATE)
  set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rlx")
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/rlxConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/package/rlxConfig.cmake" INSTALL_DESTINATION "${package_dir}")
  # Until 1.0 a minor version may break its users.
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/rlxConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
  install(FILES
    "${PROJECT_BINARY_DIR}/package/rlxConfig.cmake"
    "${PROJECT_BINARY_DIR}/package/rlxConfigVersion.cmake"
    DESTINATION "${package_dir}")

  # The paths of rlx.pc are relative to where it lies, so that the prefix can be moved.
  set(pc_dir "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig")
  file(RELATIVE_PATH RLX_PC_LIBDIR "${pc_dir}" "${CMAKE_INSTALL_FULL_LIBDIR}")
  file(RELATIVE_PATH RLX_PC_INCLUDEDIR "${pc_dir}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
  if(NOT RLX_SHARED)
    set(RLX_PC_LIBS_PRIVATE "-lstdc++ -lm")
  endif()
  configure_file("${PROJECT_SOURCE_DIR}/cmake/rlx.pc.in"
    "${PROJECT_BINARY_DIR}/package/rlx.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/package/rlx.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endfunction()
