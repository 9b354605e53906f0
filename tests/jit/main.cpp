#include <cstdlib>

#include <doctest/doctest.h>

int main(int argc, char** argv) {
    setenv("BASCULE_CACHE_DIR", "", 0);  // nothing that earlier runs compiled
    return doctest::Context(argc, argv).run();
}

// nvJitLink keeps a few bytes of each link.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the name is the sanitizer's
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libnvJitLink\n"; }
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
