#include "failing_driver.hpp"

#include <set>
#include <string_view>

namespace bascule::testing {
namespace {

DriverFunctions untouched;
std::string failed_function;
int calls = 0;
int turn = -1;

bool is_turn_of(const char* function) {
    static const std::set<std::string_view> left_alone = {"cuGetErrorName", "cuGetErrorString"};
    if (left_alone.count(function) != 0 || calls++ != turn) return false;
    failed_function = function;
    return true;
}

/// For each entry of the table a function of its own, which knows its name.
template <class Function>
struct Entry;

template <class... Arguments>
struct Entry<CUresult (*)(Arguments...)> {
    using Function = CUresult (*)(Arguments...);

    template <Function DriverFunctions::*member>
    struct Of {
        static inline const char* name = nullptr;
        static CUresult call(Arguments... arguments) {
            if (is_turn_of(name)) return CUDA_ERROR_UNKNOWN;
            return (untouched.*member)(arguments...);
        }
    };
};

DriverFunctions& table() { return const_cast<DriverFunctions&>(Driver::get().api()); }

}  // namespace

FailingDriver::FailingDriver(int fails) {
    untouched = table();
    failed_function.clear();
    calls = 0;
    turn = fails;
#define WRAP(function, version)                                                             \
    {                                                                                       \
        using Wrapped = Entry<PFN_##function##_v##version>::Of<&DriverFunctions::function>; \
        Wrapped::name = #function;                                                          \
        table().function = &Wrapped::call;                                                  \
    }
    BASCULE_DRIVER_FUNCTIONS(WRAP)
#undef WRAP
}

FailingDriver::~FailingDriver() { table() = untouched; }

const std::string& FailingDriver::failed() noexcept { return failed_function; }
const DriverFunctions& FailingDriver::real() noexcept { return untouched; }

}  // namespace bascule::testing
