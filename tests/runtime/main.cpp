#include <cstdlib>
#include <cstring>
#include <string>

#include <doctest/doctest.h>

#include "child.hpp"

int main(int argc, char** argv) {
    setenv("BASCULE_CACHE_DIR", "", 0);  // no disk cache: code of earlier runs is not used
    constexpr const char* child = "--child=";
    if (argc == 2 && std::strncmp(argv[1], child, std::strlen(child)) == 0) {
        return bascule::testing::play(argv[1] + std::strlen(child));
    }
    return doctest::Context(argc, argv).run();
}
