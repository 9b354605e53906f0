# How everything here is compiled and tested, for the two projects of this repository: Bascule, and the emulated device alone
# (runtime/emulator). The first project that includes this file sets it up for both.
include_guard(GLOBAL)
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH bascule_root)
cmake_path(GET bascule_root PARENT_PATH bascule_root)

option(BASCULE_TESTS "Build the C++ tests" ${PROJECT_IS_TOP_LEVEL})
option(BASCULE_WERROR "Treat warnings as errors" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

# Several files are compiled as one, so that what they all include is read once. OFF compiles each by itself, as
# clang-tidy needs it.
option(BASCULE_BATCHES "Compile files in batches" ON)
set(CMAKE_UNITY_BUILD ${BASCULE_BATCHES})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)

# A batch is a folder: names in anonymous namespaces have to be unique within it, and a new file changes no other batch.
# Each further argument, FOLDER+FOLDER, joins small folders to one batch, because each batch compiles the shared headers
# again, which takes longer than the files of a small folder.
function(bascule_batch_by_folder target)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    foreach(root "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}")  # keeps the path of this clone out of the name
      string(REPLACE "${root}/" "" folder "${folder}")
    endforeach()
    foreach(joined IN LISTS ARGN)
      string(REPLACE "+" ";" folders "${joined}")
      if(folder IN_LIST folders)
        set(folder "${joined}")
        break()
      endif()
    endforeach()
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# ccache and a fast linker where they are installed. Decided once for each build directory: a cache that is installed
# later would change every command, and everything would be built again.
if(PROJECT_IS_TOP_LEVEL)
  if(NOT DEFINED BASCULE_COMPILER_CACHE)
    find_program(bascule_found ccache NO_CACHE)
    set(BASCULE_COMPILER_CACHE "${bascule_found}" CACHE STRING "The compiler cache; empty or NOTFOUND: none")
  endif()
  if(BASCULE_COMPILER_CACHE)
    # Relative paths, so that another clone finds the same entries. ccache does not recognise a path that dependency files
    # escape, for example one with a space: another clone would get objects whose dependencies are files of this one.
    set(base_directory "CCACHE_BASEDIR=${bascule_root}")
    if(bascule_root MATCHES "[^A-Za-z0-9/._+-]")
      set(base_directory "")
    endif()
    foreach(language C CXX)  # ccache requires the sloppiness with precompiled headers
      set(CMAKE_${language}_COMPILER_LAUNCHER
          "${CMAKE_COMMAND}" -E env ${base_directory} CCACHE_SLOPPINESS=pch_defines,time_macros
          "${BASCULE_COMPILER_CACHE}")
    endforeach()
    add_compile_options("-ffile-prefix-map=${bascule_root}=.")
  endif()
  if(NOT DEFINED BASCULE_LINKER)
    find_program(bascule_found_linker NAMES mold ld.lld NO_CACHE)
    string(REGEX MATCH "mold|lld" bascule_found_linker "${bascule_found_linker}")
    set(BASCULE_LINKER "${bascule_found_linker}" CACHE STRING "mold or lld; empty: the compiler's own choice")
  endif()
  if(BASCULE_LINKER)
    add_link_options("-fuse-ld=${BASCULE_LINKER}")
  endif()
endif()

# --- Dependencies: headers only, nothing beyond libc and libstdc++ is linked -------------------------------------

# Notes a Debian package as missing when `found` is false. bascule_stop_if_missing names all of them at once.
set(bascule_missing_packages "")
function(bascule_require found debian_package)
  if(NOT ${found})
    set(bascule_missing_packages ${bascule_missing_packages} ${debian_package} PARENT_SCOPE)
  endif()
endfunction()
function(bascule_stop_if_missing)
  list(JOIN bascule_missing_packages " " missing)
  if(missing)
    message(FATAL_ERROR "Libraries that Bascule is built with were not found. On Debian or Ubuntu: apt-get install ${missing}")
  endif()
endfunction()

# A folder with fmt/, nlohmann/ and xxhash.h is enough: nothing of these libraries is linked.
set(BASCULE_HEADERS "" CACHE PATH "A folder with fmt/, nlohmann/ and xxhash.h; empty: CMake looks for their packages")
if(BASCULE_HEADERS)
  foreach(library fmt::fmt-header-only nlohmann_json::nlohmann_json)
    add_library(${library} INTERFACE IMPORTED)
    target_include_directories(${library} INTERFACE "${BASCULE_HEADERS}")
  endforeach()
  foreach(header fmt/format.h nlohmann/json.hpp xxhash.h)
    if(NOT EXISTS "${BASCULE_HEADERS}/${header}")
      message(FATAL_ERROR "BASCULE_HEADERS is ${BASCULE_HEADERS}, which has no ${header}")
    endif()
  endforeach()
  set(fmt_FOUND TRUE)
  set(nlohmann_json_FOUND TRUE)
else()
  find_package(fmt QUIET)
  find_package(nlohmann_json QUIET)
