// The functions of emulated_abi.h about what is looked for beside faults.
#include <algorithm>
#include <cstring>
#include <string>

#include "driver/call.hpp"

#define EMULATED_EXPORT extern "C" __attribute__((visibility("default")))

EMULATED_EXPORT uint32_t bascule_emulated_set_checks(uint32_t) { return 0; }
EMULATED_EXPORT uint32_t bascule_emulated_checks(void) { return 0; }
EMULATED_EXPORT void bascule_emulated_set_site(BasculeEmulatedSite) {}
EMULATED_EXPORT size_t bascule_emulated_take_races(char* text, size_t capacity) {
    if (capacity > 0) *text = '\0';
    return 0;
}
EMULATED_EXPORT void bascule_emulated_race_statistics(BasculeEmulatedRaceStatistics* out) { *out = {}; }
