# Enables C and C++, and says in one sentence which compilers are missing.
include(CheckLanguage)
foreach(language C CXX)
  if(NOT CMAKE_${language}_COMPILER)
    check_language(${language})
  endif()
  if(NOT CMAKE_${language}_COMPILER)
    message(FATAL_ERROR "A compiler for C++20 (GCC 12, Clang 14 or newer) was not found. On Debian or Ubuntu: \
apt-get install g++; elsewhere set CC and CXX to compilers.")
  endif()
  enable_language(${language})
endforeach()