endif()
bascule_require(fmt_FOUND libfmt-dev)
bascule_require(nlohmann_json_FOUND nlohmann-json3-dev)
find_path(BASCULE_XXHASH_INCLUDE_DIR NAMES xxhash.h HINTS "${BASCULE_HEADERS}")
bascule_require(BASCULE_XXHASH_INCLUDE_DIR libxxhash-dev)
find_package(Python3 QUIET COMPONENTS Interpreter)
if(BASCULE_PYTHON)
  find_package(Python3 QUIET COMPONENTS Interpreter Development.Module)
  bascule_require(Python3_Development.Module_FOUND python3-dev)
endif()
if(BASCULE_TESTS)
  find_package(doctest QUIET)
  bascule_require(doctest_FOUND doctest-dev)
  find_path(BASCULE_MPFR_INCLUDE_DIR NAMES mpfr.h)
  bascule_require(BASCULE_MPFR_INCLUDE_DIR libmpfr-dev)
endif()
bascule_stop_if_missing()

# CUDA headers: the wheels nvidia-cuda-runtime and nvidia-cuda-nvrtc of the Python that builds, so that a clone is built with
# the same ones on every machine, else a toolkit.
if(Python3_FOUND)
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" -c "import site, sys; print(';'.join([*site.getsitepackages(), *sys.path]))"
    OUTPUT_VARIABLE bascule_site_packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
list(TRANSFORM bascule_site_packages APPEND "/nvidia/cu13" OUTPUT_VARIABLE bascule_cuda_wheels)
find_path(BASCULE_CUDA_INCLUDE_DIR NAMES cudaTypedefs.h PATH_SUFFIXES include
          HINTS ${bascule_cuda_wheels} "$ENV{CUDA_HOME}" "$ENV{CUDA_PATH}" /usr/local/cuda
          DOC "The directory of cuda.h and nvrtc.h")
if(NOT BASCULE_CUDA_INCLUDE_DIR OR NOT EXISTS "${BASCULE_CUDA_INCLUDE_DIR}/nvrtc.h")
  message(FATAL_ERROR "CUDA headers (cuda.h, cudaTypedefs.h, nvrtc.h) were not found. Install a CUDA toolkit, or: "
                      "pip install nvidia-cuda-runtime nvidia-cuda-nvrtc; or pass -DBASCULE_CUDA_INCLUDE_DIR=...")
endif()

# NVRTC is loaded and not linked. Programs of this build, and those that use find_package(bascule), have in their run
# path the directory of the NVRTC that was found when Bascule was configured: that of the wheel, or else that of the
# toolkit.
find_path(BASCULE_NVRTC_DIRECTORY NAMES libnvrtc.so.13 libnvrtc.so NO_DEFAULT_PATH
          HINTS ${bascule_cuda_wheels} "${BASCULE_CUDA_INCLUDE_DIR}/.." PATH_SUFFIXES lib64 lib
          DOC "The directory of libnvrtc.so.13, which programs are linked to search")
if(NOT BASCULE_NVRTC_DIRECTORY)
  set(BASCULE_NVRTC_DIRECTORY "" CACHE PATH "" FORCE)
endif()

# Lets a program of this build find NVRTC and the emulated device, and builds the emulated device before it.
function(bascule_program target)
  set_target_properties(${target} PROPERTIES
                        BUILD_RPATH "$<TARGET_FILE_DIR:bascule_emulator>;${BASCULE_NVRTC_DIRECTORY}")
  add_dependencies(${target} bascule_emulator)
endfunction()

# What every target of ours is compiled with.
add_library(bascule_options INTERFACE)
target_compile_features(bascule_options INTERFACE cxx_std_20)
target_include_directories(bascule_options SYSTEM INTERFACE
                           "$<TARGET_PROPERTY:nlohmann_json::nlohmann_json,INTERFACE_INCLUDE_DIRECTORIES>")
