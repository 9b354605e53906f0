#include <cstdlib>

#include <doctest/doctest.h>

int main(int argc, char** argv) {
    setenv("BASCULE_CACHE_DIR", "", 0);  // no disk cache: code of earlier runs is not used
    return doctest::Context(argc, argv).run();
}

// nvJitLink leaks a few bytes at each link.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the name is the sanitizer's
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libnvJitLink\n"; }
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
