# Installs the build into an empty prefix, moves it, and builds and runs a project against it. Stops at the first
# failure.
cmake_minimum_required(VERSION 3.25)

# run(WHAT COMMAND...): runs the command, and sets `printed` to its output. Stops if it fails.
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${what} failed (${code}):\n${out}")
  endif()
  set(printed "${out}" PARENT_SCOPE)
endfunction()

# claim(SENTENCE [NOT] REGEX): fails and shows `printed` unless it matches, or with NOT if it does.
function(claim sentence)
  list(POP_BACK ARGN regex)
  string(REGEX MATCH "${regex}" found "${printed}")
  if("${found}" STREQUAL "" AND NOT "${ARGN}" STREQUAL NOT OR NOT "${found}" STREQUAL "" AND "${ARGN}" STREQUAL NOT)
    message(FATAL_ERROR "it does not hold that ${sentence}:\n${printed}")
  endif()
endfunction()

# claim_nvrtc(SENTENCE TEXT): the same for a literal text, if the build has found an NVRTC.
function(claim_nvrtc sentence text)
  string(FIND "${printed}" "${text}" found)
  if(NVRTC AND found EQUAL -1)
    message(FATAL_ERROR "it does not hold that ${sentence}:\n${printed}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
set(prefix "${WORK}/a prefix")
run("the installation" "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/first prefix" --config
    "${CONFIGURATION}")
file(RENAME "${WORK}/first prefix" "${prefix}")  # nothing may remember the first location

run("listing what was installed" find "${prefix}" -type f -printf "%P\\n")
string(STRIP "${printed}" printed)
string(REPLACE "\n" ";" printed "${printed}")
set(headers ${printed})
list(FILTER headers INCLUDE REGEX "^include/")
list(FILTER printed EXCLUDE REGEX "^include/bascule/(bascule|(interface|jit|runtime)/[a-z]+/[a-z_]+)\\.hpp$")
list(FILTER printed EXCLUDE REGEX "^include/bascule/interface/arrays/dlpack_abi\\.h$")
list(FILTER printed EXCLUDE REGEX "^lib[^/]*(/[^/]+)?/libbascule_(interface|jit|runtime)\\.a$")
list(FILTER printed EXCLUDE REGEX "^lib[^/]*(/[^/]+)?/libbascule_emulator\\.so$")
list(FILTER printed EXCLUDE REGEX "^lib[^/]*(/[^/]+)?/bascule_host_headers/((thrust/|sys/)?[a-z_]+(\\.h)?|cub/cub\\.cuh)$")
list(FILTER printed EXCLUDE REGEX "^lib[^/]*(/[^/]+)?/pkgconfig/bascule\\.pc$")
list(FILTER printed EXCLUDE REGEX "^lib[^/]*(/[^/]+)?/cmake/bascule/bascule-[a-z-]+\\.cmake$")
claim("headers, libraries and CMake's files are all that is installed" NOT ".+")
set(printed "${headers}")

# fmt and xxHash are used internally; a header that included one would make every user install it.
set(printed "")
set(missing "")
foreach(header IN LISTS headers)
  file(STRINGS "${prefix}/${header}" includes REGEX "^[ \t]*#[ \t]*include")
  foreach(include IN LISTS includes)
    if(include MATCHES "<(bascule/[^>]+)>")
      if(NOT EXISTS "${prefix}/include/${CMAKE_MATCH_1}")
        string(APPEND missing "${header}: ${include}\n")
      endif()
    endif()
  endforeach()
  list(FILTER includes EXCLUDE REGEX "<(bascule/(interface|jit|runtime)/[a-z_/.]+|[a-z_]+|stdint\\.h|stddef\\.h)>")
  foreach(include IN LISTS includes)
    string(APPEND printed "${header}: ${include}\n")
  endforeach()
endforeach()
claim("no header includes anything but ours and the standard's" NOT ".+")
set(printed "${missing}")
claim("a header includes only headers that are installed" NOT ".+")

# The headers that <bascule/bascule.hpp> includes are public; no others are installed.
set(unread bascule/bascule.hpp)
set(reached ${unread})
while(unread)
  list(POP_FRONT unread header)
  file(STRINGS "${prefix}/include/${header}" includes REGEX "^#include <bascule/")
  list(TRANSFORM includes REPLACE "^#include <([^>]+)>.*$" "\\1")
  list(REMOVE_ITEM includes ${reached})
  list(APPEND reached ${includes})
  list(APPEND unread ${includes})
endwhile()
list(TRANSFORM reached PREPEND "include/")
set(printed "${headers}")
list(REMOVE_ITEM printed ${reached})
claim("every installed header is reached from bascule.hpp" NOT ".+")

# The comment lines with five spaces at the start of <bascule/bascule.hpp> are a complete program.
file(READ "${prefix}/include/bascule/bascule.hpp" header)
string(REGEX MATCH "(\n//(     [^\n]*)?)+" example "${header}")
string(REGEX REPLACE "\n//(     )?" "\n" example "${example}")
file(WRITE "${WORK}/example.cpp" "${example}")
string(REGEX MATCHALL "#include <bascule/[^>]+>" printed "${example}")
claim("the example needs no header but bascule.hpp" "^#include <bascule/bascule\\.hpp>$")

string(REPLACE "|" ";" arguments "${ARGUMENTS}")
run("configuring the project" "${CMAKE_COMMAND}" -S "${PROJECT}" -B "${WORK}/build" ${arguments}
    "-DCMAKE_BUILD_TYPE=Debug" "-DCMAKE_PREFIX_PATH=${prefix}" "-DWANTED=${VERSION}"
    "-DEXAMPLE=${WORK}/example.cpp")
run("building the project" "${CMAKE_COMMAND}" --build "${WORK}/build")

run("launching from the installed program" "${CMAKE_COMMAND}" -E env --unset=LD_LIBRARY_PATH BASCULE_DEVICE=emulated
    "${WORK}/build/launch")
claim("the kernel's result is right" "${printed}" MATCHES "all 1000 elements are right")
claim("the emulated device is the installed one" "${printed}" MATCHES "driver: [^\n]*/a prefix/lib[^\n]*emulator\\.so")

run("running the example of bascule.hpp" "${CMAKE_COMMAND}" -E env BASCULE_DEVICE=emulated "${WORK}/build/example")
claim("the example prints 2" "^2\n$")

# Uses paths relative to ${WORK}, because pkg-config takes an apostrophe in an absolute path for a quote.
run("finding bascule.pc" find "a prefix" -name bascule.pc -printf "%h" WORKING_DIRECTORY "${WORK}")
set(pc_directory "${printed}")
set(nvrtc_run_path "")
if(NVRTC)
  set(nvrtc_run_path [[-Wl,-rpath,\"\$(pkg-config --variable=nvrtcdir bascule)\"]])
endif()
set(compile [[eval "\"\$CXX\" -std=c++20 example.cpp -o by_pkg_config $(pkg-config --cflags --libs bascule)]])
run("building by pkg-config" "${CMAKE_COMMAND}" -E env "PKG_CONFIG_PATH=${pc_directory}" "CXX=${CXX}"
    sh -c "${compile} ${nvrtc_run_path}\"" WORKING_DIRECTORY "${WORK}")
run("running what pkg-config built" "${CMAKE_COMMAND}" -E env BASCULE_DEVICE=emulated "${WORK}/by_pkg_config"
    WORKING_DIRECTORY "${WORK}")
claim("the example prints 2 again" "^2\n$")
run("reading where what pkg-config built looks" readelf -d "${WORK}/by_pkg_config")
claim("it looks in the prefix" "R(UN)?PATH[^\n]*a prefix/")
claim_nvrtc("a program built by pkg-config looks for NVRTC in ${NVRTC}" "${NVRTC}")

# The samples are also a project that uses find_package(bascule).
run("configuring the samples" "${CMAKE_COMMAND}" -S "${SAMPLES}" -B "${WORK}/samples" ${arguments}
    "-DCMAKE_BUILD_TYPE=Debug" "-DCMAKE_PREFIX_PATH=${prefix}")
run("building the samples" "${CMAKE_COMMAND}" --build "${WORK}/samples")
run("running the samples" "${CMAKE_COMMAND}" -E env BASCULE_DEVICE=emulated
    "${CMAKE_COMMAND}" --build "${WORK}/samples" --target test)
claim("every sample ran and was right" "100% tests passed, 0 tests failed out of 3")

# A program that only compiles uses no driver, so it works although BASCULE_DEVICE asks for one that may not exist here.
set(without_toolkit --unset=CUDA_HOME --unset=CUDA_PATH --unset=VIRTUAL_ENV --unset=CONDA_PREFIX)
run("compiling for devices of sm_90" "${CMAKE_COMMAND}" -E env ${without_toolkit} BASCULE_DEVICE=cuda CUDA_VISIBLE_DEVICES=
    "${WORK}/build/compile" sm_90)
claim("there is code for exactly these devices" "${printed}" MATCHES "sm_90a: [1-9][0-9]* bytes of machine code")
claim("the compiler was opened" "opened: [^\n]*nvrtc")
claim("no driver was opened" NOT "opened: [^\n]*(libcuda\\.|emulator)")
claim_nvrtc("the compiler is the one beside which Bascule was built, in ${NVRTC}" "${NVRTC}/libnvrtc")

# Another NVRTC can be named when the project is configured.
run("naming an NVRTC" "${CMAKE_COMMAND}" "${WORK}/build" "-Dbascule_NVRTC_DIRECTORY=${WORK}/other nvrtc")
run("building with it" "${CMAKE_COMMAND}" --build "${WORK}/build" --target compile)
run("reading where it looks" readelf -d "${WORK}/build/compile")
claim("the program looks where the project was told" "R(UN)?PATH[^\n]*/other nvrtc")

# Installed elsewhere, a program finds the emulated device in ../lib.
run("installing the project" "${CMAKE_COMMAND}" --install "${WORK}/build" --prefix "${WORK}/program")
file(REMOVE_RECURSE "${prefix}")
run("launching without the prefix" "${CMAKE_COMMAND}" -E env --unset=LD_LIBRARY_PATH BASCULE_DEVICE=emulated
    "${WORK}/program/bin/launch")
claim("the emulated device came with the program" "${printed}" MATCHES "driver: [^\n]*/program/lib[^\n]*emulator\\.so")
file(REMOVE_RECURSE "${WORK}")