target_compile_options(bascule_options INTERFACE -Wall -Wextra -Wpedantic $<$<BOOL:${BASCULE_WERROR}>:-Werror>)
if(BASCULE_BATCHES AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # A class of a .cpp may have members of types that only this file knows. g++ cannot tell that a batch is made of .cpp.
  target_compile_options(bascule_options INTERFACE -Wno-subobject-linkage)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")  # the sanitizers' compiler: what it says of its own optimisations is not ours
  target_compile_options(bascule_options INTERFACE -Wno-pass-failed -Wno-unneeded-internal-declaration
                                                   -Wno-deprecated-declarations)
endif()

# Compiles a target with -O1, except in Debug builds and with sanitizers: for code that no launch runs through. It takes
# two thirds of the time.
function(bascule_compile_quickly target)
  if(NOT CMAKE_CXX_FLAGS MATCHES "sanitize")
    target_compile_options(${target} PRIVATE "$<$<NOT:$<CONFIG:Debug>>:-O1>")
  endif()
endfunction()

# fmt is compiled once (interface/errors/fmt.cpp). Targets that use it link bascule_fmt_headers. A library or program
# gets the objects of bascule_fmt with the interface layer, or names them itself.
add_library(bascule_fmt OBJECT "${bascule_root}/interface/errors/fmt.cpp")
target_compile_features(bascule_fmt PRIVATE cxx_std_20)
bascule_compile_quickly(bascule_fmt)
target_include_directories(bascule_fmt SYSTEM
                           PUBLIC "$<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>")
target_compile_definitions(bascule_fmt PUBLIC "FMT_BEGIN_NAMESPACE=namespace fmt { inline namespace in_bascule {"
                                              "FMT_END_NAMESPACE=}}")
add_library(bascule_fmt_headers INTERFACE)
target_include_directories(bascule_fmt_headers SYSTEM INTERFACE
                           "$<TARGET_PROPERTY:bascule_fmt,INTERFACE_SYSTEM_INCLUDE_DIRECTORIES>")
target_compile_definitions(bascule_fmt_headers INTERFACE
                           "$<TARGET_PROPERTY:bascule_fmt,INTERFACE_COMPILE_DEFINITIONS>")

# The same in every file, because inline functions of CPython and fmt have assertions. Those of CPython check the type
# of an object at each access, which would take longer than a launch.
add_compile_definitions(NDEBUG)

# Makes g++ collect garbage less often: saves a tenth of the time, and takes a few hundred megabytes more for each
# compiler.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-expand=300;--param=ggc-min-heapsize=1048576>")

# g++ uses a precompiled header only where the machine options are those that it was made with. g++ 13 and later set two of
# them from -O2 on; named here, they are the same at every level. At -O1 and -Og they change no code: loops are not unrolled,
# and no AVX is used.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  include(CheckCXXCompilerFlag)
  foreach(option munroll-only-small-loops mvzeroupper)
    string(MAKE_C_IDENTIFIER "BASCULE_HAS_${option}" accepted)
    check_cxx_compiler_flag("-${option}" ${accepted})
    if(${accepted})
      add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-${option}>")
    endif()
  endforeach()
endif()

# The headers that nearly every file reads, precompiled once for all layers. Files still include what they use;
# `.ci/run --long` builds without BASCULE_BATCHES and with CMAKE_DISABLE_PRECOMPILE_HEADERS to see that they do.
set(common_headers <algorithm> <array> <atomic> <cstdint> <cstring> <functional> <map> <memory> <mutex> <optional>
                   <span> <stdexcept> <string> <string_view> <utility> <variant> <vector> <fmt/format.h>)
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/common_headers.cpp" CONTENT "")
add_library(bascule_common_headers OBJECT "${CMAKE_CURRENT_BINARY_DIR}/common_headers.cpp")
target_link_libraries(bascule_common_headers PRIVATE bascule_options bascule_fmt_headers)
target_precompile_headers(bascule_common_headers PRIVATE ${common_headers})

# What every test is compiled with: what is tested is optimised, the tests themselves are not. g++ 12 sees overlapping
# copies in plain string concatenation (GCC bug 105651).
if(BASCULE_TESTS)
  add_library(bascule_test_options INTERFACE)
  target_compile_options(bascule_test_options INTERFACE -O0
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
  target_link_libraries(bascule_test_options INTERFACE bascule_options doctest::doctest bascule_fmt_headers)
  # doctest itself, and the headers of every test: compiled once for all test programs, with the options of programs.
  add_library(bascule_doctest OBJECT "${bascule_root}/tests/doctest.cpp")
  add_library(bascule_test_headers OBJECT "${CMAKE_CURRENT_BINARY_DIR}/common_headers.cpp")
  target_precompile_headers(bascule_test_headers PRIVATE ${common_headers} <doctest/doctest.h>)
  foreach(common bascule_doctest bascule_test_headers)
    target_link_libraries(${common} PRIVATE bascule_test_options)
    set_target_properties(${common} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${common} PRIVATE -fPIE)
  endforeach()
endif()

# A doctest program: bascule_test(LABEL SOURCES ... LINK ...). `ctest -L LABEL` runs it.
function(bascule_test label)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "" "SOURCES;LINK")
  add_executable(${label}_tests ${test_SOURCES})
  target_include_directories(${label}_tests SYSTEM PRIVATE "${BASCULE_CUDA_INCLUDE_DIR}")
  target_link_libraries(${label}_tests PRIVATE bascule_test_options ${test_LINK} ${CMAKE_DL_LIBS})
  target_precompile_headers(${label}_tests REUSE_FROM bascule_test_headers)
  # The headers that all tests use take longer to compile than a file's own text; a batch of five files still takes
  # seconds.
  set_target_properties(${label}_tests PROPERTIES UNITY_BUILD ${BASCULE_BATCHES} UNITY_BUILD_BATCH_SIZE 5)
  target_sources(${label}_tests PRIVATE $<TARGET_OBJECTS:bascule_doctest>)
  bascule_program(${label}_tests)
  add_test(NAME ${label} COMMAND ${label}_tests)
  set_tests_properties(${label} PROPERTIES LABELS ${label} TIMEOUT 600)
endfunction()

if(BASCULE_TESTS)
  enable_testing()
endif()
