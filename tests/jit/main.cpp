#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdlib>

#include <doctest/doctest.h>

int main(int argc, char** argv) {
    setenv("BASCULE_CACHE_DIR", "", 0);  // nothing of what earlier runs compiled
    return doctest::Context(argc, argv).run();
}
