// The emulated device's two lists of driver functions.
#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include <doctest/doctest.h>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/emulator/driver/listed_functions.hpp>

namespace {

using emulated::driver::functions_for_other_clients;
using emulated::driver::functions_of_bascule;

#define NAME(name, version, mode) #name,
const std::set<std::string_view> called_by_bascule{
    BASCULE_DRIVER_FUNCTIONS(NAME) BASCULE_OPTIONAL_DRIVER_FUNCTIONS(NAME) "cuGetProcAddress"};
#undef NAME

}  // namespace

TEST_CASE("the_emulated_device_has_a_list_of_the_functions_that_bascule_calls") {
    for (const std::string_view name : called_by_bascule) {
        CAPTURE(name);
        CHECK(std::ranges::binary_search(functions_of_bascule, name));
    }
#if CUDA_VERSION >= 13020  // older headers lack some of the functions
    CHECK(std::size(functions_of_bascule) == called_by_bascule.size());
#endif
}

TEST_CASE("the_emulated_device_gains_no_functions_for_other_clients") {
    CHECK(std::size(functions_for_other_clients) == 209);
    for (const std::string_view name : functions_for_other_clients) {
        CAPTURE(name);
        CHECK(!called_by_bascule.contains(name));
    }
}
