// Runs the tests, or one role of a test that needs a separate process (child.hpp).
#include <cstdlib>
#include <string_view>

#include <doctest/doctest.h>

#include "child.hpp"

#if defined(__SANITIZE_THREAD__)
/// glibc frees resources of an ended thread in another thread, in an order that the sanitizer cannot see.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "race:_dl_deallocate_tls\n"; }
#endif

#if defined(__SANITIZE_ADDRESS__)
namespace {
bool plays_a_role = false;
}
/// Turns leak detection off in a role, which may end its process before it has freed its memory.
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return plays_a_role ? 1 : 0; }
#endif

int main(int count, char** arguments) {
    constexpr std::string_view child = "--child=";
    doctest::Context context(count, arguments);
    if (count == 2 && std::string_view(arguments[1]).starts_with(child)) {
#if defined(__SANITIZE_ADDRESS__)
        plays_a_role = true;
#endif
        context.setAsDefaultForAssertsOutOfTestCases();
        context.setAssertHandler([](const doctest::AssertData& claim) {
            if (claim.m_failed) std::abort();
        });
        return client::play(arguments[1] + child.size());
    }
    return context.run();
}
