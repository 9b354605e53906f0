#include "failing_driver.hpp"

#include <map>

namespace bascule::testing {
namespace {

DriverFunctions untouched;

struct ThreadsCalls {
    int turn = -1;             // the number of the call that fails
    std::string_view counted;  // the function whose calls are counted; empty: all
    int number = 0;            // calls counted so far
    std::string failed;
    std::map<std::string_view, int> of;
};

thread_local ThreadsCalls calls;

bool is_turn_of(std::string_view function) {
    if (function == "cuGetErrorName" || function == "cuGetErrorString") return false;
    ++calls.of[function];
    if (!calls.counted.empty() && calls.counted != function) return false;
    if (calls.number++ != calls.turn) return false;
    calls.failed = function;
    return true;
}

/// A separate function for each entry of the driver's table. It knows the entry's name.
template <class Function>
struct Entry;

template <class... Arguments>
struct Entry<CUresult (*)(Arguments...)> {
    template <auto member>
    struct Of {
        static inline const char* name = nullptr;
        static CUresult call(Arguments... arguments) {
            if (is_turn_of(name)) return CUDA_ERROR_ILLEGAL_STATE;
            return (untouched.*member)(arguments...);
        }
    };
};

DriverFunctions& table() { return const_cast<DriverFunctions&>(Driver::get().api()); }

}  // namespace

FailingDriver::FailingDriver() {
    untouched = table();
#define WRAP(function, version, mode)                                                       \
    {                                                                                       \
        using Wrapped = Entry<PFN_##function##_v##version>::Of<&DriverFunctions::function>; \
        Wrapped::name = #function;                                                          \
        table().function.pointer = &Wrapped::call;                                          \
    }
    BASCULE_DRIVER_FUNCTIONS(WRAP)
#undef WRAP
}

FailingDriver::~FailingDriver() { table() = untouched; }

void FailingDriver::fail(int number, std::string_view function) {
    calls = {};
    calls.turn = number;
    calls.counted = function;
}

const std::string& FailingDriver::failed() noexcept { return calls.failed; }

int FailingDriver::calls_of(std::string_view function) {
    const auto found = calls.of.find(function);
    return found == calls.of.end() ? 0 : found->second;
}

const DriverFunctions& FailingDriver::real() noexcept { return untouched; }

}  // namespace bascule::testing
